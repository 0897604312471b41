"""Reads a run with its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.core.usage import tokens_of
from kantan_agents.lab.evaluation.experiment.tables import EVALUATIONS, RESULTS, SCORES, has_tables
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.page.data.cut_texts import Pool, cut
from kantan_agents.page.data.messages import messages_of
from kantan_agents.page.data.run_table import run_row
from kantan_agents.page.data.timeline import timeline
from kantan_agents.traces.capture import ModelCallRecord, RunRecord, ToolCallRecord, ToolDefinition
from kantan_agents.traces.store import StoredTrace, TraceStore
from kantan_agents.traces.store.connection import reading

# They are shown separately.
_OWN_FACTS: Final = frozenset({"agent_name", "prompt_name", "prompt_version"})
_QUERY: Final = f"""SELECT e.name, s.metric, s.rater, s.source, s.value, s.label, s.comment, s.error
FROM {RESULTS} r JOIN {EVALUATIONS} e ON e.id = r.evaluation JOIN {SCORES} s ON s.result = r.id
WHERE r.trace_id = ? AND s.metric NOT LIKE ' %' ORDER BY e.id, s.metric, s.rater"""  # noqa: S608


def read_run(store: TraceStore, trace_id: str, prices: Prices | None = None) -> dict[str, Any]:
    """Without prices, no cost is known."""
    trace = store.trace(trace_id)
    return _run_view(trace, _scores_of(store.path, trace.trace_id), prices or Prices())


def _run_view(trace: StoredTrace, scores: Sequence[Mapping[str, Any]], prices: Prices) -> dict[str, Any]:
    summary = trace.summary
    pools = Pools()
    calls = [model_call_data(call, pools, prices) for call in trace.model_calls]
    return {
        **run_row(summary),
        "input": cut(summary.input),
        "output": cut(summary.output),
        "error": cut(summary.error),
        "workflow": summary.workflow_name,
        "group": summary.group_id,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
        "cost": _cost(trace, prices),
        "rubric": summary.rubric,
        "scores": list(scores),
        "metadata": {key: cut(value) for key, value in summary.metadata.items() if key not in _OWN_FACTS},
        "missing": list(trace.missing),
        "lines": timeline(trace),
        "calls": calls,
        "tools": [tool_call_data(call) for call in trace.tool_calls],
        "runs": [_run(run) for run in trace.runs],
        "contents": pools.to_dict(),
    }


def _cost(trace: StoredTrace, prices: Prices) -> float | None:
    costs = [cost_of(call, prices) for call in trace.model_calls]
    known = [cost for cost in costs if cost is not None]
    # The tokens of a call without a record are in the spans only.
    recorded = sum(sum(tokens_of(call.answer)) for call in trace.model_calls)
    is_complete = len(known) == len(costs) and recorded >= (trace.summary.total_tokens or 0)
    return sum(known) if known and is_complete else None


def _run(run: RunRecord) -> dict[str, Any]:
    return {
        "id": run.id,
        "agent": run.agent,
        "outcome": run.outcome,
        "seconds": run.seconds,
        "parent_run": run.parent_run,
        "error": None if run.error is None else cut(run.error.message),
        "rules": _rules(run.rules.layers),
        "limits": _rules(run.rules.limits),
        "agents": [
            {
                "name": agent.name,
                "prompt": agent.prompt
                and {
                    "name": agent.prompt.name,
                    "version": agent.prompt.version,
                    "text": cut(agent.prompt.text),
                },
                "context": {path: cut(value) for path, value in agent.context.items()},
            }
            for agent in run.agents
        ],
    }


def _rules(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    return [{"name": name, "rules": cut(rules)} for name, rules in layers]


def _scores_of(path: Path, trace_id: str) -> list[dict[str, Any]]:
    with reading(path, by_trace=False, with_views=False) as connection:
        if not has_tables(connection):
            return []
        return [_score(*row) for row in connection.execute(_QUERY, (trace_id,))]


def _score(
    evaluation: str, metric: str, rater: str, source: str, value: float | None, *texts: str | None
) -> dict[str, Any]:
    label, comment, error = texts
    return {
        "evaluation": evaluation,
        "metric": metric,
        "by": rater or source,
        "value": value,
        "label": cut(label),
        "comment": cut(comment),
        "error": cut(error),
    }


@attrs.frozen
class Pools:
    """Messages, instructions and tools that calls share."""

    messages: Pool = attrs.field(factory=Pool)
    texts: Pool = attrs.field(factory=Pool)
    tools: Pool = attrs.field(factory=Pool)

    def to_dict(self) -> dict[str, Any]:
        """Return the content."""
        return {
            "messages": self.messages.contents,
            "instructions": self.texts.contents,
            "tools": self.tools.contents,
        }


def model_call_data(call: ModelCallRecord, pools: Pools, prices: Prices) -> dict[str, Any]:
    """Messages, instructions and tools are numbers in the pools."""
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
        "cut_off": answer.finish_reason if answer is not None and answer.answer_cut_off else None,
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
    """None if its price or usage is unknown. A rejected call costs nothing."""
    used = tokens_of(call.answer)
    if any(used):
        return prices.cost(call.model, *used, provider=call.provider)
    return prices.nothing if call.answer is None and not call.broke_off else None


def tool_call_data(call: ToolCallRecord) -> dict[str, Any]:
    """Includes the decision of the rules."""
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
        # The tool's own result, if a middleware has changed it.
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
