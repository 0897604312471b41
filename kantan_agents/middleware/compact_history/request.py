"""``CallRequest``: the size of a request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.core.interception import ModelCall
from kantan_agents.middleware.compact_history.memory import MOST_RATIO, Counted
from kantan_agents.middleware.compact_history.plan import CompactionPlan
from kantan_agents.middleware.compact_history.run_memory import RunMemory
from kantan_agents.middleware.compact_history.shorten import Conversation, TokenLimits
from kantan_agents.middleware.compact_history.tokens import tokens_of_text
from kantan_agents.models.origin import name_of
from kantan_agents.traces.capture.canonical import canonical

_SIZE = 20


@attrs.frozen(eq=False)
class Sent:
    """The request under a plan; ``items`` is a str if the call's input is."""

    items: Any
    estimate: int
    _digests: Sequence[bytes]
    _model: Any
    _memory: RunMemory

    @property
    def counted(self) -> Counted | None:
        """The count for the longest known prefix."""
        return self._memory.counted(self._model, self._digests)

    @property
    def ratio(self) -> float:
        """Counted tokens for each estimated one."""
        counted = self.counted
        return self._memory.ratio(self._model) if counted is None else counted.ratio

    @property
    def size(self) -> float:
        """The count of the known prefix, and an estimate for the rest."""
        counted = self.counted
        if counted is None:
            return self.estimate * self.ratio
        return counted.tokens + counted.ratio * (self.estimate - counted.estimate)

    def learn(self, answer: Any) -> None:
        """Store the count, if it is of a single request."""
        usage = getattr(answer, "usage", None)
        tokens, requests = getattr(usage, "input_tokens", None), getattr(usage, "requests", None)
        if isinstance(tokens, int) and tokens > 0 and requests == 1:
            self._memory.keep_count(self._model, self._digests, Counted(tokens, self.estimate))


@attrs.frozen(eq=False)
class CallRequest:
    """The request of a model call; ``digests`` of its prefixes are empty if it is short."""

    limits: TokenLimits
    conversation: Conversation
    digests: Sequence[bytes]
    memory: RunMemory
    model: str | None
    _input: Any
    _head: int
    _sent: list[tuple[CompactionPlan, Sent]] = attrs.field(factory=list, init=False)

    @classmethod
    def of(cls, call: ModelCall, limits: TokenLimits, memory: RunMemory) -> CallRequest:
        """Return the request of a call."""
        text = call.input
        items = [{"role": "user", "content": text}] if isinstance(text, str) else text
        conversation = Conversation.of(items)
        head = tokens_of_text(call.instructions or "")
        head += memory.tokens_of_tools([*call.tools, *(call.options.get("handoffs") or ())])
        is_long = MOST_RATIO * (head + sum(conversation.sizes)) >= limits.begin
        model = call.model if isinstance(call.model, str) else name_of(call.model)
        digests = list(digests_of(items)) if is_long else []
        return cls(limits, conversation, digests, memory, model, call.input, head)

    @property
    def is_long_enough(self) -> bool:
        """Whether it may be too long."""
        return bool(self.digests)

    @property
    def plan(self) -> CompactionPlan:
        """The plan so far."""
        return self.memory.plan(self.limits.most, self.digests)

    def keep(self, plan: CompactionPlan, *, is_shared: bool) -> None:
        """Store a plan for later requests."""
        self.memory.keep_plan(self.limits.most, self.digests, plan, is_shared=is_shared)

    def estimate(self, plan: CompactionPlan) -> int:
        """Estimate the tokens under a plan."""
        return self._head + self.conversation.size(plan)

    def sent(self, plan: CompactionPlan) -> Sent:
        """Return the request under a plan."""
        known = next((sent for used, sent in self._sent if used is plan), None)
        if known is not None:
            return known
        items: Any = plan.applied(self.conversation.items)
        digests = list(digests_of(items)) if plan.covers else self.digests
        if isinstance(self._input, str) and not plan.covers:
            items = self._input
        sent = Sent(items, self.estimate(plan), digests, self.model, self.memory)
        self._sent.append((plan, sent))
        return sent


def digests_of(items: Iterable[Any]) -> Iterator[bytes]:
    """Yield a digest of each prefix."""
    so_far = b""
    for item in items:
        so_far = hashlib.blake2b(so_far + _content_of(item), digest_size=_SIZE).digest()
        yield so_far


def _content_of(item: Any) -> bytes:
    try:
        return canonical(_without_ids(item))
    except (TypeError, ValueError):  # not JSON data, which the model rejects or converts
        return repr(item).encode("utf-8", "surrogatepass")


def _without_ids(item: Any) -> Any:
    """A session may omit these fields."""
    if not isinstance(item, Mapping) or not ("role" in item or "call_id" in item):
        return item
    return {name: value for name, value in item.items() if name not in ("id", "status") and value is not None}
