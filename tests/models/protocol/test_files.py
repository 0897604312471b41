"""A file in the input, such as a PDF, reaches the API of every model."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from agents import function_tool

from kantan_agents import Agent, ContentSegment
from kantan_agents.errors import InvalidProtocolValueError, UntranslatableError
from kantan_agents.models.protocol import Message, translate
from kantan_agents.testing import OfflineServer
from tests.models.protocol.scripted import Scripted, text
from tests.models.protocol.test_anthropic_gemini_agents import claude, gemini, text_body
from tests.models.protocol.wire_server import WireServer

DATA = base64.b64encode(b"%PDF-1.7 a small document").decode()
PDF = {"type": "input_file", "filename": "offer.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}
NOTES = {
    "type": "input_file",
    "filename": "notes.md",
    "file_data": f"data:text/markdown;base64,{base64.b64encode(b'# Hi').decode()}",
}
URL = "https://example.com/offer.pdf"
BY_URL = {"type": "input_file", "file_url": URL}


def asking(part: dict[str, Any]) -> list[Any]:
    return [{"role": "user", "content": [{"type": "input_text", "text": "Sum up."}, part]}]


async def sent(make: Callable[[str], Any], part: dict[str, Any]) -> Any:
    """Return the part of the request that a run sends for a part of its input."""
    with WireServer([text_body(make, "Short.")]) as server:
        async with make(server.url) as provider:
            context = await Agent("a", "Be brief.", model=provider).run_async(asking(part), {})
    assert context["result"].final_output == "Short."
    body = server.requests[0][1]
    return body["messages"][0]["content"][1] if make is claude else body["contents"][0]["parts"][1]


@pytest.mark.parametrize("part", [PDF, {"type": "file", "data": DATA, "mimeType": "application/pdf"}])
async def test_a_pdf_is_sent_to_the_native_apis(part: dict[str, Any]) -> None:
    title = {"title": "offer.pdf"} if "filename" in part else {}
    assert await sent(claude, part) == {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
        **title,
    }
    assert await sent(gemini, part) == {"inlineData": {"mimeType": "application/pdf", "data": DATA}}


async def test_a_pdf_without_type_and_name_is_recognised() -> None:
    part = {"type": "input_file", "file_data": DATA}
    assert (await sent(claude, part))["source"]["media_type"] == "application/pdf"
    assert (await sent(gemini, part))["inlineData"]["mimeType"] == "application/pdf"


@pytest.mark.parametrize("more", [";name=offer.pdf", ";charset=utf-8", ";charset=UTF-8;filename=a b.pdf"])
async def test_a_data_url_with_a_name_or_a_charset_is_no_url(more: str) -> None:
    part = {**PDF, "file_data": f"data:application/pdf{more};base64,{DATA}"}
    assert await sent(claude, part) == await sent(claude, PDF)
    assert await sent(gemini, part) == await sent(gemini, PDF)


async def test_a_file_at_a_url_is_sent_as_a_url() -> None:
    assert await sent(claude, BY_URL) == {"type": "document", "source": {"type": "url", "url": URL}}
    assert await sent(gemini, BY_URL) == {"fileData": {"mimeType": "application/pdf", "fileUri": URL}}


async def test_a_file_of_text_is_sent_as_a_document() -> None:
    assert (await sent(claude, NOTES))["source"] == {
        "type": "text",
        "media_type": "text/plain",
        "data": "# Hi",
    }
    assert (await sent(gemini, NOTES))["inlineData"]["mimeType"] == "text/markdown"


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_pdf_is_sent_to_openai(api: Any) -> None:
    with OfflineServer(["Short."]) as server:
        context = await Agent("a", "Be brief.", model=server.bundle(api=api)).run_async(asking(PDF), {})
    assert context["result"].final_output == "Short."
    body = server.requests[0].body
    part = body["input"][0]["content"][1] if api == "responses" else body["messages"][-1]["content"][1]
    file = {"filename": "offer.pdf", "file_data": PDF["file_data"]}
    assert part == (PDF if api == "responses" else {"type": "file", "file": file})


async def test_a_custom_provider_gets_the_file_with_its_name() -> None:
    provider = Scripted(text("Short."))
    await Agent("a", "Be brief.", model=provider).run_async(asking(PDF), {})
    segment = provider.contexts[0].messages[0].segments[1]
    assert (segment.type, segment.mime_type, segment.data) == ("file", "application/pdf", DATA)
    assert segment.extra == {"filename": "offer.pdf"}


@pytest.mark.parametrize("make", [claude, gemini])
async def test_a_file_that_a_tool_returns_is_sent(make: Any) -> None:
    @function_tool
    def fetch() -> Any:
        return {"type": "file", "file_data": PDF["file_data"], "filename": "offer.pdf"}

    use = {"type": "tool_use", "id": "c1", "name": "fetch", "input": {}}
    content = {"parts": [{"functionCall": {"name": "fetch", "id": "c1"}}]}
    calling = {
        claude: {"content": [use], "stop_reason": "tool_use"},
        gemini: {"candidates": [{"content": content, "finishReason": "STOP"}]},
    }
    with WireServer([calling[make], text_body(make, "Short.")]) as server:
        async with make(server.url) as provider:
            await Agent("a", "b", model=provider, tools=[fetch]).run_async("Sum up.", {})
    assert DATA in str(server.requests[1][1])


@pytest.mark.parametrize("make", [claude, gemini])
async def test_a_file_that_is_stored_at_openai_is_an_error_that_says_what_to_do(make: Any) -> None:
    provider = make("http://127.0.0.1:9")
    with pytest.raises(UntranslatableError, match="stored at OpenAI: give its content as file_data"):
        await Agent("a", "b", model=provider).run_async(asking({"type": "input_file", "file_id": "f"}), {})


async def test_a_type_that_claude_does_not_accept_is_e52_with_its_path() -> None:
    part = {"type": "input_file", "filename": "a.zip", "file_data": "data:application/zip;base64,AAAA"}
    with pytest.raises(UntranslatableError, match=r"\[0\].segments\[1\].mimeType: must be application/pdf"):
        await Agent("a", "b", model=claude("http://127.0.0.1:9")).run_async(asking(part), {})


def test_a_file_that_is_not_base64_is_e50_with_its_path() -> None:
    part = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,?"}
    with pytest.raises(InvalidProtocolValueError, match=r"input\[0\].content\[1\].data: is neither base64"):
        translate.messages_from_openai_responses(asking(part))


NAMED = ContentSegment("file", data=DATA, mime_type="application/pdf", extra={"filename": "a.pdf"})


def test_a_file_keeps_its_name_in_the_formats_that_have_names() -> None:
    message = Message("user", [NAMED])
    assert translate.messages_from_openai_chat(translate.messages_to_openai_chat([message])) == (message,)
    back = translate.messages_from_openai_responses(translate.messages_to_openai_responses([message]))
    assert back == (message,)
    assert translate.messages_from_anthropic(translate.messages_to_anthropic([message])) == (message,)
    with pytest.raises(UntranslatableError, match="filename"):
        translate.messages_to_gemini([message])


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "gemini"])
def test_an_image_is_not_sent_as_a_file(api: str) -> None:
    write = getattr(translate, f"messages_to_{api}")
    with pytest.raises(UntranslatableError):
        write([Message("user", [ContentSegment("file", data="aGk=", mime_type="image/png")])])


def test_chat_completions_cannot_hold_a_file_at_a_url() -> None:
    with pytest.raises(UntranslatableError, match="a file must be base64"):
        translate.messages_to_openai_chat([Message("user", [ContentSegment("file", data=URL)])])
