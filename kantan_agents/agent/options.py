"""Checks the options of an ``Agent``."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Any, cast

from kantan_agents.core.context import RESERVED_KEYS, Context, is_reserved
from kantan_agents.core.interception import redacted_data
from kantan_agents.core.pipeline import Pipeline, current_run
from kantan_agents.core.prompt import Prompt
from kantan_agents.core.templating import render_strictly, render_template
from kantan_agents.errors import InstructionsRequiredError, InvalidOptionError
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.nearest import nearest
from kantan_agents.traces.metadata import finite, hosted_prompt_metadata
from kantan_agents.traces.spans import record_metadata

Renderer = Callable[..., "str | Awaitable[str]"]
"""``(text, context)`` or ``(text, context, allow_env)``, sync or async."""

Metadata = Mapping[str, Any] | Callable[[Context], Mapping[str, Any]]

_RECORDED_PROMPTS = object()


def checked_instructions(instructions: object, *, has_prompt: bool = False) -> str | Prompt:
    """Return the instructions; E1 if missing without a stored prompt, E75 for a wrong type."""
    if instructions is None:
        if has_prompt:
            return ""
        raise InstructionsRequiredError
    if isinstance(instructions, (str, Prompt)):
        return instructions
    raise InvalidOptionError(
        option="instructions",
        reason=f"must be a str or a Prompt, not {type(instructions).__name__} "
        "(for instructions made by a function, give it as renderer)",
    )


def checked_prompt(prompt: Any) -> Any:
    """Return the prompt stored at OpenAI; E75 for a wrong type."""
    if isinstance(prompt, Mapping):
        if isinstance(prompt.get("id"), str) and prompt["id"]:
            return prompt
        reason = f'must have the id of the stored prompt, such as {{"id": "pmpt_..."}}, not {prompt!r}'
        raise InvalidOptionError(option="prompt", reason=reason)
    if callable(prompt):
        return _recording_prompt(prompt)
    kind = type(prompt).__name__
    reason = (
        f'must be {{"id": "pmpt_..."}} or a function that returns it, not {kind} '
        "(give the text of a prompt, also a Prompt with a version, as instructions)"
    )
    raise InvalidOptionError(option="prompt", reason=reason)


def _recording_prompt(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def recorded(data: Any) -> Any:
        prompt = function(data)
        prompt = await prompt if inspect.isawaitable(prompt) else prompt
        run = current_run.get()
        if run is not None and isinstance(prompt, Mapping):
            metadata = hosted_prompt_metadata(prompt)
            known = run.state.setdefault(_RECORDED_PROMPTS, [])
            if metadata and metadata not in known:
                known.append(metadata)
                named = {"agent_name": data.agent.name, **metadata}
                record_metadata(run, redacted_data(run, named))
        return prompt

    return recorded


def checked_items(option: str, items: Any) -> list[Any]:
    """Return a list, empty for None; E75 unless iterable."""
    if items is None:
        return []
    # The usual types first: isinstance with an ABC takes longer than the rest of the function.
    if isinstance(items, (list, tuple)) or (
        isinstance(items, Iterable) and not isinstance(items, (str, bytes, Mapping))
    ):
        return list(items)
    raise InvalidOptionError(option=option, reason=f"must be a list, not {items!r}")


def check_options(options: Iterable[str], known: Iterable[str]) -> None:
    """Raise E75 for an unknown option, with the nearest name."""
    names = set(known)
    for option in options:
        if option not in names:
            near = nearest(option, names)
            hint = f"; the nearest name is {near!r}" if near else ""
            raise InvalidOptionError(option=option, reason=f"there is no such option{hint}")


def checked_flag(option: str, value: object) -> bool:
    """Return a bool, else E75: strings such as ``"false"`` count as true."""
    if isinstance(value, bool):
        return value
    raise InvalidOptionError(option=option, reason=f"must be True or False, not {value!r}")


def checked_history(history: object) -> int:
    """Return the number of history entries; E75 unless an int from 0."""
    return checked_int("history", history, 0)


def checked_output_dest(output_dest: object) -> str | None:
    """Return the context key for the output; E75 if reserved or not a str."""
    if output_dest is None or (isinstance(output_dest, str) and not is_reserved(output_dest)):
        return output_dest
    raise InvalidOptionError(
        option="output_dest",
        reason=f"must be a str, and none of {', '.join(RESERVED_KEYS)}, not {output_dest!r}",
    )


def checked_metadata(metadata: Any) -> Any:
    """Return the metadata, a mapping as a JSON copy; E75 for a wrong type."""
    if metadata is None or callable(metadata):
        return metadata
    if isinstance(metadata, Mapping):
        return cast("dict[str, Any]", finite(metadata))
    raise InvalidOptionError(
        option="metadata",
        reason=f"must be a mapping or a function of the context, not {type(metadata).__name__}",
    )


def checked_pipeline(pipeline: Any) -> Pipeline | None:
    """Return a ``Pipeline``; E75 for a wrong type, E73 and E71 for its stages."""
    if pipeline is None or isinstance(pipeline, Pipeline):
        return pipeline
    if isinstance(pipeline, Iterable) and not isinstance(pipeline, (str, bytes, Mapping)):
        return Pipeline(pipeline)
    raise InvalidOptionError(
        option="pipeline",
        reason=f"must be a Pipeline or a list of stages, not {pipeline!r} "
        "(to add one stage to the standard ones, pass middleware=[stage])",
    )


def standard_renderer(name: str, instructions: str | Prompt, *, strict: bool) -> Renderer:
    """Return the template engine; ``strict`` makes a missing value an error for any prompt."""
    if isinstance(instructions, Prompt):
        if strict or instructions.strict:
            shown = f"prompt {instructions.name!r} ({instructions.version})"
            return partial(render_strictly, prompt=shown)
    elif strict:
        return partial(render_strictly, prompt=f"the instructions of agent {name!r}")
    return render_template


def unrendered(text: str, context: Context) -> str:  # noqa: ARG001 - the signature of a renderer
    """Return the string of a literal prompt."""
    return text


def checked_renderer(renderer: Renderer | None, standard: Renderer = render_template) -> tuple[Renderer, int]:
    """Return the renderer and its number of arguments, two or three; else E75."""
    if renderer is None:
        return standard, 3
    if not callable(renderer):
        reason = f"must be callable, not {type(renderer).__name__}"
        raise InvalidOptionError(option="renderer", reason=reason)
    try:
        signature = inspect.signature(renderer)
    except (TypeError, ValueError):
        return renderer, 3  # written in C: its signature cannot be read
    for count in (3, 2):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return renderer, count
    raise InvalidOptionError(
        option="renderer", reason="must take (text, context) or (text, context, allow_env)"
    )
