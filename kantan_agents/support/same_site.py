"""Whether a request comes from a page of another site."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

_OWN_SITE: Final = frozenset({"same-origin", "none"})  # "none": the address was typed


def says_other_site(values: Callable[[str], Sequence[str]]) -> bool:
    """Return whether a browser says, by ``Sec-Fetch-Site``, that another site sends a request.

    Args:
        values: Returns the values of a header.
    """
    return any(site not in _OWN_SITE for site in values("sec-fetch-site"))


def has_other_origin(values: Callable[[str], Sequence[str]]) -> bool:
    """Return whether the header ``Origin`` of a request names another host than it is sent to.

    Args:
        values: Returns the values of a header.
    """
    own = {
        f"{scheme}://{host.lower()}" for host in values("host")[:1] if host for scheme in ("http", "https")
    }
    return any(origin.lower() not in own for origin in values("origin"))
