"""``Queueing``: runs that a worker makes later, for agents that are durable."""

from __future__ import annotations

from typing import Any

from kantan_agents.core.interception import Layers
from kantan_agents.errors import DurableNotStartedError


class Queueing:
    """The part of an ``Agent`` that puts runs into a queue."""

    name: str
    layers: Layers

    async def enqueue(
        self,
        input: str | list[Any],
        context: dict[str, Any] | None = None,
        *,
        queue: str,
        priority: int | None = None,
        dedup_key: str | None = None,
        tenant: str | None = None,
        delay: float | None = None,
        **runner_options: Any,
    ) -> str:
        """Put a run into a queue, from which a worker makes it, and return its id at once.

        The agent needs ``Durable()`` among its middleware, and a ``DurableRuns`` must be started in this
        process, which need not make the runs of this queue. ``await runs.result(run_id)`` waits for the
        outcome.

        Args:
            input: A str, or a list of the SDK's input items.
            context: The context of the run. It is stored, so it must be JSON data.
            queue: Name of the queue.
            priority: 1 is made first, larger numbers later; None comes before all of them.
            dedup_key: While a run with this key waits or is made, no second one is queued; the id of the
                first is returned. Not for queues with limits for each tenant.
            tenant: Whose limits apply.
            delay: Seconds before the run may begin.
            **runner_options: As for ``run_async``, as far as they can be stored: ``max_turns``,
                ``previous_response_id``, ``conversation_id``, ``session``.

        Raises:
            DurableNotStartedError: E150, the agent has no ``Durable()``, or no ``DurableRuns`` is started.
            NotStorableError: E151, the context or an option cannot be stored.
            InputTypeError, InvalidOptionError: E78, E75, an argument is of another type or invalid.
            DurableDatabaseError: E156, the database cannot be used.
        """
        for stage in self.layers.stages:
            owner = getattr(stage[1] if isinstance(stage, tuple) else stage, "__self__", None)
            enqueue = getattr(owner, "enqueue", None)
            if enqueue is not None:
                run_id: str = await enqueue(
                    self,
                    input,
                    context,
                    queue=queue,
                    priority=priority,
                    dedup_key=dedup_key,
                    tenant=tenant,
                    delay=delay,
                    run_options=runner_options,
                )
                return run_id
        raise DurableNotStartedError(agent=self.name, reason="it has no Durable() among its middleware")
