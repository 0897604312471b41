"""How much is measured, as a whole and in a quick check."""

from __future__ import annotations

import attrs

from benchmarks.peers.catalog import Workload


@attrs.frozen
class Sizes:
    """How much is measured.

    Attributes:
        generations: Groups of fresh processes: each process has a bias of its own.
        pairs: Pairs of batches in each generation.
        long_pairs: The same where a batch takes longer than ``longest_seconds``: traced runs, imports, what
            slow frameworks do.
        batch_seconds: What a batch of the plain SDK is to take.
        longest_seconds: What a batch of a slower one may take; both sides make fewer runs then.
        traced_seconds: Seconds of a traced batch; several times as long as spans are collected.
        late_seconds: For how long the event loop is watched.
        is_quick: Whether the quick sizes of the workloads are meant.
    """

    generations: int
    pairs: int
    long_pairs: int
    batch_seconds: float
    longest_seconds: float
    traced_seconds: float
    late_seconds: float
    is_quick: bool = False

    def of(self, workload: Workload) -> int:
        """Return the size of ``workload``."""
        return workload.quick_size if self.is_quick else workload.size


WHOLE = Sizes(
    generations=3,
    pairs=7,
    long_pairs=3,
    batch_seconds=0.02,
    longest_seconds=0.1,
    traced_seconds=0.6,
    late_seconds=0.5,
)
QUICK = Sizes(
    generations=1,
    pairs=3,
    long_pairs=1,
    batch_seconds=0.01,
    longest_seconds=0.05,
    traced_seconds=0.2,
    late_seconds=0.1,
    is_quick=True,
)
