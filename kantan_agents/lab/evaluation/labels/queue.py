"""A queue of results to label, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.rows import read_cases, read_results
from kantan_agents.lab.evaluation.labels.arguments import check_unicode, checked_metric, checked_name
from kantan_agents.lab.evaluation.labels.drawing import Draw, draw, run_of
from kantan_agents.lab.evaluation.labels.item import LabelItem, LabelledItem
from kantan_agents.lab.evaluation.labels.rows import (
    LabelRow,
    delete_label,
    read_finished,
    read_labelled,
    write_label,
)
from kantan_agents.lab.evaluation.labels.scale import LabelScale
from kantan_agents.support.arguments import checked_int


@attrs.frozen
class _Answer:
    place: int
    item: LabelItem
    row: LabelRow | None  # None for a skipped item
    before: LabelRow | None = None


class LabelQueue:
    """Results that wait for a reviewer's label. ``LabelQueue.of`` creates one.

        queue = LabelQueue.of(evaluation, "helpful", by="aiko", sample=60)
        for item in queue:
            print(item.input, item.output)
            answered = queue.label(item, input("helpful? ") == "y")
            print(answered.scores["helpful"])

    Each label is stored immediately. Several reviewers can label concurrently, in any number of processes.

    Attributes:
        evaluation: The evaluation.
        metric: The judged metric.
        by: Name of the reviewer.
        scale: The possible answers.
        probability: The probability with which each of the results was sampled.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        metric: str,
        by: str,
        scale: LabelScale,
        drawn: Draw,
        labelled: frozenset[int] = frozenset(),
    ) -> None:
        self.evaluation = evaluation
        self.metric = metric
        self.by = by
        self.scale = scale
        self.probability = drawn.probability
        self._results = [row for row in drawn.results if row.number not in labelled]
        self._names = {one["hash"]: name for name, one in evaluation.row.body["variants"].items()}
        self._waiting = list(range(len(self._results)))
        self._answers: list[_Answer] = []

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        metric: str,
        *,
        by: str,
        sample: int | None = None,
        seed: int = 0,
        variants: str | Iterable[str] | None = None,
        scale: LabelScale | str | Sequence[float] = (0.0, 1.0),
    ) -> LabelQueue:
        """Return the finished results that a reviewer has not labeled yet, in random order.

        The sample is of runs, with or without labels: the results of all variants for one case and one
        repetition stay together, so that the reviewer can compare them. Labels from ``add_label`` do not
        count, since their results were chosen.

        Finish a sample instead of skipping difficult results: labels of the easy cases alone are not a
        sample.

        Args:
            evaluation: The evaluation.
            metric: The metric to label: a metric of its evaluators, or another name.
            by: Name of the reviewer.
            sample: Number of sampled runs; None for all. With the same seed, a larger sample contains a
                smaller one.
            seed: The same seed samples the same runs, for every reviewer.
            variants: The variants; by default all.
            scale: The possible answers: numbers from the lowest to the highest, such as ``(1, 5)``, or
                ``"yesno"``. Labels are stored from 0 to 1.

        Raises:
            EvaluationNotFoundError: E104, a variant is missing.
            InvalidOptionError: E75, an argument is invalid.
            TraceDatabaseError: E60, the database cannot be read.
        """
        metric, by = checked_metric(metric), checked_name("by", by)
        count = None if sample is None else checked_int("sample", sample, 1)
        checked_int("seed", seed, 0)
        allowed = LabelScale.of(scale)
        results = read_finished(evaluation.path, evaluation.row)
        if variants is not None:
            names = [variants] if isinstance(variants, str) else list(variants)
            hashes = {evaluation.hash_of(name) for name in names}
            results = [row for row in results if row.key[2] in hashes]
        labelled = read_labelled(evaluation.path, evaluation.row, metric, by)
        return cls(evaluation, metric, by, allowed, draw(results, count, seed, by), labelled)

    def __len__(self) -> int:
        """Return the number of waiting results."""
        return len(self._waiting)

    def __iter__(self) -> Iterator[LabelItem]:
        """Yield the waiting results, without results that were labeled or skipped meanwhile."""
        for place in tuple(self._waiting):
            if place in self._waiting and (item := self._item(place)) is not None:
                yield item

    @property
    def total(self) -> int:
        """Number of results that waited at the start."""
        return len(self._results)

    @property
    def labelled(self) -> int:
        """Number of labels given with this queue."""
        return sum(answer.row is not None for answer in self._answers)

    @property
    def skipped(self) -> int:
        """Number of skipped results."""
        return sum(answer.row is None for answer in self._answers)

    @property
    def current(self) -> LabelItem | None:
        """The next result; None at the end. Results that were deleted meanwhile are omitted.

        Raises:
            TraceDatabaseError: E60, the database cannot be read.
        """
        while self._waiting:
            item = self._item(self._waiting[0])
            if item is not None:
                return item
            del self._waiting[0]
        return None

    def label(
        self, item: LabelItem, value: float, label: str | None = None, comment: str | None = None
    ) -> LabelledItem:
        """Store the reviewer's answer.

        Args:
            item: An item of this queue; an existing label is replaced.
            value: True, False or a number of the scale.
            label: A word for it; by default the grade, or yes or no.
            comment: The reason.

        Raises:
            InvalidOptionError: E75, the value is not on the scale, the item is not of this queue, or its
                result was deleted meanwhile.
            TraceDatabaseError: E60, the database cannot be changed.

        Returns:
            The hidden parts: the scores, and the variants once all results of the same run are labeled.
        """
        place = self._place(item)
        stored, word = self.scale.stored(value)
        check_unicode("label", label)
        check_unicode("comment", comment)
        row = LabelRow(self.metric, self.by, stored, label or word, comment or None, self.probability)
        is_stored, before = write_label(self.evaluation.path, self._results[place], row)
        if not is_stored:
            raise InvalidOptionError(option="item", reason="its run was deleted meanwhile; skip it")
        self._answered(_Answer(place, item, row, before))
        return self._revealed(item, place, row)

    def skip(self, item: LabelItem) -> None:
        """Skip an item; another queue shows it again.

        Raises:
            InvalidOptionError: E75, the item is not of this queue.
        """
        self._answered(_Answer(self._place(item), item, None))

    def undo(self) -> LabelItem | None:
        """Undo the last label or skip, and restore the previously stored label.

        Raises:
            TraceDatabaseError: E60, the database cannot be changed.

        Returns:
            The item, which becomes the next one; None if there is nothing to undo.
        """
        if not self._answers:
            return None
        answer = self._answers[-1]
        path, result = self.evaluation.path, self._results[answer.place]
        if answer.before is not None:
            write_label(path, result, answer.before)
        elif answer.row is not None:
            delete_label(path, result, self.metric, self.by)
        self._answers.pop()
        if all(other.place != answer.place for other in self._answers):
            self._waiting.insert(0, answer.place)
        return answer.item

    def _answered(self, answer: _Answer) -> None:
        self._answers.append(answer)
        if answer.place in self._waiting:
            self._waiting.remove(answer.place)

    def _place(self, item: LabelItem) -> int:
        place = item.number - 1 if isinstance(item, LabelItem) else -1
        if not 0 <= place < len(self._results) or self._results[place].key[0] != item.case_id:
            raise InvalidOptionError(option="item", reason="must be an item of this queue")
        return place

    def _item(self, place: int) -> LabelItem | None:
        row = self._results[place]
        evaluation = self.evaluation
        case = read_cases(evaluation.path, evaluation.row, row.key[:2]).get(row.key[:2])
        for _, _, result in read_results(evaluation.path, evaluation.row, [row.number]):
            if case is not None and result.trace_id == row.trace_id:
                return LabelItem(
                    place + 1,
                    case.id,
                    case.whole_input,
                    case.context,
                    case.expected,
                    result.output,
                    # An agent's name may reveal the variant.
                    tuple(attrs.evolve(call, agent="") for call in result.tool_calls),
                )
        return None

    def _revealed(self, item: LabelItem, place: int, given: LabelRow) -> LabelledItem:
        results = read_results(self.evaluation.path, self.evaluation.row, [self._results[place].number])
        scores = next((dict(result.scores) for _, _, result in results), {})
        run = run_of(self._results[place])
        places = [other for other, row in enumerate(self._results) if run_of(row) == run]
        is_open = any(other in self._waiting for other in places)
        names = {other + 1: self._names[self._results[other].key[2]] for other in places}
        return LabelledItem(item, given.value, given.label, scores, {} if is_open else names)
