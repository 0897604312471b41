"""The site as its readers get it: sizes, search, order of the pages, llms.txt and the pages as Markdown."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

import kantan_agents
from kantan_agents import KantanAgentsError, errors, testing
from kantan_agents.testing import strategies
from tests.page.browser import open_chromium
from tests.page.served import served

from .pages import ROOT

# Building the site takes half a minute, on a busy machine several.
pytestmark = pytest.mark.timeout(1200)

MOST_BYTES = 300_000
NOT_SEARCHED = ("architecture", "decisions/", "measuring", "performance", "where-do-i-put")

QUESTIONS = {
    "runs of one user": ("guides/search-traces/",),
    "two requests on one session": ("guides/prompts-and-context/",),
    "my run failed": ("troubleshooting/",),
    "limit cost per tenant": ("reference/middleware/budget/",),
    "tool needs approval": ("reference/middleware/approve/", "guides/durable-runs/"),
    "use ollama": ("guides/local-models/",),
    "test without network": ("start/first-tests/",),
    "retry on rate limit": ("reference/middleware/retry/",),
    "which prompt version": ("guides/prompts-and-context/", "guides/search-traces/"),
    "resume after crash": ("guides/durable-runs/",),
    "structured logs": ("recipes/", "reference/events/"),
    "celery": ("recipes/",),
    "custom base url": ("recipes/", "guides/models/"),
    "rotate key": ("recipes/", "guides/models/"),
    "rollback prompt": ("guides/rollout/",),
    "max turns": ("troubleshooting/",),
    "承認": ("glossary/",),
    "段階的公開とは": ("glossary/",),
}
"""What newcomers look for, each with the pages that answer it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, which is built once for all processes of the suite."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-f", ".mkdocs.yml", "-d", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "llms.txt").exists():
            built = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> list[str]:
    """The addresses of all pages, such as ``guides/tools/``."""
    found = (path.relative_to(site).parent.as_posix() for path in site.rglob("index.html"))
    return sorted("" if path == "." else f"{path}/" for path in found)


@pytest.fixture(scope="module")
def api(site: Path) -> str:
    """The HTML of the API pages."""
    return "".join(path.read_text(encoding="utf-8") for path in (site / "reference").rglob("index.html"))


def test_no_page_is_too_large(site: Path) -> None:
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*.html")}
    assert {path: size for path, size in sizes.items() if size > MOST_BYTES} == {}


def test_llms_txt_lists_every_page_with_a_description(site: Path, pages: list[str]) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert re.match(r"# kantan_agents\n\n> .+\n\n## ", text)
    listed = re.findall(r"^- \[.+\]\((.*)index\.md\): .", text, re.MULTILINE)
    assert sorted(listed) == pages


def test_every_page_is_there_as_markdown_whose_links_lead_to_markdown(site: Path, pages: list[str]) -> None:
    for page in pages:
        folder = site / page
        text = (folder / "index.md").read_text(encoding="utf-8")
        assert text.startswith("# "), page
        for target in re.findall(
            r"\]\((?!\w+:)([^)#\s]+\.md)", re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
        ):
            assert (folder / target).is_file(), f"{page}: {target}"


def test_every_page_but_the_last_leads_to_the_next(site: Path, pages: list[str]) -> None:
    links = {
        page: re.findall(r'<a href="([^"]+)" class="md-footer__link md-footer__link--next"', html)
        for page in pages
        if (html := (site / page / "index.html").read_text(encoding="utf-8"))
    }
    order = [""]
    while links[order[-1]]:
        (target,) = links[order[-1]]
        here = site / order[-1]
        order.append(f"{(here / target).resolve().relative_to(site.resolve()).as_posix()}/")
    assert sorted(order) == pages


def test_the_picture_of_the_start_page_is_in_it_and_leads_to_pages(site: Path, pages: list[str]) -> None:
    html = (site / "index.html").read_text(encoding="utf-8")
    picture = html.partition('<svg class="run-and-loop"')[2].partition("</svg>")[0]
    targets = re.findall(r'<a href="([^"]+)"', picture)
    assert len(targets) == 10
    assert set(targets) <= set(pages)


def test_pages_for_contributors_are_not_in_the_search(site: Path, pages: list[str]) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    found = {document["location"].partition("#")[0] for document in index["docs"]}
    assert found == {page for page in pages if not page.startswith(NOT_SEARCHED)}


def test_every_public_name_is_in_the_api_reference(api: str) -> None:
    for module in (kantan_agents, testing, strategies):
        for name in module.__all__:
            assert re.search(rf'id="kantan_agents[\w.]*\.{name}"', api), f"{module.__name__}.{name}"


def test_every_error_with_a_code_is_in_the_api_reference(api: str) -> None:
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, KantanAgentsError):
            assert re.search(rf'id="kantan_agents[\w.]*\.{value.__name__}"', api), value.__name__


@pytest.fixture(scope="module")
def window(site: Path) -> Iterator[Page]:
    """A page of a real browser on the served site."""
    app = Starlette(routes=[Mount("/", StaticFiles(directory=site, html=True))])
    with served(app) as url, open_chromium() as chromium:
        context = chromium.new_context(base_url=url, viewport={"width": 1280, "height": 900})
        context.set_default_timeout(60_000)
        yield context.new_page()


def hits(window: Page, words: str) -> list[str]:
    """Return the addresses of the pages that the search of the site finds."""
    window.goto(f"/?q={words}", wait_until="domcontentloaded")
    found = window.locator(".md-search-result__item > a.md-search-result__link")
    meta = window.locator(".md-search-result__meta")
    expect(meta).to_have_text(re.compile(r"\d|No matching"), timeout=60_000)
    addresses: list[Any] = found.evaluate_all("links => links.map(link => new URL(link.href).pathname)")
    return list(dict.fromkeys(str(address).lstrip("/") for address in addresses))


@pytest.mark.browser
@pytest.mark.parametrize(("question", "answers"), QUESTIONS.items())
def test_a_newcomer_finds_the_answer_in_three_hits(
    window: Page, question: str, answers: tuple[str, ...]
) -> None:
    found = hits(window, question)[:3]
    assert set(answers) & set(found), found
