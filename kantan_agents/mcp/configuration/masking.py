"""Masks the secrets of one server in what is said about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kantan_agents.mcp.configuration.variables import Expanded
from kantan_agents.support.secrets import MASK, is_named_secret, mask

_SHORTEST = 4  # a shorter value would be masked in every word that contains it


@attrs.frozen
class Masking:
    """The values of one server that must not be shown.

    Attributes:
        values: The values, the longest first.
    """

    values: tuple[str, ...] = attrs.field(repr=lambda values: f"<{len(values)} values>")

    @classmethod
    def of(cls, expanded: Expanded) -> Masking:
        """Return the values of variables, and what a name in ``env`` or ``headers`` says is a secret."""
        values = {*expanded.values, *_named(expanded.env), *_named(expanded.headers)}
        return cls(tuple(sorted(filter(_is_long, values), key=len, reverse=True)))

    def masked(self, text: str) -> str:
        """Return a text without these values, and without other secrets."""
        for value in self.values:
            text = text.replace(value, MASK)
        return mask(text)


def _named(values: Mapping[str, str]) -> Iterable[str]:
    for name, value in values.items():
        if is_named_secret(name, value):
            yield value
            yield value.rpartition(" ")[2]  # of `Bearer TOKEN`


def _is_long(value: str) -> bool:
    return len(value) >= _SHORTEST
