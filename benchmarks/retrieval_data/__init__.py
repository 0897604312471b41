"""The labelled set: 1,000 tools in three languages, and requests in everyday words with the right tools.

The tools are combined from hand-written tables: things (``english.tsv``, ...) and actions on them
(``actions_en.tsv``, ...), plus single tools (``english_single.tsv``, ...). Thus each right tool has
neighbours that do something else with the same thing. The author of the tables also wrote the requests, which
are not a sample of real users.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
from agents import FunctionTool

_HERE = Path(__file__).parent
LANGUAGES = {"en": "english", "ja": "japanese", "zh": "chinese"}


@attrs.frozen
class LabelledRequest:
    """A request and the names of the tools, each of which answers it."""

    text: str
    tools: frozenset[str]


def labelled_tools() -> list[FunctionTool]:
    """Return the 1,000 tools of all languages."""
    return [tool for language in LANGUAGES for tool in _tools_in(language)]


def labelled_requests(language: str) -> list[LabelledRequest]:
    """Return the requests in one language."""
    return _requests(f"requests_{language}.tsv")


def held_out_requests() -> list[LabelledRequest]:
    """Return English requests by another author, most of which do not name their subject.

    Do not tune anything on them. If they have been used for tuning, write new ones.
    """
    return _requests("held_out_en.tsv")


def _requests(name: str) -> list[LabelledRequest]:
    return [LabelledRequest(text, frozenset(tools.split(","))) for text, tools in _rows(name, comment="")]


def _tools_in(language: str) -> Iterator[FunctionTool]:
    actions = {row[0]: row[1:] for row in _rows(f"actions_{language}.tsv")}
    for number, row in enumerate(_rows(f"{LANGUAGES[language]}.tsv")):
        name, noun, *plural, about, parameters, verbs = row
        space = " " if plural else ""
        for verb in verbs.split():
            wordings = actions[verb]
            wording = wordings[number % len(wordings)].format(noun=noun, plural=plural[0] if plural else noun)
            yield _tool(f"{verb}_{name}", f"{wording}{space}{about}", parameters)
    for name, description, parameters in _rows(f"{LANGUAGES[language]}_single.tsv"):
        yield _tool(name, description, parameters)


def _rows(name: str, comment: str = "#") -> Iterator[list[str]]:
    for line in (_HERE / name).read_text(encoding="utf-8").splitlines():
        if line and not (comment and line.startswith(comment)):
            yield line.split("\t")


def _tool(name: str, description: str, parameters: str) -> FunctionTool:
    described = dict(part.split(": ", 1) for part in parameters.split("; "))
    properties = {key: {"type": "string", "description": text} for key, text in described.items()}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return FunctionTool(name, description, schema, _nothing)


async def _nothing(_context: object, _arguments: str) -> str:
    return "done"
