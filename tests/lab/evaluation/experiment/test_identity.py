"""What makes a run another run, and what does not: names, agents that are reached, options, evaluators."""

from __future__ import annotations

from typing import Any

import pytest
from agents import ModelSettings
from pydantic import BaseModel

from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import FinishedCase, compare, evaluate, evaluator
from kantan_agents.testing import ScriptedModel
from tests.lab.evaluation.experiment.counting import Asked, is_loud, length, words


def test_an_agent_can_be_compared_with_itself(store: TraceStore) -> None:
    asked = Asked()
    evaluation = evaluate({"a": asked.agent, "b": asked.agent}, words("x", "y"), length)
    assert len(evaluation["a"]) == len(evaluation["b"]) == 2
    assert compare(evaluation["a"], evaluation["b"], metrics="length")["length"].verdict == "cannot tell"


def handing_over(instructions: str) -> Agent[Any]:
    target = Agent("target", instructions, model=ScriptedModel(lambda _call: "done"))
    return Agent("root", "Hand over.", model=ScriptedModel(lambda _call: "done"), handoffs=[target])


def asking(instructions: str) -> Agent[Any]:
    inner = Agent("inner", instructions, model=ScriptedModel(lambda _call: "done"))
    return Agent(
        "root", "Ask.", model=ScriptedModel(lambda _call: "done"), tools=[inner.as_tool("ask", "Ask.")]
    )


def answering(field: str) -> Agent[Any]:
    class Answer(BaseModel):
        __annotations__ = {field: str}

    return Agent(
        "root", "Answer.", model=ScriptedModel(lambda _call: f'{{"{field}": "x"}}'), output_type=Answer
    )


def set_to(temperature: str) -> Agent[Any]:
    settings = ModelSettings(temperature=float(temperature))
    return Agent("root", "Go.", model=ScriptedModel(lambda _call: "done"), model_settings=settings)


@pytest.mark.parametrize(
    ("make", "one", "other"),
    [
        (handing_over, "Be kind.", "Be rude."),
        (asking, "Be kind.", "Be rude."),
        (answering, "city", "country"),
        (set_to, "0.1", "0.9"),
    ],
)
def test_a_change_in_an_agent_or_in_one_that_it_reaches_makes_other_runs(
    store: TraceStore, make: Any, one: str, other: str
) -> None:
    first = evaluate({"v": make(one)}, words("x"), name="e").results[0]
    same = evaluate({"v": make(one)}, words("x"), name="e").results[0]
    changed = evaluate({"v": make(other)}, words("x"), name="e").results[0]
    assert first.trace_id == same.trace_id != changed.trace_id


@pytest.mark.parametrize(
    "options",
    [
        {"context": {"tone": "rude"}},
        {"max_turns": 3},
        {"run_config": {"model_settings": ModelSettings(top_p=0.5)}},
    ],
)
def test_other_options_of_the_runs_make_other_runs(store: TraceStore, options: dict[str, Any]) -> None:
    asked = Asked()
    evaluate(asked.agent, words("x"), length, name="e")
    evaluate(asked.agent, words("x"), length, name="e", **options)
    evaluate(asked.agent, words("x"), length, name="e", **options)
    assert asked.questions == ["x", "x"]


def test_an_object_in_the_context_makes_no_other_run(store: TraceStore) -> None:
    asked = Asked()
    for _ in range(2):
        evaluate(asked.agent, words("x"), length, name="e", context={"client": object()})
    assert asked.questions == ["x"]


def test_variants_and_evaluators_of_earlier_starts_stay(store: TraceStore) -> None:
    one, two = Asked(), Asked(version="v2", answer=str.lower)
    evaluate({"one": one.agent}, words("Ab"), length, name="e")
    evaluation = evaluate({"two": two.agent}, words("Ab"), is_loud, name="e")
    assert evaluation.variants == ("one", "two")
    assert evaluation["one"].mean("length") == 2.0
    assert evaluation["two"].mean("is_loud") == 0.0
    assert evaluation.planned == 1


def test_the_name_of_an_evaluation_belongs_to_one_dataset(store: TraceStore) -> None:
    from kantan_agents.lab import Case, Dataset

    evaluate(Asked().agent, words("a"), name="e")
    with pytest.raises(InvalidOptionError, match="of the dataset 'words', not of 'other'"):
        evaluate(Asked().agent, Dataset("other", [Case("a")]), name="e")


def test_evaluators_that_may_give_the_same_metric_are_refused(store: TraceStore) -> None:
    @evaluator(name="a", version="1")
    def one(finished: FinishedCase) -> dict[str, float]:
        return {"b": 1.0}

    @evaluator(name="a.b", version="1")
    def other(finished: FinishedCase) -> float:
        return 0.0

    with pytest.raises(InvalidOptionError, match="same metric"):
        evaluate(Asked().agent, words("x"), [one, other])


def test_the_direction_of_a_metric_is_that_of_its_evaluator_whatever_its_name(store: TraceStore) -> None:
    @evaluator(name="v1.price", version="1", better="lower")
    def price(finished: FinishedCase) -> dict[str, float]:
        return {"eur": 2.0 if finished.variant == "dear" else 1.0}

    variants = {"cheap": Asked().agent, "dear": Asked(version="v2").agent}
    evaluation = evaluate(variants, words(*map(str, range(12))), price)
    found = compare(evaluation["cheap"], evaluation["dear"], metrics="v1.price.eur")
    assert found["v1.price.eur"].verdict == "worse"


def test_scores_of_different_versions_of_an_evaluator_are_not_compared(store: TraceStore) -> None:
    def quality(value: float, version: str) -> Any:
        @evaluator(name="q", version=version)
        def q(finished: FinishedCase) -> float:
            return value

        return q

    cases = words(*map(str, range(12)))
    before = evaluate({"v1": Asked().agent}, cases, quality(0.2, "1"), name="e1")
    after = evaluate({"v1": Asked().agent}, cases, quality(0.9, "2"), name="e2")
    found = compare(before["v1"], after["v1"], metrics="q")["q"]
    assert found.verdict == "cannot tell"
    assert "different versions of the evaluator" in found.text


def test_failed_scores_are_counted_in_the_verdict(store: TraceStore) -> None:
    @evaluator(version="1")
    def picky(finished: FinishedCase) -> float:
        if finished.variant == "two" and int(finished.case.id) > 2:
            raise ValueError("too hard")
        return 0.5

    variants = {"one": Asked().agent, "two": Asked(version="v2").agent}
    evaluation = evaluate(variants, words(*map(str, range(12))), picky)
    comparison = compare(evaluation["one"], evaluation["two"], metrics="picky")
    assert comparison.failed_scores == {"picky": {"one": 0, "two": 9}}
    assert "9 failed scores of two on picky" in comparison.text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"wanted": 5}, "wanted"),
        ({"wanted": {"length": "x"}}, "wanted"),
        ({"wanted": {"length": -1}}, "wanted"),
        ({"metrics": 5}, "metrics"),
        ({"metrics": [3]}, "metrics"),
    ],
)
def test_invalid_arguments_of_a_comparison_are_named(store: TraceStore, options: Any, says: str) -> None:
    evaluation = evaluate({"a": Asked().agent, "b": Asked("Other.").agent}, words("x"), length)
    with pytest.raises(InvalidOptionError, match=says):
        compare(evaluation["a"], evaluation["b"], **options)


def test_a_prompt_without_a_name_is_part_of_a_variant(store: TraceStore) -> None:
    one = Agent("a", "Say one.", model=ScriptedModel(lambda _call: "1"))
    other = Agent("a", Prompt("p", "v1", "Say two."), model=ScriptedModel(lambda _call: "2"))
    first = evaluate({"v": one}, words("x"), name="e").results[0]
    second = evaluate({"v": other}, words("x"), name="e").results[0]
    assert (first.output, second.output) == ("1", "2")
