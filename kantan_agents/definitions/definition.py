"""An agent as a file describes it: a frozen value that knows nothing of models and runs (spec subagents)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.definitions.checks import mistakes_in
from kantan_agents.definitions.frontmatter.keys import DATA
from kantan_agents.definitions.plain_data import copied
from kantan_agents.definitions.problems import Problem
from kantan_agents.definitions.tool_lists import ALL, ToolFilter, split_items, unwrapped
from kantan_agents.errors import InvalidDefinitionError
from kantan_agents.support.arguments import checked_path, checked_text


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _entries(value: Any) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return split_items(value)
    return value


def _tool_filter(value: Any) -> Any:
    entries = _entries(value)
    if isinstance(entries, tuple) and all(isinstance(entry, str) for entry in entries):
        entries = unwrapped(entries)
    return ALL if entries == (ALL,) else entries


def _denied(value: Any) -> Any:
    entries = _entries(value)
    return (ALL,) if isinstance(entries, tuple) and ALL in entries else entries


@attrs.frozen(hash=False)
class AgentDefinition:
    """What an agent file says: who the agent is, what it may use and how it is to work.

    Made by `load` and `loads`, or in Python for a built-in agent. Two definitions are equal if they
    say the same, wherever they come from.

    Attributes:
        name: What the agent is called; without surrounding white space, not blank.
        description: When to use the agent; not blank.
        system_prompt: The text after the frontmatter, as it stands there.
        tools: The tools it may use, in the order given; ``"*"`` for all, ``()`` for none.
        disallowed_tools: The tools it may not use; ``("*",)`` for all. An entry that can be no tool's name
            would deny nothing, so it is refused.
        model: A model's name, an alias (``sonnet``) or ``inherit``; None where the file names none.
        context: A text, a list or a mapping for the run's context, which the agent gets as extra system
            information.
        color: A colour's name or ``#rrggbb``.
        permission_mode: ``permissionMode`` of the file.
        max_turns: ``maxTurns`` of the file; at least 1.
        skills: Names of skills.
        mcp_servers: ``mcpServers`` of the file: data, nothing is started.
        hooks: ``hooks`` of the file: data, nothing is executed.
        memory: ``memory`` of the file.
        effort: ``effort`` of the file.
        initial_prompt: ``initialPrompt`` of the file.
        category: ``category`` of the file.
        version: ``version`` of the file, a text: ``1.10`` is not ``1.1``.
        extra: The keys this library knows nothing of, with their values; they are written back.
        path: The file it was read from.
        notes: What was remarked in reading, repairs among it.

    Raises:
        InvalidDefinitionError: E31; a value is not what it must be. All mistakes are listed.
    """

    name: str = attrs.field(converter=_stripped)
    description: str
    system_prompt: str = ""
    tools: ToolFilter = attrs.field(default=ALL, converter=_tool_filter)
    disallowed_tools: tuple[str, ...] = attrs.field(default=(), converter=_denied)
    model: str | None = None
    context: Any = attrs.field(default=None, converter=copied)
    color: str | None = None
    permission_mode: str | None = None
    max_turns: int | None = None
    skills: tuple[str, ...] = attrs.field(default=(), converter=_entries)
    mcp_servers: Any = attrs.field(default=None, converter=copied)
    hooks: Any = attrs.field(default=None, converter=copied)
    memory: str | None = None
    effort: str | None = None
    initial_prompt: str | None = None
    category: str | None = None
    version: str | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict, converter=copied)
    path: Path | None = attrs.field(default=None, eq=False)
    notes: tuple[Problem, ...] = attrs.field(default=(), eq=False, converter=tuple, repr=False)

    def __attrs_post_init__(self) -> None:
        mistakes = mistakes_in(self)
        if mistakes:
            listed = [f"{field}: {words}" for field, words in mistakes]
            raise InvalidDefinitionError(path=self.path, problems=listed)

    @property
    def repairs(self) -> tuple[Problem, ...]:
        """The notes on places where the file is not valid and was read all the same."""
        return tuple(note for note in self.notes if note.is_repair)

    @property
    def is_repaired(self) -> bool:
        """Whether the file is not valid YAML and was read all the same."""
        return any(note.is_repair for note in self.notes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AgentDefinition:
        """Read an agent file.

        Args:
            path: The file; one that is not valid YAML is repaired in reading (see `repairs`).

        Raises:
            AgentFileError: E30; the file is missing, no regular file, larger than 4 MiB, no UTF-8 or
                without frontmatter.
            InvalidDefinitionError: E31; what it says is no definition: ``name`` is missing, say.
            InvalidOptionError: E75; ``path`` is no path.
        """
        from kantan_agents.definitions.frontmatter.document import read_file

        file = Path(checked_path("path", path))
        return cls.loads(read_file(file), path=file)

    @classmethod
    def loads(cls, text: str | bytes, *, path: Path | None = None) -> AgentDefinition:
        """Read the text of an agent file: YAML between two lines ``---``, then the prompt.

        Args:
            text: The text, or its bytes in UTF-8.
            path: Where it comes from, for messages and for `AgentDefinition.path`.

        Raises:
            AgentFileError: E30; it cannot be read at all.
            InvalidDefinitionError: E31; what it says is no definition.
            InvalidOptionError: E75; ``text`` is neither str nor bytes.
        """
        from kantan_agents.definitions.frontmatter.reading import read

        if not isinstance(text, bytes):
            checked_text("text", text)
        return read(cls, text, path)

    def dump(self) -> str:
        """Return the text of an agent file that says the same; `loads` gives this definition back.

        The frontmatter is valid YAML for every reader. The prompt is written as it is.
        """
        from kantan_agents.definitions.frontmatter.writing import written

        return written(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-like data, under their names here, without ``path`` and ``notes``."""
        values: dict[str, Any] = {}
        for field in _SAID:
            value = getattr(self, field)
            values[field] = copied(value) if field in DATA or field == "extra" else _listed(value)
        return values


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


_SAID = tuple(field.name for field in attrs.fields(AgentDefinition) if field.eq)
