"""Where the native mode has worked, a model is asked as the SDK asks it; all else comes to the same."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from agents import TracingProcessor, set_trace_processors

from kantan_agents.bridge.structured_model import StructuredModel
from kantan_agents.errors import StructuredOutputError
from kantan_agents.structured.asking.forms import NATIVE
from kantan_agents.structured.asking.memory import FORMS
from kantan_agents.testing import OfflineServer, Reply, ToolCall
from tests.structured.invoices import DATA, TEXT, invoice_agent
from tests.structured.test_output_modes import look, mode_of

pytestmark = pytest.mark.anyio

REPLIES: dict[str, Any] = {
    "fits": TEXT,
    "fenced": f"Here you are:\n```json\n{TEXT}\n```",
    "unfit": json.dumps({"number": "A-1"}),
    "prose": "It is from the lamp shop.",
    "empty": "",
    "tool": ToolCall("look", {"word": "lamp"}),
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
    """Keeps what spans say."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []

    def on_span_end(self, span: Any) -> None:
        self.data.append(span.span_data.export())

    def on_span_start(self, span: Any) -> None: ...
    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


async def run_twice(api: Any, tools: Any, replies: Any) -> dict[str, Any]:
    """Return all that can be seen of a second run, in which the replies come."""
    FORMS._known.clear()
    script = iter([TEXT, *replies])
    with OfflineServer(lambda _request: next(script, TEXT)) as server:
        agent = invoice_agent(server.bundle(api=api), tools=tools)
        await agent.run_async("Read it")
        assert mode_of(server.requests[0]) == "native"
        spans = Spans()
        set_trace_processors([spans])
        seen: dict[str, Any] = {}
        try:
            seen["invoice"] = (await agent.run_async("Read it"))["invoice"]
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
            seen["error"] = (type(error), str(error).replace(server.base_url, "URL"))
            if isinstance(error, StructuredOutputError):
                seen["attempts"] = error.attempts
        seen["requests"] = [request.body for request in server.requests[1:]]
    seen["kinds"] = [data["type"] for data in spans.data]
    seen["final spans"] = [
        data for data in spans.data if data["type"] == "generation" and data["model"] is None
    ]
    seen["attempts told"] = [data["data"] for data in spans.data if data.get("name") == "structured_output"]
    seen["known"] = [*FORMS._known.values()]
    return seen


@pytest.mark.parametrize("sequence", SEQUENCES, ids=", ".join)
async def test_a_run_comes_to_the_same_as_without(sequence: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api, *names = sequence
    replies = [REPLIES[name] for name in names]
    tools = [look] if "tool" in names else []
    quick = await run_twice(api, tools, replies)
    monkeypatch.setattr(StructuredModel, "_may_be_asked_plainly", lambda *_: False)
    assert quick == await run_twice(api, tools, replies)


async def test_the_second_run_is_asked_plainly_and_the_first_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    really = StructuredModel._may_be_asked_plainly

    def note(*args: Any) -> bool:
        asked.append(really(*args))
        return asked[-1]

    monkeypatch.setattr(StructuredModel, "_may_be_asked_plainly", note)
    FORMS._known.clear()
    with OfflineServer(lambda _request: DATA) as server:
        for mode in ("auto", "native", "prompt", "auto"):
            await invoice_agent(server.bundle(), output_mode=mode).run_async("Read it")
    assert asked == [False, True, False, False]  # the prompt has worked last


async def test_what_others_have_found_out_meanwhile_is_not_taken_for_an_answer_in_another_form() -> None:
    def reply(_request: Any) -> Any:
        if len(server.requests) != 2:
            return DATA
        for target in [*FORMS._known]:  # another run was refused while this one waited
            FORMS.refused(target, NATIVE)
        return "no JSON"

    FORMS._known.clear()
    with OfflineServer(reply) as server:
        agent = invoice_agent(server.bundle())
        for _ in range(2):
            assert (await agent.run_async("Read it"))["invoice"] == DATA
        assert [mode_of(request) for request in server.requests] == ["native", "native", "tool"]
