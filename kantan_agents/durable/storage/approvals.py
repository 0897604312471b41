"""Waiting runs and the answers to their calls."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import attrs

from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.names import stored_name
from kantan_agents.errors import ApprovalAnswerError
from kantan_agents.middleware.approve.calls import Approved, Decision, PendingCall, Rejected


@attrs.frozen
class WaitingCall:
    """A tool call of a durable run that waits for an approval.

    Attributes:
        run_id: Id of the run.
        call_id: The model's id for the call, or a substitute if that has more than 2,000 bytes.
        agent: Name of the agent whose model called the tool.
        tool: Name of the tool.
        arguments: The arguments as JSON.
        asked_at: Start of the wait.
        answer: ``"approved"`` or ``"rejected"``; None while it waits.
        answered_by: Who has answered.
        answered_at: Time of the answer.
    """

    run_id: str
    call_id: str
    agent: str
    tool: str
    arguments: str
    asked_at: datetime
    answer: str | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None


@attrs.frozen
class WaitingRun:
    """An answered run, ready to resume."""

    run_id: str
    agent: str
    state: str = attrs.field(repr=False)
    options: str = attrs.field(repr=False)
    queue: str | None
    answers: Mapping[str, Decision]


CLOSED = "cancelled"

_IS_CLOSED = (
    "EXISTS (SELECT 1 FROM kantan_agents_durable_waiting w WHERE w.run_id = a.run_id AND w.next_id = :closed)"
)

_COLUMNS = "run_id, call_id, agent, tool, arguments, asked_at, answer, answered_by, answered_at"


class ApprovalStore:
    """The waiting runs of one database."""

    def __init__(self, database: RunDatabase) -> None:
        self._database = database

    def key(self) -> bytes:
        """Return the database's key that signs waiting runs."""
        from sqlalchemy import text

        with self._database.write() as connection:
            connection.execute(
                text(
                    "INSERT INTO kantan_agents_durable_secrets (name, value) VALUES ('signing', :value) "
                    "ON CONFLICT (name) DO NOTHING"
                ),
                {"value": secrets.token_hex(32)},
            )
            found = connection.execute(
                text("SELECT value FROM kantan_agents_durable_secrets WHERE name = 'signing'")
            ).scalar_one()
        return str(found).encode()

    def wait(self, run: WaitingRun, calls: Sequence[PendingCall]) -> None:
        """Store a waiting run; idempotent."""
        from sqlalchemy import text

        with self._database.write() as connection:
            connection.execute(
                text(
                    "INSERT INTO kantan_agents_durable_waiting (run_id, agent, state, options, queue) "
                    "VALUES (:run, :agent, :state, :options, :queue) ON CONFLICT (run_id) DO NOTHING"
                ),
                {
                    "run": run.run_id,
                    "agent": run.agent,
                    "state": run.state,
                    "options": run.options,
                    "queue": run.queue,
                },
            )
            for position, call in enumerate(calls):
                connection.execute(
                    text(
                        "INSERT INTO kantan_agents_durable_approvals "
                        "(run_id, call_id, position, agent, tool, arguments, asked_at) VALUES "
                        f"(:run, :call, :position, :agent, :tool, :arguments, {self._database.now}) "
                        "ON CONFLICT (run_id, call_id) DO NOTHING"
                    ),
                    {
                        "run": run.run_id,
                        "call": stored_name(call.call_id),
                        "position": position,
                        "agent": call.agent,
                        "tool": call.tool,
                        "arguments": call.arguments,
                    },
                )

    def calls(self, *, answered: bool = False, run_id: str | None = None) -> list[WaitingCall]:
        """Return the waiting calls, the oldest first, or with ``answered`` all."""
        from sqlalchemy import text

        only = "answer IS NOT NULL OR" if answered else "answer IS NULL AND"
        wanted = [f"({only} NOT {_IS_CLOSED})"]
        if run_id is not None:
            wanted.append("run_id = :run")
        with self._database.read() as connection:
            rows = connection.execute(
                text(
                    f"SELECT {_COLUMNS} FROM kantan_agents_durable_approvals a "
                    f"WHERE {' AND '.join(wanted)} ORDER BY asked_at, run_id, position"
                ),
                {"closed": CLOSED, **({} if run_id is None else {"run": run_id})},
            ).all()
        return [_waiting_call(row) for row in rows]

    def answer(self, run_id: str, call_id: str, decision: Decision, by: str) -> None:
        """Answer a waiting call; E158 if unknown, or already answered."""
        from sqlalchemy import text

        with self._database.write() as connection:
            changed = connection.execute(
                text(
                    "UPDATE kantan_agents_durable_approvals AS a SET answer = :answer, answered_by = :by, "
                    f"answered_at = {self._database.now} "
                    "WHERE run_id = :run AND call_id IN (:call, :given) AND answer IS NULL "
                    f"AND NOT {_IS_CLOSED}"
                ),
                {
                    "answer": _text_of(decision),
                    "by": by,
                    "run": run_id,
                    "call": stored_name(call_id),
                    "given": call_id,  # the id in rows of earlier versions
                    "closed": CLOSED,
                },
            ).rowcount
            if changed:
                return
            found = connection.execute(
                text(
                    "SELECT answer, answered_by FROM kantan_agents_durable_approvals "
                    "WHERE run_id = :run AND call_id IN (:call, :given) AND answer IS NOT NULL"
                ),
                {"run": run_id, "call": stored_name(call_id), "given": call_id},
            ).first()
        reason = "no call of this id waits. `kantan-agents approvals list` shows those that do"
        if found is not None:
            reason = f"{found.answered_by} has {_kind_of(found.answer)} it before"
        raise ApprovalAnswerError(run_id=run_id, call_id=call_id, reason=reason)

    def answered(self) -> list[str]:
        """Return the fully answered runs without a next run."""
        from sqlalchemy import text

        with self._database.read() as connection:
            return list(
                connection.execute(
                    text(
                        "SELECT run_id FROM kantan_agents_durable_waiting w WHERE next_id IS NULL "
                        "AND NOT EXISTS (SELECT 1 FROM kantan_agents_durable_approvals a "
                        "WHERE a.run_id = w.run_id AND a.answer IS NULL)"
                    )
                ).scalars()
            )

    def goes_on(self, run_id: str, next_id: str) -> bool:
        """Note a run's next one; return whether it was canceled meanwhile."""
        from sqlalchemy import text

        statement = "UPDATE kantan_agents_durable_waiting SET next_id = :next WHERE run_id = :run AND next_id"
        values = {"next": next_id, "run": run_id}
        with self._database.write() as connection:
            if connection.execute(text(f"{statement} IS NULL"), values).rowcount:
                return False
            closed = connection.execute(text(f"{statement} = :closed"), {**values, "closed": CLOSED})
            return bool(closed.rowcount)

    def next_of(self, run_id: str) -> str | None:
        """Return the next run of one that has waited, if any."""
        from sqlalchemy import text

        with self._database.read() as connection:
            found = connection.execute(
                text("SELECT next_id FROM kantan_agents_durable_waiting WHERE run_id = :run"), {"run": run_id}
            ).scalar()
        return None if found is None else str(found)

    def waiting(self, limit: int, offset: int, *, closed: bool = False) -> list[str]:
        """Return the latest waiting runs; with ``closed``, canceled ones."""
        from sqlalchemy import text

        where = f"next_id = '{CLOSED}'" if closed else "next_id IS NULL"
        with self._database.read() as connection:
            return list(
                connection.execute(
                    text(
                        f"SELECT run_id FROM kantan_agents_durable_waiting WHERE {where} "
                        "ORDER BY run_id DESC LIMIT :limit OFFSET :offset"
                    ),
                    {"limit": limit, "offset": offset},
                ).scalars()
            )

    def waited_among(self, run_ids: Sequence[str]) -> dict[str, str | None]:
        """Return which of these runs have waited, with their next run or None."""
        from sqlalchemy import bindparam, text

        with self._database.read() as connection:
            rows = connection.execute(
                text(
                    "SELECT run_id, next_id FROM kantan_agents_durable_waiting WHERE run_id IN :ids"
                ).bindparams(bindparam("ids", expanding=True)),
                {"ids": list(run_ids)},
            ).all()
        return {row.run_id: row.next_id for row in rows}

    def close(self, run_id: str) -> bool:
        """End a canceled run's wait; return False if it does not wait."""
        from sqlalchemy import text

        with self._database.write() as connection:
            closed = connection.execute(
                text(
                    "UPDATE kantan_agents_durable_waiting SET next_id = :closed "
                    "WHERE run_id = :run AND next_id IS NULL"
                ),
                {"closed": CLOSED, "run": run_id},
            ).rowcount
        return bool(closed)

    def reopen(self, run_id: str, queue: str | None) -> bool:
        """Renew the wait of a run that was canceled while waiting, else return False."""
        from sqlalchemy import text

        with self._database.write() as connection:
            opened = connection.execute(
                text(
                    "UPDATE kantan_agents_durable_waiting SET next_id = NULL, "
                    "queue = COALESCE(:queue, queue) WHERE run_id = :run AND next_id = :closed"
                ),
                {"closed": CLOSED, "run": run_id, "queue": queue},
            ).rowcount
        return bool(opened)

    def find(self, run_id: str) -> WaitingRun | None:
        """Return a waiting or answered run."""
        from sqlalchemy import text

        with self._database.read() as connection:
            row = connection.execute(
                text(
                    "SELECT agent, state, options, queue FROM kantan_agents_durable_waiting "
                    "WHERE run_id = :run"
                ),
                {"run": run_id},
            ).first()
            if row is None:
                return None
            answers = connection.execute(
                text(
                    "SELECT call_id, answer FROM kantan_agents_durable_approvals "
                    "WHERE run_id = :run AND answer IS NOT NULL ORDER BY position"
                ),
                {"run": run_id},
            ).all()
        decisions = {call_id: _decision_of(answer) for call_id, answer in answers}
        return WaitingRun(run_id, row.agent, row.state, row.options, row.queue, decisions)


def _waiting_call(row: Any) -> WaitingCall:
    return WaitingCall(
        row.run_id,
        row.call_id,
        row.agent,
        row.tool,
        row.arguments,
        _moment(row.asked_at),
        None if row.answer is None else _kind_of(row.answer),
        row.answered_by,
        None if row.answered_at is None else _moment(row.answered_at),
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def _text_of(decision: Decision) -> str:
    if isinstance(decision, Approved):
        return json.dumps({"approved": True, "arguments": decision.arguments})
    return json.dumps({"approved": False, "reason": decision.reason})


def _kind_of(text: str) -> str:
    return "approved" if json.loads(text)["approved"] else "rejected"


def _decision_of(text: str) -> Decision:
    answer = json.loads(text)
    return Approved(answer["arguments"]) if answer["approved"] else Rejected(answer["reason"])
