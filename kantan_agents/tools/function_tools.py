"""Makes tools of plain functions, and finds the parameter if the SDK cannot describe one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import agents
from agents.function_schema import function_schema

from kantan_agents.errors import ToolSchemaError

_TO_DO = (
    "give the parameter a type that says what it contains, such as a pydantic model or a list of them, "
    "or make the tool with agents.function_tool(strict_mode=False)"
)


def make_function_tool(function: Callable[..., Any]) -> agents.FunctionTool:
    """Return what ``agents.function_tool`` returns for a function.

    Raises:
        ToolSchemaError: E29, the SDK cannot describe a parameter. Its own error names neither the tool nor
            the parameter.
    """
    try:
        return agents.function_tool(function)
    except Exception as error:
        found = dict(_culprits(function))
        listed = [f"parameter {name}: {reason}" for name, reason in found.items()]
        reason = "; ".join(listed or [_first_sentence(error)])
        raise ToolSchemaError(
            tool_name=function.__name__, parameters=tuple(found), reason=f"{reason}; {_TO_DO}"
        ) from error


def _culprits(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Yield the parameters for which alone no schema can be made, each with the reason."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    for place, parameter in enumerate(signature.parameters.values()):
        if place and _is_context(function, parameter):
            yield parameter.name, "the context of the SDK can only be the first parameter"
            continue
        error = _error_about(_taking(function, signature, parameter))
        if error is not None:
            yield parameter.name, f"{inspect.formatannotation(parameter.annotation)}: {error}"


def _error_about(function: Callable[..., Any]) -> str | None:
    try:
        function_schema(function)
    except Exception as error:  # noqa: BLE001 - whatever the SDK or pydantic raises about a type
        return _first_sentence(error)
    return None


def _first_sentence(error: Exception) -> str:
    text = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
    return text or type(error).__name__


def _taking(
    function: Callable[..., Any], signature: inspect.Signature, parameter: inspect.Parameter
) -> Callable[..., Any]:
    """Return a function whose only parameter is ``parameter``, for the SDK to describe."""

    def alone() -> None:
        """Take one parameter."""

    alone.__name__ = function.__name__
    alone.__module__ = function.__module__
    alone.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[parameter], return_annotation=inspect.Signature.empty
    )
    annotations = _annotations(function)
    alone.__annotations__ = {name: hint for name, hint in annotations.items() if name == parameter.name}
    return alone


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function: evaluated, or else as they are written."""
    try:
        return inspect.get_annotations(inspect.unwrap(function), eval_str=True)
    except Exception:  # noqa: BLE001 - a name in an annotation may not exist
        return dict(getattr(function, "__annotations__", {}))


def _is_context(function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    hint = _annotations(function).get(parameter.name)
    kind = getattr(hint, "__origin__", hint)
    return isinstance(kind, type) and issubclass(kind, agents.RunContextWrapper)
