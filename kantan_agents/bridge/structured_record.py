"""What the trace keeps of a structured answer: in which mode it came, and what was tried before."""

from __future__ import annotations

from typing import Any

from agents import ModelResponse, custom_span

from kantan_agents.pipeline import current_run
from kantan_agents.structured.requests.agent_output import AgentOutput
from kantan_agents.structured.requests.chain import Chain
from kantan_agents.structured.requests.forms import NATIVE
from kantan_agents.structured.requests.memory import FORMS, Target
from kantan_agents.structured.requests.reading import final_text
from kantan_agents.tracing.spans import set_output_mode

SPAN = "structured_output"


def is_answer(said: ModelResponse, schema: AgentOutput, target: Target) -> bool:
    """Whether the SDK may have what a model has said to its first request, in native mode, as it is.

    If that is the structured answer, the trace gets to know of it, and it is remembered that it came so.
    """
    text = final_text(said.output)
    if text is None:  # the SDK's business
        return True
    if not schema.accepts(text):
        return False
    FORMS.worked(target, NATIVE)
    run = current_run.get()
    if run is not None:
        set_output_mode(run, NATIVE.mode, 1)
    return True


def record(chain: Chain) -> None:
    """Record a structured answer that has come, or what was tried for one that has not.

    The mode goes to the run's final span. A span of its own is for what took more than one attempt: the usual
    answer costs the trace nothing.
    """
    attempts = chain.fetch.attempts
    if not attempts:  # tools are called: no answer yet
        return
    run = current_run.get()
    if run is not None:
        set_output_mode(run, attempts[-1].mode, len(attempts))
    tracing: Any = chain.first.options.get("tracing")
    is_off = tracing is not None and tracing.is_disabled()
    if is_off or (len(attempts) == 1 and attempts[-1].fits):
        return
    with_text = tracing is None or tracing.include_data()
    data = {
        "output": chain.fetch.schema.name(),
        "attempts": [attempt.as_dict(with_text=with_text) for attempt in attempts],
    }
    with custom_span(SPAN, data):
        pass
