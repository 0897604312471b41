"""What the requests of a page have in common."""

from __future__ import annotations

import secrets

import attrs

from kantan_agents.lab.replay.experiment.prices import Prices
from kantan_agents.page.data.signed_data import token_of
from kantan_agents.traces.store import TraceStore


@attrs.frozen
class PageState:
    """What the requests of a page have in common.

    Attributes:
        store: The trace database.
        prices: What tokens cost.
        may_label: Whether labels may be given.
        secret: Signs what a window keeps and sends back, such as what is needed to take a label back.
        token: What a request that changes something must send: only the opened page knows it. Processes
            with the same secret accept the same token.
    """

    store: TraceStore
    prices: Prices = attrs.field(factory=Prices)
    may_label: bool = True
    secret: bytes = attrs.field(factory=secrets.token_bytes, repr=False)
    token: str = attrs.field(init=False, repr=False)

    @token.default
    def _(self) -> str:
        return token_of(self.secret)
