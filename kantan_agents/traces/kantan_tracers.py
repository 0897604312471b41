"""Gives kantan-llm's own tracers the texts of a final span, which they store and print, and not messages.

They cannot find a rubric in messages, and a text in JSON is not found if it has quotes or several lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from kantan_agents.traces.final_span import GenerationSpanData, recorded_export

_METHODS = ("on_span_start", "on_span_end")


@lru_cache(maxsize=256)
def is_kantan_tracer(kind: type) -> bool:
    """Return whether a class of trace processors is, or extends, a tracer of kantan-llm that reads spans."""
    # Without an import: as long as nobody has imported them, no class can be one of them.
    tracing: Any = sys.modules.get("kantan_llm.tracing")
    return tracing is not None and issubclass(
        kind, (tracing.OTELTracer, tracing.PrintTracer, tracing.SQLiteTracer)
    )


def give_texts(tracer: Any) -> None:
    """Let a tracer for which ``is_kantan_tracer`` holds read texts from now on."""
    if _METHODS[0] not in vars(tracer):
        for name in _METHODS:
            setattr(tracer, name, _with_texts(getattr(tracer, name)))


def _with_texts(method: Callable[[Any], None]) -> Callable[[Any], None]:
    @wraps(method)
    def given_texts(span: Any) -> None:
        is_final = isinstance(getattr(span, "span_data", None), GenerationSpanData)
        method(_WithTexts(span) if is_final else span)

    return given_texts


class _WithTexts:
    """The final span of a run with the export that kantan-llm's tracers expect."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def __getattr__(self, name: str) -> Any:
        return getattr(self._span, name)

    def export(self) -> dict[str, Any] | None:
        return recorded_export(self._span)
