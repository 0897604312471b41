"""Sends tool names that every provider accepts.

MCP names may have any length, dots and slashes, for which OpenAI and Anthropic reject the request. Rules,
records and stored runs have the original names.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

from agents import CustomTool, FunctionTool, Handoff

from kantan_agents.core.items import NAMED_CALLS, get

_LONGEST: Final = 64
_ACCEPTED: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS: Final = 8
_NAME: Final = attrgetter("name")
_TOOL_NAME: Final = attrgetter("tool_name")


class SentNames:
    """One request's changed names."""

    def __init__(self, tools: Iterable[Any], handoffs: Iterable[Any]) -> None:
        self._sent: dict[str, str] = {}
        self._given = tools, handoffs
        if are_accepted(tools) and all(map(_is_accepted, map(_TOOL_NAME, handoffs))):
            return
        names = _names_of(tools, handoffs)
        taken = set(names)
        for name in dict.fromkeys(names):
            if not _is_accepted(name):
                self._sent[name] = _written(name, taken)
                taken.add(self._sent[name])
        self._own = {sent: name for name, sent in self._sent.items()}

    def tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Return tools with sent names."""
        return [_renamed(tool, "name", self._sent) for tool in tools] if self._sent else tools

    def handoffs(self, handoffs: Sequence[Any]) -> Sequence[Any]:
        """Return handoffs with sent names."""
        return [_renamed(one, "tool_name", self._sent) for one in handoffs] if self._sent else handoffs

    def settings(self, settings: Any) -> Any:
        """Return settings with the sent name."""
        return _renamed(settings, "tool_choice", self._sent) if self._sent else settings

    def items(self, items: Any) -> Any:
        """Return input items with sent names."""
        if not isinstance(items, list):
            return items
        odd = {
            name
            for item in items
            if isinstance(item, dict) and item.get("type") in NAMED_CALLS
            if isinstance(name := item.get("name"), str) and not _is_accepted(name)
        }
        if not odd:
            return items
        # Never another tool's name: the model would confuse their calls.
        taken = {self._sent.get(name, name) for name in _names_of(*self._given)}
        sent = {name: self._sent.get(name) or _written(name, taken) for name in odd}
        return [
            {**item, "name": sent[item["name"]]}
            if isinstance(item, dict) and item.get("type") in NAMED_CALLS and item.get("name") in sent
            else item
            for item in items
        ]

    def own(self, item: Any) -> Any:
        """Restore the tool's name in an item."""
        own = self._own.get(get(item, "name")) if self._sent and get(item, "type") in NAMED_CALLS else None
        if own is None:
            return item
        return {**item, "name": own} if isinstance(item, dict) else item.model_copy(update={"name": own})


def are_accepted(tools: Iterable[Any]) -> bool:
    """Return whether all names are accepted."""
    return all(map(_is_accepted, map(_NAME, tools)))


def is_accepted_call(call: Mapping[str, Any]) -> bool:
    """Return whether an item's name is accepted."""
    name = call.get("name")
    return not isinstance(name, str) or _is_accepted(name) or call.get("type") not in NAMED_CALLS


def _names_of(tools: Iterable[Any], handoffs: Iterable[Any]) -> list[str]:
    names = [tool.name for tool in tools if isinstance(tool, (FunctionTool, CustomTool))]
    return names + [handoff.tool_name for handoff in handoffs if isinstance(handoff, Handoff)]


@lru_cache(maxsize=4096)
def _is_accepted(name: str) -> bool:
    return _ACCEPTED.fullmatch(name) is not None


def _written(name: str, taken: Collection[str]) -> str:
    """Return the sent name, with a digest if needed."""
    written = _UNSAFE.sub("_", name)
    if len(written) <= _LONGEST and written not in taken and written.strip("_"):
        return written
    digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{written[: _LONGEST - _DIGITS - 1]}_{digits}"


def _renamed(value: Any, attribute: str, sent: Mapping[str, str]) -> Any:
    given = getattr(value, attribute, None)
    name = sent.get(given) if isinstance(given, str) else None
    if name is None:
        return value
    made = copy.copy(value)
    object.__setattr__(made, attribute, name)
    return made
