"""What a child has used, however its run ends."""

from __future__ import annotations

from typing import Any

from agents import RunHooks, Usage


class UsageNote(RunHooks[Any]):
    """Notes where the SDK counts what a run uses; a run that is tried again is counted anew."""

    def __init__(self) -> None:
        self._counted: list[Usage] = []

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Note where this attempt is counted."""
        del agent
        usage = getattr(context, "usage", None)
        if isinstance(usage, Usage) and not any(usage is known for known in self._counted):
            self._counted.append(usage)

    def add_to(self, wrapper: Any) -> None:
        """Count it for the run that waits.

        Args:
            wrapper: The SDK's context of the tool call.
        """
        total = getattr(wrapper, "usage", None)
        if isinstance(total, Usage):
            for usage in self._counted:
                total.add(usage)
