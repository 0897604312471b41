"""Makes the results of tools of recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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

from kantan_agents.traces.capture import ToolCallRecord

_CONTENT: Final[Mapping[str, Any]] = {
    "text": ToolOutputText,
    "image": ToolOutputImage,
    "file": ToolOutputFileContent,
}


def result_of(recorded: ToolCallRecord, tool: Any) -> Any:
    """Return the result of a recorded call, in the types that the SDK expects of the kind of tool."""
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
