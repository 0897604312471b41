"""Encodes tool lists once: most runs of an agent share one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import attrs

from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.traces.capture.shared import Shared

_MOST_KNOWN = 256


@attrs.frozen(eq=False)
class SharedTools:
    """An encoded list; ``fields`` is empty if they cannot be copied."""

    tools: tuple[ref[Any], ...]
    fields: tuple[dict[str, Any], ...]
    all: Shared
    first: Shared


_known: dict[tuple[int, ...], SharedTools] = {}


def shared_tools(tools: Sequence[Any], described: Callable[[Any], dict[str, Any]]) -> SharedTools:
    """Return a nonempty list of tools or handoffs as shared content."""
    key = tuple(map(id, tools))
    known = _known.get(key)
    if known is not None:
        # Every run waits for this. The lengths are equal, as the ids were.
        for reference, before, tool in zip(known.tools, known.fields, tools):  # noqa: B905
            if reference() is not tool or tool.__dict__ != before:
                break
        else:
            return known
    packed = [encode(described(tool)) for tool in tools]
    both = Shared("tools", b"[" + b",".join(packed) + b"]"), Shared("tool", packed[0])
    try:
        fields = tuple(_copied(vars(tool)) for tool in tools)
        found = SharedTools(tuple(map(ref, tools)), fields, *both)
    except Exception:  # noqa: BLE001 - a class without fields, or a value that cannot be copied
        return SharedTools((), (), *both)
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = found
    return found


def _copied(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: copy.deepcopy(value) if isinstance(value, (dict, list)) else value
        for name, value in fields.items()
    }
