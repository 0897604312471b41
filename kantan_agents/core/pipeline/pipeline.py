"""An ordered list of stages."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any

import attrs

from kantan_agents.core.pipeline.run import Run
from kantan_agents.core.pipeline.stage import Chain, NamedStage, Stage, link
from kantan_agents.errors import DuplicateStageError, UnknownStageError

Target = str | type | Stage
"""Identifies a stage: its name, the class of a stage object, or the stage itself."""


async def _end(_run: Run) -> None:
    """End the chain."""


@attrs.frozen(init=False, repr=False)
class Pipeline:
    """An immutable, ordered list of stages; the first one is the outermost.

    Every method returns a new pipeline; a ``target`` is a stage, its name, or the class of a stage object.
    Start from ``Pipeline(DEFAULT_STAGES)``:

        Pipeline(DEFAULT_STAGES).before("call_sdk", my_stage)

    Args:
        stages: Stages in flow order. A stage is named after its attribute ``name``, its function or its
            class; a ``(name, stage)`` pair gives it another name.

    Raises:
        NotAStageError: E73, an entry is not ``async def stage(run, call_next)``.
        DuplicateStageError: E71, two stages have the same name.
    """

    stages: tuple[NamedStage, ...]
    _chain: Chain = attrs.field(eq=False, hash=False)

    def __init__(self, stages: Iterable[Stage | tuple[str, Stage] | NamedStage] = ()) -> None:
        named = tuple(s if isinstance(s, NamedStage) else NamedStage.of(s) for s in stages)
        seen: set[str] = set()
        for entry in named:
            if entry.name in seen:
                raise DuplicateStageError(stage=entry.name)
            seen.add(entry.name)
        chain: Chain = _end
        for entry in reversed(named):
            chain = link(entry, chain)
        self.__attrs_init__(named, chain)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages, in order."""
        return tuple(entry.name for entry in self.stages)

    def __call__(self, run: Run) -> Coroutine[Any, Any, None]:
        """Return a coroutine that sends ``run`` through all stages."""
        return self._chain(run)

    def prepend(self, *stages: Stage | tuple[str, Stage]) -> Pipeline:
        """Return a pipeline with ``stages`` outermost, in the order given."""
        return Pipeline((*stages, *self.stages)) if stages else self

    def before(self, target: Target, stage: Stage | tuple[str, Stage]) -> Pipeline:
        """Return a pipeline with ``stage`` directly before ``target`` (E70 if it is unknown)."""
        index = self._find(target)
        return Pipeline((*self.stages[:index], stage, *self.stages[index:]))

    def after(self, target: Target, stage: Stage | tuple[str, Stage]) -> Pipeline:
        """Return a pipeline with ``stage`` directly after ``target`` (E70 if it is unknown)."""
        index = self._find(target) + 1
        return Pipeline((*self.stages[:index], stage, *self.stages[index:]))

    def replace(self, target: Target, stage: Stage | tuple[str, Stage]) -> Pipeline:
        """Return a pipeline with ``stage`` in place of ``target``, under the name of ``target``.

        A ``(name, stage)`` pair gives the new stage another name.
        """
        index = self._find(target)
        new = stage if isinstance(stage, tuple) else (self.stages[index].name, stage)
        return Pipeline((*self.stages[:index], new, *self.stages[index + 1 :]))

    def without(self, target: Target) -> Pipeline:
        """Return a pipeline without ``target`` (E70 if it is unknown)."""
        index = self._find(target)
        return Pipeline((*self.stages[:index], *self.stages[index + 1 :]))

    def _find(self, target: Target) -> int:
        matches = [i for i, entry in enumerate(self.stages) if _matches(entry, target)]
        if len(matches) == 1:
            return matches[0]
        shown = target if isinstance(target, str) else getattr(target, "__name__", repr(target))
        if matches:
            shown = f"{shown} (it matches {len(matches)} stages, use a name)"
        raise UnknownStageError(stage=shown, known=", ".join(self.names))

    def __repr__(self) -> str:
        return f"Pipeline({' -> '.join(self.names)})"


def _matches(entry: NamedStage, target: Target) -> bool:
    if isinstance(target, str):
        return entry.name == target
    if isinstance(target, type):
        return isinstance(entry.stage, target)
    return entry.stage is target or entry.stage == target
