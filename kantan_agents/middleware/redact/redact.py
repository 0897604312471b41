"""``Redact``: addresses, numbers and other secrets stay out of models, answers and traces."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, get_args

from agents import ModelResponse

from kantan_agents.context import store
from kantan_agents.errors import InvalidOptionError
from kantan_agents.interception import Middleware, ModelCall, ModelNext, ToolCall, ToolNext
from kantan_agents.middleware.redact.places import Mode, Placeholders, Replacements
from kantan_agents.middleware.redact.redaction import Redaction
from kantan_agents.middleware.redact.rules import make_rules
from kantan_agents.middleware.redact.trace import recorded_redacted
from kantan_agents.pipeline import Next, Run
from kantan_agents.support.arguments import checked_int

_LONGEST_BLOCK = 65536


class Redact(Middleware):
    """Keeps what rules find out of what models get and say, out of streams, results, history and traces.

    The input, the conversation, the results of tools, and the answers with the arguments they hold for tools
    are redacted; the instructions are not, they are the developer's own. To be put first, so that nothing
    passes by it.

    Args:
        rules: What is looked for: ``"email"``, ``"phone"``, ``"card"``, ``"ip"``, and mappings of further
            names to patterns, texts or compiled. None is the four.
        mode: What happens to what is found: ``"mask"`` puts ``[email]`` in its place; ``"hash"``
            ``[email:9f86d081884c7d65]``, a keyed hash, the same for equal values; ``"block"`` ends the run.
        restore: Whether placeholders, then numbered as in ``[email_1]``, become what they stand for again:
            in the arguments of tools, in the stream, in the final answer and in the context's
            ``output_dest``. History and traces keep the placeholders.
        key: The key of the hashes. By default a random one, so that those of two objects differ.
        keep_in: Key of the context under which the values behind the placeholders are kept, in the clear: for
            a conversation of several runs, and for runs that wait for an approval. By default they are
            forgotten with the run.
        longest: How far a pattern looks ahead, in characters, to find that it matches. A match may be longer.

    Raises:
        InvalidOptionError: E75, an option has a value it cannot have.
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
        if key is not None and (not isinstance(key, bytes) or not key):
            raise InvalidOptionError(option="key", reason="must be bytes")
        self._rules = make_rules(rules, checked_int("longest", longest, 1, _LONGEST_BLOCK))
        self._placeholders = Placeholders(list(self._rules))
        self._mode: Mode = mode
        self._restore = restore
        self._key = key or secrets.token_bytes(32)
        self._keep_in = keep_in

    async def run(self, run: Run, call_next: Next) -> None:
        """Redact the input, and restore the final answer if asked to.

        Raises:
            RedactedContentBlockedError: E84, something was found and the mode is ``"block"``.
        """
        redaction = self._of(run)
        given = run.input
        if isinstance(given, (str, list)):
            # Of a run that is blocked its input is recorded as well.
            run.input = redaction.masked().input(given, "") if self._mode == "block" else given
            run.input = redaction.input(given, "the input")
        await call_next(run)
        if self._restore and not getattr(run.result, "interruptions", None):
            _restore_result(run, redaction)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Redact what the model gets, what it answers, and what it streams."""
        redaction = self._of(call.run)
        call.input = redaction.input(call.input, "the conversation")
        schema = call.options.get("output_schema")
        is_json = schema is not None and not schema.is_plain_text()
        rewriters = call.rewriters
        call.rewriters = (*rewriters, lambda: redaction.rewriter(is_json=is_json, restore=self._restore))
        with recorded_redacted(call) as record:
            try:
                answer = await call_next(call)
            except Exception as error:
                redaction.error(error)
                raise
            finally:
                call.rewriters = rewriters
            items = [redaction.answer(item, is_json=is_json) for item in answer.output]
            if any(item is not old for item, old in zip(items, answer.output, strict=True)):
                answer = _with_output(answer, items)
            record(answer)
        return answer

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Redact what a tool returns; with ``restore`` it gets the values themselves."""
        redaction = self._of(call.run)
        written = call.arguments
        if self._restore:
            restored = redaction.restored_json(written)
            if restored != written:
                call.arguments = restored
        try:
            result = await call_next(call)
        except Exception as error:
            redaction.error(error)
            raise
        finally:
            if call.arguments != written:
                call.arguments = written
        return redaction.value(result, f"the result of {call.name}")

    def _of(self, run: Run) -> Redaction:
        known: Redaction | None = run.state.get(self)
        if known is None:
            known = run.state[self] = Redaction(self._rules, self._placeholders, self._replacements(run))
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
        # Before the run, not after it: one that waits for an approval takes the context along.
        run.on_failure(store(run.context, self._keep_in, values))
        return values


def _with_output(answer: ModelResponse, items: list[Any]) -> ModelResponse:
    return dataclasses.replace(answer, output=items)


def _restore_result(run: Run, redaction: Redaction) -> None:
    result: Any = run.result
    if not hasattr(result, "final_output"):  # of a stage's own making
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
