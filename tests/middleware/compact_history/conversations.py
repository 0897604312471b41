"""Conversations for the tests of ``CompactHistory``, and what must hold of those that were shortened."""

from __future__ import annotations

from typing import Any

from agents import Usage
from hypothesis import strategies as st

from kantan_agents.core.items import CALL_OF
from kantan_agents.testing import RecordedCall, Reply, ScriptedModel

_SCREENSHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def looked_up(number: int, result: str) -> list[dict[str, Any]]:
    """Return a call of a tool with its result."""
    return [
        {"type": "function_call", "call_id": f"c{number}", "name": "find", "arguments": f'{{"n": {number}}}'},
        {"type": "function_call_output", "call_id": f"c{number}", "output": result},
    ]


def exchanges(count: int, result: str = "A line of what was found. " * 40) -> list[dict[str, Any]]:
    """Return a conversation of questions, each with a call of a tool and an answer."""
    items = []
    for number in range(count):
        items += [user(f"Question {number}?"), *looked_up(number, f"{number}: {result}"), assistant("Yes.")]
    return items


def talk(count: int) -> list[dict[str, Any]]:
    """Return a conversation without tools, of about 200 tokens for each question with its answer."""
    return [
        item
        for number in range(count)
        for item in (user(f"Question {number}? " + "and so on " * 40), assistant("and so on " * 40))
    ]


def texts(items: Any) -> str:
    """Return all of a request as a text, to look for something in it."""
    return str(items)


class Answering(ScriptedModel):
    """A model that answers and summarizes, with a count of tokens that a test chooses."""

    def __init__(
        self, summary: Any = "What was said before.", *, tokens: Any = None, name: str = "m"
    ) -> None:
        super().__init__(self._reply)
        self.name = name
        self._summary = summary
        self._tokens = tokens

    def _reply(self, call: RecordedCall) -> Any:
        if is_for_summary(call):
            return self._summary(call) if callable(self._summary) else self._summary
        if self._tokens is None:
            return "Well."
        read = self._tokens(call)
        return Reply(
            text="Well.", usage=Usage(requests=1, input_tokens=read, output_tokens=5, total_tokens=read + 5)
        )

    @property
    def sent(self) -> list[Any]:
        """The inputs of the calls that were not for a summary."""
        return [call.input for call in self.calls if not is_for_summary(call)]

    @property
    def summarized(self) -> list[str]:
        """The texts that were to be summarized."""
        return [call.input[0]["content"] for call in self.calls if is_for_summary(call)]


def is_for_summary(call: RecordedCall) -> bool:
    return "summary only" in (call.system_instructions or "")


# Generated conversations.

_words = st.integers(0, 60).map(lambda count: "some words, " * count)
_ids = st.sampled_from(["call_0", "call_1", "call_2", "call_3"])  # used again, as by some providers


@st.composite
def calls(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw calls that a model makes at once, with their results in any order."""
    made, results = [], []
    for call_id in draw(st.lists(_ids, min_size=1, max_size=3, unique=True)):
        result = draw(st.sampled_from(sorted(set(CALL_OF) - {"mcp_approval_response"})))
        text = draw(_words)
        made.append({"type": CALL_OF[result], "call_id": call_id, "name": "t", "arguments": "{}"})
        output: Any = text
        if result == "shell_call_output":
            output = [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
        elif result == "computer_call_output":
            output = _SCREENSHOT
        elif draw(st.booleans()) and result == "function_call_output":
            output = [{"type": "input_text", "text": text}]
        results.append({"type": result, "call_id": call_id, "output": output})
    shown = draw(st.permutations(results))
    # A result may arrive after something else was said, such as that of a call that waited for an approval.
    later = draw(st.sampled_from([[], [], [user("Go on.")], [assistant("One moment.")]]))
    at = draw(st.integers(0, len(shown)))
    return [*made, *shown[:at], *later, *shown[at:]]


@st.composite
def answers(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw what a model has written at once, with the results of its tools."""
    items: list[dict[str, Any]] = []
    if draw(st.booleans()):
        items.append({"type": "reasoning", "id": f"rs_{draw(st.integers(0, 10**9))}", "summary": []})
    kind = draw(st.sampled_from(["text", "calls", "hosted", "approval"]))
    if kind == "text":
        items.append(assistant(draw(_words) or "Yes."))
    elif kind == "calls":
        items += draw(calls())
    elif kind == "hosted":
        items.append(
            {"type": "mcp_call", "id": draw(_ids), "name": "t", "arguments": "{}", "output": draw(_words)}
        )
    else:
        number = f"r{draw(st.integers(0, 10**9))}"
        items.append({"type": "mcp_approval_request", "id": number, "name": "t", "arguments": "{}"})
        items.append({"type": "mcp_approval_response", "approval_request_id": number, "approve": True})
    return items


_pending = _ids.map(
    lambda call_id: [{"type": "function_call", "call_id": f"p_{call_id}", "name": "pay", "arguments": "{}"}]
)
_instructions = st.just([{"role": "developer", "content": "Be kind."}])
_messages = _words.map(lambda text: [user(text or "Go on.")])


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a conversation that a provider would accept, apart from calls that wait for an approval."""
    parts = st.one_of(_messages, answers(), answers(), answers(), _instructions, _pending)
    turns = draw(st.lists(parts, max_size=25))
    return [item for turn in [*turns, [user("The newest question.")]] for item in turn]


# What must hold.


def belonging_together(items: list[Any]) -> list[tuple[int, int]]:
    """Return the places of items that a provider accepts only together, each pair in order."""
    pairs = []
    for place, item in enumerate(items):
        kind = item.get("type")
        if kind == "reasoning":
            pairs.append((place, place + 1))
        if kind in CALL_OF:
            key = CALL_OF[kind], item.get("call_id") or item.get("approval_request_id")
            taken = {call for call, _ in pairs}
            found = next(
                (
                    at
                    for at, earlier in enumerate(items[:place])
                    if (earlier.get("type"), earlier.get("call_id") or earlier.get("id")) == key
                    and at not in taken
                ),
                None,
            )
            if found is not None:
                pairs.append((found, place))
    return pairs


def is_loose(items: list[Any], place: int) -> bool:
    """Return whether an item is a call or a result without its counterpart."""
    kind = items[place].get("type")
    known = {at for pair in belonging_together(items) for at in pair}
    return (kind in CALL_OF or kind in CALL_OF.values()) and place not in known
