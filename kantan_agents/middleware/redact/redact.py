"""``Redact``: removes personal data and secrets."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, TypeVar, get_args

from agents import ModelResponse, generation_span
from agents.models.interface import ModelTracing

from kantan_agents.core.context import RESERVED_KEYS, is_reserved, store
from kantan_agents.core.interception import Middleware, ModelCall, ModelNext, ToolCall, ToolNext, add_redactor
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware.redact.placeholders import Mode, Placeholders, Replacements
from kantan_agents.middleware.redact.redaction import Redaction
from kantan_agents.middleware.redact.rules import make_rules
from kantan_agents.support.arguments import checked_int

T = TypeVar("T")

_LONGEST_BLOCK = 65536
_Record = Callable[[Any], None]


class Redact(Middleware):
    """Removes personal data and secrets from model input, answers, streams, results, history and traces.

    It redacts the input, the conversation, tool results and answers, including the arguments of tool calls,
    and errors and trace metadata. Instructions are not redacted, because the developer writes them. Put this
    middleware after ``Approve`` and before all others, so that no data bypasses it.

    An exception with something to redact in its message, attributes, notes, causes or group members is
    replaced with a redacted copy. Its class is a subclass of the original class with the same name. If that
    class allows no subclass, as pydantic's ``ValidationError``, it is a subclass of the nearest base class.

    Images and files (data URLs and base64 in fields for media) reach the model unchanged. Any other content
    of such a field is redacted.

    ``"phone"`` finds numbers with a country code, with a leading 0, grouped as in North America and China, or
    grouped after 1800 or 1300, but not numbers after ISBN, EAN, GTIN or UPC, and not IBANs. Digits after a
    number and a space may be taken for a part of it. ``"card"`` needs a valid check digit.

    Args:
        rules: The kinds of data to find: ``"email"``, ``"phone"``, ``"card"``, ``"ip"`` and ``"secret"``
            (keys, tokens and passwords), and mappings of custom names to regular expressions, as str or
            compiled: ``["email", {"staff": "EMP-[0-9]{6}"}]``. None enables the five named kinds.
        mode: ``"mask"`` replaces a value with ``[email]``; ``"hash"`` with ``[email:9f86d081884c7d65]``, a
            keyed hash that is the same for equal values; ``"block"`` fails the run.
        restore: Whether to replace placeholders with the original values in tool arguments, the stream, the
            final output and the context's ``output_dest``. Masks are then numbered, as in ``[email_1]``. The
            history and traces keep the placeholders.
        key: Key for the hashes. The default is random, so hashes of two ``Redact`` objects differ.
        keep_in: Context key under which the original values are stored, unencrypted. Needed for conversations
            of several runs and for runs that wait for approval. By default the values are discarded with the
            run.
        longest: Number of characters that a custom pattern can look ahead. A match may be longer. A stream
            holds back up to twice as many.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
    """

    def __init__(
        self,
        rules: Iterable[str | Mapping[str, Any]] | Mapping[str, Any] | str | None = None,
        *,
        mode: Mode = "mask",
        restore: bool = False,
        key: bytes | None = None,
        keep_in: str | None = None,
        longest: int = 128,
    ) -> None:
        if mode not in get_args(Mode):
            raise InvalidOptionError(option="mode", reason=f"must be mask, hash or block, not {mode!r}")
        if restore and mode == "block":
            raise InvalidOptionError(option="restore", reason="there is nothing to restore in a blocked run")
        if keep_in is not None and not restore:
            raise InvalidOptionError(option="keep_in", reason="is of use with restore=True only")
        if is_reserved(keep_in):
            reason = f"must be none of {', '.join(RESERVED_KEYS)}, not {keep_in!r}"
            raise InvalidOptionError(option="keep_in", reason=reason)
        if key is not None and (not isinstance(key, bytes) or not key):
            raise InvalidOptionError(option="key", reason="must be bytes")
        self._rules = make_rules(rules, checked_int("longest", longest, 1, _LONGEST_BLOCK))
        self._placeholders = Placeholders(list(self._rules))
        self._mode: Mode = mode
        self._restore = restore
        self._key = key or secrets.token_bytes(32)
        self._keep_in = keep_in

    @property
    def keep_in(self) -> str | None:
        """Context key of the original values; None if they are not stored."""
        return self._keep_in

    @property
    def forgets(self) -> bool:
        """Whether only this process has the values to restore."""
        return self._restore and self._keep_in is None

    def learn(self, run: Run, values: Mapping[str, str]) -> None:
        """Add placeholders and values of a run from an earlier process."""
        replacements = self._of(run).replacements
        if replacements is not None:
            replacements.learn(values)

    def masked(self, data: Any) -> Any:
        """Mask everything that the rules find in JSON data, outside a run, for reports about recorded runs.

        Args:
            data: A str, a number, None, or lists and dicts of them.
        """
        return Redaction(self._rules, self._placeholders, None).data(data)

    def trace_metadata(self, run: Run) -> Mapping[str, Any]:
        """Start to redact metadata and errors before the trace is opened."""
        self._of(run)
        return {}

    async def run(self, run: Run, call_next: Next) -> None:
        """Redact the input, and with ``restore`` restore the final output.

        Raises:
            RedactedContentBlockedError: E84, something was found and the mode is ``"block"``.
        """
        redaction = self._of(run)
        original = run.input
        if isinstance(original, (str, list)):
            # The trace records the input of a blocked run too, so it is masked first.
            if self._mode == "block":
                masked = redaction.masked()
                await masked.ahead(original, "")
                run.input = masked.input(original, "")
            await redaction.ahead(original, "the input")
            run.input = redaction.input(original, "the input")
        await _redacted(redaction, call_next(run))
        if self._restore and not getattr(run.result, "interruptions", None):
            _restore_result(run, redaction)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Redact the input, the answer and the stream."""
        redaction = self._of(call.run)
        await redaction.ahead(call.input, "the conversation")
        call.input = redaction.input(call.input, "the conversation")
        await redaction.ahead(call.input, "the conversation")  # it is recorded
        schema = call.options.get("output_schema")
        is_json = schema is not None and not schema.is_plain_text()
        rewriters = call.rewriters
        call.rewriters = (*rewriters, lambda: redaction.rewriter(is_json=is_json, restore=self._restore))
        with _redacted_span(call, redaction.recorded) as record:
            try:
                answer = await _redacted(redaction, call_next(call))
            finally:
                call.rewriters = rewriters
            items = [redaction.answer(item, is_json=is_json) for item in answer.output]
            if any(item is not old for item, old in zip(items, answer.output, strict=True)):
                answer = _with_output(answer, items)
            record(answer)
        return answer

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Redact the result; with ``restore``, the tool receives the original values."""
        redaction = self._of(call.run)
        written = call.arguments
        if self._restore:
            restored = redaction.restored_json(written)
            if restored != written:
                call.arguments = restored
        try:
            result = await _redacted(redaction, call_next(call))
        finally:
            if call.arguments != written:
                call.arguments = written
        await redaction.ahead(result, f"the result of {call.name}")
        return redaction.value(result, f"the result of {call.name}")

    def _of(self, run: Run) -> Redaction:
        known: Redaction | None = run.state.get(self)
        if known is None:
            known = run.state[self] = Redaction(self._rules, self._placeholders, self._replacements(run))
            add_redactor(run, known)
        return known

    def _replacements(self, run: Run) -> Replacements | None:
        if self._mode == "block":
            return None
        return Replacements(self._mode, self._key, numbered=self._restore, values=self._values(run))

    def _values(self, run: Run) -> MutableMapping[str, str]:
        if self._keep_in is None or not isinstance(run.context, dict):
            return {}
        kept = run.context.get(self._keep_in)
        values = dict(kept) if isinstance(kept, Mapping) else {}
        # Stored before the run, because a run that waits for approval is stored with its context.
        run.on_failure(store(run.context, self._keep_in, values))
        return values


async def _redacted(redaction: Redaction, awaitable: Awaitable[T]) -> T:
    """Redact the errors of the rest of the run."""
    try:
        return await awaitable
    except Exception as error:
        redacted = redaction.exception(error)
        if redacted is error:
            raise
    raise redacted  # here, as in the `except` block the original would become its context


def _with_output(answer: ModelResponse, items: list[Any]) -> ModelResponse:
    return dataclasses.replace(answer, output=items)


def _restore_result(run: Run, redaction: Redaction) -> None:
    result: Any = run.result
    if not hasattr(result, "final_output"):  # set by a stage
        run.result = redaction.restored_value(result)
        run.on_failure(store(run.context, "result", run.result))
        return
    result.final_output = redaction.restored_value(result.final_output)
    for agent in (run.agent, getattr(getattr(result, "last_agent", None), "owner", None)):
        key = getattr(agent, "output_dest", None)
        if key:
            if isinstance(run.context.get(key), dict):
                restored = redaction.restored_value(run.context[key])
                run.on_failure(store(run.context, key, restored))
            return


@contextmanager
def _redacted_span(call: ModelCall, redact: Callable[[Any], Any]) -> Iterator[_Record]:
    """Record a model call in a span around the model's own span, which then records no content.

    The model records its answer before a middleware can redact it.
    """
    tracing = call.options.get("tracing")
    if not isinstance(tracing, ModelTracing) or not tracing.include_data():
        yield lambda _: None
        return
    options = call.options
    call.options = {**options, "tracing": ModelTracing.ENABLED_WITHOUT_DATA}
    with generation_span(input=redact(_messages(call.input)), model=call.agent) as span:

        def record(answer: Any) -> None:
            span.span_data.output = [_data(item) for item in answer.output]

        try:
            yield record
        finally:
            call.options = options


def _messages(input: Any) -> list[Any]:
    if isinstance(input, str):
        return [{"role": "user", "content": input}]
    return [_data(item) for item in input]


def _data(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True) if hasattr(item, "model_dump") else item
