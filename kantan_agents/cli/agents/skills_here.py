"""Checks that a subagent's skills exist here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kantan_agents.errors import FileArgumentError
from kantan_agents.subagent_files import AgentDefinition, name_key
from kantan_agents.subagent_files.remarks import Remark
from kantan_agents.subagent_files.unknown_tools import UnknownTool, listed

_BESIDE = "skills"


class SkillsHere:
    """The skills that exist here, loaded only if a file names one."""

    def __init__(self, given: Path | None = None) -> None:
        if given is not None and not given.is_dir():
            reason = "it is not a directory" if given.exists() else "it does not exist"
            raise FileArgumentError(path=str(given), reason=reason)
        self._given = given
        self._names: dict[Path | None, tuple[str, ...] | None] = {}

    def remark_on(self, definition: AgentDefinition, tree: Path | None = None) -> Remark | None:
        """Return a remark on nonexistent skills, or None."""
        unknown = self.unknown_in(definition, tree)
        return Remark("skills", f"skills: no skill here is named {listed(unknown)}") if unknown else None

    def unknown_in(self, definition: AgentDefinition, tree: Path | None = None) -> tuple[UnknownTool, ...]:
        """Return the nonexistent skills."""
        if not definition.skills:
            return ()
        if tree not in self._names:
            self._names[tree] = self._loaded(tree)
        names = self._names[tree]
        if names is None:
            return ()
        from kantan_agents.support.nearest import nearest  # not at the top: reading files does not need it

        known = set(map(name_key, names))
        return tuple(
            UnknownTool(name, nearest(name, names))
            for name in definition.skills
            if name_key(name) not in known
        )

    def _loaded(self, tree: Path | None) -> tuple[str, ...] | None:
        from kantan_agents.tools.skills import SkillLoader

        directories: Sequence[Path]
        if self._given is not None:
            directories = [self._given]
        else:
            beside = [] if tree is None else [tree.absolute().parent / _BESIDE]
            directories = [*beside, *(directory.path for directory in SkillLoader().directories)]
        existing = [directory for directory in directories if directory.is_dir()]
        return SkillLoader(existing).load_skills_now().names() if existing else None
