"""Which errors of a provider lead to another form of the request, and what is remembered of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import anyio
import attrs
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.errors import ProviderRequestError, StructuredOutputError
from kantan_agents.models.protocol import ProviderContext
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ScriptedToolCall
from tests.models.structured.form_server import Api, FormServer, Sent
from tests.models.structured.invoices import DATA, TEXT, invoice_agent

APIS = pytest.mark.parametrize("api", ["anthropic", "google"])
CLOSED = {
    "anthropic": "output_config.format: Extra inputs are not permitted",
    "google": "Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config': "
    "Cannot find field.",
}
# Real messages that sound like an error about size, or say nothing at all.
ABOUT_SCHEMA = [
    "The specified schema produces a constraint that has too many states for serving.",
    "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas.",
    "Schemas contains too many optional parameters (25), which would make grammar compilation inefficient.",
    "Request contains an invalid argument.",
    "No endpoints found that can handle the requested parameters.",
    "Model does not support formatted output.",
    "The response schema is too large: it exceeds the limit of 100000 tokens.",
]
ABOUT_SOMETHING_ELSE = [
    "prompt is too long: 210044 tokens > 200000 maximum",
    "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum context length is 8192 tokens, but there are 9021 (1021 in the functions).",
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
    "API key not valid. Please pass a valid API key.",
    "models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.",
    "Output blocked by content filtering policy",
]


@APIS
@pytest.mark.parametrize("is_streamed", [False, True], ids=["at once", "streamed"])
async def test_a_native_provider_that_refuses_the_schema_is_asked_with_a_tool(
    api: Api, is_streamed: bool
) -> None:
    def refuse(form: Sent) -> Any:
        return (400, CLOSED[api]) if form == "native" else None

    with FormServer(api, DATA, refuse) as server:
        agent = invoice_agent(server.provider())
        for _ in range(2):
            if is_streamed:
                async with agent.stream("Read it") as run:
                    async for _event in run:
                        pass
                context: Any = run.context
            else:
                context = await agent.run_async("Read it")
            assert context["invoice"] == DATA
    assert server.forms == ["native", "forced tool", "forced tool"]


@APIS
async def test_a_native_provider_that_refuses_tools_as_well_is_asked_with_the_prompt(api: Api) -> None:
    messages = {"native": CLOSED[api], "forced tool": "tools: Extra inputs are not permitted"}

    def refuse(form: Sent) -> Any:
        return (400, messages[form]) if form in messages else None

    with FormServer(api, DATA, refuse) as server:
        agent = invoice_agent(server.provider())
        for _ in range(2):
            assert (await agent.run_async("Read it"))["invoice"] == DATA
    assert server.forms == ["native", "forced tool", "prompt", "prompt"]


@APIS
@pytest.mark.parametrize("message", ABOUT_SCHEMA)
@pytest.mark.parametrize("status", [400, 404])
async def test_a_refused_schema_is_no_error_about_size(api: Api, message: str, status: int) -> None:
    def refuse(form: Sent) -> Any:
        return None if form == "prompt" else (status, message)

    with FormServer(api, DATA, refuse) as server:
        agent = invoice_agent(server.provider())
        assert (await agent.run_async("Read it"))["invoice"] == DATA
        assert len(server.forms) <= 3
        server.forms.clear()
        assert (await agent.run_async("Read it"))["invoice"] == DATA
    assert server.forms == ["prompt"]


@APIS
@pytest.mark.parametrize("message", ABOUT_SOMETHING_ELSE)
async def test_an_error_about_something_else_is_raised_at_once(api: Api, message: str) -> None:
    with FormServer(api, DATA, lambda _form: (400, message)) as server:
        with pytest.raises(ProviderRequestError) as caught:
            await invoice_agent(server.provider()).run_async("Read it")
        assert message in str(caught.value)
    assert server.forms == ["native"]


@APIS
@pytest.mark.parametrize("status", [401, 403, 408, 409, 413, 429, 500, 503])
async def test_an_outage_or_a_limit_is_never_taken_for_a_refused_form(api: Api, status: int) -> None:
    with FormServer(api, DATA, lambda _form: (status, "Request contains an invalid argument.")) as server:
        with pytest.raises(ProviderRequestError) as caught:
            await invoice_agent(server.provider()).run_async("Read it")
        assert caught.value.status == status
    assert len(server.forms) == 1


@APIS
async def test_an_error_that_every_form_gets_is_raised_after_one_more_request(api: Api) -> None:
    refusal: tuple[int, str] | None = (400, "Request contains an invalid argument.")
    with FormServer(api, DATA, lambda _form: refusal) as server:
        agent = invoice_agent(server.provider())
        with pytest.raises(ProviderRequestError, match="invalid argument"):
            await agent.run_async("Read it")
        assert server.forms == ["native", "prompt"]
        refusal = None
        await agent.run_async("Read it")
    assert server.forms[2:] == ["native"], "nothing is remembered of an error that is not about the form"


@APIS
async def test_one_unclear_error_does_not_replace_a_form_that_has_worked(api: Api) -> None:
    with FormServer(api, DATA, lambda _form: None) as server:
        agent = invoice_agent(server.provider())
        await agent.run_async("Read it")
        server.refuse = lambda form: (400, "Provider returned error") if form == "native" else None
        assert (await agent.run_async("Read it"))["invoice"] == DATA
        server.refuse = lambda _form: None
        await agent.run_async("Read it")
    assert server.forms == ["native", "native", "prompt", "native"]


async def test_the_only_form_of_an_agent_is_not_replaced() -> None:
    with FormServer("google", DATA, lambda _form: (400, "Request contains an invalid argument.")) as server:
        with pytest.raises(ProviderRequestError, match="invalid argument"):
            await invoice_agent(server.provider(), output_mode="native").run_async("Read it")
        server.refuse = lambda _form: (400, CLOSED["google"])
        with pytest.raises(StructuredOutputError, match="refused by the provider: HTTP 400: Invalid JSON"):
            await invoice_agent(server.provider(), output_mode="native").run_async("Read it")
    assert server.forms == ["native", "native"]


async def test_agents_of_one_provider_share_what_is_known() -> None:
    def refuse(form: Sent) -> Any:
        return (400, CLOSED["google"]) if form == "native" else None

    with FormServer("google", DATA, refuse) as server:
        provider = server.provider()
        for _ in range(2):
            assert (await invoice_agent(provider).run_async("Read it"))["invoice"] == DATA
    assert server.forms == ["native", "forced tool", "forced tool"]


class Picky:
    """A custom provider whose API refuses schemas and tools."""

    name = "picky"
    supports_output_schema = True

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        self.calls += 1
        if context.output_schema is not None or context.tools:
            raise ProviderRequestError(provider=self.name, status=400, reason="no schema, no tools")
        return ProviderResponse([ContentSegment.of_text(TEXT)])


async def test_a_custom_provider_may_refuse_a_form() -> None:
    provider = Picky()
    for calls in (3, 4):
        assert (await invoice_agent(provider).run_async("Read it"))["invoice"] == DATA
        assert provider.calls == calls


async def test_a_bad_reply_is_repaired_rather_than_requested_in_a_refused_form() -> None:
    replies: Any = iter([DATA, "no", DATA])
    with OfflineServer(lambda _request: next(replies), profile="plain") as server:
        agent = invoice_agent(server.bundle(f"model-{next(_NUMBERS)}"))
        await agent.run_async("Read it")
        server.requests.clear()
        assert (await agent.run_async("Read it"))["invoice"] == DATA
    assert [form_of(request) for request in server.requests] == ["prompt", "prompt"]


# Properties, over one server of the chat completions API.

_NUMBERS = count(1)
_FORMS = ("native", "forced tool", "tool", "prompt")
_CLEAR = {
    "native": ["response_format is not supported", "Unknown parameter: response_format.json_schema"],
    "forced tool": ["tool_choice 'required' is not supported", "tools are not supported"],
    "tool": ["function calling is not supported"],
}
_UNCLEAR = st.one_of(
    st.sampled_from(["Bad Request", "Provider returned error", "Request contains an invalid argument."]),
    st.text(alphabet="abcdef \u30a2\u00e9", min_size=1, max_size=30),
)


@attrs.frozen
class Behaviour:
    """What a provider answers to each form: an error, or None for the data."""

    errors: dict[str, tuple[int, str] | None]

    def reply(self, request: RecordedRequest) -> Any:
        form = form_of(request)
        error = self.errors[form]
        if error is not None:
            body = json.dumps({"error": {"message": error[1]}}).encode()
            return Reply(status=error[0], body=body, headers={"x-should-retry": "false"})
        return ScriptedToolCall("final_answer", DATA) if "tool" in form else DATA


def form_of(request: RecordedRequest) -> str:
    if "response_format" in request.body:
        return "native"
    if not request.body.get("tools"):
        return "prompt"
    return "forced tool" if request.body.get("tool_choice") == "required" else "tool"


class Shared:
    behaviour = Behaviour(dict.fromkeys(_FORMS))


@pytest.fixture(scope="module")
def server() -> Iterator[OfflineServer]:
    def reply(request: RecordedRequest) -> Any:
        return Shared.behaviour.reply(request)

    with OfflineServer(reply) as running:
        yield running


def new_agent(server: OfflineServer) -> Any:
    # Forms are remembered by model, so each example has a model of its own.
    return invoice_agent(server.bundle(f"model-{next(_NUMBERS)}", api="chat"))


def requests_of(server: OfflineServer, run: Callable[[], Any]) -> list[str]:
    server.requests.clear()
    run()
    return [form_of(request) for request in server.requests]


def read(agent: Any) -> None:
    async def run() -> None:
        assert (await agent.run_async("Read it"))["invoice"] == DATA

    anyio.run(run)


@st.composite
def refusing(draw: st.DrawFn) -> Behaviour:
    """Return a provider that refuses any of the forms but the prompt, clearly or not."""
    status = draw(st.sampled_from([400, 404, 422]))
    same = draw(st.one_of(st.none(), _UNCLEAR))
    errors: dict[str, tuple[int, str] | None] = dict.fromkeys(_FORMS)
    for form, clear in _CLEAR.items():
        if draw(st.booleans()):
            errors[form] = (status, same or draw(st.one_of(st.sampled_from(clear), _UNCLEAR)))
    return Behaviour(errors)


@given(refusing())
def test_an_accepted_form_is_found_and_remembered(server: OfflineServer, behaviour: Behaviour) -> None:
    Shared.behaviour = behaviour
    agent = new_agent(server)
    first = requests_of(server, lambda: read(agent))
    assert len(set(first)) == len(first), "no form is sent twice"
    assert all(behaviour.errors[form] is not None for form in first[:-1])
    second = requests_of(server, lambda: read(agent))
    assert second == first[-1:]
    refused = [behaviour.errors[form] for form in first[:-1]]
    clear = {text for texts in _CLEAR.values() for text in texts}
    if refused and refused[0] is not None and refused[0][1] not in clear:
        assert first == ["native", "prompt"], "an unclear error takes one more request"


def requests_until_the_error(server: OfflineServer, agent: Any, status: int, message: str) -> list[str]:
    """Return the forms of a run in which every form gets the same error, which is raised unchanged."""
    Shared.behaviour = Behaviour(dict.fromkeys(_FORMS, (status, message)))

    def fail() -> None:
        with pytest.raises(openai.APIStatusError) as caught:
            read(agent)
        assert (caught.value.status_code, caught.value.body) == (status, {"message": message})

    return requests_of(server, fail)


def assert_nothing_is_remembered(server: OfflineServer, agent: Any) -> None:
    Shared.behaviour = Behaviour(dict.fromkeys(_FORMS))
    assert requests_of(server, lambda: read(agent)) == ["native"]


@given(st.sampled_from([400, 404, 422]), _UNCLEAR)
def test_an_error_that_is_not_about_the_form_is_raised_after_one_more_request(
    server: OfflineServer, status: int, message: str
) -> None:
    agent = new_agent(server)
    assert requests_until_the_error(server, agent, status, message) == ["native", "prompt"]
    assert_nothing_is_remembered(server, agent)


@given(st.sampled_from([400, 404, 422, 500]), st.sampled_from(_CLEAR["native"]))
def test_an_error_that_names_the_form_but_is_not_about_it_is_raised_after_two_more_requests(
    server: OfflineServer, status: int, message: str
) -> None:
    agent = new_agent(server)
    sent = requests_until_the_error(server, agent, status, message)
    assert sent == ["native", "forced tool", "prompt"]
    assert_nothing_is_remembered(server, agent)


@given(st.sampled_from([401, 402, 403, 408, 409, 413, 429, 500, 502, 503, 504, 529]), _UNCLEAR)
def test_no_other_status_costs_a_second_request(server: OfflineServer, status: int, message: str) -> None:
    agent = new_agent(server)
    assert requests_until_the_error(server, agent, status, message) == ["native"]
    assert_nothing_is_remembered(server, agent)
