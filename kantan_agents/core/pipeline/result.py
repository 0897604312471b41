"""The result of a run, with its final output's type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, overload

from typing_extensions import TypeVar

from kantan_agents.errors import ContextTypeError, NoRunResultError

if TYPE_CHECKING:
    import agents

OutputT_co = TypeVar("OutputT_co", covariant=True, default=str)
"""Type of an agent's final output: ``output_type``, or ``str`` for an agent without one."""

if TYPE_CHECKING:

    class RunContext(dict[str, Any], Generic[OutputT_co]):
        """The context that a run returns, with the type of the run's final output.

        Use it in annotations: ``def show(context: RunContext[Report]) -> None``. Only type checkers see this
        class. At run time ``RunContext`` is ``dict``, because a run returns the caller's own dict.
        """

else:
    RunContext = dict


class RunResult(Protocol[OutputT_co]):
    """The SDK's ``RunResult``, with the type of its final output.

    The object is the SDK's own and has all its other attributes and methods.
    """

    @property
    def final_output(self) -> OutputT_co:
        """The answer of the last agent, in that agent's output type.

        The declared type is the first agent's. The value differs after a handoff to an agent with another
        output type, and while the run waits for an approval (None).
        """
        ...

    @property
    def input(self) -> str | list[agents.TResponseInputItem]:
        """The input of the run."""
        ...

    @property
    def new_items(self) -> list[agents.RunItem]:
        """Messages, tool calls, tool outputs and handoffs of the run, in order."""
        ...

    @property
    def raw_responses(self) -> list[agents.ModelResponse]:
        """The models' responses, in order."""
        ...

    @property
    def interruptions(self) -> list[agents.ToolApprovalItem]:
        """The tool calls that wait for an approval."""
        ...

    @property
    def last_agent(self) -> agents.Agent[Any]:
        """The agent that gave the answer."""
        ...

    @property
    def last_response_id(self) -> str | None:
        """Id of the last response, for ``previous_response_id``."""
        ...

    @property
    def context_wrapper(self) -> agents.RunContextWrapper[Any]:
        """The SDK's context of the run; its ``usage`` counts requests and tokens."""
        ...

    def to_input_list(self) -> list[agents.TResponseInputItem]:
        """Return the input and the new items, as input for the next run."""
        ...

    def to_state(self) -> agents.RunState[Any]:
        """Return the state of the run, to be resumed after approvals."""
        ...


@overload
def run_result(context: RunContext[OutputT_co]) -> RunResult[OutputT_co]: ...
@overload
def run_result(context: dict[str, Any]) -> RunResult[Any]: ...
def run_result(context: dict[str, Any]) -> RunResult[Any]:
    """Return ``context["result"]``, typed: its ``final_output`` has the agent's output type.

        context = await Agent("reporter", "Report.", output_type=Report).run_async("...")
        report = run_result(context).final_output  # a Report

    Args:
        context: The context that ``run_async``, ``run`` or ``RunStream.context`` returned.

    Raises:
        ContextTypeError: E5, ``context`` is not a dict.
        NoRunResultError: E86, the context has no result of a run.
    """
    if not isinstance(context, dict):
        raise ContextTypeError(got=type(context).__name__)
    result = context.get("result")
    if result is None:
        reason = "no run has completed with it, or a stage ended its run without setting run.result"
        raise NoRunResultError(reason=reason)
    if not hasattr(result, "final_output"):
        reason = (
            f"context['result'] is a {type(result).__name__} that a stage has set; it has no final_output"
        )
        raise NoRunResultError(reason=reason)
    found: RunResult[Any] = result
    return found
