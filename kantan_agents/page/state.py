"""What the requests of a page have in common."""

from __future__ import annotations

import attrs

from kantan_agents.tracing.store import TraceStore


@attrs.define
class PageState:
    """What the requests of a page have in common.

    Attributes:
        store: The trace database.
        token: What a request that changes something must send: only the opened page knows it.
        may_label: Whether labels may be given.
    """

    store: TraceStore
    token: str
    may_label: bool = True
