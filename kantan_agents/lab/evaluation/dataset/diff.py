"""The difference of two versions of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.traces.capture.canonical import content_hash

_FIELDS: Final = ("input", "context", "expected", "earlier", "conversation", "metadata")


@attrs.frozen
class ChangedCase:
    """A case that differs in two versions of a dataset.

    Attributes:
        before: The case in the old version.
        after: The case in the new one.
        fields: The changed fields, such as ``"expected"`` or ``"context.name"``.
    """

    before: Case
    after: Case
    fields: tuple[str, ...]

    @property
    def id(self) -> str:
        """Its id."""
        return self.after.id

    @property
    def is_run_again(self) -> bool:
        """Whether an evaluation runs it again: its input, context, reference or earlier items changed."""
        return self.before.hash != self.after.hash


@attrs.frozen
class DatasetDiff:
    """The difference of two versions of a dataset; false if they are equal.

    Attributes:
        added: Cases that only the new version has.
        removed: Cases that only the old version has.
        changed: Cases that differ under the same id.
        same: Number of unchanged cases.
    """

    added: tuple[Case, ...]
    removed: tuple[Case, ...]
    changed: tuple[ChangedCase, ...]
    same: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    @property
    def text(self) -> str:
        """A line for each case that differs, and the counts."""
        lines = [f"+ {case.id}" for case in self.added]
        lines += [f"- {case.id}" for case in self.removed]
        lines += [f"~ {one.id}: {', '.join(one.fields)}" for one in self.changed]
        counts = f"{len(self.added)} added, {len(self.removed)} removed, {len(self.changed)} changed"
        lines.append(f"{counts}, {self.same} the same")
        return "\n".join(" ".join(line.splitlines()) for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data: the ids, with the changed fields."""
        return {
            "added": [case.id for case in self.added],
            "removed": [case.id for case in self.removed],
            "changed": [
                {"id": one.id, "fields": [*one.fields], "is_run_again": one.is_run_again}
                for one in self.changed
            ],
            "same": self.same,
        }


def diff(old: Iterable[Case], new: Iterable[Case]) -> DatasetDiff:
    """Return the difference to a new version of the dataset: ``old.diff(new)``.

    Cases are matched by id; their order does not matter. A default id depends on the content, so a change of
    such a case removes one and adds another.

    Args:
        old: The dataset before.
        new: The dataset now.
    """
    before, after = {case.id: case for case in old}, {case.id: case for case in new}
    both = [(before[name], case) for name, case in after.items() if name in before]
    changed = [
        ChangedCase(one, other, fields)
        for one, other in both
        if (fields := tuple(_changed_fields(one, other)))
    ]
    return DatasetDiff(
        tuple(case for name, case in after.items() if name not in before),
        tuple(case for name, case in before.items() if name not in after),
        tuple(changed),
        len(both) - len(changed),
    )


def _changed_fields(one: Case, other: Case) -> Iterator[str]:
    for field in _FIELDS:
        before, after = getattr(one, field), getattr(other, field)
        if _same(before, after):
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping) and field != "expected":
            for name in dict.fromkeys([*before, *after]):
                if not _same(*({name: each[name]} if name in each else {} for each in (before, after))):
                    yield f"{field}.{name}"
        else:
            yield field


def _same(one: Any, other: Any) -> bool:
    return one is other or content_hash(one) == content_hash(other)
