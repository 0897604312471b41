"""How much to measure, in a full run and in a quick check."""

from __future__ import annotations

import attrs

from benchmarks.peers.catalog import Workload


@attrs.frozen
class Sizes:
    """How much to measure.

    Attributes:
        generations: Number of groups of fresh processes, since each process has its own bias.
        pairs: Pairs of batches in each generation.
        long_pairs: Pairs if a batch takes longer than ``longest_seconds``: traced runs, imports, slow
            frameworks.
        batch_seconds: Target duration of a batch of the plain SDK.
        longest_seconds: Maximum duration of a slower side's batch; beyond it, both sides make fewer runs.
        traced_seconds: Seconds of a traced batch, several flush intervals of the recorder.
        late_seconds: Seconds for which the lag of the event loop is measured.
        is_quick: Whether to use the quick sizes of the workloads.
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
