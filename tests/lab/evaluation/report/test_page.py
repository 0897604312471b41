"""The page of ``write_report``: what is on it, and what cannot get into it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import FileArgumentError, InvalidOptionError
from kantan_agents.lab import (
    Case,
    Score,
    VariantResults,
    compare,
    compare_all,
    write_report,
    write_report_of_all,
)
from kantan_agents.lab.evaluation.report.page import comparison_page
from tests.lab.evaluation.report.made_results import cases_of, result, two_variants, variant

HOSTILE = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "</title></svg></table></main>",
    "& &amp; &#60;",
    "a\u202egnp.exe",
    "\u200fabc\u2066",
    "nul \x00 and \x1b[31m",
    "<!-- ]]> -->",
)
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
VOID = {"meta", "br"}


class Elements(HTMLParser):
    """Reads a page: its elements, its texts, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text of the page."""
        return "".join(self.texts)

    def count(self, tag: str) -> int:
        """Return the number of elements with this name."""
        return sum(name == tag for name, _ in self.elements)


def page_of(a: VariantResults, b: VariantResults, cases: list[Case] | None = None, **options: Any) -> str:
    return comparison_page(compare(a, b, **options), a, b, cases or [])


def hostile_page(text: str) -> str:
    """Return a page in which everything that a model or a dataset says is this text."""
    items = [{"role": "user", "content": text}]
    cases = [Case(items, id=f"{number}{text}", expected={"a": text}) for number in range(3)]
    low, failed_score = Score(0.0, label=text, comment=text), Score(None, error=text)
    a = variant(f"a{text}", [result(one, "a", {text: low}, output=text, trace_id=text) for one in cases])
    scores = {text: 1, "x": failed_score}
    b = variant(f"b{text}", [result(one, "b", scores, output={"k": text}) for one in cases])
    failed = result(cases[2], "b", {}, status="failed", output=None, error=text)
    return page_of(a, variant(b.variant, [*b.results[:2], failed]), cases)


# ---- what is on it


def test_each_metric_has_its_verdict_its_row_its_charts_and_its_cases() -> None:
    cases, a, b = two_variants()
    comparison = compare(a, b)
    read = Elements(page_of(a, b, cases))
    assert read.open == []
    for one in comparison.metrics:
        if one.is_notable:
            assert one.text in read.text
    headings = [tag for tag, _ in read.elements if re.fullmatch("h[1-4]", tag)]
    assert headings[0] == "h1" and headings.count("h1") == 1
    levels = [int(tag[1]) for tag in headings]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert "Where is order 3?" in read.text
    assert "kantan-agents traces show trace_v2_c3" in read.text
    assert "It is so." in read.text


def test_yes_and_no_is_shown_as_a_table_of_both_answers() -> None:
    cases = cases_of(10)
    a = variant("v1", [result(one, "v1", {"ok": number < 6}) for number, one in enumerate(cases)])
    b = variant("v2", [result(one, "v2", {"ok": 4 <= number < 9}) for number, one in enumerate(cases)])
    page = page_of(a, b, cases, metrics="ok")
    table = page[page.index('<table class="fourfold">') :]
    cells = re.findall(r"<td>(?:<strong>)?(\d+)", table[: table.index("</table>")])
    assert cells == ["2", "4", "3", "1"]  # both yes, only a, only b, none
    assert page.count("<article>") == 7
    assert "Cases that flipped" in page


def test_every_chart_has_a_title_and_a_description_in_words() -> None:
    cases, a, b = two_variants()
    page = page_of(a, b, cases)
    charts = re.findall("<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) >= 4
    for chart in charts:
        drawn = ET.fromstring(chart)  # well-formed
        assert [child.tag for child in drawn[:2]] == ["title", "desc"]
        assert all(child.text for child in drawn[:2])
    assert any("helpful: +" in chart and "(+" in chart for chart in charts)


def test_every_table_has_headers_and_a_verdict_has_a_sign_and_a_word() -> None:
    cases, a, b = two_variants()
    page = page_of(a, b, cases)
    for table in re.findall("<table.*?</table>", page, re.DOTALL):
        assert 'scope="col"' in table and 'scope="row"' in table
    assert "▲</span> better" in page
    assert "▼</span> worse" in page


def test_a_difference_that_cannot_be_known_is_a_dash_and_not_drawn() -> None:
    (case,) = cases_of(1)
    a = variant("v1", [result(case, "v1", {"m": 0.5, "broken": Score(None, error="KeyError: 'x'")})])
    b = variant("v2", [result(case, "v2", {"m": 0.75, "broken": Score(None, error="KeyError: 'x'")})])
    read = Elements(page_of(a, b, [case]))
    assert "there is one case" in read.text
    assert "no case has a score on both sides" in read.text
    assert "\N{EN DASH}" in read.text


def test_a_metric_of_which_less_is_better_says_so() -> None:
    cases = cases_of(8)
    many = [result(one, "v1", {"errors": number + 4}) for number, one in enumerate(cases)]
    a = variant("v1", many, errors="lower")
    b = variant("v2", [result(one, "v2", {"errors": 1}) for one in cases], errors="lower")
    page = page_of(a, b, cases, metrics="errors")
    assert "lower is better" in page
    assert '<line class="pair better"' in page and 'class="pair worse"' not in page


def test_of_many_cases_the_largest_changes_are_shown() -> None:
    cases, a, b = two_variants(300)
    page = page_of(a, b, cases, metrics=["helpful"])
    assert "The 40 of 300 cases that changed most." in page
    assert page.count("<article>") == 50
    assert "more cases are not shown" in page


def test_a_long_text_is_cut_and_says_so() -> None:
    (case, other) = cases_of(2)
    long = "x" * 10_000
    a = variant("v1", [result(one, "v1", {"ok": 0}, output=long) for one in (case, other)])
    b = variant("v2", [result(one, "v2", {"ok": 1}) for one in (case, other)])
    page = page_of(a, b, [case, other])
    assert "6,000 more characters are in the trace." in page
    assert "x" * 4_001 not in page


def test_repeats_are_shown_below_each_other() -> None:
    cases = cases_of(2)
    tries = [(one, number) for one in cases for number in range(5)]
    a = variant("v1", [result(one, "v1", {"ok": 0}, repeat=n, output=f"try {n}") for one, n in tries])
    b = variant("v2", [result(one, "v2", {"ok": 1}) for one in cases])
    page = page_of(a, b, cases)
    assert "try 2" in page and "try 3" not in page
    assert "2 more repeats" in page


def test_without_cases_their_inputs_are_left_out() -> None:
    _, a, b = two_variants()
    assert "<dt>input</dt>" not in page_of(a, b)


# ---- what cannot get into it


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_models_and_datasets_are_shown_as_text(text: str) -> None:
    page = hostile_page(text)
    read = Elements(page)
    assert read.open == []
    assert read.count("script") == read.count("img") == 0
    assert all(not name.startswith("on") for _, attributes in read.elements for name in attributes)
    for chart in re.findall("<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(chart)
    visible = INVISIBLE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)
    assert visible in read.text
    page.encode()


@given(st.text(max_size=40))
def test_any_output_leaves_the_page_whole(text: str) -> None:
    (case, other) = cases_of(2)
    a = variant("v1", [result(one, "v1", {"ok": 0}, output=text) for one in (case, other)])
    b = variant("v2", [result(one, "v2", {"ok": 1}, error=text, status="finished") for one in (case, other)])
    page = page_of(a, b, [case, other])
    assert Elements(page).open == []
    page.encode()


def test_half_of_a_surrogate_pair_does_not_stop_the_page_from_being_written(tmp_path: Path) -> None:
    (case, other) = cases_of(2)
    a = variant("v1", [result(one, "v1", {"ok": 0}, output="\ud83d") for one in (case, other)])
    b = variant("v2", [result(one, "v2", {"ok": 1}) for one in (case, other)])
    write_report(compare(a, b), a, b, tmp_path / "report.html", cases=[case, other])
    assert "[U+D83D]" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_page_loads_nothing_and_allows_nothing() -> None:
    cases, a, b = two_variants()
    read = Elements(page_of(a, b, cases))
    policies = [one["content"] for tag, one in read.elements if tag == "meta" and "http-equiv" in one]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    for tag, attributes in read.elements:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "form")
        assert "src" not in attributes and "style" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\((?!#)|@import|@font-face", page_of(a, b, cases))


# ---- the file


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        cases, a, b = two_variants()
        write_report(compare(a, b), a, b, tmp_path / name, cases=cases)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    cases, a, b = two_variants()
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(compare(a, b), a, b, str(path), cases=cases)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    _, a, b = two_variants()
    with pytest.raises(FileArgumentError, match="No such file"):
        write_report(compare(a, b), a, b, tmp_path / "missing" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileArgumentError):
        write_report(compare(a, b), a, b, tmp_path / "folder")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(InvalidOptionError):
        write_report(compare(a, b), a, b, 3)  # type: ignore[arg-type]


def test_the_page_of_several_variants_has_each_verdict_once_and_links_to_its_cases(tmp_path: Path) -> None:
    cases, a, b = two_variants()
    third = [attrs.evolve(one, variant=HOSTILE[0], output=HOSTILE[1]) for one in b.results]
    results = [a, b, attrs.evolve(b, variant=HOSTILE[0], results=tuple(third))]
    comparisons = compare_all(*results)
    write_report_of_all(comparisons, results, tmp_path / "report.html", cases=cases)
    page = Elements((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    ids = [given["id"] for _, given in page.elements if "id" in given]
    assert len(ids) == len(set(ids))
    links = [given["href"] for tag, given in page.elements if tag == "a"]
    assert len(links) == sum(one.is_notable for one in comparisons.metrics)
    assert {f"#{one}" for one in ids} >= set(links)
    texts = "".join(page.texts)
    for one in comparisons.metrics:
        if one.is_notable:
            assert one.text_of_variant in texts
    assert "tests together (Holm)" in texts


def test_the_page_of_several_variants_has_their_failed_runs_and_cases_left_out(tmp_path: Path) -> None:
    _, a, b = two_variants()
    first = attrs.evolve(b.results[0], status="failed", error="ValueError: broken")
    crashed = attrs.evolve(b, variant="v3", results=(first, *b.results[1:-1]))
    results = [a, b, crashed]
    write_report_of_all(compare_all(*results), results, tmp_path / "report.html")
    texts = "".join(Elements((tmp_path / "report.html").read_text(encoding="utf-8")).texts)
    assert f"failed runs of v3{len(crashed.failed)}" in texts
    assert f"cases of {a.variant} or v3 only, left out1" in texts


def test_a_page_needs_the_results_of_all_variants(tmp_path: Path) -> None:
    _, a, b = two_variants()
    comparisons = compare_all(a, b)
    with pytest.raises(InvalidOptionError, match="those of the control and of 1 variants, not 1"):
        write_report_of_all(comparisons, [a], tmp_path / "report.html")
