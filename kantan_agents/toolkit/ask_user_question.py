"""The tool ``AskUserQuestion``."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import attrs
from agents import FunctionTool
from anyio import CapacityLimiter, to_thread

from kantan_agents.errors import InvalidOptionError
from kantan_agents.toolkit.checked_tool import bad_input, checked_tool
from kantan_agents.tools.read_only import mark_read_only

__all__ = ["Question", "QuestionOption", "ask_user_question"]

_NAME = "AskUserQuestion"
_LONGEST = 2000
_NOT_ANSWERED = "The user has not answered. Go on without an answer, or stop if you cannot."
_DESCRIPTION = (
    "Ask the user when you cannot go on without a decision: up to four questions at once, each with two to "
    "four options. The user may also answer in other words."
)
_TEXT = {"type": "string", "minLength": 1, "maxLength": _LONGEST}
_PROPERTIES: dict[str, Any] = {
    "questions": {
        "type": "array",
        "minItems": 1,
        "maxItems": 4,
        "items": {
            "type": "object",
            "properties": {
                "question": {**_TEXT, "description": "The question, as a sentence."},
                "header": {**_TEXT, "description": "Its subject in one or two words."},
                "options": {
                    "type": "array",
                    "minItems": 2,
                    "maxItems": 4,
                    "items": {
                        "type": "object",
                        "properties": {
                            "label": {**_TEXT, "description": "The answer in one to five words."},
                            "description": {
                                "type": "string",
                                "maxLength": _LONGEST,
                                "description": "What follows from it.",
                            },
                        },
                        "required": ["label"],
                    },
                },
                "multiSelect": {"type": "boolean", "description": "Whether several options may be chosen."},
            },
            "required": ["question", "options"],
        },
    }
}


@attrs.frozen
class QuestionOption:
    """An answer that a question offers.

    Attributes:
        label: The answer.
        description: Its consequences; may be empty.
    """

    label: str
    description: str = ""


@attrs.frozen
class Question:
    """A question of the model to the user. All strings in it are from the model.

    Attributes:
        text: The question.
        header: Its subject in a few words; may be empty.
        options: The answers that it offers.
        multiple: Whether the user may choose several.
    """

    text: str
    header: str
    options: tuple[QuestionOption, ...]
    multiple: bool = False


Answer: TypeAlias = "str | Sequence[str] | None"
"""The label of an option or other words; several for a question with ``multiple``; None without an answer."""

Answers: TypeAlias = "Sequence[Answer] | Mapping[str, Answer] | None"
"""One answer per question, in order or by the question's text; None if the user answers none."""

Ask: TypeAlias = "Callable[[Sequence[Question]], Awaitable[Answers] | Answers]"
"""Asks the user and returns the answers; a function that is not async runs in a thread."""


def ask_user_question(ask: Ask) -> FunctionTool:
    """Create the tool ``AskUserQuestion``, under the name that agent files use.

        async def ask(questions):
            return [question.options[0].label for question in questions]  # or show them to a user

        Agent("planner", "Plan.", tools=[ask_user_question(ask)])

    Args:
        ask: Gets the questions and returns the answers in the same order, or None. A function that is not
            async runs in a thread. Its exceptions are handled like any tool's. Canceling the run cancels
            an async function; a thread runs to its end, but the run does not wait for it.

    Raises:
        InvalidOptionError: E75: ``ask`` is not callable. A call of the tool raises it if ``ask`` does not
            return answers.
    """
    if not callable(ask):
        raise InvalidOptionError(option="ask", reason=f"must be a function, not {type(ask).__name__}")

    async def work(_wrapper: Any, given: dict[str, Any]) -> str:
        questions = [_question(one) for one in given["questions"]]
        if len({question.text for question in questions}) < len(questions):
            raise bad_input(_NAME, "two questions are the same")
        answers = _checked(await _asked(ask, questions), questions)
        if answers is None or all(not answer for answer in answers):
            return _NOT_ANSWERED
        lines = (
            f"{question.text}\n  {', '.join(answer) or 'not answered'}"
            for question, answer in zip(questions, answers, strict=True)
        )
        return "\n".join(("The user has answered:", *lines))

    return mark_read_only(checked_tool(_NAME, _DESCRIPTION, _PROPERTIES, ["questions"], work))


async def _asked(ask: Any, questions: list[Question]) -> Any:
    is_async = inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(getattr(ask, "__call__", None))  # noqa: B004 - the type decides
    if is_async:
        return await ask(questions)
    # A waiting thread cannot be interrupted, and must not use up the limit of other work.
    answers = await to_thread.run_sync(
        partial(ask, questions), abandon_on_cancel=True, limiter=CapacityLimiter(1)
    )
    return await answers if inspect.isawaitable(answers) else answers


def _question(given: dict[str, Any]) -> Question:
    options = tuple(QuestionOption(one["label"], one.get("description", "")) for one in given["options"])
    return Question(given["question"], given.get("header", ""), options, given.get("multiSelect", False))


def _checked(answers: Any, questions: list[Question]) -> list[list[str]] | None:
    if answers is None:
        return None
    if isinstance(answers, Mapping):
        unknown = answers.keys() - {question.text for question in questions}
        if unknown:
            raise _wrong(f"an answer to {min(map(repr, unknown))}, which was not asked")
        answers = [answers.get(question.text) for question in questions]
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise _wrong(f"{type(answers).__name__}, and not a list or dict of answers")
    if len(answers) != len(questions):
        raise _wrong(f"{len(answers)} answers to {len(questions)} questions")
    return [_words(answer) for answer in answers]


def _words(answer: Any) -> list[str]:
    words = [] if answer is None else [answer] if isinstance(answer, str) else answer
    if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
        raise _wrong(f"an answer that is {type(answer).__name__}, and not a str or a list of str")
    return [word for word in words if word.strip()]


def _wrong(what: str) -> InvalidOptionError:
    return InvalidOptionError(option="ask", reason=f"it has returned {what}")
