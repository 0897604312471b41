"""``prompt``: a prompt that OpenAI stores, by its id, with or without instructions of the agent's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from kantan_agents.core.interception import redacted_data
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import InvalidOptionError
from kantan_agents.traces.metadata import hosted_prompt_metadata
from kantan_agents.traces.spans import record_metadata

_RECORDED = object()


def checked_prompt(prompt: Any) -> Any:
    """Return the ``prompt`` option, as the SDK takes it; E75 if it is something else.

    The result of a function is recorded in the trace when the function has returned it.
    """
    if isinstance(prompt, Mapping):
        if isinstance(prompt.get("id"), str) and prompt["id"]:
            return prompt
        reason = f'must have the id of the stored prompt, such as {{"id": "pmpt_..."}}, not {prompt!r}'
        raise InvalidOptionError(option="prompt", reason=reason)
    if callable(prompt):
        return _recording(prompt)
    kind = type(prompt).__name__
    reason = (
        f'must be {{"id": "pmpt_..."}} or a function that returns it, not {kind} '
        "(give the text of a prompt, also a Prompt with a version, as instructions)"
    )
    raise InvalidOptionError(option="prompt", reason=reason)


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def recorded(data: Any) -> Any:
        prompt = function(data)
        prompt = await prompt if inspect.isawaitable(prompt) else prompt
        run = current_run.get()
        if run is not None and isinstance(prompt, Mapping):
            metadata = hosted_prompt_metadata(prompt)
            known = run.state.setdefault(_RECORDED, [])
            if metadata and metadata not in known:
                known.append(metadata)
                named = {"agent_name": data.agent.name, **metadata}
                record_metadata(run, redacted_data(run, named))
        return prompt

    return recorded
