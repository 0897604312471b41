"""The versioned JSON of stored answers, results and errors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs
from agents import ModelResponse, ToolOutputFileContent, ToolOutputImage, ToolOutputText

from kantan_agents.core.usage import NO_USAGE, usage_numbers
from kantan_agents.errors import KantanAgentsError, StoredStepError, code_of
from kantan_agents.lab.replay.recorded_results import error_of, result_of
from kantan_agents.models.finish_reasons import answer_cut_off, finish_reason
from kantan_agents.support.storable_text import storable_text, whole_text
from kantan_agents.traces.capture import ModelAnswer, RecordedError

VERSION: Final = 1
"""Later versions of the library read earlier formats."""

_CONTENT = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
_RESULTS = ("ShellResult", "ApplyPatchResult")


@attrs.frozen
class _Result:
    result: Any
    is_content: bool


def dump(body: Mapping[str, Any]) -> str:
    """Return a body as JSON with the version."""
    data = {"v": VERSION, **body}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # No database takes half of a surrogate pair. Escaped, it is read back unchanged.
    return text if whole_text(text) is text else json.dumps(data, separators=(",", ":"))


def load(run_id: str, step: str, text: str) -> dict[str, Any]:
    """Return a stored body; E155 if it is damaged, or from a later version."""
    try:
        body = json.loads(text)
        version = body["v"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoredStepError(run_id=run_id, step=step, reason=f"it is damaged: {error}") from None
    if not isinstance(version, int) or version > VERSION:
        reason = f"it has version {version!r}, and this one reads up to {VERSION}; use the newer library"
        raise StoredStepError(run_id=run_id, step=step, reason=reason)
    return dict(body)


def answer_body(answer: ModelResponse, form: str) -> dict[str, Any]:
    """Return an answer as data, with its request's form."""
    return {
        "form": form,
        "output": [_item(item) for item in answer.output],
        "response_id": answer.response_id,
        "usage": {**NO_USAGE, **usage_numbers(answer.usage)},
        "cut_off": finish_reason(answer) if answer_cut_off(answer) else None,
    }


def answer_of(body: Mapping[str, Any]) -> ModelAnswer:
    """Return a stored answer."""
    return ModelAnswer(body["output"], body["usage"], body.get("response_id"), body.get("cut_off"))


def _item(item: Any) -> Any:
    return item if isinstance(item, Mapping) else item.model_dump(mode="json", exclude_unset=True)


def result_body(result: Any) -> dict[str, Any]:
    """Return a tool's result as data; values that JSON would change as the model's string."""
    if isinstance(result, _CONTENT):
        return {"content": result.model_dump(mode="json")}
    if isinstance(result, list) and result and all(isinstance(one, _CONTENT) for one in result):
        return {"content": [one.model_dump(mode="json") for one in result]}
    if type(result).__name__ in _RESULTS and dataclasses.is_dataclass(result):
        return {"result": dataclasses.asdict(result)}  # type: ignore[arg-type]  # an instance
    return {"result": result if is_plain(result) else str(result)}


def stored_result(body: Mapping[str, Any], tool: Any) -> Any:
    """Return a stored result of a tool, or raise its error."""
    if "error" in body:
        raise error_of(RecordedError(**body["error"]))
    if "content" in body:
        return result_of(_Result(body["content"], is_content=True), tool)  # type: ignore[arg-type]
    return result_of(_Result(body["result"], is_content=False), tool)  # type: ignore[arg-type]


def text_of_result(body: Mapping[str, Any]) -> str:
    """Return the model's string for a stored result."""
    if "error" in body:
        message = body["error"]["message"]
        return f"An error occurred while running the tool. Please try again. Error: {message}"
    content = body.get("content")
    if isinstance(content, Mapping) and content.get("type") == "text":
        return str(content["text"])
    return str(body["result"] if content is None else content)


def error_body(error: BaseException) -> dict[str, Any]:
    """Return an error as data."""
    status = getattr(error, "status_code", None)
    return {
        "error": {
            "type": type(error).__name__,
            "message": message_of(error),
            "code": code_of(error),
            "status": status if isinstance(status, int) else None,
        }
    }


def message_of(error: BaseException) -> str:
    """Return a storable message; users' errors may have none."""
    if isinstance(error, KantanAgentsError):
        return storable_text(str(error.args[0])) if error.args else ""
    try:
        return storable_text(str(error))
    except Exception:  # noqa: BLE001 - __str__ is user code
        return f"<{type(error).__name__}>"


def is_plain(value: Any, depth: int = 0) -> bool:
    """Return whether JSON preserves a value."""
    if value is None or type(value) in (str, int, bool):
        return True
    if type(value) is float:
        return value - value == 0
    if depth > 50:  # noqa: PLR2004 - deeper than anything a tool returns
        return False
    if type(value) is list:
        return all(is_plain(one, depth + 1) for one in value)
    if type(value) is dict:
        return all(type(key) is str and is_plain(one, depth + 1) for key, one in value.items())
    return False
