"""Runs that fail if less was done than they are there for: of the model's input, and of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import ModelResponse

from benchmarks.measure import RunOnce
from benchmarks.overhead import FakeModel

ANSWER = "It is sunny."

Request = Callable[[str, list[Any], list[Any]], bool]
"""Tells whether instructions, input items and tools are what a model is to be asked with."""


class CheckingModel(FakeModel):
    """Answers only if it is asked as it should be."""

    def __init__(self, is_expected: Request, *, calls_tool: bool = False) -> None:
        super().__init__(ANSWER, calls_tool=calls_tool)
        self._is_expected = is_expected

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, tools: Any = (), **kwargs: Any
    ) -> ModelResponse:
        """Answer.

        Raises:
            RuntimeError: It is asked otherwise, so the figures would be of something else.
        """
        if not self._is_expected(system_instructions, input, tools):
            raise RuntimeError(f"a model was asked with {len(input)} items and {len(tools)} tools")
        return await super().get_response(system_instructions, input, *args, tools=tools, **kwargs)


def answered(run: RunOnce) -> RunOnce:
    """Return ``run``, of the SDK or of kantan_agents, with a check of its answer.

    Raises:
        RuntimeError: When it is run: the answer is another one.
    """

    async def checked() -> None:
        returned = await run()
        result = returned["result"] if isinstance(returned, dict) else returned
        if result.final_output != ANSWER:
            raise RuntimeError(f"a run answered {result.final_output!r}")

    return checked
