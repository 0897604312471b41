"""Keys of the trace metadata of judge runs."""

from __future__ import annotations

from typing import Final

JUDGE_KEY: Final = "kantan_agents_judge"
"""The kind of judge."""
COMPARED_A: Final = "compared_trace_id_a"
"""For a pairwise judge, the trace of one output."""
COMPARED_B: Final = "compared_trace_id_b"
"""For a pairwise judge, the trace of the other output."""
