"""An evaluation to which cases are added is looked at again, and its verdicts hold for that."""

from __future__ import annotations

from kantan_agents import TraceStore
from kantan_agents.lab import Case, Dataset, compare, compare_all, evaluate
from tests.lab.evaluation.experiment.counting import Asked, is_loud, words


def test_an_evaluation_with_more_cases_than_before_has_grown(store: TraceStore) -> None:
    variants = {
        name: Asked(version=name, answer=answer).agent
        for name, answer in (("one", str.lower), ("two", str.upper), ("three", str.upper))
    }

    def evaluated(count: int) -> tuple[bool, str, bool]:
        dataset = words(*(f"word {number}" for number in range(count)))
        found = evaluate(variants, dataset, is_loud, store=store, name="growing")
        comparison = compare(found["one"], found["two"], metrics="is_loud")
        assert comparison.looks == compare_all(found, metrics="is_loud").looks
        return found["one"].is_grown, comparison.looks, comparison.is_order_known

    assert evaluated(3) == (False, "one", True)
    assert evaluated(3) == (False, "one", True)  # started again
    assert evaluated(2) == (False, "one", True)
    assert evaluated(9) == (True, "any", True)
    assert evaluated(9) == (True, "any", True)


def test_a_case_whose_content_has_changed_is_not_a_new_one(store: TraceStore) -> None:
    agent = Asked().agent
    for text in ("first", "second"):
        dataset = Dataset("d", [Case("same", id="a"), Case(text, id="b")])
        found = evaluate({"v": agent}, dataset, is_loud, store=store, name="changed")
    assert not found["v"].is_grown
