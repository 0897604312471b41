"""Turns the return values of evaluators into scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from kantan_agents.lab.evaluation.scores import Score, Source
from kantan_agents.lab.experiment.on_scale import on_scale
from kantan_agents.support.arguments import shown

_WANTED: Final = "return a bool, a number, a Score, None, or a dict of these"
_A_LABEL: Final = "a label needs a value: return Score(value, label=...)"

Scale = tuple[float, float] | None


def scores_from(name: str, returned: Any, source: Source, scale: Scale = None) -> dict[str, Score]:
    """Return the scores by metric; each invalid value is a failed score."""
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        return {name: _score(returned, source, scale)}
    scores: dict[str, Score] = {}
    for key, value in returned.items():
        if not isinstance(key, str) or not key.strip():
            scores[name] = _failed(f"a metric must have a name that is a text, not {shown(key)}", source)
        elif value is not None:
            scores[f"{name}.{key}"] = _score(value, source, scale)
    return scores


def failed_score(error: Exception, source: Source) -> Score:
    """Return a score with the error's message."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an error whose text cannot be made must not hide the error itself
        message = ""
    kind = type(error).__name__
    return Score(None, error=f"{kind}: {message}" if message else kind, source=source)


def _score(value: Any, source: Source, scale: Scale) -> Score:
    if isinstance(value, Score):
        return _checked(value, scale)
    if isinstance(value, str):
        return _failed(_A_LABEL, source, value)
    if isinstance(value, Mapping):
        return _failed("a dict in a dict has no meaning: give each metric one value", source)
    number = _number(value, scale)
    if isinstance(number, str):
        return _failed(number, source)
    return Score(number, source=source)


def _checked(score: Score, scale: Scale) -> Score:
    if score.source not in ("code", "model", "person"):
        return _failed(
            f"the source of a score must be code, model or person, not {shown(score.source)}", "code"
        )
    for option in ("label", "comment", "error"):
        text = getattr(score, option)
        if text is not None and not isinstance(text, str):
            return _failed(f"the {option} of a score must be a text, not {shown(text)}", score.source)
    if score.error is not None:
        return attrs.evolve(score, value=None)
    if score.value is None:
        return _failed(_A_LABEL, score.source, score.label)
    number = _number(score.value, scale)
    if isinstance(number, str):
        return _failed(number, score.source, score.label)
    return attrs.evolve(score, value=number)


def _number(value: Any, scale: Scale) -> float | str:
    """Return a float, or why it is not a score."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (bool, int, float)):
        return f"{shown(value)} is not a score: {_WANTED}"
    try:
        number = float(plain)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        return f"{shown(value)} is not a finite number"
    if scale is None:
        return number
    found = on_scale(number, scale)
    low, high = scale
    return f"{number:g} is not on the scale from {low:g} to {high:g}" if found is None else found


def _failed(reason: str, source: Source, label: str | None = None) -> Score:
    return Score(None, label=label, error=f"InvalidScore: {reason}", source=source)
