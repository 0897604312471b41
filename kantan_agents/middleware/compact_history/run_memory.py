"""The memory of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.core.interception import ModelCall
from kantan_agents.core.pipeline import Run
from kantan_agents.middleware.compact_history.memory import Counted, Memory
from kantan_agents.middleware.compact_history.plan import WHOLE, CompactionPlan
from kantan_agents.middleware.compact_history.recorded_plans import RecordedPlans
from kantan_agents.middleware.compact_history.tokens import tokens_of_tool
from kantan_agents.support.log import get_logger

_OF_A_RUN = 64
_TOOLS = 4_096
_log = get_logger("kantan_agents.middleware")


class RunMemory:
    """The memory of one run.

    Replays do not use the shared memory, nor do durable runs, because they may resume in another process. In
    a replay, ``recorded`` has the recorded plans.
    """

    def __init__(self, run: Run, shared: Memory) -> None:
        self._own = Memory(_OF_A_RUN)
        self._shared = shared if run._tape is None and run._journal is None else None
        self._ratios: dict[Any, float] = {}
        self._tools: dict[int, tuple[Any, int]] = {}
        self._said: set[str] = set()
        record = getattr(run._tape, "recorded", None)
        self.recorded = None if record is None else RecordedPlans(record)

    def plan(self, key: Any, digests: Sequence[bytes]) -> CompactionPlan:
        """Plans of this run win."""
        plan = self._own.plan(key, digests)
        return self._shared.plan(key, digests) if plan is WHOLE and self._shared is not None else plan

    def keep_plan(self, key: Any, digests: Sequence[bytes], plan: CompactionPlan, *, is_shared: bool) -> None:
        """Store a plan; if ``is_shared``, for other runs as well."""
        self._own.keep_plan(key, digests, plan)
        if is_shared and self._shared is not None:
            self._shared.keep_plan(key, digests, plan)

    def counted(self, model: Any, digests: Sequence[bytes]) -> Counted | None:
        """Counts of this run win."""
        own = self._own.counted(model, digests)
        return own if own is not None or self._shared is None else self._shared.counted(model, digests)

    def keep_count(self, model: Any, digests: Sequence[bytes], counted: Counted) -> None:
        """Store the count of a request."""
        if not counted.is_plausible:
            return
        self._ratios[model] = counted.ratio
        for memory in (self._own, self._shared):
            if memory is not None:
                memory.keep_count(model, digests, counted)

    def ratio(self, model: Any) -> float:
        """Counted tokens for each estimated one; 1 if unknown."""
        return self._ratios.get(model, 1.0)

    def tokens_of_tools(self, tools: Sequence[Any]) -> int:
        """Estimate the tokens of tools and handoffs."""
        total = 0
        for tool in tools:
            known = self._tools.get(id(tool))
            if known is None or known[0] is not tool:
                if len(self._tools) >= _TOOLS:
                    self._tools.clear()
                known = self._tools[id(tool)] = tool, tokens_of_tool(tool)
            total += known[1]
        return total

    def say_once(self, call: ModelCall, message: str) -> None:
        """Log once for each run."""
        if message not in self._said:
            self._said.add(message)
            _log.info(message, run_id=call.run.id, agent=call.agent)
