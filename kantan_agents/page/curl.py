"""A recorded model call as a ``curl`` command, with a variable instead of the key."""

from __future__ import annotations

import json
import shlex
from typing import Any, Final, NoReturn

import httpx
from agents import (
    AgentOutputSchemaBase,
    FunctionTool,
    Model,
    ModelSettings,
    ModelTracing,
    OpenAIResponsesModel,
)
from openai import AsyncOpenAI

from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.chat_results import ChatModel
from kantan_agents.traces.capture import ModelCallRecord, ToolDefinition
from kantan_agents.traces.capture.calls import OutputRequest

_APIS: Final[dict[str, Any]] = {
    "responses": OpenAIResponsesModel,
    "chat completions": ChatModel,
}
_KEYS: Final = {"openai": "OPENAI_API_KEY"}
_OTHER_KEY: Final = "API_KEY"


class _CapturedRequest(Exception):  # noqa: N818 - it carries the request out of the client
    def __init__(self, request: httpx.Request) -> None:
        super().__init__()
        self.request = request


async def curl_command(call: ModelCallRecord) -> str:
    """Return a command for a POSIX shell; E75 for another API than OpenAI's, or a hosted tool.

    The SDK builds the request, as in the run, but does not send it.
    """
    request = await _request(call)
    key = _KEYS.get(call.provider or "", _OTHER_KEY)
    body = json.dumps(json.loads(request.content), ensure_ascii=False)
    return " \\\n  ".join(
        (
            f"curl {shlex.quote(str(request.url))}",
            f'-H "Authorization: Bearer ${key}"',
            "-H 'Content-Type: application/json'",
            f"-d {shlex.quote(body)}",
        )
    )


async def _request(call: ModelCallRecord) -> httpx.Request:
    kind = _APIS.get(call.api)
    if kind is None:
        _refuse("it went to an API that is not OpenAI's")
    tools = [_tool(tool) for tool in (*call.request.tools, *call.request.handoffs)]
    async with httpx.AsyncClient(transport=httpx.MockTransport(_capture), trust_env=False) as client:
        made = AsyncOpenAI(api_key="none", base_url=call.url, http_client=client, max_retries=0)
        model: Model = kind(model=call.model, openai_client=made)
        return await _asked(model, call, tools)


async def _asked(model: Model, call: ModelCallRecord, tools: list[Any]) -> httpx.Request:
    error: Exception | None = None
    try:
        await _ask(model, call, tools)
    except Exception as raised:  # noqa: BLE001 - the client wraps the error of `_capture`
        error = raised
    return _captured(error) or _refuse(f"the SDK cannot make it again: {type(error).__name__}")


async def _ask(model: Model, call: ModelCallRecord, tools: list[Any]) -> None:
    request = call.request
    given: Any = (
        request.input if isinstance(request.input, str) else [dict(item) for item in request.input or ()]
    )
    options = request.options
    await model.get_response(
        system_instructions=request.instructions,
        input=given,
        model_settings=ModelSettings(**dict(request.settings)),  # type: ignore[arg-type]
        tools=tools,
        output_schema=_output(request.output),
        handoffs=[],
        tracing=ModelTracing.DISABLED,
        previous_response_id=_text(options.get("previous_response_id")),
        conversation_id=_text(options.get("conversation_id")),
        prompt=options.get("prompt"),  # type: ignore[arg-type]
    )


def _capture(request: httpx.Request) -> NoReturn:
    raise _CapturedRequest(request)


def _captured(error: BaseException | None) -> httpx.Request | None:
    while error is not None and not isinstance(error, _CapturedRequest):
        error = error.__cause__ or error.__context__
    return None if error is None else error.request


def _tool(tool: ToolDefinition) -> FunctionTool:
    # For the provider, a handoff is a function too.
    if tool.kind not in {"function", "handoff"}:
        _refuse(f"{tool.name} is a tool that the provider runs")
    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.parameters or {}),
        on_invoke_tool=_never,
        strict_json_schema=tool.is_strict,
    )


async def _never(*_arguments: Any) -> NoReturn:
    raise AssertionError("no answer is ever received, so no tool is called")


def _output(asked: OutputRequest | None) -> AgentOutputSchemaBase | None:
    # In the other modes, a tool or the instructions have the schema.
    return _Output(asked) if asked is not None and asked.mode == "native" else None


class _Output(AgentOutputSchemaBase):
    def __init__(self, output: OutputRequest) -> None:
        self._output = output

    def is_plain_text(self) -> bool:
        return False

    def name(self) -> str:
        return self._output.name

    def json_schema(self) -> dict[str, Any]:
        return dict(self._output.schema)

    def is_strict_json_schema(self) -> bool:
        return self._output.is_strict

    def validate_json(self, json_str: str) -> Any:
        return json_str


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _refuse(reason: str) -> NoReturn:
    raise InvalidOptionError(option="call", reason=f"there is no curl command for it: {reason}")
