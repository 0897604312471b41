"""The tools for a model to read skills."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import anyio.to_thread
from agents import FunctionTool, RunState

from kantan_agents.core.interception import ToolCall, note_results
from kantan_agents.core.items import get, is_call
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import (
    InvalidOptionError,
    KantanAgentsError,
    SkillNotFoundError,
    SkillPathError,
    ToolInputError,
)
from kantan_agents.subagent_files.skill_tools import SKILL_TOOLS, mark_of_file
from kantan_agents.support.arguments import checked_int, checked_list
from kantan_agents.tool_rules import RuleLayers, ToolFacts
from kantan_agents.tools.facts import declare_names, facts_of, rule_parameter
from kantan_agents.tools.listing import show_each_turn
from kantan_agents.tools.read_only import mark_read_only
from kantan_agents.tools.retrieval import Retriever, ToolRetrieval
from kantan_agents.tools.retrieval.retrievers.bm25 import BM25Retriever
from kantan_agents.tools.rules_in_force import NO_LAYERS, rules_of_run
from kantan_agents.tools.skills.confined import RefusedPathError, list_below, read_below
from kantan_agents.tools.skills.interface import (
    FILE_PARAMETERS,
    FIND_DESCRIPTION,
    FIND_PARAMETERS,
    MAX_FILES,
    NAME,
    READ_DESCRIPTION,
    SKILL,
    SKILL_PARAMETERS,
    all_skills_description,
    found_text,
    part_of,
    read_offset,
    read_text,
    skill_text,
)
from kantan_agents.tools.skills.limits import choice_in, choice_of, choose, is_chosen
from kantan_agents.tools.skills.loader import SkillLoader
from kantan_agents.tools.skills.roster import Available, SkillRoster, names_of
from kantan_agents.tools.skills.skill import SKILL_FILE, Skill

READ, READ_FILE, FIND = SKILL_TOOLS
_DESCRIBED: Final = "_kantan_described"
_RESTORED: Final = object()


def skill_tools(
    skills: SkillLoader | Iterable[Skill] | None = None,
    *,
    only: Iterable[str] | None = None,
    most_listed: int = 40,
    top_n: int = 8,
    retriever: Retriever | None = None,
) -> list[FunctionTool]:
    """Create the tools through which a model uses skills: ``Skill``, ``ReadSkillFile`` and ``FindSkills``.

        Agent("clerk", "Help the team.", tools=[fill_form, *skill_tools(SkillLoader("skills"))])

    The description of ``Skill`` lists the name and description of each skill, the same in every turn and run,
    so that prompt caches hold. The model reads the instructions of a skill with ``Skill(name)``, and then the
    text files in the skill's folder with ``ReadSkillFile``: up to 4 MiB each, 48,000 characters per call,
    without ``..``, absolute paths and links (E190). Nothing is executed. Once a run chooses a skill with
    ``allowed-tools``, all other tools are denied for the rest of the run, whatever the rules allow; the trace
    has a span ``skill``. The SDK's own runner cannot enforce this, so it does not show such
    skills. If a file names a missing skill, the nearest name is logged.

    Rules may name skills: ``deny: ["Skill(deploy)"]``.

    Args:
        skills: A ``SkillLoader``, skills made in Python, or None for the default directories.
        only: Names of the skills that may be used; None for all.
        most_listed: With more skills, or descriptions of more than 16,000 characters, the model sees the
            ``top_n`` skills that match the input of the run, and ``FindSkills``.
        top_n: The number of skills that a search returns.
        retriever: The retriever that searches; by default `BM25Retriever`. If it fails, the first skills are
            shown, and the reason is logged.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.

    Returns:
        Function tools of the SDK for ``Agent(tools=[...])``. Some are hidden while they are not needed.
    """
    names = None if only is None else tuple(checked_list("only", only))
    if names is not None and not all(isinstance(name, str) for name in names):
        raise InvalidOptionError(option="only", reason=f"must hold names of skills, not {names!r:.200}")
    retrieval = ToolRetrieval(top_n=top_n, retriever=BM25Retriever() if retriever is None else retriever)
    most = checked_int("most_listed", most_listed, 0, 1_000)
    return _SkillTools(SkillRoster(_loader(skills), names, retrieval, most)).tools


def tools_of_file(skills: SkillLoader, only: Iterable[str] | None) -> list[FunctionTool]:
    """Tag the tools so that the agent's subagents do not inherit them."""
    if not isinstance(skills, SkillLoader):
        reason = f"must be a SkillLoader or None, not {type(skills).__name__}"
        raise InvalidOptionError(option="skills", reason=reason)
    tools = skill_tools(skills, only=only)
    for tool in tools:
        mark_of_file(tool)
    return tools


def _loader(skills: Any) -> SkillLoader:
    if skills is None or isinstance(skills, SkillLoader):
        return skills or SkillLoader()
    if isinstance(skills, Iterable) and not isinstance(skills, (str, bytes, Mapping)):
        return SkillLoader((), builtin=skills)
    reason = f"must be a SkillLoader or Skills, not {type(skills).__name__}"
    raise InvalidOptionError(option="skills", reason=reason)


class _SkillTools:
    def __init__(self, roster: SkillRoster) -> None:
        self._roster = roster
        read = FunctionTool(READ, all_skills_description(()), SKILL_PARAMETERS, self._read_skill)
        file = FunctionTool(READ_FILE, READ_DESCRIPTION, FILE_PARAMETERS, self._read_file)
        find = FunctionTool(FIND, FIND_DESCRIPTION, FIND_PARAMETERS, self._find)
        for tool, parameter in ((read, NAME), (file, SKILL), (find, "query")):
            rule_parameter(parameter)(mark_read_only(tool))
        declare_names(read, (READ,), _folded)
        declare_names(file, (READ_FILE,), _folded)
        note_results(read, self._note)
        show_each_turn(read, self._read_now)
        show_each_turn(file, self._file_now)
        show_each_turn(find, self._find_now)
        self._facts: ToolFacts = facts_of(read)
        self.tools = [read, file, find]

    @property
    def loader(self) -> SkillLoader:
        return self._roster.loader

    async def _read_skill(self, wrapper: Any, arguments: str) -> str:
        try:
            (name,) = read_text(READ, arguments, NAME)
            skill = await self._skill(name, wrapper)
        except (ToolInputError, SkillNotFoundError) as error:
            return _error_text(error)
        if skill.limits_tools and current_run.get() is None:
            # Only a run of the library can hold the limit.
            return f"The skill {skill.name} limits the tools, which is not possible here, so it is not given."
        listed: tuple[list[str], bool] = ([], False)
        if skill.folder is not None:
            work = partial(list_below, skill.folder, MAX_FILES)
            names, has_more = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
            listed = ([one for one in names if one.lower() != SKILL_FILE.lower()], has_more)
        run = current_run.get()
        if run is not None:
            choose(run, choice_of(skill))
        return skill_text(skill, listed)

    async def _read_file(self, wrapper: Any, arguments: str) -> str:
        try:
            name, path = read_text(READ_FILE, arguments, SKILL, "path")
            offset = read_offset(READ_FILE, arguments)
            skill = await self._skill(name, wrapper)
            run = current_run.get()
            if not is_chosen(run, skill.name) if run is not None else skill.limits_tools:
                return f"Read the skill first: call {READ} with the name {skill.name}."
            text = await anyio.to_thread.run_sync(_text_of, skill, path, abandon_on_cancel=True)
        except (ToolInputError, SkillNotFoundError, SkillPathError) as error:
            return _error_text(error)
        if offset and offset >= len(text):
            return f"The file has {len(text)} characters."
        return part_of(text, offset, path)

    async def _find(self, wrapper: Any, arguments: str) -> str:
        try:
            (query,) = read_text(FIND, arguments, "query")
        except ToolInputError as error:
            return _error_text(error)
        available = await self._roster.available(self._facts, _layers(wrapper))
        return found_text(await available.best(query, self._roster.retrieval.top_n))

    async def _skill(self, name: str, wrapper: Any) -> Skill:
        """The guard has checked the model's spelling of the name; this checks the file's, E189."""
        available = await self._roster.available(self._facts, _layers(wrapper))
        skill = available.named(name)
        if skill is None:
            raise SkillNotFoundError(name=name[:100], available=names_of(available.skills))
        return skill

    async def _read_now(
        self, tool: FunctionTool, agent: Any, wrapper: Any, layers: RuleLayers
    ) -> FunctionTool | None:
        run = current_run.get()
        if run is not None and isinstance(run.input, RunState) and _RESTORED not in run.state:
            run.state[_RESTORED] = True
            restore(run, run.input._generated_items)
        available = await self._available(layers)
        if available is None:
            return tool  # the rules hide it, and explain the denial if it is called
        if not available.skills:
            return None
        return _with_description(tool, await self._roster.description(available, agent, wrapper))

    async def _file_now(
        self, tool: FunctionTool, _agent: Any, _wrapper: Any, layers: RuleLayers
    ) -> FunctionTool | None:
        available = await self._available(layers)
        return tool if available is None or available.skills else None

    async def _find_now(
        self, tool: FunctionTool, _agent: Any, _wrapper: Any, layers: RuleLayers
    ) -> FunctionTool | None:
        available = await self._available(layers)
        return tool if available is not None and available.skills and not available.are_listed else None

    async def _available(self, layers: RuleLayers) -> Available | None:
        if not layers.decide_tool(self._facts).allowed:
            return None
        return await self._roster.available(self._facts, layers)

    def _note(self, call: ToolCall, output: Any) -> None:
        """Apply the limit of the chosen skill, even if it was chosen before."""
        choice = choice_in(output)
        if choice is not None and call.run is not None:
            choose(call.run, choice)


def _text_of(skill: Skill, path: str) -> str:
    if skill.folder is None:
        raise SkillPathError(skill=skill.name, path=path[:200], reason="the skill has no files")
    try:
        return read_below(skill.folder, path)
    except RefusedPathError as error:
        raise SkillPathError(skill=skill.name, path=path[:200], reason=str(error)) from error


def restore(run: Run, items: Iterable[Any]) -> None:
    """Apply limits after a resumption.

    Only outputs of ``Skill`` count: another tool's output could lift a limit.
    """
    calls: set[Any] = set()
    for item in items:
        raw = getattr(item, "raw_item", None)
        call_id = get(raw, "call_id")
        if is_call(raw) and get(raw, "name") == READ:
            calls.add(call_id)
        choice = choice_in(getattr(item, "output", None)) if call_id in calls else None
        if choice is not None:
            choose(run, choice)


def _folded(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _layers(wrapper: Any) -> RuleLayers:
    run = current_run.get()
    active = getattr(wrapper, "agent", None)
    book = getattr(active, "owner", None) or active
    if not hasattr(book, "standing_rules"):
        book = run.agent if run is not None else None
    return rules_of_run(run, wrapper.context, NO_LAYERS if book is None else book.standing_rules)


def _with_description(tool: FunctionTool, description: str) -> FunctionTool:
    """Return the same copy for the same description."""
    known: FunctionTool | None = tool.__dict__.get(_DESCRIBED)
    if known is not None and known.description == description:
        return known
    copied = copy.copy(tool)
    copied.__dict__.pop(_DESCRIBED, None)
    copied.description = description
    tool.__dict__[_DESCRIBED] = copied
    return copied


def _error_text(error: KantanAgentsError) -> str:
    reason = f" The reason is: {error.reason}." if isinstance(error, ToolInputError) else ""
    return f"{error}{reason}"
