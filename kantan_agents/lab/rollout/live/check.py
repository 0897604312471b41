"""Checks a rollout: a guard that fires returns users to the control."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kantan_agents.errors import KantanAgentsError, RolloutStepError
from kantan_agents.lab.rollout.live.shared_rollout import SharedRollout
from kantan_agents.lab.rollout.observed.samples import Samples
from kantan_agents.lab.rollout.state.change import promote, stop
from kantan_agents.lab.rollout.state.rows import RolloutState
from kantan_agents.lab.rollout.verdict.judge import judge_rollout
from kantan_agents.lab.rollout.verdict.status import RolloutStatus, evidence_of
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.rollout")

GUARD: Final = "guard"
CALLBACK: Final = "callback"
_QUIET_SECONDS: Final = 60.0


class Checker:
    """Checks one rollout again and again; reads each run once."""

    def __init__(self, shared: SharedRollout, path: Path) -> None:
        self._path = path
        self._samples = Samples(path, shared.name, shared.plan)
        self._last = -math.inf
        self._has_news = False

    def check(self, shared: SharedRollout, is_ours: Callable[[], bool]) -> None:
        """Read new runs, and act on them while ``is_ours`` returns True."""
        state = shared.state
        if state is None or state.status != "running":
            return
        self._has_news = self._samples.update() or self._has_news
        now = time.monotonic()
        # Without news, only time can change the verdict: a missing score may no longer come in time.
        if not self._has_news and now - self._last < _QUIET_SECONDS:
            return
        status = judge_rollout(state, self._samples)
        try:
            after = self._returned(status) if status.is_alarm else _asked(shared, self._path, status, is_ours)
        except RolloutStepError as error:  # another process has just changed it
            _log.info("rollout already changed", rollout=shared.name, error=str(error))
            after = None
        self._has_news, self._last = False, now
        if after is not None:
            shared.accept(after)

    def _returned(self, status: RolloutStatus) -> RolloutState:
        evidence = evidence_of(status)
        after = stop(
            self._path,
            status.name,
            author=GUARD,
            reason=status.reason,
            evidence=evidence,
            action="return",
            revision=status.state.revision,
        )
        _log.warning(
            "rollout returned to the control",
            rollout=status.name,
            agent=status.state.plan.agent,
            reason=status.reason,
            evidence=evidence,
        )
        return after


def _asked(
    shared: SharedRollout, path: Path, status: RolloutStatus, is_ours: Callable[[], bool]
) -> RolloutState | None:
    if shared.on_verdict is None:
        return None
    try:
        answer = shared.on_verdict(status)
    except Exception as error:  # noqa: BLE001 - code of the application
        _log.error("on_verdict failed", rollout=shared.name, error=repr(error))
        return None
    if answer in (None, "continue"):
        return None
    if answer not in ("promote", "stop"):
        _log.error(
            "on_verdict must return 'promote', 'stop' or None", rollout=shared.name, answer=repr(answer)
        )
        return None
    if not is_ours():  # it took long, and another process checks now
        return None
    line: dict[str, Any] = {"author": CALLBACK, "reason": status.reason, "evidence": evidence_of(status)}
    revision = status.state.revision
    if answer == "stop":
        return stop(path, shared.name, **line, revision=revision)
    new, ramp = shared.plan.new_arms, shared.plan.ramp
    is_last = status.state.step + 1 >= len(ramp) or ramp[status.state.step + 1] >= 1
    arm = status.arm if is_last and len(new) > 1 else None
    return promote(path, shared.name, arm=arm, **line, revision=revision)


def check_quietly(checker: Checker, shared: SharedRollout, is_ours: Callable[[], bool]) -> None:
    """Log errors, as the next check may succeed."""
    try:
        checker.check(shared, is_ours)
    except KantanAgentsError as error:
        _log.error("rollout not checked", rollout=shared.name, error=str(error))
