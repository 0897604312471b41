"""Makes call ids unique, and sends servers their own ids.

Some servers repeat ids, use the tool's name, or send none; the SDK then fails or skips a call. A new id
starts with the server's id, so another process needs no memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any, Final

from agents import Model

from kantan_agents.core.items import NAMED_CALLS, get
from kantan_agents.core.pipeline import current_run
from kantan_agents.models.origin import origin_of
from kantan_agents.support.storable_text import storable_text

# The server's id; 4 digits for the server; a number.
_MADE: Final = re.compile(r"(.+)__k([0-9a-f]{4})_[0-9]+", re.DOTALL)
_MARK: Final = "__k"
_WITHOUT_ID: Final = re.compile(r"call_k[0-9a-f]{4}_[0-9]+")
_SEEN: Final = object()


def ids_in(items: Any) -> set[str]:
    """Return the call ids in a request's input."""
    ids: set[str] = set()
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            call_id = item.get("call_id")
        else:
            # A pydantic model raises for a missing field; most are messages.
            is_message = getattr(item, "type", None) == "message"
            call_id = None if is_message else getattr(item, "call_id", None)
        if isinstance(call_id, str):
            ids.add(call_id)
    return ids


def is_made(call_id: Any) -> bool:
    """Return whether an id may be made here."""
    return not isinstance(call_id, str) or _MARK in call_id


def is_of_server(call_id: Any) -> bool:
    """Return whether the server may have assigned the id."""
    return not isinstance(call_id, str) or _WITHOUT_ID.fullmatch(call_id) is None


def with_servers_ids(items: Any, ids: Collection[str], model: Model) -> Any:
    """Restore the ids of ``model``'s server in ``items``."""
    made = {one: found for one in ids if is_made(one) and (found := _MADE.fullmatch(one))}
    if not made:
        return items
    mine = _server(model)
    old = {one: found[1] for one, found in made.items() if found[2] == mine}
    return [_with_id(item, old[one]) if (one := get(item, "call_id")) in old else item for item in items]


class UniqueIds:
    """The call ids of one answer."""

    def __init__(self, model: Model, known: set[str]) -> None:
        run = current_run.get()
        # Requests may omit old calls that the SDK still knows.
        self._of_run: set[str] = set() if run is None else run.state.setdefault(_SEEN, set())
        self._model = model
        self._known = known
        self._begun: dict[Any, list[str]] = {}
        self._streamed: dict[Any, list[str]] = {}

    def items(self, output: Sequence[Any]) -> list[Any]:
        """Return the complete output with its streamed ids."""
        made = [self.item(item) for item in output]
        self._of_run |= ids_in(made)
        return made

    def item(self, item: Any) -> Any:
        """Return an output item with a unique id."""
        if get(item, "type") not in NAMED_CALLS:
            return item
        return self._with_unique(item, (self._streamed, self._begun))

    def streamed_item(self, item: Any, *, is_complete: bool) -> Any:
        """Return a streamed item with its final id."""
        given = get(item, "call_id")
        # A server may send the id only at the end.
        if get(item, "type") not in NAMED_CALLS or not (is_complete or given):
            return item
        made = self._with_unique(item, (self._begun,) if is_complete else ())
        kept = self._streamed if is_complete else self._begun
        kept.setdefault(given, []).append(get(made, "call_id"))
        return made

    def _with_unique(self, item: Any, earlier: Sequence[dict[Any, list[str]]]) -> Any:
        given = get(item, "call_id")
        found = next((ids[given] for ids in earlier if ids.get(given)), None)
        made = self._unique(given) if found is None else found.pop(0)
        return item if made == given else _with_id(item, made)

    def _unique(self, given: Any) -> str:
        # The SDK and databases find calls by it.
        base = storable_text(given) if isinstance(given, str) and given.strip() else None
        made, number = base, 0
        while made is None or made in self._known or made in self._of_run:
            number += 1
            made = f"{'call_' if base is None else base + '__'}k{_server(self._model)}_{number}"
        self._known.add(made)
        return made


def _server(model: Model) -> str:
    return sha256(origin_of(model).base_url.encode()).hexdigest()[:4]


def _with_id(item: Any, made: str) -> Any:
    return {**item, "call_id": made} if isinstance(item, dict) else item.model_copy(update={"call_id": made})
