"""The causes of an exception that a tool has raised."""

from __future__ import annotations

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.guards.failures import UncertainCallError, uncertainty


def test_an_exception_that_is_its_own_cause_does_not_stop_the_event_loop() -> None:
    def fail() -> str:
        """Fail."""
        error = ValueError("no")
        other = ValueError("neither")
        other.__cause__ = error
        raise error from other

    model = ScriptedModel([[function_call("fail", {}, call_id="c1")], [assistant_message("done")]])
    context = Agent("a", "b", model=model, tools=[fail]).run("Go.")
    assert context["result"].final_output == "done"


def test_an_uncertain_call_is_found_among_the_causes() -> None:
    uncertain, outer = UncertainCallError("perhaps"), ValueError("outer")
    outer.__cause__ = uncertain
    assert uncertainty(outer) is uncertain
    assert uncertainty(ValueError("other")) is None
