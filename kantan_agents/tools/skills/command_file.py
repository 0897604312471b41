"""Slash commands in Markdown files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.errors import AgentFileError, CommandFileError, InvalidDefinitionError
from kantan_agents.subagent_files.frontmatter.document import OPENING, decode, read_file
from kantan_agents.subagent_files.frontmatter.keys import KEY_OF
from kantan_agents.subagent_files.frontmatter.reading import read_definition
from kantan_agents.subagent_files.frozen_data import freeze_data
from kantan_agents.subagent_files.grants import grants_for
from kantan_agents.subagent_files.json_like import is_text
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.subagent_files.tool_lists import ALL, ToolFilter
from kantan_agents.support.arguments import checked_path, checked_text
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tools.skills.tool_notes import in_words_of_skills, notes_on_tools

_NAME: Final = re.compile(r"[^\s/\\\0]{1,100}")
_PLACE: Final = re.compile(r"\$(?:ARGUMENTS(?![A-Za-z0-9_])|([1-9][0-9]?)(?![0-9]))")
_SHELL: Final = re.compile(r"!`[^`\n]+`|^[ \t]*!(?=\S)", re.MULTILINE)
_MENTION: Final = re.compile(r"(?<![\w`@./])@[~./\w-]*[/.\w]")
_OWN: Final = frozenset({"description", "system_prompt", "tools", "disallowed_tools", "model", "extra"})
_MOST_WARNINGS: Final = 20
_SHOWN: Final = 200


@attrs.frozen(hash=False, slots=False)
class CommandFile:
    """A slash command whose text is sent to the model.

    Created by `load` and `loads` from a Markdown file, or in Python. Nothing is executed: shell lines
    (``!`git status` ``) and file mentions (``@README.md``) stay text.

    Attributes:
        name: The name after the prefix: the name of the file without ``.md``.
        body: The text for the model. ``$ARGUMENTS`` is replaced by all arguments, ``$1`` by the first one.
        description: What the command does; by default the first line of the text.
        argument_hint: ``argument-hint`` of the file, such as ``[issue] [priority]``.
        allowed_tools: The only tools that may be used in the run; ``"*"`` for no limit.
        disallowed_tools: Tools that may not be used in the run.
        model: ``model`` of the file: the model of the run; None for the agent's.
        extra: Other keys of the file with their values. They have no effect.
        path: The file it was read from.
        notes: Warnings from reading the file.

    Raises:
        CommandFileError: E191; the name or the text cannot be used.
    """

    name: str
    body: str
    description: str = ""
    argument_hint: str | None = None
    allowed_tools: ToolFilter = ALL
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict, converter=freeze_data, repr=False)
    path: Path | None = attrs.field(default=None, eq=False)
    notes: tuple[Problem, ...] = attrs.field(default=(), eq=False, converter=tuple, repr=False)

    def __attrs_post_init__(self) -> None:
        problems = list(_mistakes(self))
        if problems:
            raise CommandFileError(path=self.path, problems=problems)

    @property
    def limits_tools(self) -> bool:
        """Whether the command limits the tools of its run."""
        return self.allowed_tools != ALL or bool(self.disallowed_tools)

    @cached_property
    def rules(self) -> ToolRules:
        """The tool rules that hold in the command's run, below all other rules."""
        return grants_for(self.allowed_tools, self.disallowed_tools).rules

    @property
    def summary(self) -> str:
        """The description, or the first line of the text, on one line."""
        lines = (line.strip().lstrip("#").strip() for line in self.body.splitlines())
        text = " ".join(self.description.split()) or next(filter(None, lines), "")
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."

    def expand(self, arguments: str) -> str:
        """Return the text with the arguments inserted.

        They are inserted once, and never read as a placeholder or template themselves. Without placeholders
        in the text, they follow it.

        Args:
            arguments: The text typed after the name. ``$1`` and the following are its words; quotes join
                words. A missing word inserts nothing.
        """
        checked_text("arguments", arguments)
        words = _words(arguments)
        text, count = _PLACE.subn(lambda found: _value(found[1], arguments, words), self.body)
        if count or not arguments.strip():
            return text
        return f"{text.rstrip()}\n\nARGUMENTS: {arguments}"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CommandFile:
        """Read a command.

        Args:
            path: The Markdown file. Frontmatter is optional; invalid YAML is repaired.

        Raises:
            CommandFileError: E191; the file cannot be read or is not a valid command.
            InvalidOptionError: E75; ``path`` is not a str or Path.
        """
        file = Path(checked_path("path", path))
        try:
            data = read_file(file)
        except AgentFileError as error:
            raise CommandFileError(path=file, line=error.line, problems=[error.reason]) from error
        return cls.loads(data, path=file)

    @classmethod
    def loads(cls, text: str | bytes, *, path: Path | None = None, name: str | None = None) -> CommandFile:
        """Read the text of a command.

        Args:
            text: The text, or its bytes in UTF-8.
            path: The source; its name without the suffix is the command's name.
            name: The name of the command, if there is no path.

        Raises:
            CommandFileError: E191; the text is not a valid command.
            InvalidOptionError: E75; ``text`` is neither str nor bytes.
        """
        if not isinstance(text, bytes):
            checked_text("text", text)
        own = name or ("command" if path is None else path.stem)
        try:
            decoded = decode(text, path)
            if OPENING.match(decoded) is None:
                command = cls(own, decoded, path=path)
            else:
                command = read_definition(lambda **fields: _from_fields(cls, own, fields), decoded, path, ())
        except AgentFileError as error:
            raise CommandFileError(path=path, line=error.line, problems=[error.reason]) from error
        except InvalidDefinitionError as error:
            problems = [*map(in_words_of_skills, error.problems)]
            raise CommandFileError(path=path, line=error.line, problems=problems) from error
        on_tools = notes_on_tools(command.allowed_tools, command.disallowed_tools, decoded, path)
        notes: Any = (*command.notes, *on_tools, *_inert(decoded, path))
        return attrs.evolve(command, notes=notes)


def _from_fields(cls: type[CommandFile], name: str, fields: dict[str, Any]) -> CommandFile:
    """The reader adds the line to E31."""
    extra = dict(fields.get("extra", {}))
    # Fields of subagent files without a meaning in a command.
    extra |= {
        KEY_OF[field]: value for field, value in fields.items() if field in KEY_OF and field not in _OWN
    }
    hint = extra.pop("argument-hint", extra.pop("argument_hint", None))
    if isinstance(hint, list):  # YAML's reading of `[issue]`
        hint = f"[{', '.join(map(str, hint))}]"
    try:
        return cls(
            name=name,
            body=fields["system_prompt"],
            description=fields.get("description", ""),
            argument_hint=hint if hint is None else str(hint),
            allowed_tools=fields.get("tools", ALL),
            disallowed_tools=fields.get("disallowed_tools", ()),
            model=fields.get("model"),
            extra=extra,
            path=fields["path"],
            notes=fields["notes"],
        )
    except CommandFileError as error:
        raise InvalidDefinitionError(path=error.path, problems=error.problems) from None


def _value(number: str | None, arguments: str, words: list[str]) -> str:
    if number is None:
        return arguments
    place = int(number) - 1
    return words[place] if place < len(words) else ""


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # an unpaired quote, such as an apostrophe
        return arguments.split()


def _mistakes(command: CommandFile) -> Iterator[str]:
    if not isinstance(command.name, str) or not _NAME.fullmatch(command.name) or not is_text(command.name):
        yield f"name: must be 1 to 100 characters without blanks and slashes, not {command.name!r:.120}"
    for field in ("body", "description", "argument_hint", "model"):
        value = getattr(command, field)
        if value is None and field in ("argument_hint", "model"):
            continue
        if not isinstance(value, str) or not is_text(value):
            yield f"{field}: must be text, not {value!r:.80}"
    if isinstance(command.body, str) and not command.body.strip():
        yield "body: the file has no text for the model"


def _inert(text: str, path: Path | None) -> Iterator[Problem]:
    """Warn about lines that other programs would execute or include."""
    count = 0
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, what in (
            (_SHELL, "a shell line, which is not executed: the model gets it as text"),
            (_MENTION, "a mention of a file, which is not read: the model gets it as text"),
        ):
            if pattern.search(line):
                count += 1
                if count > _MOST_WARNINGS:
                    return
                yield Problem(path, number, what, "warning")
