"""The content of a ``SKILL.md``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.errors import AgentFileError, InvalidDefinitionError, InvalidSkillError, SkillFileError
from kantan_agents.subagent_files.frontmatter.document import decode, read_file
from kantan_agents.subagent_files.frontmatter.keys import KEY_OF
from kantan_agents.subagent_files.frontmatter.reading import read_definition
from kantan_agents.subagent_files.frozen_data import freeze_data
from kantan_agents.subagent_files.grants import grants_for
from kantan_agents.subagent_files.json_like import copy_data, find_invalid_value, is_text
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.subagent_files.tool_list_errors import allowed_list_error, denied_entry_error
from kantan_agents.subagent_files.tool_lists import ALL, ToolFilter, split_items
from kantan_agents.support.arguments import checked_path, checked_text
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tools.skills.tool_notes import in_words_of_skills, notes_on_tools

SKILL_FILE: Final = "SKILL.md"
MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_OWN: Final = frozenset({"name", "description", "system_prompt", "tools", "disallowed_tools", "extra"})


def _tools(value: Any) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        entries = split_items(value)
        return ALL if entries == (ALL,) else entries
    return value


@attrs.frozen(hash=False, slots=False)
class Skill:
    """A skill: instructions that a model reads when it needs them, with the files next to them.

    Created by `load` and `loads` from a ``SKILL.md``, or in Python. Two skills with the same content are
    equal, whatever their source. A skill is immutable, because every load of a file returns the same object.

    Attributes:
        name: Lower case letters, digits and single hyphens, at most 64 characters; the name of the folder.
        description: What the skill does and when to use it, at most 1,024 characters. The model always sees
            it.
        body: The instructions: the text after the frontmatter, unchanged. The model reads it when it chooses
            the skill. It is never rendered as a template.
        allowed_tools: The only tools that may be used once the skill is chosen; ``"*"`` for no limit, ``()``
            for none. Entries have the form of ``tools`` in a subagent file.
        disallowed_tools: Tools that may not be used once the skill is chosen.
        license: ``license`` of the file.
        compatibility: ``compatibility`` of the file: the skill's requirements, at most 500 characters.
        metadata: ``metadata`` of the file.
        extra: Other keys of the file with their values. They have no effect.
        path: The ``SKILL.md`` it was read from; its folder has the files of the skill.
        notes: Warnings from reading the file, including repairs.

    Raises:
        InvalidSkillError: E188; a value is invalid. The error lists all mistakes.
    """

    name: str
    description: str
    body: str = ""
    allowed_tools: ToolFilter = attrs.field(default=ALL, converter=_tools)
    disallowed_tools: tuple[str, ...] = attrs.field(default=(), converter=_tools)
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=freeze_data)
    extra: Mapping[str, Any] = attrs.field(factory=dict, converter=freeze_data, repr=False)
    path: Path | None = attrs.field(default=None, eq=False)
    notes: tuple[Problem, ...] = attrs.field(default=(), eq=False, converter=tuple, repr=False)

    def __attrs_post_init__(self) -> None:
        problems = [f"{field}: {message}" for field, message in _mistakes(self)]
        if problems:
            raise InvalidSkillError(path=self.path, problems=problems)

    @property
    def folder(self) -> Path | None:
        """The folder with the files of the skill; None for a skill made in Python."""
        return None if self.path is None else self.path.parent

    @property
    def limits_tools(self) -> bool:
        """Whether choosing the skill limits the tools."""
        return self.allowed_tools != ALL or bool(self.disallowed_tools)

    @cached_property
    def rules(self) -> ToolRules:
        """The tool rules that hold once the skill is chosen, below all other rules.

        They do not name the tools for skills, which stay usable.
        """
        return grants_for(self.allowed_tools, self.disallowed_tools).rules

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Skill:
        """Read a skill.

        Args:
            path: The ``SKILL.md``, or its folder. Invalid YAML is repaired as in subagent files.

        Raises:
            SkillFileError: E187; the file is missing, not a regular file, larger than 4 MiB, not UTF-8, or
                has no frontmatter.
            InvalidSkillError: E188; the content is invalid, for example without ``description``, or with
                another name than the folder.
            InvalidOptionError: E75; ``path`` is not a str or Path.
        """
        file = Path(checked_path("path", path))
        if file.is_dir():
            file /= SKILL_FILE
        try:
            data = read_file(file)
        except AgentFileError as error:
            raise SkillFileError(path=file, line=error.line, reason=error.reason) from error
        # The files next to it are read without following links, so the folder must not be one.
        return cls.loads(data, path=Path(os.path.realpath(file.parent)) / file.name)

    @classmethod
    def loads(cls, text: str | bytes, *, path: Path | None = None) -> Skill:
        """Read the text of a ``SKILL.md``: YAML between two ``---`` lines, then the instructions.

        Args:
            text: The text, or its bytes in UTF-8.
            path: The source. Its folder must have the name of the skill.

        Raises:
            SkillFileError: E187; the text cannot be read.
            InvalidSkillError: E188; the content is not a valid skill.
            InvalidOptionError: E75; ``text`` is neither str nor bytes.
        """
        if not isinstance(text, bytes):
            checked_text("text", text)
        try:
            skill = read_definition(_from_fields, text, path)
            notes: Any = notes_on_tools(skill.allowed_tools, skill.disallowed_tools, decode(text, path), path)
        except AgentFileError as error:
            raise SkillFileError(path=error.path, line=error.line, reason=error.reason) from error
        except InvalidDefinitionError as error:
            problems = [*map(in_words_of_skills, error.problems)]
            raise InvalidSkillError(path=error.path, line=error.line, problems=problems) from error
        all_notes: Any = (*skill.notes, *notes)
        return attrs.evolve(skill, notes=all_notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-like data, by attribute name, without ``path`` and ``notes``."""
        values: dict[str, Any] = {}
        for field in _CONTENT_FIELDS:
            value = getattr(self, field)
            values[field] = list(value) if isinstance(value, tuple) else copy_data(value)
        return values


_CONTENT_FIELDS: Final = tuple(field.name for field in attrs.fields(Skill) if field.eq)


def _from_fields(**fields: Any) -> Skill:
    """The reader adds the line to E31."""
    path, notes = fields.pop("path"), fields.pop("notes")
    extra = dict(fields.get("extra", {}))
    # Fields of subagent files without a meaning in a skill.
    extra |= {KEY_OF[field]: value for field, value in fields.items() if field not in _OWN}
    values = {name: extra.pop(name) for name in ("license", "compatibility", "metadata") if name in extra}
    if values.get("metadata") is None:
        values.pop("metadata", None)
    if path is not None and isinstance(fields.get("name"), str) and fields["name"] != path.parent.name:
        problem = f"name: must be that of the folder, {path.parent.name!r}, not {fields['name']!r:.80}"
        raise InvalidDefinitionError(path=path, problems=[problem])
    try:
        return Skill(
            name=fields["name"],
            description=fields["description"],
            body=fields["system_prompt"],
            allowed_tools=fields.get("tools", ALL),
            disallowed_tools=fields.get("disallowed_tools", ()),
            extra=extra,
            path=path,
            notes=notes,
            **values,
        )
    except InvalidSkillError as error:
        raise InvalidDefinitionError(path=path, problems=error.problems) from None


def _mistakes(skill: Skill) -> Iterator[tuple[str, str]]:
    yield from _text_mistakes(skill)
    name, description = skill.name, skill.description
    if isinstance(name, str) and (len(name) > MAX_NAME or not _NAME.fullmatch(name)):
        allowed = f"at most {MAX_NAME} lower case letters, digits and single hyphens"
        yield "name", f"must be {allowed}, not {name!r:.80}"
    if isinstance(description, str):
        if not description.strip():
            yield "description", "must not be blank"
        elif len(description) > MAX_DESCRIPTION:
            yield "description", f"has {len(description)} characters, {MAX_DESCRIPTION} are the most"
    compatibility = skill.compatibility
    if isinstance(compatibility, str) and len(compatibility) > MAX_COMPATIBILITY:
        yield "compatibility", f"has {len(compatibility)} characters, {MAX_COMPATIBILITY} are the most"
    yield from _tool_mistakes(skill)
    for field in ("metadata", "extra"):
        value = getattr(skill, field)
        if not isinstance(value, dict):
            yield field, f"must be a mapping, not {value!r:.80}"
        elif error := find_invalid_value(value):
            yield field, error


def _text_mistakes(skill: Skill) -> Iterator[tuple[str, str]]:
    for field in ("name", "description", "body", "license", "compatibility"):
        value = getattr(skill, field)
        if value is None and field in ("license", "compatibility"):
            continue
        if not isinstance(value, str):
            yield field, f"must be text, not {type(value).__name__}"
        elif not is_text(value):
            yield field, "is not valid Unicode (a lone surrogate)"


def _tool_mistakes(skill: Skill) -> Iterator[tuple[str, str]]:
    for field in ("allowed_tools", "disallowed_tools"):
        entries = getattr(skill, field)
        if entries == ALL:
            continue
        if not isinstance(entries, tuple) or not all(isinstance(entry, str) for entry in entries):
            yield field, f"must be a list of texts, not {type(entries).__name__}"
        elif field == "allowed_tools":
            if error := allowed_list_error(entries):
                yield field, error
        else:
            yield from ((field, error) for error in filter(None, map(denied_entry_error, entries)))
