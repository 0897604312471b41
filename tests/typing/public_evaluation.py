"""Checked by mypy and pyright in CI: what datasets, evaluations and comparisons infer to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from typing_extensions import assert_type

from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.lab import (
    Case,
    CaseResult,
    Comparison,
    Comparisons,
    Dataset,
    Evaluation,
    Evaluator,
    FinishedCase,
    HeldOutDataset,
    MetricComparison,
    Progress,
    Score,
    ToolUse,
    VariantResults,
    compare,
    compare_all,
    evaluate,
    evaluate_async,
    evaluator,
)
from kantan_agents.lab.evaluation.evaluators import call, exact, used_tools


@evaluator
def polite(finished: FinishedCase) -> bool:
    assert_type(finished.case, Case)
    assert_type(finished.text, str)
    assert_type(finished.tool_calls, tuple[ToolUse, ...])
    return "please" in finished.text


@evaluator(name="grade", better="lower")
async def grade(finished: FinishedCase) -> Score:
    return Score(0.5, comment=finished.text)


async def evaluations(store: TraceStore, one: Agent[Any], other: Agent[Any]) -> None:
    dataset = Dataset.from_traces(store, prompt="support", last=timedelta(days=7), sample=50, seed=1)
    assert_type(dataset, Dataset)
    assert_type(Dataset.load("cases.jsonl"), Dataset)
    parts = dataset.split(seed=1)
    assert_type(parts.test, HeldOutDataset)
    assert_type(parts.test.open("release"), Dataset)
    for case in dataset:
        assert_type(case, Case)
    assert_type(polite, Evaluator)
    assert_type(grade, Evaluator)
    tools = used_tools(call("search", query="x"), in_order=True)
    evaluation = evaluate([one, other], dataset, [polite, grade, exact(), tools], store=store, repeats=2)
    assert_type(evaluation, Evaluation)
    variants: Mapping[str, Agent[Any] | Prompt | str] = {"v1": one, "v2": Prompt("p", "v2", "Hi"), "v3": "Hi"}
    assert_type(await evaluate_async(variants, dataset, polite, agent=one, progress=shown), Evaluation)
    assert_type(evaluation["v1"], VariantResults)
    for result in evaluation.results:
        assert_type(result, CaseResult)
        assert_type(result.scores, Mapping[str, Score])
        assert_type(result.scores["polite"].value, float | None)
    comparison = compare(evaluation["v1"], evaluation["v2"], metrics=["polite"], wanted={"polite": 0.1})
    assert_type(
        compare(evaluation["v1"], evaluation["v2"], missing="ignore").missing, Literal["worst", "ignore"]
    )
    assert_type(comparison.rows(), list[dict[str, Any]])
    assert_type(evaluation.to_csv(), str)
    assert_type(comparison.to_markdown(), str)
    assert_type(comparison, Comparison)
    assert_type(comparison["polite"], MetricComparison)
    assert_type(comparison["polite"].wins, tuple[str, ...])
    assert_type(compare_all(evaluation, looks="any"), Comparisons)
    several = compare_all(evaluation["v1"], evaluation["v2"], evaluation["v3"], metrics="polite")
    assert_type(several["v3"], Comparison)
    assert_type(several.metrics, tuple[MetricComparison, ...])
    assert_type(several.to_csv(), str)
    assert_type(Evaluation.load(store, "name"), Evaluation)
    assert_type(Evaluation.load_all(store), list[Evaluation])


def shown(progress: Progress) -> None:
    assert_type(progress.cost, float | None)
