"""Datasets: cases to evaluate an agent on, and held-out test sets."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any, NoReturn

import attrs
from typing_extensions import Self, Unpack

from kantan_agents.errors import DatasetFileError, HeldOutDatasetError, InvalidOptionError
from kantan_agents.lab.evaluation.dataset.assignment import Fractions, checked_seed, part_of
from kantan_agents.lab.evaluation.dataset.case import Case, checked_cases
from kantan_agents.lab.evaluation.dataset.diff import diff as diff_of_cases
from kantan_agents.lab.evaluation.dataset.files import dataset_path, load_cases, save_cases
from kantan_agents.lab.evaluation.dataset.jsonl import checked_seal
from kantan_agents.lab.evaluation.dataset.recorded_cases import WantedCases, recorded_cases
from kantan_agents.lab.replay.cohort import Skipped
from kantan_agents.support.arguments import checked_int, checked_text
from kantan_agents.support.log import get_logger
from kantan_agents.traces.capture.canonical import content_hash
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.filters import TraceFilters

_log = get_logger("kantan_agents.evaluation")


def _fixed(skipped: Iterable[Skipped]) -> tuple[Skipped, ...]:
    return tuple(skipped)


@attrs.frozen(slots=False, repr=False)
class Dataset:
    """Cases to evaluate an agent on. Datasets with the same cases in the same order are equal.

    Attributes:
        name: Name of the dataset, stored with the results of an evaluation.
        cases: The cases, with unique ids.
        skipped: For a dataset from recorded runs, the matching traces that could not become cases.

    Raises:
        InvalidCaseError: E101, two cases have the same id; the error names both positions.
        InvalidOptionError: E75, ``name`` is not a string, or ``cases`` are not cases.
    """

    name: str = attrs.field(eq=False)
    cases: Sequence[Case] = attrs.field(default=(), converter=checked_cases)
    skipped: Sequence[Skipped] = attrs.field(default=(), converter=_fixed, eq=False, kw_only=True)

    @name.validator
    def _check_name(self, _attribute: Any, name: Any) -> None:
        if not checked_text("name", name).strip():
            raise InvalidOptionError(option="name", reason="must not be empty")

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, name: str | None = None) -> Self:
        """Read a dataset from a file: JSON Lines (``.jsonl``) or CSV (``.csv``, ``.tsv``).

        A line of JSON Lines is an object with ``input`` and optionally ``id``, ``context``, ``expected``,
        ``metadata``, ``conversation`` and ``earlier``. A CSV file has a header with ``input``, ``expected``,
        ``id``, ``conversation``, ``context.NAME`` and ``metadata.NAME``; all its values are strings. Blank
        lines are ignored. No value is executed or used as a path.

        Args:
            path: The file.
            name: Name of the dataset; by default the file name without its suffix.

        Raises:
            DatasetFileError: E100, the file cannot be read, or is not a dataset; the error names the line.
            HeldOutDatasetError: E106, it is a held-out test set.
        """
        place = dataset_path(path)
        cases, seal = load_cases(place)
        if seal is not None:
            held_out = checked_seal(place, seal, Dataset("held-out", cases).hash)
            reason = "load it with HeldOutDataset.load(path), and open it with .open(reason)"
            raise HeldOutDatasetError(dataset=held_out, reason=reason)
        return cls(name or place.stem, cases)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the cases to a file, replacing an existing one; ``load`` reads them back.

        The same cases always give the same bytes. A ``.jsonl`` file has one case per line with sorted keys,
        which suits git. A CSV file can only hold cases whose values are all strings. Only the owner can read
        a new file.

        Raises:
            DatasetFileError: E100, the file cannot be written, or a CSV file cannot hold a case.
        """
        save_cases(dataset_path(path), self.cases)

    @classmethod
    def from_traces(
        cls,
        store: TraceStore,
        *,
        name: str | None = None,
        sample: int | None = None,
        seed: int = 0,
        failed: bool | None = None,
        last: timedelta | None = None,
        limit: int | None = None,
        **filters: Unpack[TraceFilters],
    ) -> Self:
        """Return a dataset with a case for each recorded run that matches, the latest first.

        Only outermost runs become cases. A case has the run's original input, before any middleware; the
        items of its session in ``earlier``; the context values that its prompt reads; the tool rules of its
        caller; and the output as ``expected``, which is not necessarily correct. Its ``metadata`` has ids of
        trace, run and prompt, the tokens, the ``error`` of a failed run, and the input that was ``sent`` if
        middleware changed it. Its ``conversation`` is the ``group_id`` of the trace. Masked or redacted
        values stay so.

        Runs of experiments and of judges are omitted, unless ``metadata`` selects them. ``skipped`` has the
        matching traces without a complete recording, with the reasons.

        Args:
            store: The database.
            name: Name of the dataset; by default the name of the prompt, the agent or the file.
            sample: Number of cases to choose at random; None for all.
            seed: The same seed chooses the same cases of the same matching traces.
            failed: True for failed runs and answers with a judge's score below ``rubric_below`` (0.5 by
                default), stored in ``metadata["score"]``; False for others.
            last: Only traces of this period until now.
            limit: Only this many of the latest traces; None for all.
            **filters: As for ``store.traces``: ``agent``, ``prompt``, ``version``, ``tool``, ... With
                ``rubric_below`` alone, the verdict may also be in the trace of the judge.

        Raises:
            EmptyDatasetError: E102, no run matches, or none can become a case.
            InvalidOptionError: E75, an argument is invalid.
            TraceDatabaseError: E60, the file cannot be read.
        """
        wanted = WantedCases(filters, failed, last, limit, sample, checked_seed(seed))
        cases, skipped = recorded_cases(store, wanted)
        named = name or filters.get("prompt") or filters.get("agent") or store.path.stem
        return cls(named, cases, skipped=skipped)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the ids and hashes of the cases, as 64 hex digits; their order does not matter."""
        return content_hash(sorted([case.id, case.hash] for case in self.cases))

    diff = diff_of_cases

    def filter(self, predicate: Callable[[Case], object]) -> Self:
        """Return a dataset with the cases for which ``predicate`` returns a true value."""
        return self._of(case for case in self.cases if predicate(case))

    def deduplicated(self) -> Self:
        """Return a dataset with the first of all cases that have the same input, context and reference."""
        first: dict[str, Case] = {}
        for case in self.cases:
            first.setdefault(case.hash, case)
        return self._of(first.values())

    def sample(self, n: int, seed: int = 0) -> Self:
        """Return a dataset with ``n`` cases chosen at random, in their order, or all if there are fewer.

        Args:
            n: Number of cases, 1 or more.
            seed: The same seed chooses the same cases.

        Raises:
            InvalidOptionError: E75, ``n`` is not an int of 1 or more, or ``seed`` is not an int.
        """
        many = min(checked_int("n", n, 1), len(self))
        ids = sorted(case.id for case in self.cases)
        chosen = set(random.Random(checked_seed(seed)).sample(ids, many))  # noqa: S311 - no secret
        return self._of(case for case in self.cases if case.id in chosen)

    def split(
        self, *, train: float = 0.6, validation: float = 0.2, test: float = 0.2, seed: int = 0
    ) -> Split:
        """Split the cases into a training, a validation and a held-out test set.

        The part of a case depends only on the seed and its conversation, or on its input without a
        conversation. A conversation is therefore never in two parts, and cases that are added later move no
        other one. The sizes are approximate.

        Args:
            train: Fraction for training.
            validation: Fraction for validation.
            test: Fraction for the test set. The three add up to 1.
            seed: Another seed gives another split.

        Raises:
            InvalidOptionError: E75, a fraction is negative, they do not add up to 1, or ``seed`` is invalid.
        """
        fractions = Fractions(train, validation, test)
        checked = checked_seed(seed)
        parts = {case.id: part_of(case, fractions, checked) for case in self.cases}

        def part(name: str) -> Dataset:
            chosen = [case for case in self.cases if parts[case.id] == name]
            return Dataset(f"{self.name}-{name}", chosen)

        return Split(part("train"), part("validation"), HeldOutDataset(part("test")))

    def _of(self, cases: Iterable[Case]) -> Self:
        return attrs.evolve(self, cases=cases)

    @cached_property
    def _by_id(self) -> dict[str, Case]:
        return {case.id: case for case in self.cases}

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def __getitem__(self, case_id: str) -> Case:
        """Return the case with an id; ``cases`` has the cases by number.

        Raises:
            KeyError: The id is missing.
        """
        found = self._by_id.get(case_id)
        if found is None:
            raise KeyError(f"the dataset {self.name!r} has no case with the id {case_id!r}")
        return found

    def __contains__(self, case: object) -> bool:
        """Return whether the dataset has a case, given the case or its id."""
        if isinstance(case, Case):
            return self._by_id.get(case.id) == case
        return isinstance(case, str) and case in self._by_id

    def __repr__(self) -> str:
        more = f", {len(self.skipped)} traces skipped" if self.skipped else ""
        return f"<Dataset {self.name!r}, {len(self)} cases{more}>"


class HeldOutDataset:
    """A held-out test set: its cases can only be read after ``open``.

    A prompt that was changed until it did well on some cases does better on them than on others. Save the
    test set for one final evaluation. Its file has a hash, so it cannot change unnoticed.

    Args:
        dataset: The cases.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self._dataset.name

    @property
    def hash(self) -> str:
        """Hash of the dataset, see ``Dataset.hash``."""
        return self._dataset.hash

    def open(self, reason: str) -> Dataset:
        """Return the dataset, and log at level INFO that it was opened.

        Args:
            reason: Why it is opened now, such as ``"final evaluation of v2"``.

        Raises:
            InvalidOptionError: E75, ``reason`` is not a string, or is empty.
        """
        if not checked_text("reason", reason).strip():
            raise InvalidOptionError(option="reason", reason="must say why the test set is opened")
        _log.info("test set opened", dataset=self.name, cases=len(self), hash=self.hash, reason=reason)
        return self._dataset

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the test set to a ``.jsonl`` file that only ``HeldOutDataset.load`` reads.

        The first line has the hash of the cases. The cases follow in clear text: this prevents mistakes, not
        curiosity.

        Raises:
            DatasetFileError: E100, the file cannot be written, or its name does not end in ``.jsonl``.
        """
        seal = {"name": self.name, "hash": self.hash}
        save_cases(dataset_path(path, held_out=True), self._dataset.cases, seal)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a held-out test set from a file written by ``save``.

        Raises:
            DatasetFileError: E100, the file cannot be read, is not a held-out test set, or has changed.
        """
        place = dataset_path(path, held_out=True)
        cases, seal = load_cases(place)
        if seal is None:
            raise DatasetFileError(path=str(place), reason="it is not held out; read it with Dataset.load")
        dataset = Dataset("held-out", cases)
        return cls(attrs.evolve(dataset, name=checked_seal(place, seal, dataset.hash)))

    @property
    def cases(self) -> NoReturn:
        """Inaccessible before ``open``.

        Raises:
            HeldOutDatasetError: E106, always.
        """
        raise self._error()

    def __iter__(self) -> NoReturn:
        raise self._error()

    def __getitem__(self, case_id: str) -> NoReturn:
        raise self._error()

    def __contains__(self, case: object) -> NoReturn:
        raise self._error()

    def __len__(self) -> int:
        return len(self._dataset)

    def __repr__(self) -> str:
        return f"<HeldOutDataset {self.name!r}, {len(self)} cases>"

    def _error(self) -> HeldOutDatasetError:
        reason = "keep it for the last evaluation, and then open it with .open(reason)"
        return HeldOutDatasetError(dataset=self.name, reason=reason)


@attrs.frozen
class Split:
    """The parts of a dataset.

    Attributes:
        train: Cases to look at and to improve a prompt with.
        validation: Cases to compare candidates on.
        test: Cases for the final evaluation.
    """

    train: Dataset
    validation: Dataset
    test: HeldOutDataset
