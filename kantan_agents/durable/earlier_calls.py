"""``EarlierCalls``: what earlier attempts have stored of one run, for the attempt that goes on with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kantan_agents.agent.running.identity import InnerIdentities
from kantan_agents.core.interception import ToolCall
from kantan_agents.durable.execution import Execution

INSIDE: Final = "inside"
"""In the body of a step: the calls that it was inside of. Steps without it, of earlier versions of this
library and of middleware, are not compared with what the program does."""
ONCE: Final = "once"
"""In the body of an answer: the tools that could be called only once when it was given."""
UNKNOWN: Final = "unknown"
"""In the body of an answer: the names in its calls that no tool and no hand-off had when it was given."""


class _Called(NamedTuple):
    """A call in an answer of this attempt.

    Attributes:
        arguments: Its arguments.
        answer: The body of the stored answer; None if the answer is new.
    """

    arguments: str
    answer: Mapping[str, Any] | None


class EarlierCalls:
    """What earlier attempts have stored of one run.

    The program that goes on may be another one than that which has begun.

    Args:
        execution: The execution that the run belongs to.
        run_id: Id of the run.
    """

    def __init__(self, execution: Execution, run_id: str) -> None:
        self._execution = execution
        self._run_id = run_id
        self._called: dict[tuple[str, str], _Called] = {}
        self._places: set[str] = set()

    def note(self, inside: str, output: Iterable[Any], stored: Mapping[str, Any] | None = None) -> None:
        """Note the calls of an answer: of a new one, or of the stored one with this body."""
        if self._execution.attempt == 1:
            return
        self._places.add(inside)
        for item in output:
            given = item if isinstance(item, Mapping) else vars(item)
            if given.get("call_id"):
                self._called[inside, given["call_id"]] = _Called(str(given.get("arguments") or ""), stored)

    def arguments_of(self, call: ToolCall) -> str:
        """Return the arguments of a call as the answer has it; empty if no answer of this attempt has it."""
        called = self._called.get((call.inside, call.call_id))
        return "" if called is None else called.arguments

    def may_have_been_made(self, call: ToolCall) -> bool:
        """Return whether an earlier attempt may have made a call whose result is not stored."""
        answer = self._called.get((call.inside, call.call_id), _Called("", None)).answer
        return answer is not None and INSIDE in answer and call.name not in answer.get(UNKNOWN, ())

    def may_have_begun(self, call: ToolCall, step: str) -> bool:
        """Return whether an earlier attempt may have begun a call of a tool in ``once``."""
        if self._execution.was_begun(self._run_id, step):
            return True
        if self._execution.attempt == 1:
            return False
        called = self._called.get((call.inside, call.call_id))
        if called is None:  # a person has approved or made it, and the run has begun with it
            noted: Collection[str] = (self._execution.known(self._run_id, ONCE) or {}).get("names", ())
        elif called.answer is None:
            return False
        else:
            noted = called.answer.get(ONCE, ())
        return call.name not in noted  # it could be called more than once then, and its begin was not stored

    def latest(self, step: str) -> dict[str, Any] | None:
        """Return what the last try of a call has returned; None if that is not stored."""
        kept, tries = self._execution.known(self._run_id, step), 2
        while (again := self._execution.known(self._run_id, f"{step}~{tries}")) is not None:
            kept, tries = again, tries + 1
        return kept

    def is_ahead(self, inside: str, *, of_calls: bool = False) -> bool:
        """Return whether an answer that earlier attempts have stored in this place is still to come.

        Args:
            inside: The place.
            of_calls: Whether the stored result of a call counts too.
        """
        bodies = self._execution.unused(self._run_id)
        return any(body[INSIDE] == inside and (of_calls or "output" in body) for body in bodies)

    def has_more_inside(self, path: str, inner: InnerIdentities) -> bool:
        """Return whether an agent was at work inside a call that has ended now without asking it.

        Args:
            path: The path of the call.
            inner: The runs that the call has begun.
        """
        begins = (f"{path}/", f"{path}~")
        places = {body[INSIDE] for body in self._execution.unused(self._run_id)}
        if any(place.startswith(begins) for place in places - self._places):
            return True
        runs = self._execution.unused_runs()
        return any(inner.id_of(inner.begun + number) in runs for number in range(1, len(runs) + 1))
