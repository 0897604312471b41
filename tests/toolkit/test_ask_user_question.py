from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kantan_agents.errors import InvalidOptionError
from kantan_agents.toolkit.ask_user_question import Answers, Question, QuestionOption, ask_user_question
from tests.toolkit.calls import call

COLOR = {
    "question": "Which color?",
    "header": "Color",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}],
}
SIZES = {"question": "Which sizes?", "options": [{"label": "S"}, {"label": "M"}], "multiSelect": True}


async def test_the_questions_reach_an_async_function_and_its_answers_the_model() -> None:
    seen: list[Question] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        seen.extend(questions)
        return ["Red", ["S", "M"]]

    result = await call(ask_user_question(ask), questions=[COLOR, SIZES])
    options = (QuestionOption("Red", "warm"), QuestionOption("Blue"))
    assert seen[0] == Question("Which color?", "Color", options)
    assert seen[1].multiple
    assert result == "The user has answered:\nWhich color?\n  Red\nWhich sizes?\n  S, M"


async def test_a_function_that_waits_runs_in_a_thread() -> None:
    threads = []

    def ask(_questions: Sequence[Question]) -> Answers:
        threads.append(threading.current_thread())
        return {"Which color?": "Green, please"}

    result = await call(ask_user_question(ask), questions=[COLOR, SIZES])
    assert threads != [threading.current_thread()]
    assert "Which color?\n  Green, please\nWhich sizes?\n  not answered" in result


@pytest.mark.parametrize("answers", [None, [None], [""], {}, [[]]])
async def test_the_model_learns_that_there_is_no_answer(answers: Any) -> None:
    result = await call(ask_user_question(lambda _questions: answers), questions=[COLOR])
    assert result.startswith("The user has not answered.")


@pytest.mark.parametrize(
    "answers", ["Red", 3, [], ["a", "b"], {"Which?": "Red"}, [3], [["a", 3]], [{"a": 1}]]
)
async def test_something_else_than_answers_is_a_mistake_of_the_application(answers: Any) -> None:
    with pytest.raises(InvalidOptionError, match="ask: it has returned"):
        await call(ask_user_question(lambda _questions: answers), questions=[COLOR])


@pytest.mark.parametrize(
    ("questions", "reason"),
    [
        ([], "questions: "),
        ([COLOR] * 5, "questions: "),
        ([COLOR, COLOR], "two questions are the same"),
        ([{"question": "Which?"}], "questions.0: "),
        ([{**COLOR, "options": [{"label": "Red"}]}], "questions.0.options: "),
        ([{**COLOR, "question": ""}], "questions.0.question: "),
    ],
)
async def test_wrong_questions_are_explained_and_not_asked(questions: Any, reason: str) -> None:
    asked: list[Any] = []
    result = await call(ask_user_question(asked.append), questions=questions)
    assert reason in result
    assert asked == []


async def test_a_cancelled_call_does_not_wait_for_the_user() -> None:
    begun, release = threading.Event(), threading.Event()

    def ask(_questions: Sequence[Question]) -> Answers:
        begun.set()
        release.wait()
        return None

    task = asyncio.create_task(call(ask_user_question(ask), questions=[COLOR]))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    try:
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        release.set()


def test_the_function_must_be_one() -> None:
    with pytest.raises(InvalidOptionError, match="ask: must be a function, not str"):
        ask_user_question("input")  # type: ignore[arg-type]
