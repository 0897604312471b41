"""The tool rules in force now in a run."""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol, cast

import attrs
from cachetools import LRUCache

from kantan_agents.core.context import empty_tool_rules
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import ToolRulesTypeError
from kantan_agents.models.plain_data import packed, unpacked
from kantan_agents.tool_rules import EXPLICIT, RuleLayers, ToolRules

NO_LAYERS = RuleLayers()

_EMPTY = empty_tool_rules()
_MEMO = object()
_LIMITED = object()
_NO_REST = b"-"
_lock = Lock()


@attrs.frozen(eq=False)
class _Memo:
    """Parsed explicit rules, with copies of their source to detect changes.

    Comparing a list with its copy takes a nanosecond per name, parsing it a thousand times as long.
    """

    standing: RuleLayers
    allow: Any
    deny: Any
    rest: bytes
    layers: RuleLayers

    def holds_for(self, explicit: dict[str, Any], standing: RuleLayers) -> bool:
        return (
            self.standing is standing
            and _same(self.allow, explicit.get("allow"))
            and _same(self.deny, explicit.get("deny"))
            and self.rest == _rest_of(explicit)
        )


_LONG = 100  # names; for longer lists, a lookup by identity is cheaper than hashing the names
_LISTS = (list, tuple, set, frozenset)
_UNCHANGING = (tuple, frozenset, str, type(None))
_parsed: LRUCache[Any, _Memo] = LRUCache(maxsize=256)  # by content
_of_lists: LRUCache[tuple[int, ...], _Memo] = LRUCache(maxsize=256)  # by identity of the lists


def rules_in_force(context: Any, standing: RuleLayers) -> RuleLayers:
    """Add the context's explicit rules on top (spec 9.7); E18, E20."""
    return rules_of_run(current_run.get(), context, standing)


def rules_of_run(run: Run | None, context: Any, standing: RuleLayers) -> RuleLayers:
    """Apply the ceiling, too; raises like ``rules_in_force``."""
    explicit = context.get("tool_rules") if isinstance(context, dict) else None
    # The usual case, several times a run, is a context without rules.
    layers = standing if explicit is None or explicit == _EMPTY else _own_rules(run, explicit, standing)
    if run is not None and run.limits:
        layers = _limited(run, layers)
    ceiling: Ceiling | None = getattr(run.delegation, "ceiling", None) if run is not None else None
    return layers if ceiling is None else ceiling.over(layers)


def _limited(run: Run, layers: RuleLayers) -> RuleLayers:
    """Return the same object each time, as it caches compiled rules."""
    known: tuple[RuleLayers, Any, RuleLayers] | None = run.state.get(_LIMITED)
    # A skill that the model chooses adds a limit.
    if known is None or known[0] is not layers or known[1] is not run.limits:
        # The agent with the arm has these limits itself; the run's other agents do not.
        missing = [limit for limit in run.limits if not any(limit is one for one in layers.limits)]
        narrowed = layers.with_limits(*missing) if missing else layers
        known = run.state[_LIMITED] = (layers, run.limits, narrowed)
    return known[2]


class Ceiling(Protocol):
    """Limits of a delegated run, whatever its own rules allow: ``run.delegation.ceiling``."""

    def over(self, layers: RuleLayers) -> RuleLayers:
        """Return ``layers`` with the limits in force now."""
        ...

    @property
    def agents_above(self) -> tuple[Any, ...]:
        """The SDK agents above the delegated run."""
        ...


def _own_rules(run: Run | None, explicit: Any, standing: RuleLayers) -> RuleLayers:
    if not isinstance(explicit, dict):
        raise ToolRulesTypeError(got=type(explicit).__name__)
    memo = run.state.get(_MEMO) if run is not None else None
    if memo is not None and memo.holds_for(explicit, standing):
        return memo.layers  # type: ignore[no-any-return]
    return _read(run, explicit, standing)


def _read(run: Run | None, explicit: dict[str, Any], standing: RuleLayers) -> RuleLayers:
    lists = _long_lists(explicit, standing)
    with _lock:
        memo = _of_lists.get(lists) if lists else None
    if memo is None or not memo.holds_for(explicit, standing):
        memo = _compiled(explicit, standing)
        if memo.rest and lists:
            with _lock:
                _of_lists[lists] = memo
    if run is not None and memo.rest:
        run.state[_MEMO] = memo
    return memo.layers


def _long_lists(explicit: dict[str, Any], standing: RuleLayers) -> tuple[int, ...] | None:
    """Return a key by identity for long lists, which services reuse.

    A later list may get the same id, so the caller compares the content.
    """
    both: tuple[Any, Any] = (explicit.get("allow"), explicit.get("deny"))
    names = sum(len(names) for names in both if type(names) in _LISTS)  # a subclass may do anything
    return (id(standing), *map(id, both)) if names >= _LONG else None


def _compiled(explicit: dict[str, Any], standing: RuleLayers) -> _Memo:
    allow, deny, rest = _copied(explicit.get("allow")), _copied(explicit.get("deny")), _rest_of(explicit)
    # A service may create an equal dict for each request: equal rules are compiled once.
    key = (standing, _key(allow), _key(deny), rest) if rest else None
    memo = _known(key)
    if memo is None:
        # The copies are parsed, because another thread may change the dict meanwhile.
        copied = {**_rest_as_dict(rest, explicit), "allow": allow, "deny": deny}
        layers = standing.with_layer(EXPLICIT, ToolRules.parse(copied))
        memo = _Memo(standing, allow, deny, rest, layers)
        if key:
            with _lock:
                _parsed[key] = memo
    return memo


def _known(key: Any) -> _Memo | None:
    try:
        with _lock:
            return _parsed.get(key) if key else None
    except TypeError:
        return None  # a name is not hashable: parsing the rules reports it


def _rest_as_dict(rest: bytes, explicit: dict[str, Any]) -> dict[str, Any]:
    if rest == _NO_REST:
        return {}
    if rest:
        return cast("dict[str, Any]", unpacked(rest))
    return {key: value for key, value in explicit.items() if key not in ("allow", "deny")}


def _rest_of(explicit: dict[str, Any]) -> bytes:
    """Return the rest as bytes, which distinguish 1 from True; b"" if impossible."""
    if explicit.keys() <= {"allow", "deny"}:
        return _NO_REST
    rest = {key: value for key, value in explicit.items() if key not in ("allow", "deny")}
    return packed(rest, _LISTS) or b""  # contains custom types: parsed each time


def _same(kept: Any, names: Any) -> bool:
    kind = type(names)
    if kind is not type(kept):
        return False
    # A tuple is immutable, so identity suffices, however long it is.
    return kind in _UNCHANGING if kept is names else kind in (*_LISTS, str) and kept == names


def _copied(names: Any) -> Any:
    if isinstance(names, list):
        return list.copy(names)  # a subclass may override `copy`
    return set.copy(names) if isinstance(names, set) else names


def _key(names: Any) -> Any:
    return (type(names).__name__, *names) if isinstance(names, (list, tuple)) else repr(names)
