"""Agents whose model calls are counted, and evaluators for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kantan_agents import Agent, Prompt
from kantan_agents.lab import Case, Dataset, FinishedCase, evaluator
from kantan_agents.testing import ScriptedModel


class Asked:
    """An agent that answers with its input in capitals, and notes every question.

    Attributes:
        questions: The questions in the order in which the model got them.
        agent: The agent.
    """

    def __init__(
        self, text: str = "Shout.", version: str = "v1", answer: Callable[[str], Any] = str.upper
    ) -> None:
        self.questions: list[str] = []

        def reply(call: Any) -> Any:
            question = question_of(call)
            self.questions.append(question)
            return answer(question)

        self.agent = Agent("shout", Prompt("shout", version, text), model=ScriptedModel(reply))


def question_of(call: Any) -> str:
    """Return the user's input in a call of a scripted model."""
    given = call.input
    return given if isinstance(given, str) else str(given[0]["content"])


@evaluator
def length(finished: FinishedCase) -> int:
    return len(finished.text)


@evaluator
def is_loud(finished: FinishedCase) -> bool:
    return finished.text.isupper()


def words(*texts: str) -> Dataset:
    return Dataset("words", [Case(text, id=text) for text in texts])
