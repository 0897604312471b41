"""Takes the pictures of the page in docs/assets/page: each view of it, in light colors.

    python docs/picture_page.py [FOLDER]

They show the runs of ``sample_week.py`` in a real Chromium, so their times differ each time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from sample_week import record  # noqa: E402

from kantan_agents import TraceStore  # noqa: E402
from kantan_agents.page import traces_app  # noqa: E402
from tests.page.browser import installed_chromium  # noqa: E402
from tests.page.served import apart, served  # noqa: E402

PRICES: Final = {"gpt-6.1-terra": (1.25, 10.0)}
REFUSED_LINE: Final = 3
"""The line of the refused call in the picture of a run."""


def main() -> None:
    """Take all pictures."""
    folder = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "assets" / "page"
    )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "traces.sqlite3"
        apart(lambda: record(path))
        store = TraceStore(path)
        with (
            served(traces_app(store, prices=PRICES)) as address,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(
                executable_path=installed_chromium(), args=["--no-sandbox"]
            )
            page = browser.new_page(
                viewport={"width": 1280, "height": 800},
                color_scheme="light",
                locale="en-GB",
            )
            page.goto(address)
            page.evaluate("localStorage.setItem('kantan-agents-label-name', 'Bo')")
            for name, hash_ in views(store):
                _take(page, f"{address}/#/{hash_}", folder / f"{name}-wide-light.png")
            browser.close()


def views(store: TraceStore) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each view."""
    refused = store.traces(has_denial=True, prompt="support", version="v2", limit=40)[
        -1
    ]
    evaluated = store.traces(metadata={"kantan_agents_case": "1008"}, limit=2)
    yield "runs", "runs"
    yield "run", f"run/{refused.trace_id}"
    yield "diff", f"diff/{evaluated[1].trace_id}/{evaluated[0].trace_id}"
    yield "prompts", "prompts/support"
    yield "comparisons", "comparisons/evaluation?name=apologize&metric=kind"
    yield "label", "label/apologize/kind?sample=24&seed=1"


def _take(page: Page, address: str, path: Path) -> None:
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("main h1")
    page.wait_for_load_state("networkidle")
    for _ in range(REFUSED_LINE if page.locator(".timeline").count() else 0):
        page.keyboard.press("j")
    page.screenshot(path=path)


if __name__ == "__main__":
    main()
