"""Decides which differences from the recording count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kantan_agents.agent.bridge.captured.definitions import GENERATED_CACHE_KEY
from kantan_agents.errors import InvalidOptionError, ReplayDifferenceError
from kantan_agents.models.rubric import STANDARD_SCALE
from kantan_agents.support.nearest import nearest
from kantan_agents.support.own_calls import MOST_TOKENS
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import ModelCallRecord, ModelRequest
from kantan_agents.traces.capture.compare import Difference, differences
from kantan_agents.traces.capture.reading import model_request
from kantan_agents.traces.recorder.masking import mask_data

PARTS: Final = (
    "model",
    "instructions",
    "tools",
    "handoffs",
    "output",
    "settings",
    "options",
    "input",
    "answer",
    "error",
    "calls",
    "rules",
)
"""The parts that are compared; ``answer`` is the final output."""

_KEY: Final = "prompt_cache_key"
_LIMIT: Final = "max_tokens"


@attrs.frozen
class Checks:
    """Which differences count: parts that may differ, or the only parts that must not."""

    ignored: Sequence[str] = ()
    matched: Sequence[str] | None = None

    @classmethod
    def of(cls, ignore: str | Iterable[str], match: str | Iterable[str] | None) -> Checks:
        """Return the checks for a replay's options; an unknown part raises E75."""
        return cls(_names("ignore", ignore), None if match is None else _names("match", match))

    def counts(self, part: str) -> bool:
        """Return whether a difference in a part counts."""
        if any(_covers(name, part) for name in self.ignored):
            return False
        return self.matched is None or any(_covers(name, part) for name in self.matched)

    def of_call(
        self, recorded: ModelCallRecord, model: str, now: ModelRequest, *, is_internal: bool
    ) -> list[Difference]:
        """Return the differences that count between a recorded model call and a request.

        The library's limit on requests of middleware is ignored: earlier versions had none.
        """
        before = without_generated(recorded.request)
        if is_internal and now.settings.get(_LIMIT) == MOST_TOKENS:
            before, now = _without_limit(before), _without_limit(now)
        before, now = _without_standard_scale(before), _without_standard_scale(now)
        found = [] if recorded.model == model else [Difference("model", recorded.model, model)]
        found += differences(before, now)
        return [one for one in found if self.counts(one.part)]


def _names(option: str, names: str | Iterable[str]) -> Sequence[str]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        first = name.split(".", 1)[0].split("[", 1)[0] if isinstance(name, str) else ""
        if first not in PARTS:
            near = nearest(first, PARTS)
            hint = f"; did you mean {near!r}?" if near is not None else ""
            reason = f"{name!r} is not a part of a run, these are: {', '.join(PARTS)}{hint}"
            raise InvalidOptionError(option=option, reason=reason)
    return listed


def _covers(name: str, part: str) -> bool:
    return part == name or part.startswith((f"{name}.", f"{name}["))


def request_now(data: dict[str, Any]) -> ModelRequest:
    """Return a request as recorded: with secrets masked."""
    return without_generated(model_request(mask_data(data, mask)))


def without_generated(request: ModelRequest) -> ModelRequest:
    """Return a request without the values that the SDK generates."""
    arguments: Any = request.settings.get("extra_args")
    key = arguments.get(_KEY) if isinstance(arguments, dict) else None
    if not isinstance(key, str) or not key.startswith(GENERATED_CACHE_KEY):
        return request
    left = {name: value for name, value in arguments.items() if name != _KEY}
    settings = {name: value for name, value in request.settings.items() if name != "extra_args"}
    return attrs.evolve(request, settings={**settings, "extra_args": left} if left else settings)


def _without_limit(request: ModelRequest) -> ModelRequest:
    settings = {name: value for name, value in request.settings.items() if name != _LIMIT}
    return attrs.evolve(request, settings=settings)


def _without_standard_scale(request: ModelRequest) -> ModelRequest:
    # Earlier versions did not send the standard scale of judges.
    tools = [attrs.evolve(tool, parameters=_unscaled(tool.parameters)) for tool in request.tools]
    output = request.output
    if output is not None:
        output = attrs.evolve(output, schema=_unscaled(output.schema))
    return attrs.evolve(request, tools=tools, output=output)


def _unscaled(schema: Any) -> Any:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    score = properties.get("score") if isinstance(properties, Mapping) else None
    if properties is None or not isinstance(score, Mapping):
        return schema
    if (score.get("minimum"), score.get("maximum")) != STANDARD_SCALE:
        return schema
    left = {name: value for name, value in score.items() if name not in ("minimum", "maximum")}
    return {**schema, "properties": {**properties, "score": left}}


def difference_error(place: str, found: Sequence[Difference]) -> ReplayDifferenceError:
    """Return the error for differences at a call; it shows the first."""
    first = found[0]
    others = ", ".join(one.part for one in found[1:4])
    more = f" and {len(found) - 1} more: {others}" if others else ""
    return ReplayDifferenceError(
        place=place, part=f"{first.part} {first.kind}{more}", diff=first.diff, differences=tuple(found)
    )
