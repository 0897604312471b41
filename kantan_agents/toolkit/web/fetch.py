"""Fetches a page: without cookies or credentials, within limits of time and size."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import attrs
import httpx
from anyio import to_thread

from kantan_agents.errors import FetchError, URLRefusedError
from kantan_agents.models.tls import no_tls, tls_settings
from kantan_agents.support.invisible import without_invisible
from kantan_agents.toolkit.web.body import Body, read_body
from kantan_agents.toolkit.web.markdown import markdown_of
from kantan_agents.toolkit.web.pinned_transport import PinnedTransport
from kantan_agents.toolkit.web.urls import checked_url

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "user-agent": "kantan-agents",
    "accept": "text/markdown, text/html;q=0.9, text/plain;q=0.9, */*;q=0.5",
    "accept-encoding": "gzip",
}


@attrs.frozen
class FetchLimits:
    """What a fetch may use.

    Attributes:
        seconds: How long it may take.
        body_bytes: How much of a body is read.
        private: Whether addresses of other networks than the public one are fine.
    """

    seconds: float
    body_bytes: int
    private: bool


@attrs.frozen
class WebPage:
    """A page.

    Attributes:
        url: Its URL, after redirects.
        status: The HTTP status.
        body: Its body; a text of it is Markdown if it was HTML.
    """

    url: str
    status: int
    body: Body


@attrs.frozen
class Elsewhere:
    """A redirect that is not followed.

    Attributes:
        url: The URL that redirects.
        target: Where to.
    """

    url: str
    target: str


async def fetch(url: str, may_follow: Callable[[str], bool], limits: FetchLimits) -> WebPage | Elsewhere:
    """Fetch a page.

    Args:
        url: Its URL.
        may_follow: Whether a redirect to a URL of the same host is followed.
        limits: What it may use.

    Raises:
        URLRefusedError: E171, the URL or its address is refused.
        FetchError: E172, it cannot be fetched.
    """
    try:
        with anyio.fail_after(limits.seconds):
            return await _follow(checked_url(url), may_follow, limits)
    except TimeoutError as error:
        raise FetchError(url=url, reason=f"it took longer than {limits.seconds:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise FetchError(url=url, reason=f"{type(error).__name__}: {error}"[:300]) from error


async def _follow(
    url: httpx.URL, may_follow: Callable[[str], bool], limits: FetchLimits
) -> WebPage | Elsewhere:
    for _ in range(_MOST_REDIRECTS + 1):
        tls = await to_thread.run_sync(tls_settings) if url.scheme == "https" else no_tls()
        transport = PinnedTransport(tls, private=limits.private)
        # A client for each request: it has no cookies of an earlier one, and no settings of the environment.
        async with (
            httpx.AsyncClient(transport=transport, trust_env=False, timeout=limits.seconds) as client,
            client.stream("GET", url, headers=_HEADERS) as response,
        ):
            location = response.headers.get("location", "")
            if response.status_code not in _REDIRECTS or not location:
                body = await read_body(response, limits.body_bytes)
                seen = await to_thread.run_sync(_seen, body, str(url))
                return WebPage(str(url), response.status_code, seen)
        target = _target(url, location)
        if target is None or not _is_same_site(url, target) or not may_follow(str(target)):
            return Elsewhere(str(url), location if target is None else str(target))
        url = target
    raise FetchError(url=str(url), reason=f"it redirects more than {_MOST_REDIRECTS} times")


def _target(url: httpx.URL, location: str) -> httpx.URL | None:
    try:
        return checked_url(str(url.join(location)))
    except (httpx.InvalidURL, URLRefusedError, UnicodeError, ValueError):
        return None


def _is_same_site(url: httpx.URL, target: httpx.URL) -> bool:
    """Return whether two URLs are of one host and port, or the second is the first with encryption."""
    if target.raw_host != url.raw_host:
        return False
    is_upgrade = (url.scheme, target.scheme) == ("http", "https") and url.port is None and target.port is None
    return is_upgrade or (url.scheme, url.port) == (target.scheme, target.port)


def _seen(body: Body, url: str) -> Body:
    """Return a body with the text that a reader sees; HTML becomes Markdown."""
    if body.text is None:
        return body
    text, hidden = markdown_of(body.text, url) if body.is_html else (body.text, 0)
    text, invisible = without_invisible(text.replace("\r\n", "\n").replace("\r", "\n"))
    return attrs.evolve(body, text=text, hidden=hidden, invisible=invisible)
