"""The records of decisions are short, numbered and listed."""

from __future__ import annotations

import re

from .pages import ROOT

FOLDER = ROOT / "docs" / "decisions"
MOST_WORDS = 180
_RECORD = re.compile(
    r"^## (?P<number>\d+)\. (?P<title>.+)\n\n\*(?P<date>\d{4}-\d\d-\d\d), (accepted|superseded).*\*\n\n"
    r"(?P<text>(?:(?!^## ).*\n)+)",
    re.MULTILINE,
)


def records() -> dict[int, tuple[str, str, str, str]]:
    """Return page, title, date and text of each record by its number."""
    found = {}
    for path in sorted(FOLDER.glob("*.md")):
        if path.name != "index.md":
            text = path.read_text(encoding="utf-8")
            on_page = list(_RECORD.finditer(text))
            assert len(on_page) == len(re.findall("^## ", text, re.MULTILINE)), path.name
            for match in on_page:
                number = int(match["number"])
                assert number not in found, number
                found[number] = (path.name, match["title"], match["date"], match["text"])
    return found


def test_records_are_short_and_numbered_without_gaps() -> None:
    found = records()
    assert sorted(found) == [*range(1, len(found) + 1)]
    for number, (_, _, _, text) in found.items():
        assert 20 < len(text.split()) <= MOST_WORDS, number


def test_the_index_lists_every_record_with_its_title_page_and_date() -> None:
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\(([\w-]+\.md)#.+\) \| (.+) \|$", text, re.MULTILINE)
    expected = [
        (str(number), title, page, date) for number, (page, title, date, _) in sorted(records().items())
    ]
    assert listed == expected
