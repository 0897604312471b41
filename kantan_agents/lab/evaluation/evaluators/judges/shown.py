"""The parts that a judge sees."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.json_data import json_copy, read_json
from kantan_agents.lab.evaluation.evaluators.versions import version_of_function
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.support.arguments import shown

Texts: TypeAlias = list[tuple[str, Any]]
Sources: TypeAlias = str | Sequence[str] | Callable[[FinishedCase], Iterable[str] | None] | None
"""The sources of an answer: names of tools, or a function; None for the results of all tools."""
NOTHING_FOUND: Final = ("Sources", "(nothing was found)")
"""A search without results differs from no search."""


@attrs.frozen
class Given:
    """Options of a judge: the sources, and the descriptions of available tools."""

    sources: Sources = None
    tools: Mapping[str, str] = attrs.field(factory=dict)

    def version(self) -> Mapping[str, Any]:
        """Return the identity of the options."""
        given = self.sources
        named = version_of_function(given, "sources") if callable(given) else given
        return {"sources": named, "tools": dict(self.tools)}


@attrs.frozen
class Part:
    """A part of a judge's input; ``missing`` is for a case without it."""

    read: Callable[[FinishedCase, Given], Texts]
    missing: str = ""


def _reference(finished: FinishedCase, _given: Given) -> Texts:
    return [] if finished.expected is None else [("The reference", finished.expected)]


def _sources(finished: FinishedCase, given: Given) -> Texts:
    wanted = given.sources
    if callable(wanted):
        given_texts = wanted(finished)
        if given_texts is None:
            return []
        listed = [given_texts] if isinstance(given_texts, str) else given_texts
        texts = [json_copy(text, "a source") for text in listed]
    else:
        names = None if wanted is None else {*wanted}
        uses = [use for use in finished.tool_calls if names is None or use.name in names]
        if not uses:
            return []
        texts = [one for use in uses if use.output for one in _passages(use.output)]
    return [(f"Source {number}", text) for number, text in enumerate(texts, 1)] or [NOTHING_FOUND]


def _passages(output: str) -> list[Any]:
    """The SDK gives the model a list in Python's notation."""
    for read in (read_json, ast.literal_eval) if output.startswith("[") else ():
        try:
            data = json_copy(read(output), "a source")
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return data if isinstance(data, list) else [output]
    return [output]


def _calls(finished: FinishedCase, _given: Given) -> Texts:
    calls = [
        {
            "tool": use.name,
            "arguments": use.arguments,
            "result": "(denied)" if use.is_denied else use.output,
        }
        for use in finished.tool_calls
    ]
    return [("The tool calls, in order", calls or "(no tool was called)")]


PARTS: Final[Mapping[str, Part]] = {
    "question": Part(lambda finished, _: [("The input of the agent", finished.case.whole_input)]),
    "reference": Part(
        _reference,
        "it has no reference output; add expected to the case, or leave this judge out for this dataset",
    ),
    "sources": Part(
        _sources,
        "no sources are recorded; let the agent fetch them with a tool, or say with sources=... which tools "
        "return them, or give a function of the finished case",
    ),
    "tools": Part(lambda _, given: [("The tools there were", dict(given.tools))]),
    "calls": Part(_calls),
    "answer": Part(lambda finished, _: [("The answer to judge", finished.text)]),
}


def checked_sources(value: Any) -> Sources:
    """Return valid sources; E75 otherwise."""
    listed = [value] if isinstance(value, str) else value
    if value is None or (callable(value) and not isinstance(value, type)):
        return value
    if (
        isinstance(listed, Sequence)
        and listed
        and all(isinstance(one, str) and one.strip() for one in listed)
    ):
        return tuple(listed)
    reason = f"must be names of tools, or a function of the finished case, not {shown(value)}"
    raise InvalidOptionError(option="sources", reason=reason)


def described_tools(tools: Any) -> Mapping[str, str]:
    """Return descriptions by name."""
    if isinstance(tools, Mapping):
        found = {str(name): str(text) for name, text in tools.items()}
    elif isinstance(tools, Iterable) and not isinstance(tools, str):
        found = dict(map(_described, tools))
    else:
        found = {}
    if not found:
        reason = (
            f"must be the tools that the agent could choose from, such as agent.tools, not {shown(tools)}"
        )
        raise InvalidOptionError(option="tools", reason=reason)
    return found


def _described(tool: Any) -> tuple[str, str]:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if not isinstance(name, str):
        raise InvalidOptionError(option="tools", reason=f"{shown(tool)} is not a tool")
    return name, str(getattr(tool, "description", None) or inspect.getdoc(tool) or "")
