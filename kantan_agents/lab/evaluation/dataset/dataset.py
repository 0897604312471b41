"""``Dataset``: cases to evaluate an agent on; ``SealedDataset``: a test set that is kept for the end."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any, NoReturn

import attrs
from typing_extensions import Self, Unpack

from kantan_agents.errors import DatasetFileError, InvalidOptionError, SealedDatasetError
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
        name: What to call it; saved with the results of an evaluation.
        cases: The cases, each with an id that no other one has.
        skipped: For a dataset from recorded runs, the traces that match and could not become cases.

    Raises:
        InvalidCaseError: E101, two cases have the same id; the error names both places.
        InvalidOptionError: E75, ``name`` is not a text, or ``cases`` are not cases.
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

        A line of JSON Lines is an object with ``input`` and, if needed, ``id``, ``context``, ``expected``,
        ``metadata``, ``conversation`` and ``earlier``. A CSV file has a header with ``input``, ``expected``,
        ``id``, ``conversation``, ``context.NAME`` and ``metadata.NAME``; all its values are texts. Blank
        lines are ignored. Nothing in a file is executed or used as a path.

        Args:
            path: The file.
            name: Name of the dataset; by default that of the file, without its suffix.

        Raises:
            DatasetFileError: E100, the file cannot be read, or is not a dataset; the error names the line.
            SealedDatasetError: E106, it is a sealed test set.
        """
        place = dataset_path(path)
        cases, seal = load_cases(place)
        if seal is not None:
            sealed = checked_seal(place, seal, Dataset("sealed", cases).hash)
            reason = "load it with SealedDataset.load(path), and open it with .unseal(reason)"
            raise SealedDatasetError(dataset=sealed, reason=reason)
        return cls(name or place.stem, cases)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the cases to a file, which is replaced if it exists; ``load`` reads them back.

        The same cases always give the same bytes, in a ``.jsonl`` file one case a line with sorted keys, fit
        for a git repository. A CSV file can only have cases whose values are all texts. A new file is for its
        owner only.

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
        """Return a dataset with a case for each recorded run that matches, the newest first.

        Only runs that are not inside another run become cases. A case has the input of the run as it was
        given, before any middleware, in ``earlier`` the items of its session if it had one, the context
        values that its prompt reads, the tool rules of its caller, and the output as ``expected``: what was
        answered then, not necessarily what should be. Its ``metadata`` names the trace, the run and the
        prompt, and has the recorded tokens, if the run has failed the ``error``, and if middleware has
        changed the input the one that was ``sent``. Its ``conversation`` is the ``group_id`` of the trace.
        What was masked or redacted in the database stays so.

        Runs of experiments and of judges are left out, unless ``metadata`` asks for them. ``skipped`` has the
        traces that match and are not recorded completely, each with its reason.

        Args:
            store: The database.
            name: Name of the dataset; by default that of the prompt, the agent or the file.
            sample: How many cases to choose at random; None for all.
            seed: The same seed chooses the same ones of the same matching traces.
            failed: True for runs that have failed, and for answers with a judge's score below
                ``rubric_below`` (0.5 by default), which is then in ``metadata["score"]``; False for others.
            last: Only traces of this time until now.
            limit: At most the newest so many traces match; None for all.
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
        """Return a dataset with the cases for which ``predicate`` returns something true."""
        return self._of(case for case in self.cases if predicate(case))

    def deduplicated(self) -> Self:
        """Return a dataset with the first of all cases that have the same input, context and reference."""
        first: dict[str, Case] = {}
        for case in self.cases:
            first.setdefault(case.hash, case)
        return self._of(first.values())

    def sample(self, n: int, seed: int = 0) -> Self:
        """Return a dataset with ``n`` cases chosen at random, in their order; all if there are not more.

        Args:
            n: How many.
            seed: The same seed chooses the same ones of the same cases.

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
        """Split the cases into a training, a validation and a sealed test set.

        The part of a case depends only on the seed and on its conversation; without a conversation, on its
        input. So one conversation is never in two parts, and cases that are added later move no other one.
        The sizes are therefore only about the wanted ones.

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

        return Split(part("train"), part("validation"), SealedDataset(part("test")))

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
        """Return the case with an id.

        Raises:
            KeyError: There is none; the cases by number are in ``cases``.
        """
        found = self._by_id.get(case_id)
        if found is None:
            raise KeyError(f"the dataset {self.name!r} has no case with the id {case_id!r}")
        return found

    def __contains__(self, case: object) -> bool:
        """Return whether a case is in the dataset, given itself or its id."""
        if isinstance(case, Case):
            return self._by_id.get(case.id) == case
        return isinstance(case, str) and case in self._by_id

    def __repr__(self) -> str:
        more = f", {len(self.skipped)} traces skipped" if self.skipped else ""
        return f"<Dataset {self.name!r}, {len(self)} cases{more}>"


class SealedDataset:
    """A test set that nobody has looked at: its cases can only be read after ``unseal``.

    A prompt that was changed until it did well on some cases does better on these than on others. Keep the
    test set for one last evaluation. Its file has a hash, so it cannot change unnoticed.

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

    def unseal(self, reason: str) -> Dataset:
        """Return the dataset, and log at level INFO that it was opened.

        Args:
            reason: Why it is opened now, such as ``"final evaluation of v2"``.

        Raises:
            InvalidOptionError: E75, ``reason`` is not a text, or is empty.
        """
        if not checked_text("reason", reason).strip():
            raise InvalidOptionError(option="reason", reason="must say why the test set is opened")
        _log.info("test set unsealed", dataset=self.name, cases=len(self), hash=self.hash, reason=reason)
        return self._dataset

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the test set to a ``.jsonl`` file that stays sealed; ``SealedDataset.load`` reads it back.

        The first line says that it is sealed, and has the hash of the cases. The cases follow in clear text:
        a seal prevents mistakes, not curiosity.

        Raises:
            DatasetFileError: E100, the file cannot be written, or its name does not end in ``.jsonl``.
        """
        seal = {"name": self.name, "hash": self.hash}
        save_cases(dataset_path(path, sealed=True), self._dataset.cases, seal)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a sealed test set from a file that ``save`` has written.

        Raises:
            DatasetFileError: E100, the file cannot be read, is not sealed, or was changed since.
        """
        place = dataset_path(path, sealed=True)
        cases, seal = load_cases(place)
        if seal is None:
            raise DatasetFileError(path=str(place), reason="it is not sealed; read it with Dataset.load")
        dataset = Dataset("sealed", cases)
        return cls(attrs.evolve(dataset, name=checked_seal(place, seal, dataset.hash)))

    @property
    def cases(self) -> NoReturn:
        """The cases, which cannot be read.

        Raises:
            SealedDatasetError: E106, always.
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
        return f"<SealedDataset {self.name!r}, {len(self)} cases>"

    def _error(self) -> SealedDatasetError:
        reason = "keep it for the last evaluation, and then open it with .unseal(reason)"
        return SealedDatasetError(dataset=self.name, reason=reason)


@attrs.frozen
class Split:
    """The parts of a dataset.

    Attributes:
        train: Cases to look at and to improve a prompt with.
        validation: Cases to compare candidates on.
        test: Cases for the last evaluation.
    """

    train: Dataset
    validation: Dataset
    test: SealedDataset
