"""The web tool: ``WebFetch``."""

from __future__ import annotations

from agents import FunctionTool

from kantan_agents.support.arguments import checked_bool, checked_int, checked_number
from kantan_agents.toolkit.web.fetch import FetchLimits
from kantan_agents.toolkit.web.web_fetch import web_fetch

__all__ = ["web_tools"]


def web_tools(
    *,
    approval: bool = True,
    private_addresses: bool = False,
    max_seconds: float = 30.0,
    max_bytes: int = 2 * 1024 * 1024,
    max_characters: int = 50_000,
) -> list[FunctionTool]:
    """Create the tool ``WebFetch``, under the name that agent files use.

    It fetches plain text and HTML, which becomes Markdown, by HTTP and HTTPS. It sends no cookies or
    credentials, and uses no proxy or other setting of the environment. The model gets a redirect to another
    host as a result instead, so that tool rules apply to each host: ``WebFetch(domain:example.com)`` covers
    the pages of a host. The result omits content that a page hides by its own markup (``hidden``,
    ``aria-hidden``, inline styles such as ``display: none``, comments) and invisible characters (zero-width
    ones, tags U+E00xx, ESC), and states how much. Content hidden by a style sheet or a color reaches the
    model. The page is marked as data between two lines that it cannot contain; a model may still believe it.

    Args:
        approval: Whether each call needs an approval.
        private_addresses: Whether addresses such as 127.0.0.1, 10.0.0.1 and cloud metadata services are
            allowed. By default they are rejected, even behind a name or a redirect.
        max_seconds: Time limit of a fetch, including redirects.
        max_bytes: Maximum size of a page, before and after decompression; the rest is not read.
        max_characters: Characters of a page that the model gets in one call.

    Raises:
        InvalidOptionError: E75: an option has an invalid value.

    Returns:
        Function tools of the SDK.
    """
    limits = FetchLimits(
        seconds=checked_number("max_seconds", max_seconds, above_zero=True),
        body_bytes=checked_int("max_bytes", max_bytes, 1),
        private=checked_bool("private_addresses", private_addresses),
    )
    length = checked_int("max_characters", max_characters, 1)
    return [web_fetch(limits, length, approval=checked_bool("approval", approval))]
