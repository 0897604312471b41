"""Checks the names in a run's explicit rules."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from itertools import chain, islice
from typing import Any
from weakref import WeakKeyDictionary

import anyio.lowlevel
from agents import RunContextWrapper, Tool

from kantan_agents.agent.bridge.named_tools import describe_unknown, near_name
from kantan_agents.agent.bridge.reach import Reach, reach_of
from kantan_agents.core.interception import tool_of
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidToolRulesError
from kantan_agents.subagent_files.grants import TASK_NAMES
from kantan_agents.support.log import get_logger
from kantan_agents.support.nearest import nearest
from kantan_agents.tool_rules import DEFINITION, EXPLICIT, NO_RULES, RuleLayers, ToolFacts, ToolRules
from kantan_agents.tool_rules.calls import is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.globs import is_glob
from kantan_agents.tool_rules.known_parameters import declares
from kantan_agents.tool_rules.names import EVERY
from kantan_agents.tool_rules.origins import SERVER_PREFIX
from kantan_agents.tool_rules.parameters import parse_path
from kantan_agents.tool_rules.paths_and_hosts import is_likely_outside, is_outside

_CHECKED = "_kantan_checked_rules"
_WARNED = "_kantan_warned_names"
_MOST_PROBLEMS = 20
_MOST_WARNINGS = 1000
_AT_ONCE = 200
_log = get_logger("kantan_agents.tools")


async def check_rule_names(
    run: Run, agent: Any, layers: RuleLayers, wrapper: RunContextWrapper[Any], listed: Iterable[Tool]
) -> None:
    """Report the first unknown names in the explicit rules; E20 if the agent is strict.

    Inherited rules do not count: the agent above has checked them. A subagent file may deny other programs'
    tools, so only its near misses are reported.
    """
    checked: WeakKeyDictionary[RuleLayers, tuple[str, ...]] = vars(agent).setdefault(
        _CHECKED, WeakKeyDictionary()
    )
    known = checked.get(layers)
    if known is not None:
        if known:
            raise InvalidToolRulesError(problems=known)
        return
    is_delegated = run.delegation is not None and getattr(run.delegation, "ceiling", None) is not None
    explicit = None if is_delegated else _rules_of(EXPLICIT, layers.layers)
    file_rules = _rules_of(DEFINITION, layers.limits)
    if explicit is None and file_rules is None:
        return
    reach = await reach_of([agent], wrapper, listed_by=agent, listed=listed, lists_servers=run.agent.strict)
    errors: list[str] = []
    problems: list[str] = []
    async with aclosing(_problems(explicit or NO_RULES, run.agent.name, reach)) as found:
        async for problem, is_certain in found:
            problems.append(problem)
            if is_certain:
                errors.append(problem)
            if len(problems) == _MOST_PROBLEMS:
                break
    of_file = list(islice(_problems_of_file(file_rules or NO_RULES, run.agent.name, reach), _MOST_PROBLEMS))
    _warn(run, agent, [*problems, *of_file])
    errors = [*errors, *of_file] if run.agent.strict else []
    if reach.lacks_servers and not errors:
        return  # checked again in a later turn, when the servers may be back
    checked[layers] = tuple(errors)
    if errors:
        raise InvalidToolRulesError(problems=errors)


def _warn(run: Run, agent: Any, problems: list[str]) -> None:
    """Log the problems new for this agent: two tenants may share mistakes."""
    warned: set[str] = vars(agent).setdefault(_WARNED, set())
    new = [problem for problem in problems if problem not in warned]
    if not new or len(warned) >= _MOST_WARNINGS:
        return
    warned.update(new)
    # In the message itself: a plain log shows no attributes.
    _log.warning(f"tool rules name what does not exist: {'; '.join(new)}", agent=run.agent.name, problems=new)


def _rules_of(layer: str, layers: Iterable[tuple[str, ToolRules]]) -> ToolRules | None:
    found = [rules for name, rules in layers if name == layer]
    return found[-1] if found else None


async def _problems(rules: ToolRules, agent: str, reach: Reach) -> AsyncGenerator[tuple[str, bool], None]:
    """Yield each problem, and whether it is certain: a missing server may connect later."""
    for key, entries in (("allow", rules.allow), ("deny", rules.deny)):
        for number, entry in enumerate(entries if isinstance(entries, tuple) else ()):
            name = tool_of(entry)
            grants = key == "allow"
            # A server may be called `files (old)`.
            if _may_be_wrong(name, reach) and not (
                reach.covers(name, grants=grants) or (name != entry and not grants and reach.covers(entry))
            ):
                yield f"{key}: {_described(entry, agent, reach)}", _is_certain(name, reach)
            elif is_call_pattern(entry) and (
                found := _outside(entry, reach.tools_named(name), grants=grants)
            ):
                yield f"{key}: {found[0]}", found[1]
            if is_glob(name) or number % _AT_ONCE == _AT_ONCE - 1:
                await anyio.lowlevel.checkpoint()  # there may be thousands of names
    for name, parameters in rules.params.items():
        tools = reach.tools_named(name)
        await anyio.lowlevel.checkpoint()
        if not tools and _may_be_wrong(name, reach) and not reach.covers(name):
            yield f"params: {describe_unknown(name, agent, reach)}", _is_certain(name, reach)
        for path in parameters if tools and reach.is_complete else ():
            if not any(_may_have(tool, path) for tool in tools):
                yield f"params.{name}.{path}: {_without(path, tools)}", True


def _problems_of_file(rules: ToolRules, agent: str, reach: Reach) -> Iterator[str]:
    known = tuple(reach.all_names())
    for key, entries in (("tools", rules.allow), ("disallowedTools", rules.deny)):
        for entry in entries if isinstance(entries, tuple) else ():
            name = tool_of(entry)
            if key == "tools":  # the program's own are checked when the agent is created
                is_wrong = name.startswith(SERVER_PREFIX) and not reach.covers(name, grants=True)
            else:
                alone = ToolRules(deny=(name,), folds_denials=True)
                is_wrong = name not in TASK_NAMES and alone.denying(known) is None
            if is_wrong and _may_be_wrong(name, reach) and near_name(name, reach) is not None:
                yield f"{key}: {_described(entry, agent, reach)}"


def _outside(entry: str, tools: Iterable[ToolFacts], *, grants: bool) -> tuple[str, bool] | None:
    """Describe an absolute path outside all roots; return whether it is certain."""
    roots = [tool.roots for tool in tools if tool.roots]
    path, folders = parse_call_pattern(entry).path, tuple(chain(*roots))
    if roots and is_outside(path, folders, grants=grants):
        is_absolute = not grants or path.startswith(("//", "file:", "~"))
        hint = "" if is_absolute else "; an absolute path begins with two slashes"
        return f"{entry!r} matches no path: the root of the tool is {roots[0][0]!r}{hint}", True
    if roots and not grants and is_likely_outside(path, folders):
        return f"{entry!r} denies only {path[1:]!r} below the root of the tool, {roots[0][0]!r}", False
    return None


def _may_be_wrong(name: str, reach: Reach) -> bool:
    return name != EVERY and (reach.is_complete or reach.names_absent_server(name))


def _described(entry: str, agent: str, reach: Reach) -> str:
    name = tool_of(entry)
    for tool in reach.served_as(name):  # an entry of `allow`: for `deny`, it would cover the tool
        if name.startswith(SERVER_PREFIX) and tool.origin is not None and name != tool.origin.chosen:
            return f"{entry!r} may mean more than one MCP server or tool, so it allows none of them"
        prefixed = tool.origin.prefixed if tool.origin is not None else ()
        better = next((f"; write, for example, {one!r}" for one in prefixed if one.startswith("mcp__")), "")
        return f"{entry!r} covers only names that servers have chosen, which do not count here{better}"
    return describe_unknown(entry, agent, reach)


def _is_certain(name: str, reach: Reach) -> bool:
    return not reach.names_absent_server(name) or reach.nearest_server(name) is not None


def _may_have(tool: ToolFacts, path: str) -> bool:
    return declares(tool.schema, parse_path(path)) or declares(tool.schema, (path,))


def _without(path: str, tools: Iterable[ToolFacts]) -> str:
    known = {name for tool in tools for name in _parameters(tool.schema)}
    near = nearest(path, known)
    return f"there is no such parameter; {f'the nearest is {near!r}' if near else _listed(known)}"


def _listed(names: Iterable[str]) -> str:
    return f"there are: {', '.join(sorted(names)) or 'none'}"


def _parameters(schema: Mapping[str, Any]) -> Iterable[str]:
    properties = schema.get("properties")
    return properties.keys() if isinstance(properties, Mapping) else ()
