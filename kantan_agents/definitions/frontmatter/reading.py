"""An agent file's text made a definition: valid YAML as it is, what is not valid repaired."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from kantan_agents.definitions.frontmatter.closing import closed
from kantan_agents.definitions.frontmatter.colours import with_colours
from kantan_agents.definitions.frontmatter.cut_texts import cut_texts
from kantan_agents.definitions.frontmatter.document import MOST_LETTERS, Document, decoded, split
from kantan_agents.definitions.frontmatter.entries import Entry, Meaning, meaning
from kantan_agents.definitions.frontmatter.keys import FIELD_OF, LIMITS, WRITTEN, field_of
from kantan_agents.definitions.frontmatter.limits import refuse_swallowed
from kantan_agents.definitions.frontmatter.nodes import Fields, NotYamlError, RefusedYamlError, Scalar, parse
from kantan_agents.definitions.frontmatter.pieces import KNOWN, has_known_key
from kantan_agents.definitions.frontmatter.repair import Repaired, repaired
from kantan_agents.definitions.frontmatter.values import is_null, unmerged
from kantan_agents.definitions.problems import Problem
from kantan_agents.errors import AgentFileError, InvalidDefinitionError

D = TypeVar("D")
_BLANK: Final = re.compile(r"\s*")
_NOT_CLOSED: Final = "the frontmatter has no closing line '---'"


@attrs.frozen
class Reading:
    """How a text was read.

    Attributes:
        document: Its parts.
        entries: The keys with their values.
        repair: How they were told apart where the frontmatter is no YAML, else None.
        repairs: (index in the frontmatter, reason).
    """

    document: Document
    entries: list[Entry]
    repair: Repaired | None
    repairs: list[tuple[int, str]]


def read(cls: type[D], text: str | bytes, path: Path | None) -> D:
    """Return the definition (``cls``) that the text of an agent file is.

    Raises:
        AgentFileError: E30; it cannot be read at all.
        InvalidDefinitionError: E31; what it says is no definition. All mistakes are listed.
    """
    reading = taken_apart(text, path)
    document = reading.document
    said = meaning(reading.entries)
    if said.mistakes:
        raise _invalid(said.mistakes, said, document, path)
    notes = [
        *((at, words, True) for at, words in reading.repairs),
        *((at, words, False) for at, words in said.remarks),
        *((at, words, False) for at, words in cut_texts(document.front, reading.entries)),
        *((at, words, False) for at, words in _limit_below(document, said)),
    ]
    problems = [
        Problem(path=path, line=document.line_at(at), message=words, severity="warning", is_repair=is_repair)
        for at, words, is_repair in sorted(notes)
    ]
    values: dict[str, Any] = {
        "system_prompt": document.prompt,
        **said.values,
        "path": path,
        "notes": problems,
    }
    try:
        return cls(**values)
    except InvalidDefinitionError as error:
        mistakes = [
            (field, words) for field, _, words in (problem.partition(": ") for problem in error.problems)
        ]
        raise _invalid(mistakes, said, document, path) from None


def taken_apart(text: str | bytes, path: Path | None) -> Reading:
    """Return the parts and keys of the text of an agent file.

    Raises:
        AgentFileError: E30; it cannot be read at all.
        InvalidDefinitionError: E31; its frontmatter is no mapping, or holds what is refused.
    """
    document = split(decoded(text, path), path)
    repairs: list[tuple[int, str]] = []
    try:
        if document.tail is None:
            document = closed(document, ruled=False)
            repairs.append((len(document.front), _NOT_CLOSED))
        return _read(document, repairs, path)
    except RefusedYamlError as error:
        raise InvalidDefinitionError(
            path=path, line=document.line_at(error.index), problems=[error.reason]
        ) from None


def _read(document: Document, repairs: list[tuple[int, str]], path: Path | None) -> Reading:
    if len(document.front) > MOST_LETTERS:
        reason = f"its frontmatter is longer than {MOST_LETTERS // 1024} kB"
        raise AgentFileError(path=path, line=document.line, reason=reason)
    try:
        root = parse(document.front)
    except NotYamlError as error:
        return _repaired(document, repairs, error, path)
    if root is None or (isinstance(root, Scalar) and is_null(root)):
        root = Fields([], 0)
    if not isinstance(root, Fields):
        problem = f"the frontmatter is no mapping but {'a text' if isinstance(root, Scalar) else 'a list'}"
        if isinstance(root, Scalar) and root.style is None and has_known_key(document.front):
            # `name:a` and `name:` with a no-break space behind it are texts to YAML.
            return _repaired(document, repairs, NotYamlError(root.index, problem), path)
        raise InvalidDefinitionError(path=path, line=document.line_at(root.index), problems=[problem])
    entries = [Entry(key.text, value, key.index) for key, value in unmerged(root)]
    refuse_swallowed(document.front, {field_of(entry.key) for entry in entries})
    entries, colours = with_colours(document.front, entries)
    return Reading(document, entries, None, repairs + colours)


def _repaired(
    document: Document, repairs: list[tuple[int, str]], error: NotYamlError, path: Path | None
) -> Reading:
    reason = f"is no valid YAML: {error.reason}"
    shorter = closed(document, ruled=True) if document.tail is not None else document
    if shorter is not document:
        repairs = [(len(shorter.front), _NOT_CLOSED)]
        return _read(shorter, repairs, path)
    repair = repaired(document.front)
    if not any(field_of(entry.key) for entry in repair.entries):
        raise AgentFileError(
            path=path, line=document.line_at(error.index), reason=f"its frontmatter {reason}"
        )
    found = repairs + repair.causes or [(error.index, f"the frontmatter {reason}")]
    return Reading(document, repair.entries, repair, found)


def _limit_below(document: Document, said: Meaning) -> Iterator[tuple[int, str]]:
    """Yield a remark if the prompt begins with a key that would limit the tools, had it come sooner."""
    blank = _BLANK.match(document.prompt)
    key = KNOWN.match(document.prompt, blank.end() if blank else 0)
    if key and FIELD_OF[key[1]] in LIMITS and FIELD_OF[key[1]] not in said.values:
        yield len(document.front), f"{key[1]}: stands below the frontmatter, so it limits nothing"


def _invalid(
    mistakes: list[tuple[str, str]], said: Meaning, document: Document, path: Path | None
) -> InvalidDefinitionError:
    # What is missing has no place of its own: then it is the line that opens the frontmatter.
    places = [said.places[field] for field, _ in mistakes if field in said.places]
    line = document.line_at(min(places)) if places else max(1, document.line - 1)
    return InvalidDefinitionError(
        path=path, line=line, problems=[f"{WRITTEN.get(field, field)}: {words}" for field, words in mistakes]
    )
