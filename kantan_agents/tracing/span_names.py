"""The names of the spans that this library adds to a trace."""

from __future__ import annotations

RUN_SPAN = "agent_run"
JUDGE_SPAN = "judge"
