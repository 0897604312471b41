"""Whatever a model, a tool or a file said is text: it runs nothing, loads nothing and hides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import agents
import pytest
from playwright.sync_api import BrowserContext, Page, expect
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from kantan_agents import TraceStore
from kantan_agents.page import traces_app
from kantan_agents.page.data.read_run import read_run
from kantan_agents.page.report import write_run_report
from tests.page.hostile import ATTACK, FLAG, Hostile, make
from tests.page.served import apart, served
from tests.page.settled import Settling

NAME = quote(ATTACK, safe="")
MADE_OF_TEXTS = (
    "script:not([src]), img, iframe, object, embed, base, link:not([href^=static]), style, [srcdoc]"
)
ATTRIBUTES = """() => [...document.querySelectorAll('*')].flatMap((one) => [...one.attributes])
    .map((one) => `${one.name}=${one.value}`)
    .filter((one) => /^(on|href|src|action|formaction|style=.*url)/i.test(one))"""
# In each view it is said whether it shows texts of the database. A window opens those of one name in turn.
VIEWS = {
    "runs": [
        ("runs", True),
        (f"runs?words={NAME}", False),
        (f"runs?agent={NAME}&prompt={NAME}&version={NAME}", False),
    ],
    "run": [
        ("run/{0}", True),
        ("run/{1}", False),
        ("run/{2}", True),
    ],
    "prompts": [("prompts", True), (f"prompts/{NAME}", True)],
    "diff": [("diff/{0}/{2}", True), ("diff/{1}/{0}", False)],
    "comparisons": [
        ("comparisons", True),
        (f"comparisons/evaluation?name={NAME}", True),
        (f"comparisons/evaluation?name={NAME}&metric={NAME}", False),
        (f"comparisons/experiment?name={NAME}", True),
        (f"comparisons/experiment?name={NAME}&status={NAME}", False),
        (f"comparisons/{NAME}", False),
    ],
    "label": [("label", True), (f"label/{NAME}/{NAME}?scale=0-1", False)],
    "a link of somebody else": [
        (f"{NAME}", False),
        (f"run/{NAME}", False),
        (f"run/{NAME}/{NAME}?span={NAME}", False),
        (f"diff/{NAME}/{NAME}", False),
        (f"label/{NAME}/x?scale={NAME}&sample={NAME}&seed={NAME}", False),
        ("run/%E0%A4%A", False),
        ("__proto__", False),
        ("javascript:alert(1)", False),
    ],
}
POINT = """(one) => {
    if (!one.checkVisibility()) return null;
    one.scrollIntoView({block: "nearest", inline: "nearest"});
    const {x, y, width, height} = one.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    path = tmp_path_factory.mktemp("hostile") / "traces.sqlite3"
    agents.set_trace_processors([])
    return apart(lambda: make(path))


@pytest.fixture(scope="module")
def address(hostile: Hostile) -> Iterator[str]:
    with served(traces_app(hostile.path)) as address:
        yield address


class Watched:
    """A window whose dialogs, windows and requests are noted."""

    def __init__(self, window: BrowserContext) -> None:
        self.requests: list[str] = []
        self.opened: list[str] = []
        window.add_init_script(f"localStorage.setItem('kantan-agents-label-name', {ATTACK!r})")
        window.on("request", lambda request: self.requests.append(request.url))
        window.on("page", lambda page: page.on("popup", lambda popup: self.opened.append(popup.url)))

    def watch(self, page: Page) -> None:
        def note(dialog: object) -> None:
            self.opened.append("a dialog")

        page.on("dialog", note)


@pytest.fixture
def watched(window: BrowserContext) -> Watched:
    return Watched(window)


def nothing_ran(page: Page, watched: Watched, address: str) -> None:
    assert page.evaluate(f"window.{FLAG}") is None, page.url
    assert watched.opened == [], page.url
    elsewhere = [url for url in watched.requests if not url.startswith((f"{address}/", "data:image/"))]
    assert elsewhere == [] and watched.requests, page.url
    assert page.locator(f"body :is({MADE_OF_TEXTS})").count() == 0, page.url
    assert [
        one for one in page.evaluate(ATTRIBUTES) if not re.match(r"(href|src)=(#|static/|api/run/)", one)
    ] == []


def touch_everything(page: Page) -> None:
    """Move over the view, focus what can be focused, and open what can be opened."""
    for one in page.locator("main [role=treeitem], main summary").all()[:12]:
        if one.is_visible():
            one.click()
    for element in page.locator("main :is(td, th, li, pre, h1, h2, h3)").element_handles()[:25]:
        if point := element.evaluate(POINT):
            page.mouse.move(*point)
    for _ in range(20):
        page.keyboard.press("Tab")


@pytest.mark.parametrize("name", VIEWS)
def test_no_text_runs_or_loads_anything_and_all_are_shown_as_they_are(
    hostile: Hostile, address: str, page: Page, watched: Watched, name: str
) -> None:
    watched.watch(page)
    settling = Settling(page)
    for view, shows_texts in VIEWS[name]:
        page.goto(f"{address}/#/{view.format(*hostile.traces) if NAME not in view else view}")
        settling.wait()
        if shows_texts:
            expect(page.locator("main")).to_contain_text(f"<script>window.{FLAG}=1</script>")
        shown = page.locator("main").inner_text()
        assert not {"\u202e", "\u2066", "\u2028", "\x1b", "\x07", "\x9b", "\0"} & set(shown), view
        touch_everything(page)
        settling.wait()
        nothing_ran(page, watched, address)


def test_a_hostile_case_is_labelled(address: str, page: Page, watched: Watched) -> None:
    watched.watch(page)
    page.goto(f"{address}/#/label/{NAME}/{NAME}?scale=0-1")
    expect(page.get_by_text("0 of 4 labelled")).to_be_visible()
    for number in range(4):
        expect(page.locator(".label-item")).to_have_attribute("aria-busy", "false")
        page.keyboard.press("7")
        expect(page.get_by_text(f"{number + 1} of 4 labelled")).to_be_visible()
        expect(page.get_by_text("judge:")).to_contain_text("<script>")
        page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Done")
    nothing_ran(page, watched, address)


@pytest.mark.parametrize("run", [0, 1, 2])
def test_a_report_of_a_hostile_run_runs_nothing(
    hostile: Hostile, page: Page, watched: Watched, tmp_path: Path, run: int
) -> None:
    watched.watch(page)
    write_run_report([read_run(TraceStore(hostile.path), hostile.traces[run])], tmp_path / "run.html")
    page.goto((tmp_path / "run.html").as_uri())
    expect(page.locator("main")).to_contain_text(f"<script>window.{FLAG}=1</script>")
    touch_everything(page)
    assert page.evaluate(f"window.{FLAG}") is None
    assert watched.opened == []
    assert {url.partition(":")[0] for url in watched.requests} <= {"file", "data"}


def test_the_attack_works_where_texts_are_markup(window: BrowserContext) -> None:
    """Otherwise the tests above would prove nothing."""

    async def page_without_care(_: object) -> HTMLResponse:
        return HTMLResponse(f"<!DOCTYPE html><p>{ATTACK.partition('<base')[0]}")

    with served(Starlette(routes=[Route("/", page_without_care)])) as address:
        opened = window.new_page()
        opened.goto(address)
        opened.wait_for_function(f"window.{FLAG} === 1")
