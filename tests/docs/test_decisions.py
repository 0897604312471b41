"""All decision records have the same form, and the index lists them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import ROOT, Page

FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
MOST_WORDS = 450


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_every_part_and_fits_on_one_screen(path: Path) -> None:
    record = Page(path)
    number = int(path.name[:4])
    assert re.match(
        rf"# {number}\. .+\n\n- Date: \d{{4}}-\d\d-\d\d\n- Status: (accepted|superseded by \[.+\]\(.+\))\n",
        record.text,
    )
    assert re.findall(r"^## (.+)$", record.text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert all(record.section(heading).strip() for heading in ("Context", "Decision", "Consequences"))
    assert len(record.text.split()) <= MOST_WORDS


def test_records_are_numbered_without_gaps() -> None:
    assert [int(path.name[:4]) for path in RECORDS] == [*range(1, len(RECORDS) + 1)]


def test_the_index_lists_every_record_with_its_title_date_and_status() -> None:
    expected = []
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        heading = re.match(
            r"# (?P<number>\d+)\. (?P<title>.+)\n\n- Date: (?P<date>.+)\n- Status: (.+)\n", text
        )
        assert heading
        number, title, date, status = heading.groups()
        expected.append(f"| {number} | [{title}]({path.name}) | {date} | {status} |")
    listed = re.findall(r"^\| \d.*$", (FOLDER / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == expected
