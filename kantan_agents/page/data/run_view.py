"""A run as the page shows it, and as a report file contains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kantan_agents.lab.replay.experiment.prices import Prices
from kantan_agents.page.data.calls import Pools, cost_of, model_call_data, tokens_of, tool_call_data
from kantan_agents.page.data.parts import cut
from kantan_agents.page.data.run_rows import run_row
from kantan_agents.page.data.timeline import timeline
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.store import StoredTrace

# They are shown by themselves.
_OWN_FACTS = frozenset({"agent_name", "prompt_name", "prompt_version"})


def run_view(
    trace: StoredTrace, scores: Sequence[Mapping[str, Any]] = (), prices: Prices | None = None
) -> dict[str, Any]:
    """Return a trace as JSON data: facts, the lines of a timeline, and the recorded calls behind them.

    Args:
        trace: The trace.
        scores: What evaluators and people say about it, from ``scores_of``.
        prices: What tokens cost.
    """
    summary = trace.summary
    pools, known = Pools(), prices or Prices()
    calls = [model_call_data(call, pools, known) for call in trace.model_calls]
    return {
        **run_row(summary),
        "input": cut(summary.input),
        "output": cut(summary.output),
        "error": cut(summary.error),
        "workflow": summary.workflow_name,
        "group": summary.group_id,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
        "cost": _cost(trace, known),
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
    """Return what all model calls have cost; None if that of one is not known."""
    costs = [cost_of(call, prices) for call in trace.model_calls]
    known = [cost for cost in costs if cost is not None]
    # A call of which no record is left has its tokens in the spans only.
    recorded = sum(sum(tokens_of(call)) for call in trace.model_calls)
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
