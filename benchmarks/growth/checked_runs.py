"""Runs that fail unless the model's input and the answer are as expected, so that no work is skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import ModelResponse

from benchmarks.measure import RunOnce
from benchmarks.overhead import FakeModel

ANSWER = "It is sunny."

Request = Callable[[str, list[Any], list[Any]], bool]
"""Returns whether instructions, input items and tools are the expected ones of a model call."""


class CheckingModel(FakeModel):
    """A model that answers only if its input is as expected."""

    def __init__(self, is_expected: Request, *, calls_tool: bool = False) -> None:
        super().__init__(ANSWER, calls_tool=calls_tool)
        self._is_expected = is_expected

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, tools: Any = (), **kwargs: Any
    ) -> ModelResponse:
        """Answer.

        Raises:
            RuntimeError: The input differs, so the figures would measure other work.
        """
        if not self._is_expected(system_instructions, input, tools):
            raise RuntimeError(f"a model was asked with {len(input)} items and {len(tools)} tools")
        return await super().get_response(system_instructions, input, *args, tools=tools, **kwargs)


def answered(run: RunOnce) -> RunOnce:
    """Return ``run``, of the SDK or of kantan_agents, with a check of its answer.

    Raises:
        RuntimeError: By the returned function, if the answer differs.
    """

    async def checked() -> None:
        returned = await run()
        result = returned["result"] if isinstance(returned, dict) else returned
        if result.final_output != ANSWER:
            raise RuntimeError(f"a run answered {result.final_output!r}")

    return checked
