"""Masks one server's secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kantan_agents.support.secrets import MASK, mask
from kantan_agents.support.secrets.names import secret_name
from kantan_agents.tools.mcp.configuration.variables import Expanded

_LONG = 16
_SHORTEST = 4  # a shorter value would be masked in every word that contains it


@attrs.frozen
class Masking:
    """Values that must not be shown, the longest first."""

    values: tuple[str, ...] = attrs.field(repr=lambda values: f"<{len(values)} values>")

    @classmethod
    def of(cls, expanded: Expanded) -> Masking:
        """Collect variables, and apparent secrets in ``env`` or ``headers``."""
        values = {*expanded.values, *_named(expanded.env), *_named(expanded.headers)}
        return cls(tuple(sorted(filter(_is_long, values), key=len, reverse=True)))

    def masked(self, text: str) -> str:
        """Mask these and other secrets."""
        for value in self.values:
            text = text.replace(value, MASK)
        return mask(text)


def shown_value(name: str, value: str) -> str:
    """Mask a value that looks secret."""
    return MASK if _is_secret(name, value) else mask(value)


def _named(values: Mapping[str, str]) -> Iterable[str]:
    for name, value in values.items():
        if _is_secret(name, value):
            yield value
            yield value.rpartition(" ")[2]  # of `Bearer TOKEN`


def _is_secret(name: str, value: str) -> bool:
    # A mask too many hides a word of a message; one too few shows a secret.
    is_reference = value.startswith("${")
    return not is_reference and (secret_name(name) is not None or _looks_random(value))


def _looks_random(value: str) -> bool:
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= _LONG and is_mixed and "/" not in value


def _is_long(value: str) -> bool:
    return len(value) >= _SHORTEST
