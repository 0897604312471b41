"""An agent definition: the content of a subagent file as a frozen, valid value (spec subagents)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.core.context import reserved_in
from kantan_agents.errors import InvalidDefinitionError
from kantan_agents.subagent_files.frontmatter.keys import DATA, FIELD_OF, LIMIT_OF, folded
from kantan_agents.subagent_files.frozen_data import freeze_data
from kantan_agents.subagent_files.json_like import copy_data, find_invalid_value, is_text
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.subagent_files.tool_list_errors import allowed_list_error, denied_entry_error
from kantan_agents.subagent_files.tool_lists import (
    ALL,
    ToolFilter,
    includes_all,
    is_all,
    split_items,
    strip_quotes,
)
from kantan_agents.support.arguments import checked_path, checked_text

MAX_TURNS: Final = 10**9
_TEXTS: Final = (
    "model",
    "color",
    "permission_mode",
    "memory",
    "effort",
    "initial_prompt",
    "category",
    "version",
)
_NOT_UNICODE: Final = "is not valid Unicode (a lone surrogate)"


def _strip(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _to_entries(value: Any) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return split_items(value)
    return value


def _to_tool_filter(value: Any) -> Any:
    entries = _to_entries(value)
    if isinstance(entries, tuple) and all(isinstance(entry, str) for entry in entries):
        entries = strip_quotes(entries)
    return ALL if entries == (ALL,) else entries


def _to_denied(value: Any) -> Any:
    entries = _to_entries(value)
    return (ALL,) if isinstance(entries, tuple) and ALL in entries else entries


@attrs.frozen(hash=False)
class AgentDefinition:
    """The content of a subagent file: the agent's identity, prompt, tools and settings.

    `load` and `loads` create it from a file; create it in Python for a built-in agent. Definitions with the
    same content are equal, whatever their source. All users of a file share one object, so its data cannot be
    changed; ``to_dict`` and ``copy.deepcopy`` return data that can.

    Attributes:
        name: Name of the agent; not blank. Surrounding white space is removed.
        description: When to use the agent; not blank.
        system_prompt: The Markdown after the frontmatter, unchanged.
        tools: The tools it may use, in this order; ``"*"`` for all, ``()`` for none.
        disallowed_tools: The tools it may not use; ``("*",)`` for all. An entry that cannot be a tool name is
            an error, because it would deny nothing.
        model: A model name, an alias (``sonnet``) or ``inherit``; None if not set.
        context: A string, list or mapping for the run's context. The agent gets it as additional system
            information.
        color: A color name, or ``#rrggbb``.
        permission_mode: ``permissionMode`` of the file.
        max_turns: ``maxTurns`` of the file; at least 1.
        skills: Names of skills.
        mcp_servers: ``mcpServers`` of the file. Data only; ``Agent.from_definition`` uses it if the caller
            passes ``mcp_configuration``.
        hooks: ``hooks`` of the file. Data only; never executed.
        memory: ``memory`` of the file.
        effort: ``effort`` of the file.
        initial_prompt: ``initialPrompt`` of the file.
        category: ``category`` of the file.
        version: ``version`` of the file, as a str: ``1.10`` is not ``1.1``.
        extra: Unknown keys with their values; `dump` writes them back.
        path: The source file.
        notes: Warnings from reading the file, including repairs.

    Raises:
        InvalidDefinitionError: E31: a value is invalid. The error lists all mistakes.
    """

    name: str = attrs.field(converter=_strip)
    description: str
    system_prompt: str = ""
    tools: ToolFilter = attrs.field(default=ALL, converter=_to_tool_filter)
    disallowed_tools: tuple[str, ...] = attrs.field(default=(), converter=_to_denied)
    model: str | None = None
    context: Any = attrs.field(default=None, converter=freeze_data)
    color: str | None = None
    permission_mode: str | None = None
    max_turns: int | None = None
    skills: tuple[str, ...] = attrs.field(default=(), converter=_to_entries)
    mcp_servers: Any = attrs.field(default=None, converter=freeze_data)
    hooks: Any = attrs.field(default=None, converter=freeze_data)
    memory: str | None = None
    effort: str | None = None
    initial_prompt: str | None = None
    category: str | None = None
    version: str | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict, converter=freeze_data)
    path: Path | None = attrs.field(default=None, eq=False)
    notes: tuple[Problem, ...] = attrs.field(default=(), eq=False, converter=tuple, repr=False)

    def __attrs_post_init__(self) -> None:
        errors = validation_errors(self)
        if errors:
            listed = [f"{field}: {message}" for field, message in errors]
            raise InvalidDefinitionError(path=self.path, problems=listed)

    @property
    def repairs(self) -> tuple[Problem, ...]:
        """The notes on invalid YAML that was repaired when the file was read."""
        return tuple(note for note in self.notes if note.is_repair)

    @property
    def is_repaired(self) -> bool:
        """Whether the file is not valid YAML and was repaired when it was read."""
        return any(note.is_repair for note in self.notes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AgentDefinition:
        """Read a subagent file.

        Args:
            path: The file. Invalid YAML is repaired; see `repairs`.

        Raises:
            AgentFileError: E30: the file is missing, not a regular file, larger than 4 MiB, not UTF-8, or has
                no frontmatter.
            InvalidDefinitionError: E31: the content is not a valid definition, for example without ``name``.
            InvalidOptionError: E75: ``path`` is not a str or Path.
        """
        from kantan_agents.subagent_files.frontmatter.document import read_file

        file = Path(checked_path("path", path))
        return cls.loads(read_file(file), path=file)

    @classmethod
    def loads(cls, text: str | bytes, *, path: Path | None = None) -> AgentDefinition:
        """Parse a subagent file: YAML between two ``---`` lines, then the prompt.

        Args:
            text: The content of the file; bytes are UTF-8.
            path: The source, for messages and for `AgentDefinition.path`.

        Raises:
            AgentFileError: E30: the content cannot be read.
            InvalidDefinitionError: E31: the content is not a valid definition.
            InvalidOptionError: E75: ``text`` is neither str nor bytes.
        """
        from kantan_agents.subagent_files.frontmatter.reading import read_definition

        if not isinstance(text, bytes):
            checked_text("text", text)
        return read_definition(cls, text, path)

    def dump(self) -> str:
        """Return the text of a subagent file with this content; `loads` returns an equal definition.

        The frontmatter is valid YAML for every parser. The prompt is unchanged.
        """
        from kantan_agents.subagent_files.frontmatter.writing import dump_definition

        return dump_definition(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-like data, by attribute name, without ``path`` and ``notes``."""
        values: dict[str, Any] = {}
        for field in _CONTENT_FIELDS:
            value = getattr(self, field)
            if field in DATA or field == "extra":
                values[field] = copy_data(value)
            else:
                values[field] = list(value) if isinstance(value, tuple) else value
        return values


_CONTENT_FIELDS = tuple(field.name for field in attrs.fields(AgentDefinition) if field.eq)


def validation_errors(definition: Any) -> list[tuple[str, str]]:
    """Return every error as (field, message)."""
    return [
        *_check_required(definition),
        *_check_texts(definition),
        *_check_lists(definition),
        *_check_turns(definition.max_turns),
        *_check_data(definition),
        *_check_extra(definition),
    ]


def _check_required(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("name", "description", "system_prompt"):
        value = getattr(definition, field)
        if not isinstance(value, str):
            yield field, f"must be text, not {_kind(value)}"
        elif not is_text(value):
            yield field, _NOT_UNICODE
        elif field != "system_prompt" and not value.strip():
            yield field, "must not be blank"


def _check_texts(definition: Any) -> Iterator[tuple[str, str]]:
    for field in _TEXTS:
        value = getattr(definition, field)
        if value is not None and not isinstance(value, str):
            yield field, f"must be text, not {_kind(value)}"
        elif value is not None and not is_text(value):
            yield field, _NOT_UNICODE


def _check_lists(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("tools", "disallowed_tools", "skills"):
        value = getattr(definition, field)
        if field == "tools" and value == ALL:
            continue
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            also = ' or "*"' if field == "tools" else ""
            yield field, f"must be a list of texts{also}, not {_kind(value)}"
        elif not all(is_text(entry) for entry in value):
            yield field, _NOT_UNICODE
        else:
            yield from ((field, error) for error in _tool_list_errors(field, value))


def _tool_list_errors(field: str, entries: tuple[str, ...]) -> Iterator[str]:
    if field == "skills" or (field == "disallowed_tools" and entries == (ALL,)):
        return
    if is_all(entries) or (field == "disallowed_tools" and includes_all(entries)):
        # In a file, the word means every tool, so no tool can have this name.
        yield 'contains "all", which is not a tool name; use "*" for all tools'
    elif field == "tools":
        error = allowed_list_error(entries)
        if error:
            yield error
    else:
        yield from filter(None, map(denied_entry_error, entries))


def _check_turns(value: Any) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        yield "max_turns", f"must be a whole number, not {_kind(value)}"
    elif not 1 <= value <= MAX_TURNS:
        yield "max_turns", f"must be from 1 to {MAX_TURNS}"


def _check_data(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("context", "mcp_servers", "hooks"):
        error = find_invalid_value(getattr(definition, field))
        if error:
            yield field, error
    context = definition.context
    if not isinstance(context, str | list | dict | None):
        yield "context", f"must be text, a list or a mapping, not {_kind(context)}"
    if isinstance(context, dict):
        for key in reserved_in(context):
            yield "context", f"contains {key!r}, a key reserved by the library"


def _check_extra(definition: Any) -> Iterator[tuple[str, str]]:
    extra = definition.extra
    if not isinstance(extra, dict):
        yield "extra", f"must be a mapping, not {_kind(extra)}"
        return
    error = find_invalid_value(extra)
    if error:
        yield "extra", error
    for key in extra:
        if not isinstance(key, str):
            continue
        if key not in FIELD_OF:
            limit = LIMIT_OF.get(folded(key))
            if limit is not None:
                yield "extra", f"contains {key!r}, which looks like the field {limit!r}"
            continue
        # A file may have both `model` and `model_name`: `model` is used, the other is extra.
        if key != "model_name" or definition.model is None:
            yield "extra", f"contains {key!r}, which is the field {FIELD_OF[key]!r}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of the type {type(value).__name__}"
