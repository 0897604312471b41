"""What the requests of a page have in common."""

from __future__ import annotations

import secrets

import attrs

from kantan_agents.tracing.store import TraceStore


@attrs.define
class PageState:
    """What the requests of a page have in common.

    Attributes:
        store: The trace database.
        token: What a request that changes something must send: only the opened page knows it.
        may_label: Whether labels may be given.
        secret: Signs what a window keeps and sends back, such as what is needed to take a label back.
    """

    store: TraceStore
    token: str = attrs.field(repr=False)
    may_label: bool = True
    secret: bytes = attrs.field(factory=secrets.token_bytes, repr=False)
