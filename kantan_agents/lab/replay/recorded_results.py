"""Recreates recorded results and exceptions."""

from __future__ import annotations

import builtins
import inspect
from ast import literal_eval
from collections.abc import Iterator, Mapping
from typing import Any, Final

import agents.exceptions
import httpx
import openai
from agents import (
    ApplyPatchTool,
    LocalShellTool,
    ShellTool,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents.editor import ApplyPatchResult
from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellResult

import kantan_agents.errors
from kantan_agents.errors import KantanAgentsError, ReplayedFailureError
from kantan_agents.traces.capture import RecordedError, ToolCallRecord

_CONTENT: Final[Mapping[str, Any]] = {
    "text": ToolOutputText,
    "image": ToolOutputImage,
    "file": ToolOutputFileContent,
}
_NOWHERE: Final = httpx.Request("POST", "http://replay.invalid/")


def result_of(recorded: ToolCallRecord, tool: Any) -> Any:
    """Return a recorded result in the SDK's type for this kind of tool."""
    result: Any = recorded.result
    if recorded.is_content:
        return [_content(one) for one in result] if isinstance(result, list) else _content(result)
    if not isinstance(result, Mapping):
        return result
    if isinstance(tool, (ShellTool, LocalShellTool)):
        outputs = [
            ShellCommandOutput(**{**one, "outcome": ShellCallOutcome(**one["outcome"])})
            for one in result["output"]
        ]
        return ShellResult(**{**result, "output": outputs})
    if isinstance(tool, ApplyPatchTool):
        return ApplyPatchResult(**result)
    return result


def _content(data: Mapping[str, Any]) -> Any:
    return _CONTENT[data["type"]].model_validate(data)


_RENAMED: Final = {
    "EditRefusedError": "EditRejectedError",
    "JudgementError": "JudgmentError",
    "SealedDatasetError": "HeldOutDatasetError",
    "URLRefusedError": "URLRejectedError",
    "UndefinedMarkerError": "UndefinedPlaceholderError",
}
"""Errors of this library that earlier versions recorded under another name."""


def error_of(recorded: RecordedError) -> Exception:
    """Return a recorded error as an exception for which middleware acts as for the original.

    If its class is neither known nor uniquely named, it is a ``ReplayedFailureError`` with the recorded name.
    Attributes of this library's errors are None.
    """
    if recorded.code is not None:
        own = getattr(kantan_agents.errors, _RENAMED.get(recorded.type, recorded.type), None)
        if isinstance(own, type) and issubclass(own, KantanAgentsError):
            return _own_error(own, recorded)
    return _of_client(recorded) or _of_known_class(recorded) or _stand_in(recorded)


def _own_error(kind: type[KantanAgentsError], recorded: RecordedError) -> Exception:
    error = kind.__new__(kind, recorded.message)  # its own __init__ needs data that is not recorded
    error.data = {}
    for each in reversed(kind.__mro__):
        for name in inspect.get_annotations(each):
            if not hasattr(error, name):
                setattr(error, name, recorded.status if name == "status" else None)
    return error


def _of_client(recorded: RecordedError) -> Exception | None:
    kind = getattr(openai, recorded.type, None)
    if not isinstance(kind, type) or not issubclass(kind, openai.APIError):
        return None
    message = recorded.message
    if issubclass(kind, openai.APIStatusError):
        response = httpx.Response(recorded.status or 500, request=_NOWHERE)
        return kind(message, response=response, body=None)
    if issubclass(kind, openai.APITimeoutError):
        return kind(_NOWHERE)
    if issubclass(kind, openai.APIConnectionError):
        return kind(message=message, request=_NOWHERE)
    return kind(message, _NOWHERE, body=None)


def _of_known_class(recorded: RecordedError) -> Exception | None:
    for module in (builtins, agents.exceptions):
        kind = getattr(module, recorded.type, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return _made(kind, recorded.message)
    named = [kind for kind in _subclasses(Exception) if kind.__name__ == recorded.type]
    return _made(named[0], recorded.message) if len(named) == 1 else None


def _subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    seen: set[type[Exception]] = set()
    left = [kind]
    while left:
        for each in type.__subclasses__(left.pop()):
            if each not in seen and not issubclass(each, ReplayedFailureError):
                seen.add(each)
                left.append(each)
                yield each


def _made(kind: type[Exception], message: str) -> Exception | None:
    """Return an exception whose only argument is its message; None for other classes."""
    try:
        error: Exception = kind(literal_eval(message) if kind is KeyError else message)  # which is a repr
        is_same = str(error) == message
    except Exception:  # noqa: BLE001 - user code; the class takes other arguments
        return None
    return error if is_same else None


def _stand_in(recorded: RecordedError) -> Exception:
    kind: type[Exception] = type(recorded.type, (ReplayedFailureError,), {"__module__": __name__})
    return kind(recorded.message, recorded.type)
