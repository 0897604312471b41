"""What identifies a search: started again with the same, it goes on."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.lab.evaluation.experiment.identity import identity_of, run_options
from kantan_agents.lab.improve.asked import Asked
from kantan_agents.lab.improve.limits import Limits
from kantan_agents.lab.improve.target import Target
from kantan_agents.lab.replay.change import plain
from kantan_agents.lab.replay.experiment.one_run import checked_run_config
from kantan_agents.traces.capture.canonical import content_hash


async def search_key(asked: Asked, target: Target, limits: Limits) -> str:
    """Return a hash of everything that changes what a search does; not its budget and its rounds.

    Args:
        asked: The arguments.
        target: What is improved.
        limits: The limits of candidates.

    Raises:
        InvalidOptionError: E75, ``run_config`` is invalid.
    """
    config = checked_run_config(asked.runs.run_config, ())
    model = asked.reflection_model
    old = target.old
    described: dict[str, Any] = {
        "agent": await identity_of("improve", asked.agent, run_options(config, asked.runs.context or {}, {})),
        "old": [old.name, old.version, old.text, old.strict, old.literal],
        "judge": [asked.judge.name, asked.judge.version],
        "reflection": model if isinstance(model, str) else getattr(model, "model", type(model).__name__),
        "search": {**attrs.asdict(asked.search), "rounds": None},
        "split": list(asked.split),
        "limits": [limits.max_length, limits.max_cost_increase],
        "live": sorted(asked.runs.live),
        "prices": {name: list(pair) for name, pair in (asked.runs.prices or {}).items()},
        "selection": {name: str(value) for name, value in asked.selection.items()},
        "new_version": asked.new_version,
    }
    return content_hash(plain(described))
