"""docs/reference/specification.md has every rule that the code cites, and the messages with fixed wording."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kantan_agents import KantanAgentsError, errors

from .pages import ROOT, Page, code_spans, rows

PAGE = Page(ROOT / "docs" / "reference" / "specification.md")
HEADINGS = re.findall(r"^##+ (.+)$", PAGE.text, re.MULTILINE)
FIXED = [f"E{number}" for number in range(1, 19)]

_CITATION = re.compile(
    r"\(spec (?:"
    r"(?P<core>\d+(?:\.\d+)?(?:(?: to|,) \d+(?:\.\d+)?)*(?:, [a-z]+)?)"
    r"|protocol(?: (?P<protocol>\d))?"
    r"|structured output(?:, .+?)?"
    r"|subagents(?:, .+?)?"
    r")\)"
)


def sources() -> Iterator[tuple[str, str]]:
    files = [*(ROOT / "kantan_agents").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    for path in sorted(files):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def has_rule(number: str) -> bool:
    return any(re.match(rf"{re.escape(number)}\.? ", heading) for heading in HEADINGS)


CITED = sorted(
    {
        (name, citation["core"] or f"Protocol {citation['protocol'] or 1}:")
        for name, text in sources()
        for citation in _CITATION.finditer(text)
        if citation["core"] or "(spec protocol" in citation[0]
    }
)


@pytest.mark.parametrize(("file", "cited"), CITED)
def test_every_cited_rule_is_on_the_page(file: str, cited: str) -> None:
    if cited.startswith("Protocol"):
        assert any(heading.startswith(cited) for heading in HEADINGS)
        return
    numbers = re.findall(r"\d+(?:\.\d+)?", cited)
    assert numbers
    assert [number for number in numbers if not has_rule(number)] == []


def test_every_citation_has_the_same_form() -> None:
    for name, text in sources():
        flat = re.sub(r"\s+", " ", text)
        assert len(re.findall(r"\(spec\b", flat)) == len(_CITATION.findall(flat)), name


def test_rules_are_numbered_in_order_without_gaps() -> None:
    sections = [int(heading.split(".")[0]) for heading in HEADINGS if re.match(r"\d+\. ", heading)]
    assert sections == [*range(1, 12)]
    for section in sections:
        rules = [heading.split()[0] for heading in HEADINGS if heading.startswith(f"{section}.")][1:]
        assert rules == [f"{section}.{number}" for number in range(1, len(rules) + 1)]


def test_the_fixed_messages_match_the_errors() -> None:
    listed = {
        code_spans(code)[0]: code_spans(message)[0]
        for code, message, _rule in rows(PAGE.section("Error messages"))
    }
    assert list(listed) == FIXED
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    defined = {
        value.code: f"{errors.PREFIX}[{value.code}] {value.template}"
        for value in classes
        if issubclass(value, KantanAgentsError) and getattr(value, "code", None) in FIXED
    }
    assert listed == defined
