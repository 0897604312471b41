"""Tool rules as a frozen value. A mistake is an error, never a silent permission (spec 8.2)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, cast

import attrs

from kantan_agents.errors import InvalidToolRulesError, ToolRulesTypeError
from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.folded_names import FoldedNameSet
from kantan_agents.tool_rules.keywords import parse_rule, path_step, shown
from kantan_agents.tool_rules.names import CACHED_NAMES, EVERY, NamePatterns, Names, NameSet, union
from kantan_agents.tool_rules.origins import Origin
from kantan_agents.tool_rules.parameters import ParameterChecks, ParameterRule, parse_path

Params = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""``{tool: {parameter: {keyword: value}}}``."""

KEYS = ("allow", "deny", "params")
_NOTHING: Params = MappingProxyType({})


def _as_json(params: Params) -> str:
    # For comparisons: in Python, True equals 1; in JSON, it does not.
    return json.dumps(params, default=dict)


@attrs.frozen(slots=False, hash=False)
class ToolRules:
    """A rule set, created by ``parse`` or ``merge``.

    Equal rule sets have the same entries in the same order. In ``allow``, None allows all. ``folds_denials``
    makes ``deny`` ignore case and compare only letters and digits.
    """

    allow: Names = None
    deny: Names = None
    params: Params = attrs.field(default=_NOTHING, eq=_as_json)
    folds_denials: bool = False

    @classmethod
    def parse(cls, rules: Mapping[str, Any], *, folds_denials: bool = False) -> ToolRules:
        """Parse the public dict shape ``{"allow": ..., "deny": ..., "params": {...}}``.

        Raises:
            ToolRulesTypeError: E18, ``rules`` is not a mapping.
            InvalidToolRulesError: E20, with every mistake and its path.
        """
        if not isinstance(rules, Mapping):
            raise ToolRulesTypeError(got=type(rules).__name__)
        problems = [
            f"{path_step(key)}: unknown key, there are allow, deny and params"
            for key in rules
            if key not in KEYS
        ]
        allow = _parse_names("allow", rules.get("allow"), problems)
        deny = _parse_names("deny", rules.get("deny"), problems)
        params = _parse_params(rules.get("params"), problems)
        if problems:
            raise InvalidToolRulesError(problems=problems)
        return cls(allow, deny, params, folds_denials)

    def to_dict(self) -> dict[str, Any]:
        """Return a new dict of the public shape."""
        return {
            "allow": list(self.allow) if isinstance(self.allow, tuple) else self.allow,
            "deny": list(self.deny) if isinstance(self.deny, tuple) else self.deny,
            "params": {
                tool: {name: _plain(rule) for name, rule in rules.items()}
                for tool, rules in self.params.items()
            },
        }

    def merge(self, later: ToolRules) -> ToolRules:
        """Merge by union, parameter rules by keyword; ``later`` wins (spec 9.2, 9.3)."""
        if later is NO_RULES or self is NO_RULES:
            return self if later is NO_RULES else later
        params = {tool: dict(rules) for tool, rules in self.params.items()}
        for tool, rules in later.params.items():
            merged = params.setdefault(tool, {})
            for name, rule in rules.items():
                merged[name] = {**merged.get(name, {}), **rule}
        return ToolRules(
            union(self.allow, later.allow),
            union(self.deny, later.deny),
            _frozen(params),
            self.folds_denials or later.folds_denials,
        )

    @property
    def permits_all(self) -> bool:
        """Whether every tool, call and argument is permitted."""
        return not self.deny and self.allow in (None, EVERY) and not self.params

    def permits(self, *names: str, origin: Origin | None = None) -> bool:
        """Return whether a tool may be used in at least some calls."""
        return self.denying(names) is None and (
            self.allow in (None, EVERY)
            or self.allowing(names, origin) is not None
            or bool(self.allowed_calls(names, origin))
        )

    def denying(self, names: Iterable[str]) -> str | None:
        """Return the entry of deny for all calls of the tool."""
        return self._denied.entry_for(names)

    def allowing(self, names: Iterable[str], origin: Origin | None = None) -> str | None:
        """Return the entry of allow for all calls of the tool."""
        return self._allowed.entry_for(names, origin)

    def denied_calls(self, names: Iterable[str]) -> tuple[CallPattern, ...]:
        """Return the entries of deny for some of its calls."""
        return self._denied.calls_of(names)

    def allowed_calls(self, names: Iterable[str], origin: Origin | None = None) -> tuple[CallPattern, ...]:
        """Return the entries of allow for some of its calls."""
        return self._allowed.calls_of(names, origin)

    def checks(self, names: tuple[str, ...]) -> ParameterChecks | None:
        """Return the compiled rules for the tool's arguments."""
        if not self.params:
            return None
        try:
            return self._checks[names]
        except KeyError:  # first use, or evicted from the cache
            checks = self._checks[names] = self._compiled(names)
            return checks

    def _compiled(self, names: tuple[str, ...]) -> ParameterChecks | None:
        tools = dict.fromkeys(tool for name in names for tool in self._param_tools.covering(name))
        rules = tuple(
            ParameterRule(tool, path, keywords)
            for tool in tools
            for path, keywords in self.params[tool].items()
            if keywords
        )
        return ParameterChecks(rules) if rules else None

    def about(self, names: Iterable[str], origin: Origin | None = None) -> dict[str, Any]:
        """Return a tool's rules in the public dict shape; ``origin`` may rule out allow entries."""
        names = tuple(names)
        tools = dict.fromkeys(tool for name in names for tool in self._param_tools.covering(name))
        whole = self.to_dict()
        return {
            "allow": self._allowed.entries_about(names, origin),
            "deny": self._denied.entries_about(names),
            "params": {tool: whole["params"][tool] for tool in tools},
        }

    @cached_property
    def parameter_entries(self) -> frozenset[str]:
        """Each ``tool.parameter`` and ``tool.parameter.keyword`` with a rule."""
        paths = {
            f"{tool}.{path}": rule for tool, rules in self.params.items() for path, rule in rules.items()
        }
        return frozenset(paths) | {f"{path}.{keyword}" for path, rule in paths.items() for keyword in rule}

    @cached_property
    def _allowed(self) -> NameSet:
        return NameSet(self.allow)

    @cached_property
    def _denied(self) -> NameSet:
        return (FoldedNameSet if self.folds_denials else NameSet)(self.deny, literal=True)

    @cached_property
    def _param_tools(self) -> NamePatterns:
        return NamePatterns(self.params)

    @cached_property
    def _checks(self) -> _BoundedCache:
        return _BoundedCache()

    def __hash__(self) -> int:
        return hash((self.allow, self.deny))

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(ToolRules.parse, folds_denials=self.folds_denials), (self.to_dict(),))


class _BoundedCache(dict[tuple[str, ...], "ParameterChecks | None"]):
    """A dict of limited size, because models can invent any number of tool names."""

    def __setitem__(self, key: tuple[str, ...], value: ParameterChecks | None) -> None:
        if len(self) >= CACHED_NAMES:
            self.clear()
        super().__setitem__(key, value)


NO_RULES = ToolRules()
"""Allows everything: the neutral element of ``merge``."""


def _parse_names(key: str, value: object, problems: list[str]) -> Names:
    if value is None or (isinstance(value, str) and value == EVERY):
        return cast("Names", value)
    if not isinstance(value, (list, tuple, set, frozenset)):
        problems.append(f'{key}: must be "*", a list of tool names or None, not {shown(value)}')
        return None
    # Sets are unordered, but their rules must be the same in each process.
    entries = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
    for entry in entries:
        if not _is_name(entry):
            problems.append(f"{key}: {shown(entry)} is not a tool name")
        elif is_call_pattern(entry):
            try:
                parse_call_pattern(entry)
            except ValueError as error:
                problems.append(f"{key}: {error}")
    names = tuple(dict.fromkeys(entry for entry in entries if isinstance(entry, str)))
    return EVERY if EVERY in names else names


def _is_name(value: object) -> bool:
    # No tool name has such white space, so the entry would match nothing.
    return isinstance(value, str) and bool(value) and value == value.strip()


def _parse_params(value: object, problems: list[str]) -> Params:
    if value is None:
        return _NOTHING
    if not isinstance(value, Mapping):
        problems.append(f"params: must be a dict of tool names, not {shown(value)}")
        return _NOTHING
    params: dict[str, dict[str, Mapping[str, Any]]] = {}
    for tool, rules in value.items():
        at = f"params.{path_step(tool)}"
        if not _is_name(tool) or is_call_pattern(tool):
            problems.append(f"params: {shown(tool)} is not a tool name")
        elif not isinstance(rules, Mapping):
            problems.append(f"{at}: must be a dict of parameter names, not {shown(rules)}")
        else:
            params[tool] = _parse_rules(at, rules, problems)
    return _NOTHING if problems else _frozen(params)


def _parse_rules(at: str, rules: Mapping[Any, Any], problems: list[str]) -> dict[str, Mapping[str, Any]]:
    parsed: dict[str, Mapping[str, Any]] = {}
    for name, rule in rules.items():
        if not isinstance(name, str) or not name:
            problems.append(f"{at}: {shown(name)} is not a parameter name")
            continue
        try:
            parse_path(name)
        except ValueError as error:
            problems.append(f"{at}.{name}: {error}")
        keywords = parse_rule(f"{at}.{name}", rule, problems)
        if problems:  # an invalid value may not support copying
            continue
        # A copy, because the caller may change the lists later.
        parsed[name] = {
            keyword: tuple(copy.deepcopy(value)) if isinstance(value, list) else copy.deepcopy(value)
            for keyword, value in keywords.items()
        }
    return parsed


def _frozen(params: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Params:
    return MappingProxyType(
        {
            tool: MappingProxyType({name: MappingProxyType(dict(rule)) for name, rule in rules.items()})
            for tool, rules in params.items()
        }
    )


def _plain(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {
        keyword: copy.deepcopy(list(value) if isinstance(value, tuple) else value)
        for keyword, value in rule.items()
    }
