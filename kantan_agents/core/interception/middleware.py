"""``Middleware``: code around calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from kantan_agents.core.interception.calls import ModelCall, ModelNext, ToolCall, ToolNext
from kantan_agents.core.interception.named_tools import NamedTools
from kantan_agents.core.pipeline import Next, Run, Stage
from kantan_agents.core.pipeline.stage import stage_name
from kantan_agents.errors import NotAStageError

if TYPE_CHECKING:
    from agents import ModelResponse

_LEVELS = ("run", "model_call", "tool_call")


class Middleware:
    """Base class for code around a run, its model calls and its tool calls. Override any of the methods.

    One object serves all runs of an agent, even concurrent ones. Store per-run state in ``run.state``, for
    example with the object itself as the key.

    Attributes:
        is_outermost: Whether it wraps its agent's runs outside all others, whatever its position in the list.
    """

    is_outermost: ClassVar[bool] = False

    async def run(self, run: Run, call_next: Next) -> None:
        """Wrap the whole run; ``await call_next(run)`` continues it."""
        await call_next(run)

    def trace_metadata(self, run: Run) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """Return more metadata for the trace of a run. Called before the trace is opened.

        It overrides the metadata of the agent and of the ``RunConfig``, but never the standard keys.
        """
        return {}

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Wrap each model call and return the SDK's ``ModelResponse``.

        ``await call_next(call)`` calls the model. It may be awaited several times or not at all.
        """
        return await call_next(call)

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Wrap each tool call and return the result for the model.

        ``await call_next(call)`` runs the tool if the tool rules allow it. It may be awaited several times or
        not at all.
        """
        return await call_next(call)


@attrs.frozen
class Layers:
    """The middleware of one agent by level, outermost first."""

    stages: tuple[Stage | tuple[str, Stage], ...] = ()
    model_calls: tuple[Any, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    metadata: tuple[Callable[[Run], Mapping[str, Any]], ...] = ()
    named_tools: tuple[NamedTools, ...] = ()
    middleware: tuple[Any, ...] = ()

    def inside(self, outer: Layers | None) -> Layers:
        """Return these layers with others around them."""
        if outer is None:
            return self
        own, others = attrs.astuple(self, recurse=False), attrs.astuple(outer, recurse=False)
        return Layers(*(other + mine for other, mine in zip(others, own, strict=True)))


_NO_LAYERS = Layers()


def layers_of(middleware: Iterable[Any]) -> Layers:
    """Sort middleware by level: stages, objects with such methods, or named pairs; else E73."""
    stages: list[Any] = []
    model_calls: list[Any] = []
    tool_calls: list[Any] = []
    metadata: list[Any] = []
    named_tools: list[NamedTools] = []
    objects: list[Any] = []
    for entry in middleware:
        name, value = entry if isinstance(entry, tuple) and len(entry) == 2 else (None, entry)  # noqa: PLR2004
        levels = _levels(value)
        if levels is None:
            stages.append(entry)
            owner = getattr(value, "__self__", None)
            if isinstance(owner, Middleware):  # `redact.run` as a stage: its masks count too
                objects.append(owner)
            continue
        if name is not None and (not isinstance(name, str) or not name):
            raise NotAStageError(value=repr(entry), reason="its name is empty or not a str")
        objects.append(value)
        if "run" in levels:
            stages.append((name or stage_name(value), value.run))
        if "model_call" in levels:
            model_calls.append(value.model_call)
        if "tool_call" in levels:
            tool_calls.append(value.tool_call)
        if isinstance(value, Middleware) and _defines(value, "trace_metadata"):
            metadata.append(value.trace_metadata)
        named = getattr(value, "named_tools", None)
        if isinstance(named, NamedTools):
            named_tools.append(named)
    stages.sort(key=_is_inside)
    lists = (stages, model_calls, tool_calls, metadata, named_tools, objects)
    return Layers(*map(tuple, lists)) if stages or objects else _NO_LAYERS


def _is_inside(stage: Any) -> bool:
    owner = getattr(stage[1] if isinstance(stage, tuple) else stage, "__self__", None)
    return not (isinstance(owner, Middleware) and owner.is_outermost)


def _levels(value: Any) -> list[str] | None:
    if isinstance(value, type):
        if issubclass(value, Middleware):
            raise NotAStageError(value=repr(value), reason="it is a class; pass an instance")
        return None
    levels = [level for level in _LEVELS if _defines(value, level)]
    if not isinstance(value, Middleware) and (callable(value) or not levels):
        return None
    if not levels:
        reason = f"it defines none of {', '.join(_LEVELS)}"
        raise NotAStageError(value=repr(value), reason=reason)
    for level in levels:
        _check(value, level)
    return levels


def _defines(value: Any, level: str) -> bool:
    method = getattr(value, level, None)
    return callable(method) and getattr(method, "__func__", None) is not getattr(Middleware, level)


def _check(value: Any, level: str) -> None:
    method = getattr(value, level)
    if inspect.isroutine(method) and not inspect.iscoroutinefunction(method):
        raise NotAStageError(value=repr(value), reason=f"its {level} is not async")
    try:
        inspect.signature(method).bind(None, None)
    except TypeError as error:
        raise NotAStageError(value=repr(value), reason=f"its {level}: {error}") from None
    except ValueError:
        return  # written in C: its signature cannot be read


inherited_layers: ContextVar[Layers | None] = ContextVar("kantan_agents_inherited_layers", default=None)
"""Middleware around every run in this context, outside its agent's.

Tasks and ``asyncio.to_thread`` copy the context, so it includes runs that outlive the outer one.
"""
