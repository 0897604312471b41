"""The results of durable runs' calls. Each statement is one transaction.

Only a run's current execution may write. A takeover or cancellation replaces ``execution`` in its row, so
later writes of the former one change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.support.secrets import mask

_OWNED = "EXISTS (SELECT 1 FROM kantan_agents_durable_runs WHERE run_id = :root AND execution = :execution)"

_OF_A_RUN = {
    "steps": "root_id",
    "events": "run_id",
    "approvals": "run_id",
    "waiting": "run_id",
    "runs": "run_id",
}


_SET_ASIDE = "set aside"


@attrs.frozen
class BegunAttempt:
    """A run that an execution starts or resumes.

    ``elapsed`` is in seconds, by the database's clock; unfinished ``steps`` have the body None.
    """

    attempt: int
    elapsed: float
    steps: dict[tuple[str, str], str | None] = attrs.field(factory=dict, repr=False)


class StepStore:
    """The steps in one database."""

    def __init__(self, database: RunDatabase) -> None:
        self._database = database

    def begin(self, root: str, execution: str) -> BegunAttempt:
        """Give a run to a new execution; return its earlier steps."""
        from sqlalchemy import text

        now = self._database.now
        with self._database.write() as connection:
            attempt, elapsed = connection.execute(
                text(
                    "INSERT INTO kantan_agents_durable_runs (run_id, execution, attempt, begun_at) "
                    f"VALUES (:root, :execution, 1, {now}) ON CONFLICT (run_id) DO UPDATE SET "
                    "execution = excluded.execution, attempt = kantan_agents_durable_runs.attempt + 1 "
                    f"RETURNING attempt, {now} - begun_at"
                ),
                {"root": root, "execution": execution},
            ).one()
            if attempt == 1:
                return BegunAttempt(1, 0.0)
            connection.execute(
                text("DELETE FROM kantan_agents_durable_steps WHERE root_id = :root AND step = :step"),
                {"root": root, "step": _SET_ASIDE},
            )
            rows = connection.execute(
                text("SELECT run_id, step, body FROM kantan_agents_durable_steps WHERE root_id = :root"),
                {"root": root},
            )
            return BegunAttempt(
                attempt, max(float(elapsed), 0.0), {(run, step): body for run, step, body in rows}
            )

    def owns(self, root: str, execution: str) -> bool:
        """Return whether a run belongs to an execution."""
        from sqlalchemy import text

        with self._database.read() as connection:
            found = connection.execute(
                text("SELECT execution FROM kantan_agents_durable_runs WHERE run_id = :root"), {"root": root}
            ).scalar()
            return bool(found == execution)

    def start(self, root: str, execution: str, run_id: str, step: str) -> bool:
        """Note a step's start; return False if the execution lacks the run."""
        return self._write(
            "INSERT INTO kantan_agents_durable_steps (root_id, run_id, step, body) "
            f"SELECT :root, :run, :step, NULL WHERE {_OWNED} "
            "ON CONFLICT (root_id, run_id, step) DO UPDATE SET body = kantan_agents_durable_steps.body",
            {"root": root, "execution": execution, "run": run_id, "step": step},
        )

    def finish(self, root: str, execution: str, run_id: str, step: str, body: str) -> bool:
        """Store a step's result; return False if the execution lacks the run."""
        return self._write(
            "INSERT INTO kantan_agents_durable_steps (root_id, run_id, step, body) "
            f"SELECT :root, :run, :step, :body WHERE {_OWNED} "
            "ON CONFLICT (root_id, run_id, step) DO UPDATE SET body = excluded.body",
            {"root": root, "execution": execution, "run": run_id, "step": step, "body": body},
        )

    def release(self, root: str) -> None:
        """Take a run away from its execution."""
        self._write(
            "UPDATE kantan_agents_durable_runs SET execution = NULL WHERE run_id = :root", {"root": root}
        )

    def set_aside(self, root: str, reason: str | None) -> None:
        """Note why a process could not execute a run; None clears it."""
        if reason is None:
            self._write(
                "DELETE FROM kantan_agents_durable_steps WHERE root_id = :root AND step = :step",
                {"root": root, "step": _SET_ASIDE},
            )
            return
        self._write(
            "INSERT INTO kantan_agents_durable_steps (root_id, run_id, step, body) "
            "VALUES (:root, :root, :step, :reason) "
            "ON CONFLICT (root_id, run_id, step) DO UPDATE SET body = excluded.body",
            {"root": root, "step": _SET_ASIDE, "reason": reason},
        )

    def reasons(self, roots: Sequence[str]) -> dict[str, str]:
        """Return the noted reasons of these runs."""
        from sqlalchemy import bindparam, text

        with self._database.read() as connection:
            rows = connection.execute(
                text(
                    "SELECT root_id, body FROM kantan_agents_durable_steps "
                    "WHERE step = :step AND root_id IN :ids"
                ).bindparams(bindparam("ids", expanding=True)),
                {"step": _SET_ASIDE, "ids": list(roots)},
            )
            # Earlier versions stored it unmasked.
            return {str(root): mask(str(reason)) for root, reason in rows}

    def lost(self, owners: dict[str, str]) -> list[str]:
        """Return the runs that have left these executions."""
        from sqlalchemy import bindparam, text

        with self._database.read() as connection:
            rows = connection.execute(
                text(
                    "SELECT run_id, execution FROM kantan_agents_durable_runs WHERE run_id IN :ids"
                ).bindparams(bindparam("ids", expanding=True)),
                {"ids": list(owners)},
            )
            return [run_id for run_id, execution in rows if execution != owners[run_id]]

    def forget(self, roots: Sequence[str]) -> None:
        """Delete the data of ended runs."""
        from sqlalchemy import bindparam, text

        with self._database.write() as connection:
            for table, column in _OF_A_RUN.items():
                statement = text(f"DELETE FROM kantan_agents_durable_{table} WHERE {column} IN :roots")
                connection.execute(
                    statement.bindparams(bindparam("roots", expanding=True)), {"roots": list(roots)}
                )

    def _write(self, statement: str, values: dict[str, object]) -> bool:
        from sqlalchemy import text

        with self._database.write() as connection:
            return connection.execute(text(statement), values).rowcount > 0
