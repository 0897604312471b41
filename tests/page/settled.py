"""Waits until a view has loaded, without the half second that Playwright's ``networkidle`` adds."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page, Request, expect

# A view draws what it has received before the next frame, and may then send another request.
_TWO_FRAMES: Final = """() => new Promise((done) =>
requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"""


class Settling:
    """Notes the requests of a page from now on.

    Args:
        page: The page, before it is opened.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        self._sent = 0
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    def wait(self) -> None:
        """Return when the view is drawn, every request is answered, and two frames have sent no other."""
        sent = -1
        while self._open or sent != self._sent:
            sent = self._sent
            self._page.evaluate(_TWO_FRAMES)  # first, because a new address reaches the view as an event
            expect(self._page.locator("main :is(h1, .problem)").first).to_be_visible()
            expect(self._page.locator("main :is(.waiting, [aria-busy=true])")).to_have_count(0)

    def _begin(self, request: Request) -> None:
        self._sent += 1
        self._open.add(request)

    def _end(self, request: Request) -> None:
        self._open.discard(request)
