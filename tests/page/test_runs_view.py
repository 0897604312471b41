"""The table of runs in a real browser: filtered as one types, endless, live, and usable by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from kantan_agents.page import traces_app
from tests.page.sample import make
from tests.page.served import apart, served
from tests.traces.store.sample_database import SampleDatabase, open_sample


@pytest.fixture(scope="module")
def address(path: Path) -> Iterator[str]:
    with served(traces_app(path)) as address:
        yield address


@pytest.fixture
def many(tmp_path: Path) -> Iterator[SampleDatabase]:
    """A database of 350 runs, which is more than a page of the server and than the window shows."""
    with open_sample(tmp_path / "traces.sqlite3") as database:
        for number in range(350):
            database.run(f"question {number}", f"answer {number}", prompt_name=f"p{number % 2}")
        yield database


def rows(page: Page) -> Locator:
    return page.locator("table.runs tbody tr:not(.space)")


@pytest.mark.fast("a page in a browser")
def test_it_shows_the_newest_runs_and_how_they_ended(page: Page, address: str) -> None:
    page.goto(address)
    expect(rows(page)).to_have_count(7)
    expect(rows(page).nth(0)).to_contain_text("Please refund 7")
    expect(rows(page).nth(1)).to_contain_text("recovered")
    expect(rows(page).nth(2)).to_contain_text("failed")
    expect(page.get_by_text("7 runs")).to_be_visible()


def test_it_filters_as_one_types_and_the_address_holds_the_filter(page: Page, address: str) -> None:
    page.goto(address)
    # A phrase: the random id of another run's tool call may contain 101.
    page.get_by_label("Words").press_sequentially('"order 101"', delay=20)
    expect(rows(page)).to_have_count(1)
    expect(page).to_have_url(re.compile(r"#/runs\?words=%22order\+101%22$"))
    page.get_by_label("Words").fill("")
    page.get_by_label("Errors").select_option("failed")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("broken")
    page.get_by_label("denied calls").check()
    expect(page.get_by_text("No run matches this filter.")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    expect(rows(page)).to_have_count(7)
    expect(page.get_by_label("denied calls")).not_to_be_checked()


def test_a_link_with_a_filter_can_be_shared(page: Page, address: str) -> None:
    page.goto(f"{address}/#/runs?tool=refund_order&denied=1")
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_label("Tool")).to_have_value("refund_order")
    page.goto(f"{address}/#/runs?agent=judge")
    expect(rows(page)).to_contain_text("Is it kind?")


def test_a_filter_that_cannot_be_read_is_explained(page: Page, address: str) -> None:
    page.goto(f"{address}/#/runs?errors=some")
    expect(page.get_by_role("alert").filter(has_text="E75")).to_contain_text("errors")


def test_back_leads_out_of_the_filter_and_to_the_same_place(page: Page, address: str) -> None:
    page.goto(f"{address}/#/label")
    page.get_by_role("link", name="Runs").click()
    page.get_by_label("Words").press_sequentially("order", delay=20)
    expect(rows(page)).to_have_count(5)
    rows(page).nth(1).click()
    expect(page).to_have_url(re.compile("#/run/trace_"))
    page.go_back()
    expect(rows(page)).to_have_count(5)
    expect(page.get_by_label("Words")).to_have_value("order")
    page.go_back()
    expect(page).to_have_url(re.compile("#/label"))


def test_it_scrolls_to_the_oldest_run_with_few_rows_in_the_document(page: Page, many: SampleDatabase) -> None:
    with served(traces_app(many.path)) as address:
        page.goto(address)
        expect(rows(page).nth(0)).to_contain_text("question 349")
        expect(page.get_by_text("100+ runs")).to_be_visible()
        for _ in range(40):
            page.mouse.wheel(0, 4_000)
            if page.get_by_text("question 0", exact=True).count():
                break
            page.wait_for_timeout(50)
        expect(page.get_by_text("question 0", exact=True)).to_be_visible()
        expect(page.locator("table.runs")).to_have_attribute("aria-rowcount", "351")
        assert rows(page).count() < 120


def test_sorting_says_that_it_is_about_what_was_loaded(page: Page, many: SampleDatabase) -> None:
    with served(traces_app(many.path)) as address:
        page.goto(address)
        expect(rows(page).nth(0)).to_contain_text("question 349")
        page.get_by_role("button", name="Input").click()
        expect(page.get_by_text("sorted: the 100 runs loaded so far")).to_be_visible()
        expect(rows(page).nth(0)).to_contain_text("question 349")
        page.get_by_role("button", name="Input").click()
        expect(rows(page).nth(0)).to_contain_text("question 250")
        expect(page.get_by_role("columnheader", name="Input")).to_have_attribute("aria-sort", "ascending")
        page.get_by_role("button", name="Input").click()
        expect(page.get_by_text("100+ runs")).to_be_visible()


def test_new_runs_appear_as_they_end(page: Page, many: SampleDatabase) -> None:
    with served(traces_app(many.path)) as address:
        page.goto(address)
        expect(rows(page).nth(0)).to_contain_text("question 349")
        many.run("a new question", "an answer")
        expect(rows(page).nth(0)).to_contain_text("a new question")
        page.mouse.wheel(0, 2_000)
        expect(page.get_by_text("question 300", exact=True)).to_be_visible()
        many.run("while somebody reads", "an answer")
        page.get_by_role("button", name="1 new run").click()
        page.mouse.wheel(0, -4_000)
        expect(rows(page).nth(0)).to_contain_text("while somebody reads")


def test_an_empty_database_says_how_to_record_a_run(page: Page, tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database, served(traces_app(database.path)) as address:
        page.goto(address)
        expect(page.get_by_text("There are no runs in this database yet.")).to_be_visible()
        database.run("the first")
        expect(rows(page)).to_contain_text("the first")


def test_a_database_that_is_deleted_is_reported_until_it_is_back(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    apart(lambda: make(path, 1))
    content = path.read_bytes()
    with served(traces_app(path)) as address:
        page.goto(address)
        expect(rows(page)).to_have_count(5)
        path.unlink()
        expect(page.get_by_role("alert").filter(has_text="E60")).to_contain_text("there is no such file")
        expect(rows(page)).to_have_count(5)
        path.write_bytes(content)
        expect(page.get_by_text("there is no such file")).to_have_count(0)


def test_the_keyboard_is_enough(page: Page, address: str) -> None:
    page.goto(address)
    expect(rows(page)).to_have_count(7)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows(page).nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("k")
    expect(rows(page).nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("/")
    expect(page.get_by_label("Words")).to_be_focused()
    page.keyboard.type("jjk")
    expect(page.get_by_label("Words")).to_have_value("jjk")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Words")).not_to_be_focused()
    page.goto(f"{address}/#/runs")
    expect(rows(page)).to_have_count(7)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/run/trace_"))


@pytest.mark.slow
@pytest.mark.parametrize("to", ["#/prompts", "#/runs?agent=support"])
def test_words_that_were_just_typed_do_not_change_the_address_of_what_is_shown_next(
    page: Page, address: str, to: str
) -> None:
    page.goto(address)
    expect(rows(page)).to_have_count(7)
    page.get_by_label("Words").fill("refund")
    # Of a new address, the event comes later: on a busy machine, after the words.
    page.evaluate("(to) => history.pushState(null, '', to)", to)
    page.wait_for_timeout(500)
    page.evaluate("window.dispatchEvent(new HashChangeEvent('hashchange'))")
    expect(page).to_have_url(f"{address}/{to}")


def test_a_narrow_window_has_no_horizontal_scrolling(page: Page, address: str) -> None:
    for width in (360, 390, 700, 1000, 2560):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(address)
        expect(rows(page).nth(0)).to_contain_text("Please refund 7")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_texts_are_texts(page: Page, tmp_path: Path) -> None:
    markup = ['<img src=x onerror="window.hit=1">', "</script><script>window.hit=1</script>"]
    hostile = [*markup, "a\u202eb", "x" * 100_000]
    with open_sample(tmp_path / "t.db") as database:
        for text in hostile:
            database.run(text, text, prompt_name=text[:50], agent_name=text[:50])
        with served(traces_app(database.path)) as address:
            page.goto(address)
            expect(rows(page)).to_have_count(4)
            expect(rows(page).nth(3)).to_contain_text("<img src=x")
            expect(rows(page).nth(1)).to_contain_text("a[U+202E]b")
            assert page.evaluate("window.hit") is None
            assert page.locator("main img, main script").count() == 0
