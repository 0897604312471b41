"""Limits of candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kantan_agents.core.prompt import Prompt
from kantan_agents.core.templating import Marker, compile_template
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.improve.rated import Rated, mean
from kantan_agents.support.arguments import checked_int, checked_number

NOT_UNICODE: Final = "it is not valid Unicode"
_LEAST: Final = 2_000
"""The length that is always allowed: a short prompt may more than double."""


@attrs.frozen
class CandidateLimits:
    """The limits of every candidate; ``max_cost_increase`` is a fraction."""

    old: Prompt
    max_length: int
    max_cost_increase: float

    @classmethod
    def of(cls, old: Prompt, max_length: int | None, max_cost_increase: float) -> CandidateLimits:
        """Return the limits; raise E75 if one is invalid or the old version is too long."""
        most = (
            max(2 * len(old.text), _LEAST) if max_length is None else checked_int("max_length", max_length, 1)
        )
        if len(old.text) > most:
            reason = f"the old version has {len(old.text):,} characters already, and the limit is {most:,}"
            raise InvalidOptionError(option="max_length", reason=reason)
        return cls(old, most, checked_number("max_cost_increase", max_cost_increase))

    @property
    def markers(self) -> tuple[str, ...]:
        """The required placeholders, in their order."""
        return tuple(markers_of(self.old.text)) if not self.old.literal else ()

    def problem(self, text: str) -> str | None:
        """Return why a candidate must not run; None if it may."""
        if not text.strip():
            return "the text is empty"
        if len(text) > self.max_length:
            return f"it has {len(text):,} characters, and at most {self.max_length:,} are allowed"
        try:
            text.encode()
        except UnicodeEncodeError:
            return NOT_UNICODE
        if text == self.old.text:
            return "it is the old version, unchanged"
        if self.old.literal:
            return None
        return _marker_problem(markers_of(self.old.text), markers_of(text))

    def obstacle(self, old: Mapping[str, Rated], new: Mapping[str, Rated]) -> str | None:
        """Return why a candidate must not win; None if it may.

        Runs are by the id of the recorded run; those missing in ``old`` are compared with the recording.
        """
        for case_id, rated in new.items():
            before = old.get(case_id)
            refused = set(rated.refused) - set(before.refused if before is not None else ())
            if refused:
                tools = ", ".join(sorted(refused))
                return f"a call of {tools} is denied in the run {case_id}, and was not before"
            if rated.is_invalid and not (before is not None and before.is_invalid):
                return f"the output does not fit its schema in the run {case_id}, and did before"
        return self._cost_obstacle(old, new)

    def _cost_obstacle(self, old: Mapping[str, Rated], new: Mapping[str, Rated]) -> str | None:
        both = [key for key in new if key in old and old[key].has_ended and new[key].has_ended]
        if not both:
            return None
        has_cost = all(old[key].cost is not None and new[key].cost is not None for key in both)
        what = "cost" if has_cost else "tokens"
        before = mean([_use(old[key], has_cost) for key in both])
        after = mean([_use(new[key], has_cost) for key in both])
        most = before * (1 + self.max_cost_increase)
        if after <= most * (1 + 1e-9):
            return None
        return f"its runs use {after:,.6g} {what} on average, and at most {most:,.6g} are allowed"


def markers_of(text: str) -> list[str]:
    """Return the distinct placeholders in one spelling, in order."""
    found = [one for one in compile_template(text) if isinstance(one, Marker)]
    return list(dict.fromkeys(f"{{{{ ${one.source}{'.' if one.path else ''}{one.path} }}}}" for one in found))


def _marker_problem(old: list[str], new: list[str]) -> str | None:
    missing = [one for one in old if one not in new]
    added = [one for one in new if one not in old]
    parts = [f"it lacks the marker {', '.join(missing)}"] if missing else []
    parts += [f"it has the new marker {', '.join(added)}"] if added else []
    return " and ".join(parts) or None


def _use(rated: Rated, has_cost: Any) -> float:
    return float((rated.cost or 0.0) if has_cost else rated.tokens)
