"""The limit on tools that chosen skills set."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
from agents import custom_span

from kantan_agents.core.pipeline import Run
from kantan_agents.subagent_files.grants import grants_for
from kantan_agents.subagent_files.skill_tools import SKILL_TOOLS
from kantan_agents.subagent_files.tool_lists import ALL, ToolFilter
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolRules, merge
from kantan_agents.tools.skills.command_file import CommandFile
from kantan_agents.tools.skills.skill import Skill

SKILL_LIMIT: Final = "skill "
"""Prefix of the limit of chosen skills: ``skill pdf, charts``."""

SKILL_SPAN: Final = "skill"

_CHOSEN: Final = object()
_LONGEST: Final = 200
_log = get_logger("kantan_agents.skills")


@attrs.frozen
class Choice:
    """A chosen skill.

    Attributes:
        allowed: The tools it allows; None for all.
    """

    name: str
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()

    @property
    def limits_tools(self) -> bool:
        """Whether tools are limited."""
        return self.allowed is not None or bool(self.denied)


def choice_of(file: Skill | CommandFile) -> Choice:
    """Return the choice of a skill or a command."""
    allowed = None if file.allowed_tools == ALL else tuple(file.allowed_tools)
    return Choice(file.name, allowed, file.disallowed_tools)


def head_line(choice: Choice, key: str = "skill") -> str:
    """Return an answer's first line, with the limit: a resumed run restores it even if the file changed."""
    allowed = None if choice.allowed is None else list(choice.allowed)
    said: dict[str, Any] = {key: choice.name, "allowed_tools": allowed}
    if choice.denied:
        said["disallowed_tools"] = list(choice.denied)
    return json.dumps(said, ensure_ascii=False)


def choice_in(text: Any, key: str = "skill") -> Choice | None:
    """Return the choice in the first line of ``text``."""
    if not isinstance(text, str) or not text.startswith(f'{{"{key}": '):
        return None
    try:
        said = json.loads(text.partition("\n")[0])
    except (ValueError, RecursionError):
        return None
    name, allowed, denied = said.get(key), said.get("allowed_tools"), said.get("disallowed_tools", [])
    if not isinstance(name, str) or not _is_names(denied) or not (allowed is None or _is_names(allowed)):
        return None
    return Choice(name, None if allowed is None else tuple(allowed), tuple(denied))


def choose(run: Run, choice: Choice) -> None:
    """Add the limit of a skill to a run.

    A tool may be used if one of the chosen skills with a list allows it, and none denies it. A skill without
    a list sets no limit and lifts none. The first choice's lists stay: a tool may have changed the file
    since.
    """
    chosen: dict[str, Choice] = run.state.setdefault(_CHOSEN, {})
    if choice.name in chosen:
        return
    chosen[choice.name] = choice
    data = {"skill": choice.name, "allowed_tools": choice.allowed, "disallowed_tools": choice.denied}
    with custom_span(SKILL_SPAN, data, disabled=bool(getattr(run.run_config, "tracing_disabled", False))):
        pass
    _log.info("skill chosen", skill=choice.name, agent=run.agent.name, limits_tools=choice.limits_tools)
    limiting = [one for one in chosen.values() if one.limits_tools]
    if limiting:
        kept = (limit for limit in run.limits if not limit[0].startswith(SKILL_LIMIT))
        # A new tuple: a new identity signals changed limits.
        run.limits = (*kept, (limit_name(limiting), rules_of_choices(limiting)))


def is_chosen(run: Run, name: str) -> bool:
    """Return whether a skill was chosen in a run."""
    return name in run.state.get(_CHOSEN, {})


def limit_of(skill: Skill) -> tuple[tuple[str, ToolRules], ...]:
    """Return its name and rules, if any."""
    choices = [choice_of(skill)]
    return ((limit_name(choices), rules_of_choices(choices)),) if skill.limits_tools else ()


def limit_name(choices: list[Choice]) -> str:
    """Return the name of the limit, as explanations and traces show it."""
    names = ", ".join(choice.name for choice in choices)
    return f"{SKILL_LIMIT}{names if len(names) <= _LONGEST else f'{names[:_LONGEST]}...'}"


def rules_of_choices(choices: list[Choice]) -> ToolRules:
    """Return the combined rules: allowed by one skill and denied by none."""
    lists = [choice.allowed for choice in choices if choice.allowed is not None]
    allowed: ToolFilter = tuple(entry for entries in lists for entry in entries) if lists else ALL
    rules = grants_for(allowed, tuple(entry for choice in choices for entry in choice.denied)).rules
    return merge(rules, ToolRules.parse({"allow": list(SKILL_TOOLS)})) if lists else rules


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
