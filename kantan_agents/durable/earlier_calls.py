"""The stored calls of one run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kantan_agents.agent.running.identity import InnerIdentities
from kantan_agents.core.interception import ToolCall
from kantan_agents.durable.execution import Execution

INSIDE: Final = "inside"
"""Step key: the calls around it. Steps of middleware and earlier versions lack it."""
ONCE: Final = "once"
UNKNOWN: Final = "unknown"


class _Called(NamedTuple):
    arguments: str
    answer: Mapping[str, Any] | None


class EarlierCalls:
    """The stored calls of one run, whose program may have changed since."""

    def __init__(self, execution: Execution, run_id: str) -> None:
        self._execution = execution
        self._run_id = run_id
        self._called: dict[tuple[str, str], _Called] = {}
        self._places: set[str] = set()

    def note(self, inside: str, output: Iterable[Any], stored: Mapping[str, Any] | None = None) -> None:
        """Note the calls of an answer; ``stored`` is its body if it is not new."""
        if self._execution.attempt == 1:
            return
        self._places.add(inside)
        for item in output:
            given = item if isinstance(item, Mapping) else vars(item)
            if given.get("call_id"):
                self._called[inside, given["call_id"]] = _Called(str(given.get("arguments") or ""), stored)

    def arguments_of(self, call: ToolCall) -> str:
        """Return a call's arguments in this attempt's answer, or an empty string."""
        called = self._called.get((call.inside, call.call_id))
        return "" if called is None else called.arguments

    def may_have_been_made(self, call: ToolCall) -> bool:
        """Return whether a call without a stored result may have happened."""
        answer = self._called.get((call.inside, call.call_id), _Called("", None)).answer
        return answer is not None and INSIDE in answer and call.name not in answer.get(UNKNOWN, ())

    def may_have_begun(self, call: ToolCall, step: str) -> bool:
        """Return whether a call of a tool in ``once`` may have started."""
        if self._execution.was_begun(self._run_id, step):
            return True
        if self._execution.attempt == 1:
            return False
        called = self._called.get((call.inside, call.call_id))
        if called is None:  # a person approved or made it, and the run started with it
            noted: Collection[str] = (self._execution.known(self._run_id, ONCE) or {}).get("names", ())
        elif called.answer is None:
            return False
        else:
            noted = called.answer.get(ONCE, ())
        return call.name not in noted  # it could be called more than once then, so its start was not stored

    def latest(self, step: str) -> dict[str, Any] | None:
        """Return the stored result of a call's last try, if any."""
        kept, tries = self._execution.known(self._run_id, step), 2
        while (again := self._execution.known(self._run_id, f"{step}~{tries}")) is not None:
            kept, tries = again, tries + 1
        return kept

    def is_ahead(self, inside: str, *, of_calls: bool = False) -> bool:
        """Return whether a stored answer (or call, with ``of_calls``) inside a call is unused."""
        bodies = self._execution.unused(self._run_id)
        return any(body[INSIDE] == inside and (of_calls or "output" in body) for body in bodies)

    def has_more_inside(self, path: str, inner: InnerIdentities) -> bool:
        """Return whether a stored agent was active inside a call that has now ended without it."""
        begins = (f"{path}/", f"{path}~")
        places = {body[INSIDE] for body in self._execution.unused(self._run_id)}
        if any(place.startswith(begins) for place in places - self._places):
            return True
        runs = self._execution.unused_runs()
        return any(inner.id_of(inner.begun + number) in runs for number in range(1, len(runs) + 1))
