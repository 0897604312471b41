"""Provider families, and the error bodies with which providers refuse a form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI

from kantan_agents.models.origin import origin_of
from kantan_agents.models.resolve import resolve_model
from kantan_agents.models.structured.requests.families import FAMILIES, family_of
from kantan_agents.testing import OfflineServer, Reply
from tests.models.structured.invoices import DATA, invoice_agent

HOSTS = {
    "https://api.openai.com/v1/": "openai",
    "https://europe.openai.azure.com/openai/": "openai",
    "https://generativelanguage.googleapis.com/v1beta/openai/": "google",
    "https://api.anthropic.com/v1/": "anthropic",
    "https://api.deepseek.com": "deepseek",
    "https://api.deepseek.com.example.org": "unknown",
    "https://notopenai.com/v1": "unknown",
    "http://127.0.0.1:8000/v1": "unknown",
    "no url": "unknown",
}
NAMES = {
    "openai": "openai",
    "google": "google",
    "anthropic": "anthropic",
    "ollama": "local",
    "lmstudio": "local",
    "openrouter": "unknown",
    "compat": "local",
    None: "unknown",
}
# Real answers of these providers; gateways may wrap them differently.
DEEPSEEK = {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}
DEEPSEEK_EARLIER = (
    "Failed to deserialize the JSON body into the target type: response_format: response_format.type "
    "`json_schema` is unavailable now at line 1 column 12440"
)
GEMINI = {
    "code": 400,
    "message": "Function calling with a response mime type: 'application/json' is unsupported",
    "status": "INVALID_ARGUMENT",
}
OPENAI = {
    "message": "Invalid schema for response_format 'final_output': In context=('properties', 'a'), "
    "'default' is not permitted.",
    "type": "invalid_request_error",
    "param": "text.format.schema",
    "code": "invalid_json_schema",
}
OPENROUTER = {"message": "No endpoints found that support the requested response_format", "code": 404}
REFUSALS: dict[str, tuple[int, Any]] = {
    "DeepSeek": (400, {"error": DEEPSEEK}),
    "DeepSeek, earlier": (422, DEEPSEEK_EARLIER),
    "Gemini": (400, [{"error": GEMINI}]),
    "OpenAI": (400, {"error": OPENAI}),
    "OpenRouter": (404, {"error": OPENROUTER}),
    "vague": (400, {"error": {"message": "Bad Request"}}),
    "a grammar that cannot be made": (500, {"error": {"message": "failed to parse grammar", "code": 500}}),
}


@pytest.mark.parametrize(("url", "name"), HOSTS.items())
def test_a_host_selects_its_family(url: str, name: str) -> None:
    assert family_of(None, url).name == name


@pytest.mark.parametrize(("provider", "name"), NAMES.items())
def test_a_provider_name_selects_its_family(provider: str | None, name: str) -> None:
    assert family_of(provider, "http://127.0.0.1:1234/v1").name == name


def test_the_host_takes_precedence_over_the_name() -> None:
    assert family_of("openai", "https://api.deepseek.com/v1").name == "deepseek"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_ends_with_a_form_that_always_works(family: Any) -> None:
    for forms in (family.forms, family.forms_beside_tools):
        assert forms[-1].mode == "prompt"
        assert not forms[-1].json_object
        assert len(set(forms)) == len(forms)


async def test_the_origin_of_every_kind_of_model_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    client = AsyncOpenAI(api_key="x", base_url="https://api.deepseek.com")
    bundle = AsyncClientBundle(client, "deepseek-chat", "compat", "https://api.deepseek.com")
    found = origin_of(resolve_model(bundle).model)
    assert (found.base_url, found.model, found.is_chat) == ("https://api.deepseek.com", "deepseek-chat", True)
    monkeypatch.setenv("CLAUDE_API_KEY", "x")
    monkeypatch.setenv("CLAUDE_BASE_URL", "http://127.0.0.1:9/v1")
    named = origin_of(resolve_model("claude-sonnet-4").model)
    assert named.provider == "anthropic"


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_a_refusal_of_the_form_leads_to_the_next_one(refusal: tuple[int, Any]) -> None:
    status, body = refusal
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {"x-should-retry": "false"}

    def reply(request: Any) -> Any:
        if "response_format" in request.body:
            return Reply(status=status, body=raw, headers=headers)
        return DATA

    with OfflineServer(reply) as server:
        context = await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    assert context["invoice"] == DATA
    assert len(server.requests) == 2


@pytest.mark.parametrize("said", [" \n ", ""])
async def test_white_space_in_json_mode_leads_to_the_next_form(said: str) -> None:
    def reply(request: Any) -> Any:
        if request.body.get("tools"):
            return "no"
        return said if "response_format" in request.body else DATA

    with OfflineServer(reply) as server:
        bundle = server.bundle(api="chat", provider="deepseek")
        context = await invoice_agent(bundle, output_repairs=1).run_async("Read it")
    assert context["invoice"] == DATA
