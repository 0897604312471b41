"""The extras of this package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import TracebackType
from typing import Final

import attrs

from kantan_agents.errors import (
    ExtraMissingError,
    OptimizerMissingError,
    PostgresMissingError,
    TelemetryMissingError,
)


@attrs.frozen
class Extra:
    """An extra: its feature, modules and error."""

    feature: str
    modules: tuple[str, ...]
    error: type[ExtraMissingError] = ExtraMissingError


EXTRAS: Final[Mapping[str, Extra]] = {
    "chat": Extra("chats in the terminal", ("prompt_toolkit",)),
    "dbos": Extra("durable runs", ("dbos", "sqlalchemy")),
    "improve": Extra("the search of better prompts", ("gepa",), OptimizerMissingError),
    "lab": Extra("evaluations, rollouts and improvement", ("numpy",)),
    "otel": Extra("OpenTelemetry", ("opentelemetry.sdk",), TelemetryMissingError),
    "page": Extra("the page", ("numpy",)),
    "postgres": Extra("traces in Postgres", ("psycopg",), PostgresMissingError),
    "retrieval": Extra("the search of tools", ("bm25s", "numpy", "snowballstemmer")),
    "temporal": Extra("durable runs on Temporal", ("temporalio", "croniter")),
    "testing": Extra("tests of agents", ("hypothesis", "pytest")),
}


class extra:  # noqa: N801 - reads as a statement
    """A block whose imports need an extra; a failed import raises an error that names it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ImportError) and not isinstance(error, ExtraMissingError):
            raise _missing(self._name, str(error).partition("\n")[0]) from error


def require_extra(name: str) -> None:
    """Check that an extra is installed, without importing it."""
    for module in EXTRAS[name].modules:
        with extra(name):
            if find_spec(module) is None:
                raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def _missing(name: str, reason: str) -> ExtraMissingError:
    known = EXTRAS[name]
    return known.error(feature=known.feature, extra=name, reason=reason)
