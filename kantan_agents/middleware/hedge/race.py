"""``Race``: of two requests, the first answer counts."""

from __future__ import annotations

from typing import Any

import anyio
import attrs
from agents import ModelResponse, Usage

from kantan_agents.core.interception import ModelCall, ModelNext


@attrs.define(eq=False)
class Contender:
    """One of the requests.

    ``claimed_at`` is when its answer started to arrive, if it was the first. ``late_answer`` is its answer if
    another one counted already.
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
        """Claim the race; return whether its answer counts. None: a stream has started."""
        if not self.race.win(self):
            self.late_answer = answer
            return False
        if self.claimed_at is None:
            self.claimed_at = anyio.current_time()
        return True

    async def run(self, call_next: ModelNext) -> None:
        """Make the request."""
        try:
            with self.scope:
                self.answer = await call_next(self.call)
                self.race.win(self)  # a middleware may have answered without a model
        except anyio.get_cancelled_exc_class() as error:
            self.error = error  # the run is cancelled, or the model raised it
            raise
        except BaseException as error:  # noqa: BLE001 - raised again if no other request is answered
            self.error = error
        finally:
            self.is_over = True
            self.race.ended(self)

    @property
    def ends_process(self) -> bool:
        """Whether its error concerns the process, not the request."""
        return isinstance(self.error, (SystemExit, KeyboardInterrupt))

    @property
    def usage(self) -> tuple[Any, bool] | None:
        """Usage of a lost answer, and whether it is complete."""
        if self.late_answer is not None:
            return self.late_answer.usage, True
        if self.call.broken_off is not None:
            return self.call.broken_off.usage, True
        winner = self.race.winner
        if not self.is_lost or not self.call._was_sent or winner is None or winner.answer is None:
            return None
        # It is the same request, so it has as many input tokens. Its output tokens are unknown.
        read = winner.answer.usage.input_tokens
        return Usage(requests=1, input_tokens=read, total_tokens=read), False


class Race:
    """The requests for one answer.

    ``is_decided`` is set when an answer starts to arrive or the only request has failed, ``is_over`` when the
    winner has ended or all have failed.
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
        """The first one wins, and the others are canceled."""
        if self.winner is None:
            self.winner = contender
            self.is_decided.set()
            for other in self.contenders:
                if other is not contender and not other.is_over:
                    other.is_lost = True
                    other.scope.cancel()
        return self.winner is contender

    def ended(self, contender: Contender) -> None:
        """A request has ended."""
        if contender.ends_process:
            for other in self.contenders:
                other.scope.cancel()
        if contender.ends_process or contender is self.winner or all(one.is_over for one in self.contenders):
            self.is_decided.set()
            self.is_over.set()
