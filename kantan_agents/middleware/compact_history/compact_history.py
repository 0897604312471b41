"""``CompactHistory``: shorten requests that would become too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from agents import ModelResponse

from kantan_agents.core.interception import Middleware, ModelCall, ModelNext
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware.compact_history.memory import Memory
from kantan_agents.middleware.compact_history.request import CallRequest
from kantan_agents.middleware.compact_history.run_memory import RunMemory
from kantan_agents.middleware.compact_history.shorten import TokenLimits
from kantan_agents.middleware.compact_history.step import Step
from kantan_agents.middleware.compact_history.summarize import Summarizer
from kantan_agents.models.origin import name_of
from kantan_agents.support.arguments import checked_bool, checked_int, checked_number
from kantan_agents.support.log import get_logger

OnTooLong = Literal["raise", "send"]
"""``"raise"``: a request that cannot be made short enough is E177. ``"send"``: it is sent, with a warning."""

_EVERY_MODEL = "*"
_log = get_logger("kantan_agents.middleware")


class CompactHistory(Middleware):
    """Shortens requests that would become too long, starting with the least important parts.

    1. Results of tools become short notes, the oldest first. Screenshots of computer tools and found tools do
       not: they are omitted with their turn.
    2. Turns are omitted, the oldest first, and a model summarizes them.
    3. If the latest turns alone are too long, the results in them are cut in the middle.

    A turn is a message of the user, or an answer of a model together with the results of its tools. The
    instructions, the latest turns, and calls that wait for an approval stay.

    Only the request is shortened. The input of the run, its result, ``context["history"]`` and sessions do
    not change. A request is shortened rarely and then by much, and the following requests start with the same
    items, so prompt caches of providers stay valid. If the instructions, tools and latest turns exceed
    ``reduce_to`` by themselves, steps become smaller; a step that would save less than 5 % waits until
    ``max_tokens`` is reached.

    The size of a request is the number that the provider has counted for its first part, plus an estimate for
    the rest. Before the first answer, all of it is estimated. A number that is less than a tenth or more than
    ten times the estimate is ignored.

    A summary is a model call of the run. Long parts are summarized in up to eight requests, with tool results
    cut to 2,000 characters; older content is omitted. If a summary fails, its turns are omitted with a note.
    Requests that continue a conversation stored at the provider (``previous_response_id``,
    ``conversation_id``) are not shortened, which is logged. A ``call_model_input_filter`` of the SDK runs
    first, and compaction items of the provider stay.

    Args:
        max_tokens: Maximum tokens of a request: instructions, tools and conversation. Or a mapping of model
            names to such limits; ``"*"`` is for all models that are not named. Without it, their requests are
            not shortened.
        begin_at: The share of ``max_tokens`` from which a request is shortened.
        reduce_to: The share of ``max_tokens`` to which it is shortened.
        keep_turns: How many of the latest turns stay. The latest message of the user always stays.
        keep_first: Whether the first message of the user stays, for example because it contains the task.
        summarizer: The model that summarizes, as for ``Agent(model=...)``, or an ``Agent``, which is then
            run. None is the model of the call. False omits turns without a summary.
        on_too_long: The reaction to a request that is still longer than ``max_tokens``: ``"raise"`` (E177) or
            ``"send"``, with a warning.
        remember: Number of requests of which the object remembers how they were shortened, so that the next
            run of the same conversation continues from there. Durable runs do not use it.

    Raises:
        InvalidOptionError: E75, an argument has an invalid value.
        ModelNotFoundError: E19, ``summarizer`` is an unknown name.
    """

    def __init__(
        self,
        max_tokens: int | Mapping[str, int],
        *,
        begin_at: float = 0.8,
        reduce_to: float = 0.5,
        keep_turns: int = 6,
        keep_first: bool = False,
        summarizer: object = None,
        on_too_long: OnTooLong = "raise",
        remember: int = 256,
    ) -> None:
        begin = checked_number("begin_at", begin_at, above_zero=True)
        target = checked_number("reduce_to", reduce_to, above_zero=True)
        if begin > 1:
            raise InvalidOptionError(option="begin_at", reason=f"must be 1 or less, not {begin_at!r}")
        if target >= begin:
            reason = f"must be less than begin_at ({begin_at!r}), not {reduce_to!r}"
            raise InvalidOptionError(option="reduce_to", reason=reason)
        if on_too_long not in get_args(OnTooLong):
            reason = f'must be "raise" or "send", not {on_too_long!r}'
            raise InvalidOptionError(option="on_too_long", reason=reason)
        turns = checked_int("keep_turns", keep_turns, 1)
        first = checked_bool("keep_first", keep_first)
        self._limits = {
            name: TokenLimits(most, int(most * begin), int(most * target), turns, first)
            for name, most in _checked_limits(max_tokens).items()
        }
        self._summarizer = None if summarizer is False else Summarizer.of(summarizer)
        self._raises = on_too_long == "raise"
        self._shared = Memory(checked_int("remember", remember, 1))

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Shorten the request if it would be too long, and send it.

        Raises:
            RequestTooLongError: E177, it stays too long, and ``on_too_long`` is ``"raise"``.
        """
        limits = self._limits_for(_name_of(call))
        if call.internal or limits is None:
            return await call_next(call)
        memory = self._memory_of(call.run)
        if any(call.options.get(name) is not None for name in ("previous_response_id", "conversation_id")):
            memory.say_once(call, "a conversation stored at the provider is not shortened")
            return await call_next(call)
        request = CallRequest.of(call, limits, memory)
        if not request.is_long_enough:
            return await call_next(call)
        writer = None if self._summarizer is None else self._summarizer.name
        window = (self._limits_for(writer) or limits) if writer is not None else limits
        step = Step(call, call_next, self._summarizer, window=window.begin, raises=self._raises)
        plan = await step.plan_for(request)
        sent = request.sent(plan)
        model, whole = call.model, call.input
        call.input = sent.items
        try:
            answer = await call_next(call)
        finally:
            # Outer middleware sees the whole conversation; another model may get more of it.
            call.input = whole
        if call.model is model:
            sent.learn(answer)
        return answer

    def _limits_for(self, model: str | None) -> TokenLimits | None:
        return self._limits.get(model or _EVERY_MODEL, self._limits.get(_EVERY_MODEL))

    def _memory_of(self, run: Run) -> RunMemory:
        known: RunMemory | None = run.state.get(self)
        if known is None:
            known = run.state[self] = RunMemory(run, self._shared)
        return known

    def __repr__(self) -> str:
        most = {name: limits.most for name, limits in self._limits.items()}
        shown = most[_EVERY_MODEL] if list(most) == [_EVERY_MODEL] else most
        return f"CompactHistory({shown!r})"


def _name_of(call: ModelCall) -> str | None:
    return call.model if isinstance(call.model, str) else name_of(call.model)


def _checked_limits(max_tokens: Any) -> dict[str, int]:
    if not isinstance(max_tokens, Mapping):
        return {_EVERY_MODEL: checked_int("max_tokens", max_tokens, 1)}
    if not max_tokens or not all(isinstance(name, str) for name in max_tokens):
        reason = f"must be an int or a mapping of model names to ints, not {max_tokens!r}"
        raise InvalidOptionError(option="max_tokens", reason=reason)
    return {name: checked_int(f"max_tokens[{name!r}]", most, 1) for name, most in max_tokens.items()}
