"""``Race``: two requests for one answer, of which the first answer counts."""

from __future__ import annotations

from typing import Any

import anyio
import attrs
from agents import ModelResponse, Usage

from kantan_agents.core.interception import ModelCall, ModelNext


@attrs.define(eq=False)
class Contender:
    """One of the requests.

    Attributes:
        race: The race.
        call: The call that it makes.
        scope: Ends it.
        answer: Its answer; None if it has none.
        error: Its error; None if it has none.
        claimed_at: When its answer began to arrive, if it was the first one to do so.
        is_lost: Whether another answer counts.
        late_answer: The answer that arrived when another one counted already.
        is_over: Whether it has ended.
    """

    race: Race
    call: ModelCall
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    answer: ModelResponse | None = None
    error: BaseException | None = None
    claimed_at: float | None = None
    is_lost: bool = False
    late_answer: ModelResponse | None = None
    is_over: bool = False

    def claim(self, answer: ModelResponse | None) -> bool:
        """Note that the first part of its answer has arrived; return whether it is the one that counts.

        Args:
            answer: The answer; None if it is streamed and more is to come.
        """
        if not self.race.win(self):
            self.late_answer = answer
            return False
        if self.claimed_at is None:
            self.claimed_at = anyio.current_time()
        return True

    async def run(self, call_next: ModelNext) -> None:
        """Make the request, and leave its answer or error here."""
        try:
            with self.scope:
                self.answer = await call_next(self.call)
                self.race.win(self)  # a middleware may have answered without a model
        except anyio.get_cancelled_exc_class() as error:
            self.error = error  # the run is cancelled, or the model has raised it
            raise
        except BaseException as error:  # noqa: BLE001 - raised again if no other request is answered
            self.error = error
        finally:
            self.is_over = True
            self.race.ended(self)

    @property
    def ends_process(self) -> bool:
        """Whether it has raised something that is about the process, not about the request."""
        return isinstance(self.error, (SystemExit, KeyboardInterrupt))

    @property
    def usage(self) -> tuple[Any, bool] | None:
        """What it has used if its answer does not count, and whether that is all; None if it is unknown."""
        if self.late_answer is not None:
            return self.late_answer.usage, True
        if self.call.broken_off is not None:
            return self.call.broken_off.usage, True
        winner = self.race.winner
        if not self.is_lost or not self.call._was_sent or winner is None or winner.answer is None:
            return None
        # The same request, so the provider has read as much. How much it has written is not known.
        read = winner.answer.usage.input_tokens
        return Usage(requests=1, input_tokens=read, total_tokens=read), False


class Race:
    """The requests for one answer.

    Attributes:
        contenders: The requests, the first one first.
        winner: The one whose answer counts; None as long as none has arrived.
        is_decided: Set when an answer begins to arrive, or when the only request has failed.
        is_over: Set when the winner has ended, or when all have failed.
    """

    def __init__(self) -> None:
        self.contenders: list[Contender] = []
        self.winner: Contender | None = None
        self.is_decided = anyio.Event()
        self.is_over = anyio.Event()

    def add(self, call: ModelCall) -> Contender:
        """Add a request."""
        contender = Contender(self, call)
        self.contenders.append(contender)
        call._race = contender
        return contender

    def win(self, contender: Contender) -> bool:
        """Make a contender the winner, unless there is one; return whether it is it. The others are ended."""
        if self.winner is None:
            self.winner = contender
            self.is_decided.set()
            for other in self.contenders:
                if other is not contender and not other.is_over:
                    other.is_lost = True
                    other.scope.cancel()
        return self.winner is contender

    def ended(self, contender: Contender) -> None:
        """Note that a request has ended."""
        if contender.ends_process:
            for other in self.contenders:
                other.scope.cancel()
        if contender.ends_process or contender is self.winner or all(one.is_over for one in self.contenders):
            self.is_decided.set()
            self.is_over.set()
