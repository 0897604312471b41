"""Recorded model calls and tool calls as JSON data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents.core.usage import tokens_of
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.page.data.cut_texts import Pool, cut
from kantan_agents.page.data.messages import messages_of
from kantan_agents.traces.capture import ModelCallRecord, ToolCallRecord, ToolDefinition


@attrs.frozen
class Pools:
    """What the calls of a trace have in common.

    Attributes:
        messages: Messages of conversations.
        texts: Instructions.
        tools: Definitions of tools.
    """

    messages: Pool = attrs.field(factory=Pool)
    texts: Pool = attrs.field(factory=Pool)
    tools: Pool = attrs.field(factory=Pool)

    def to_dict(self) -> dict[str, Any]:
        """Return the contents as JSON data."""
        return {
            "messages": self.messages.contents,
            "instructions": self.texts.contents,
            "tools": self.tools.contents,
        }


def model_call_data(call: ModelCallRecord, pools: Pools, prices: Prices) -> dict[str, Any]:
    """Return a model call; messages, instructions and tools are numbers of contents."""
    request, answer = call.request, call.answer
    output = request.output
    return {
        "agent": call.agent,
        "provider": call.provider,
        "model": call.model,
        "url": call.url,
        "api": call.api,
        "seconds": call.seconds,
        "is_streamed": call.is_streamed,
        "is_internal": call.is_internal,
        "broke_off": call.broke_off,
        "from_cache": call.from_cache,
        "is_superseded": call.is_superseded,
        "error": _error(call.error),
        "instructions": None if request.instructions is None else pools.texts.add(cut(request.instructions)),
        "input": [pools.messages.add(one) for one in messages_of(request.input)],
        "output": [pools.messages.add(one) for one in messages_of(None if answer is None else answer.output)],
        "settings": {key: cut(value) for key, value in {**request.settings, **request.options}.items()},
        "tools": [pools.tools.add(_tool(one)) for one in request.tools],
        "handoffs": [pools.tools.add(_tool(one)) for one in request.handoffs],
        "asked_for": output and {"name": output.name, "mode": output.mode, "schema": cut(output.schema)},
        "usage": {} if answer is None else _numbers(answer.usage),
        "cost": cost_of(call, prices),
    }


def cost_of(call: ModelCallRecord, prices: Prices) -> float | None:
    """Return what a model call has cost; None if its model has no price, or if it says nothing of tokens.

    A call that was refused with an error has cost nothing.
    """
    used = tokens_of(call.answer)
    if any(used):
        return prices.cost(call.model, *used, provider=call.provider)
    return prices.nothing if call.answer is None and not call.broke_off else None


def tool_call_data(call: ToolCallRecord) -> dict[str, Any]:
    """Return a tool call, with what the rules have decided."""
    decision = call.decision
    return {
        "name": call.tool.name,
        "agent": call.agent,
        "call_id": call.call_id,
        "server": call.tool.server,
        "name_on_server": call.tool.name_on_server,
        "seconds": call.seconds,
        "arguments": cut(call.arguments),
        "output": cut(call.output),
        # What the tool itself returned, if a middleware has changed it.
        "result": cut(call.result) if call.result != call.output else None,
        "error": _error(call.error),
        "failure": _error(call.failure),
        "decision": decision
        and {
            "is_allowed": decision.is_allowed,
            "rule": decision.rule,
            "layers": list(decision.layers),
            "code": decision.code,
        },
    }


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "kind": tool.kind,
        "name": tool.name,
        "description": cut(tool.description),
        "parameters": cut(tool.parameters),
        "server": tool.server,
        "name_on_server": tool.name_on_server,
        "is_strict": tool.is_strict,
    }


def _error(error: Any) -> dict[str, Any] | None:
    return None if error is None else {"type": error.type, "message": cut(error.message)}


def _numbers(usage: Mapping[str, Any]) -> dict[str, float]:
    return {key: value for key, value in usage.items() if isinstance(value, (int, float))}
