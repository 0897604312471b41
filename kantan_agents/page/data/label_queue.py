"""The results that wait for a person's label.

No state is stored between requests: the sample is the same each time, and the labels are in the file. So
users can label at the same time, and nothing is lost if the server stops.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, Final

import attrs

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.lab.evaluation import Evaluation, LabelScale, Score
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.rows import read_cases, read_results
from kantan_agents.lab.evaluation.labels.arguments import check_unicode, checked_metric, checked_name
from kantan_agents.lab.evaluation.labels.drawing import Draw, draw, run_of
from kantan_agents.lab.evaluation.labels.rows import (
    LabelRow,
    ResultRow,
    read_finished,
    read_labelled,
    read_pairs,
    take_label_back,
    write_label,
)
from kantan_agents.lab.experiment.tool_use import ToolUse
from kantan_agents.page.data.label_choices import check_evaluation
from kantan_agents.page.data.signed_data import name_of, sign
from kantan_agents.support.arguments import checked_int
from kantan_agents.traces.store import TraceStore

PASSES: Final = 0.5
"""The lowest passing value, as for ``judge_quality``."""

_LONGEST: Final = 20_000
_MOST: Final = 200
"""Shown parts, the last ones."""


@attrs.frozen
class QueueRequest:
    """A window's metric, person, scale and sample."""

    evaluation: str
    metric: str
    by: str
    scale: LabelScale
    sample: int | None
    seed: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> QueueRequest:
        """Parse a request."""
        sample = body.get("sample")
        return cls(
            checked_name("evaluation", body.get("evaluation")),
            checked_metric(body.get("metric")),
            checked_name("by", body.get("by")),
            LabelScale.of(body.get("scale", "0-1")),
            None if sample is None else checked_int("sample", sample, 1),
            checked_int("seed", body.get("seed", 0), 0),
        )


@attrs.frozen
class Given:
    """If an answer is not stored: the person's earlier label, or nothing if the result is gone."""

    is_stored: bool
    kept: LabelRow | None = None
    answer: dict[str, Any] = attrs.field(factory=dict)


@attrs.frozen(slots=False)
class WaitingResults:
    """The results of a sample; the secret creates their names."""

    evaluation: Evaluation
    asked: QueueRequest
    secret: bytes = attrs.field(repr=False)

    @classmethod
    def of(cls, store: TraceStore, asked: QueueRequest, secret: bytes) -> WaitingResults:
        """Read the results."""
        evaluation = Evaluation.load(store, asked.evaluation)
        check_evaluation(evaluation)
        return cls(evaluation, asked, secret)

    def next(self, skipped: Collection[str]) -> dict[str, Any]:
        """Return the next result, or at the end the agreement with the judge."""
        left = [row for row in self._drawn.results if row.number not in self._labelled]
        waiting = [row for row in left if self._name(row) not in skipped]
        for row in waiting:
            try:
                item = self._item(row)
            except TraceDatabaseError as error:
                item = {"id": self._name(row), "problem": str(error)}  # a damaged row, which can be skipped
            if item is not None:
                return {"item": item, "progress": self._progress(skipped)}
        return {"item": None, "progress": self._progress(skipped), "agreement": self._agreement()}

    def answer(self, item: Any, value: Any, comment: Any) -> Given:
        """Store it, unless the person has labeled the result already."""
        stored, word = self.asked.scale.stored(value)
        remark = None if comment is None else checked_name("comment", comment)
        check_unicode("comment", remark)
        result = next((row for row in self._drawn.results if self._name(row) == item), None)
        if result is None:
            return Given(is_stored=False)
        asked = self.asked
        row = LabelRow(asked.metric, asked.by, stored, word, remark, self._drawn.probability)
        is_stored, before = write_label(self.evaluation.path, result, row, keep_given=True)
        if not is_stored:
            return Given(is_stored=False, kept=before)
        receipt = [result.number, result.trace_id, attrs.astuple(row), before and attrs.astuple(before)]
        answer = self._revealed(result, row) | {"receipt": sign(self.secret, receipt)}
        return Given(is_stored=True, answer=answer)

    def _revealed(self, result: ResultRow, given: LabelRow) -> dict[str, Any]:
        evaluation = self.evaluation
        found = read_results(evaluation.path, evaluation.row, [result.number])
        score = next((one.scores.get(given.metric) for _, _, one in found), None)
        return {
            "given": {"value": given.value, "label": given.label, "comment": given.comment},
            "judge": score
            and {name: getattr(score, name) for name in ("value", "label", "comment", "error")},
            "agrees": _agrees(given.value, score),
            "variants": self._variants(result),
        }

    def _variants(self, result: ResultRow) -> list[dict[str, Any]]:
        """Only once all are labeled: the name of one would reveal the other."""
        run = [row for row in self._drawn.results if run_of(row) == run_of(result)]
        labelled = self._labelled | {result.number}
        if any(row.number not in labelled for row in run):
            return []
        names = {one["hash"]: name for name, one in self.evaluation.row.body["variants"].items()}
        return [
            {"name": names[row.key[2]], "trace_id": row.trace_id, "is_this": row == result} for row in run
        ]

    def _item(self, row: ResultRow) -> dict[str, Any] | None:
        evaluation = self.evaluation
        case = read_cases(evaluation.path, evaluation.row, row.key[:2]).get(row.key[:2])
        for _, _, result in read_results(evaluation.path, evaluation.row, [row.number]):
            if case is not None and result.trace_id == row.trace_id:
                return item_data(self._name(row), case, result)
        return None  # it was deleted meanwhile

    def _progress(self, skipped: Collection[str]) -> dict[str, int]:
        total = len(self._drawn.results)
        labelled = sum(row.number in self._labelled for row in self._drawn.results)
        left_out = [row for row in self._drawn.results if row.number not in self._labelled]
        return {
            "total": total,
            "labelled": labelled,
            "skipped": sum(self._name(row) in skipped for row in left_out) if skipped else 0,
        }

    def _agreement(self) -> dict[str, int]:
        asked, evaluation = self.asked, self.evaluation
        drawn = {row.number for row in self._drawn.results}
        pairs = read_pairs(evaluation.path, evaluation.row, asked.metric, asked.by)
        said = [_agrees(person, Score(judge)) for number, (person, judge) in pairs.items() if number in drawn]
        return {"compared": sum(one is not None for one in said), "agree": sum(one is True for one in said)}

    @cached_property
    def _drawn(self) -> Draw:
        finished = read_finished(self.evaluation.path, self.evaluation.row)
        return draw(finished, self.asked.sample, self.asked.seed, self.asked.by)

    @cached_property
    def _labelled(self) -> frozenset[int]:
        asked = self.asked
        return read_labelled(self.evaluation.path, self.evaluation.row, asked.metric, asked.by)

    def _name(self, row: ResultRow) -> str:
        return name_of(self.secret, self.evaluation.row.id, row.number, row.trace_id)


def take_back(store: TraceStore, receipt: list[Any]) -> bool:
    """Remove a label; return whether it was still stored."""
    number, trace_id, given, before = receipt
    # The label depends only on the number and the trace of its result.
    result = ResultRow(number, ("", "", "", 0), trace_id)
    return take_label_back(store.path, result, LabelRow(*given), before and LabelRow(*before))


def _agrees(person: float, score: Score | None) -> bool | None:
    """None if the judge gave no score, or has another scale."""
    if score is None or score.value is None or not 0 <= score.value <= 1:
        return None
    return (person >= PASSES) == (score.value >= PASSES)


def item_data(name: str, case: Case, result: CaseResult) -> dict[str, Any]:
    """Return the data before the answer: no scores, nothing that names the variant."""
    texts = [("", case.input)] if isinstance(case.input, str) else [_message(one) for one in case.input]
    return {
        "id": name,
        "case": case.id,
        "input": _last([{"name": who, **cut(text)} for who, text in texts]),
        "context": _last([{"name": key, **cut(value)} for key, value in (case.context or {}).items()]),
        "tools": _last([_call(call) for call in result.tool_calls]),
        "output": cut(result.output),
        "expected": None if case.expected is None else cut(case.expected),
        "withheld": result.is_withheld,
    }


def cut(value: Any) -> dict[str, Any]:
    """JSON data becomes text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return {"text": text[:_LONGEST], "length": len(text)}


def _last(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"shown": parts[-_MOST:], "count": len(parts)}


def _message(item: Any) -> tuple[str, Any]:
    if not isinstance(item, Mapping):
        return "", item
    who = str(item.get("role") or item.get("type") or "")
    content = item.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            content = "\n".join(map(str, texts))
    return who, item if content is None else content


def _call(call: ToolUse) -> dict[str, Any]:
    return {
        "name": call.name,
        "arguments": cut(call.arguments),
        "output": None if call.output is None else cut(call.output),
        "denied": call.is_denied,
    }
