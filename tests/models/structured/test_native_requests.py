"""If the native mode comes first, the SDK's request is sent unchanged, with the same result."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import TracingProcessor, set_trace_processors

from kantan_agents.agent.bridge.structured_model import StructuredModel
from kantan_agents.errors import StructuredOutputError
from kantan_agents.middleware import Budget
from kantan_agents.models.structured.requests.forms import NATIVE
from kantan_agents.models.structured.requests.memory import FORMS
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.models.structured.invoices import DATA, TEXT, invoice_agent
from tests.models.structured.test_output_modes import look, mode_of

REPLIES: dict[str, Any] = {
    "fits": TEXT,
    "fenced": f"Here you are:\n```json\n{TEXT}\n```",
    "unfit": json.dumps({"number": "A-1"}),
    "prose": "It is from the lamp shop.",
    "empty": "",
    "tool": ScriptedToolCall("look", {"word": "lamp"}),
    "refusal": Reply(refusal="I would rather not."),
    "about the form": Reply("response_format is not supported", status=400),
    "about the key": Reply("the key is wrong", status=401),
    "cut": Reply(TEXT[:-9], is_cut=True),
}
SEQUENCES = [("chat", *names) for names in itertools.product(REPLIES, repeat=2)]
SEQUENCES += [("responses", name, "fits") for name in REPLIES]


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Any:
    known = dict(FORMS._known)
    yield
    FORMS._known.clear()
    FORMS._known.update(known)


class Spans(TracingProcessor):
    """Collects the data of spans."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []

    def on_span_end(self, span: Any) -> None:
        self.data.append(span.span_data.export())

    def on_span_start(self, span: Any) -> None: ...
    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


async def run_twice(
    api: Any, tools: Any, replies: Any, meanwhile: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Return everything observable about a second run that gets the replies.

    While its first request is on its way, ``meanwhile`` happens.
    """
    FORMS._known.clear()
    script = iter([TEXT, *replies])

    def reply(_request: Any) -> Any:
        if meanwhile is not None and len(server.requests) == 2:
            meanwhile()
        return next(script, TEXT)

    with OfflineServer(reply) as server:
        # Only servers that are not local begin with the native form beside tools.
        provider = "openrouter" if api == "chat" else None
        agent = invoice_agent(server.bundle(api=api, provider=provider), tools=tools)
        await agent.run_async("Read it")
        assert mode_of(server.requests[0]) == "native"
        spans = Spans()
        set_trace_processors([spans])
        seen: dict[str, Any] = {}
        try:
            context = await agent.run_async("Read it")
            seen["invoice"], result = context["invoice"], context["result"]
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
            seen["error"] = (type(error), str(error).replace(server.base_url, "URL"))
            if isinstance(error, StructuredOutputError):
                seen["attempts"] = error.attempts
        else:
            seen["usage"] = result.context_wrapper.usage
        seen["requests"] = [request.body for request in server.requests[1:]]
    seen["kinds"] = [data["type"] for data in spans.data]
    seen["final spans"] = [
        data for data in spans.data if data["type"] == "generation" and data["model"] is None
    ]
    seen["recorded attempts"] = [
        data["data"] for data in spans.data if data.get("name") == "structured_output"
    ]
    seen["known"] = [*FORMS._known.values()]
    return seen


@pytest.mark.parametrize("sequence", SEQUENCES, ids=", ".join)
async def test_a_run_gives_the_same_result_as_the_full_path(
    sequence: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, *names = sequence
    replies = [REPLIES[name] for name in names]
    tools = [look] if "tool" in names else []
    quick = await run_twice(api, tools, replies)
    monkeypatch.setattr(StructuredModel, "_native_choice", lambda *_: None)
    assert quick == await run_twice(api, tools, replies)


@pytest.mark.parametrize("name", REPLIES)
async def test_a_concurrent_run_does_not_change_the_forms_of_this_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_native() -> None:
        for target in [*FORMS._known]:
            FORMS.refused(target, NATIVE)

    tools = [look] if name == "tool" else []
    seen = []
    for plain_choice in (StructuredModel._native_choice, lambda *_: None):
        monkeypatch.setattr(StructuredModel, "_native_choice", plain_choice)
        seen.append(await run_twice("chat", tools, [REPLIES[name]], meanwhile=refuse_native))
    assert seen[0] == seen[1]


async def test_the_sdks_request_is_sent_unchanged_if_native_is_tried_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[bool] = []
    really = StructuredModel._native_choice

    def note(*args: Any) -> Any:
        choice = really(*args)
        chosen.append(choice is not None)
        return choice

    monkeypatch.setattr(StructuredModel, "_native_choice", note)
    FORMS._known.clear()
    with OfflineServer(lambda _request: DATA) as server:
        for mode in ("auto", "native", "prompt", "auto"):
            await invoice_agent(server.bundle(), output_mode=mode).run_async("Read it")
        await invoice_agent(server.bundle(), middleware=[Budget(max_tokens=9_999)]).run_async("Read it")
    assert chosen == [True, True, False, False, False]  # the prompt has worked last
