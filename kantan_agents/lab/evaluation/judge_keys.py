"""Keys of the trace metadata of judge runs."""

from __future__ import annotations

from typing import Final

JUDGE_KEY: Final = "kantan_agents_judge"
COMPARED_A: Final = "compared_trace_id_a"
COMPARED_B: Final = "compared_trace_id_b"
