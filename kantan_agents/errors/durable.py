"""E150 to E159: durable runs."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class DurableNotStartedError(KantanAgentsError):
    """This process has no started ``DurableRuns`` with the agent, or the agent has no ``Durable()``.

    Fix: Start ``DurableRuns(URL, agents=[...])`` around the runs, with every durable agent. A process can
    have one.

    Attributes:
        agent: Name of the agent.
        reason: What is missing, and what to do.
    """

    code = "E150"
    template = "The agent {agent!r} cannot make a durable run: {reason}"
    agent: str
    reason: str


class NotStorableError(KantanAgentsError):
    """The context, an option or the session has something that another process would not have.

    Fix: Pass ``Durable(reload=...)`` or ``Durable(session=...)``, or set the option on the agent.

    Attributes:
        agent: Name of the agent.
        what: What cannot be stored.
        reason: Why not, and what to do.
    """

    code = "E151"
    template = "A durable run of {agent!r} cannot be stored: {what} {reason}"
    agent: str
    what: str
    reason: str


class UnknownDurableAgentError(KantanAgentsError):
    """A stored run is of an agent that this process does not have.

    Fix: Give all processes of an ``application``, and all workers of a queue, the same agents. Then use
    ``kantan-agents runs resume``.

    Attributes:
        run_id: Id of the run.
        agent: Name of its agent.
        known: The agents of this process, as a str.
    """

    code = "E152"
    template = (
        "The run {run_id} is of the agent {agent!r}, and this process has {known}. Start a worker with that "
        "agent, then resume the run"
    )
    run_id: str
    agent: str
    known: str


class ToolOutcomeUnknownError(KantanAgentsError):
    """The process exited during a call of a tool in ``Durable(once=...)``, so the outcome is unknown.

    Attributes:
        run_id: Id of the run.
        tool: Name of the tool.
        call_id: The model's id of the call.
        key: The idempotency key of the call.
    """

    code = "E153"
    template = (
        "The tool {tool!r} was being called when the process of run {run_id} ended, and it may be called "
        "only once. Find out whether the call {call_id!r} (idempotency key {key}) took effect, then begin a "
        "new run"
    )
    run_id: str
    tool: str
    call_id: str
    key: str


class DurableRunNotFoundError(KantanAgentsError):
    """The database has no durable run of this id.

    Fix: Use an id of ``runs list``, or another ``--db``.

    Attributes:
        run_id: The id.
        database: The database, without its password.
    """

    code = "E154"
    is_bad_input = True
    template = "No durable run {run_id!r} in {database}; kantan-agents runs list shows them"
    run_id: str
    database: str


class StoredStepError(KantanAgentsError):
    """A stored step is damaged, or of a later library, or of another version of your program.

    Fix: Use the latest library, or the version of your program that started the run.

    Attributes:
        run_id: Id of the run.
        step: The step, such as ``"model/support/1"``.
        reason: What is wrong with it, and what to do.
    """

    code = "E155"
    template = "The stored step {step!r} of run {run_id} cannot be used: {reason}"
    run_id: str
    step: str
    reason: str


class DurableDatabaseError(KantanAgentsError):
    """The database of durable runs cannot be reached, is of another kind, or has runs of another engine.

    It is also raised if Temporal cannot be reached.

    Fix: Check the URL, and ``engine=``.

    Attributes:
        database: Its URL, without a password.
        reason: Why not, and what to do.
        is_away: Whether it may be back in a moment.
    """

    code = "E156"
    is_bad_input = True
    template = "Cannot use {database} for durable runs: {reason}"
    database: str
    reason: str
    is_away = False


class RunMovedError(KantanAgentsError):
    """The run is no longer in this process: it was taken over or canceled, or ``DurableRuns`` was stopped.

    Fix: ``await runs.result(run_id)`` waits for the outcome, wherever the run is.

    Attributes:
        run_id: Id of the run.
        reason: What has happened, and what to do.
    """

    code = "E157"
    template = "The run {run_id} does not go on here: {reason}"
    run_id: str
    reason: str


class ApprovalAnswerError(KantanAgentsError):
    """No stored call waits for this answer, or it was answered before.

    Fix: ``kantan-agents approvals list`` shows the calls that wait.

    Attributes:
        run_id: Id of the run.
        call_id: Id of the call.
        reason: What is wrong, and what to do.
    """

    code = "E158"
    template = "Cannot answer the call {call_id!r} of run {run_id}: {reason}"
    run_id: str
    call_id: str
    reason: str


class DurableRunFailedError(KantanAgentsError):
    """The run has failed, or was canceled or parked, so it has no result.

    Fix: The message has the error of the run. ``kantan-agents runs resume`` continues a canceled or parked
    run.

    Attributes:
        run_id: Id of the run.
        status: ``"failed"``, ``"cancelled"`` or ``"parked"``.
        reason: The error of the run.
    """

    code = "E159"
    template = "The run {run_id} has {status}: {reason}"
    run_id: str
    status: str
    reason: str
