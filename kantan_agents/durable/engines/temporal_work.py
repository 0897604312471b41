"""The Temporal side: a run's workflow and activity, and the workers.

The workflow has one activity, which executes the whole run. Its code must not change while workflows are
open: a later version gets another name.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final

from temporalio import activity, workflow
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import Priority, RetryPolicy, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.envconfig import ClientConfigProfile
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, WorkflowAlreadyStartedError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from kantan_agents.durable.engines.engine import Limits
from kantan_agents.durable.engines.jobs import Handing
from kantan_agents.errors import DurableDatabaseError
from kantan_agents.support.log import get_logger

WORKFLOW: Final = "kantan_agents.durable_run"
_ACTIVITY: Final = "kantan_agents.make"
_LONGEST: Final = timedelta(days=3650)
_SILENCE: Final = timedelta(seconds=10)
_BEAT: Final = timedelta(seconds=3)
_RPC: Final = timedelta(seconds=10)
_AGAIN: Final = timedelta(seconds=2)
_LOWEST: Final = 5
_PAUSE_SECONDS: Final = 5.0

_log = get_logger("kantan_agents.durable")

Act = Callable[[str, int], Awaitable[str]]
"""Executes or cancels a numbered handover, if allowed; returns the run's status."""


class CannotMakeNowError(Exception):
    """Another process must execute the run, or this one later."""


@workflow.defn(name=WORKFLOW)
class RunWorkflow:
    """A run: one activity in its queue."""

    @workflow.run
    async def run(self, run_id: str, number: int, queue: str) -> str:
        """Execute the activity; return its status."""
        status: str = await workflow.execute_activity(
            _ACTIVITY,
            args=[run_id, number],
            task_queue=queue,
            result_type=str,
            start_to_close_timeout=_LONGEST,
            # For a process that ends before it takes the run. After that, its lock counts.
            heartbeat_timeout=_SILENCE,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=_SILENCE),
        )
        return status


class Connection:
    """A connection to Temporal, on the running loop; ``prefix`` is its queues'."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._workers: set[Worker] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._takes = True

    @classmethod
    async def open(cls, address: str, namespace: str, prefix: str, identity: str) -> Connection:
        """Connect, with the credentials of Temporal's variables and configuration file; raises E156."""
        runtime, process = _runtime()
        if process != os.getpid():
            # In a forked child, it ends the process by a signal now and then.
            reason = (
                "the process that this one was forked from has used the library of Temporal, which "
                "does not work in a child then. Start DurableRuns in the children only, or spawn them"
            )
            raise DurableDatabaseError(database=f"temporal://{address}", reason=reason)
        config = _configured(address)
        config.update({"target_host": address} if address else {})
        config.update({"namespace": namespace} if namespace else {})
        config.setdefault("target_host", "localhost:7233")
        client = await Client.connect(**config, identity=identity, runtime=runtime)
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace), timeout=_RPC
        )
        return cls(client, prefix)

    def work(self, make: Act, cancel: Act, queues: Mapping[str, Limits]) -> None:
        """Start executing queued runs, and resuming workflows."""

        @activity.defn(name=_ACTIVITY)
        async def made(run_id: str, number: int) -> str:
            return await _made(make, cancel, run_id, number)

        workflows: dict[str, Any] = {
            "task_queue": self._prefix,
            "workflows": [RunWorkflow],
            "workflow_runner": UnsandboxedWorkflowRunner(),  # it has no code of users
            # The other processes would wait for an ended process's cache.
            "max_cached_workflows": 0,
        }
        activities: list[dict[str, Any]] = [
            {
                "task_queue": self._named(queue),
                "activities": [made],
                "max_concurrent_activities": limits.concurrency,
                "max_concurrent_activity_task_polls": 1,
                "max_task_queue_activities_per_second": limits.rate and limits.rate / limits.period,
                "max_heartbeat_throttle_interval": _BEAT,
                "graceful_shutdown_timeout": _LONGEST,  # the engine ends them
            }
            for queue, limits in queues.items()
        ]
        self._tasks = [asyncio.create_task(self._keep_working(one)) for one in (workflows, *activities)]

    async def _keep_working(self, options: dict[str, Any]) -> None:
        while self._takes:
            worker = Worker(self._client, **options)
            self._workers.add(worker)
            try:
                await worker.run()
            except Exception as error:  # noqa: BLE001 - Temporal may allow it again
                _log.warning("worker of Temporal has ended, trying again", error=" ".join(str(error).split()))
                await asyncio.sleep(_PAUSE_SECONDS)
            finally:
                self._workers.discard(worker)

    def take_no_more(self) -> None:
        """Take no more runs; active ones continue."""
        if self._takes:
            self._takes = False
            self._tasks += [asyncio.create_task(worker.shutdown()) for worker in self._workers]

    async def close(self, seconds: float) -> None:
        """End the workers, and wait for their runs."""
        self.take_no_more()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        # The interpreter may end next: Temporal's threads must not be busy.
        await asyncio.sleep(0.05)

    async def hand_over(self, job: Handing) -> None:
        """Give a job to Temporal; idempotent."""
        delay = min(job.delay, _LONGEST.total_seconds())
        try:
            await self._client.start_workflow(
                WORKFLOW,
                args=[job.run_id, job.number, self._named(job.queue)],
                id=_id(job),
                task_queue=self._prefix,
                start_delay=timedelta(seconds=delay) if delay else None,
                # Without one it is before all others; Temporal has five levels.
                priority=Priority(priority_key=1 if job.priority is None else min(job.priority + 1, _LOWEST)),
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                rpc_timeout=_RPC,
            )
        except WorkflowAlreadyStartedError:
            return

    async def is_handed(self, job: Handing) -> bool | None:
        """Return whether a job waits; False if unknown to Temporal, None if ended."""
        try:
            found = await self._client.get_workflow_handle(_id(job)).describe(rpc_timeout=_RPC)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True if found.status is WorkflowExecutionStatus.RUNNING else None

    def _named(self, queue: str) -> str:
        return f"{self._prefix}/{queue}"


def _configured(address: str) -> dict[str, Any]:
    try:
        return dict(ClientConfigProfile.load().to_client_connect_config())
    except Exception as error:  # noqa: BLE001 - the library does not document its errors
        # The further lines quote the file, which may have a key.
        reason = f"Temporal's configuration cannot be read: {str(error).strip().splitlines()[0]}"
    raise DurableDatabaseError(database=f"temporal://{address}", reason=reason)


@cache
def _runtime() -> tuple[Runtime, int]:
    # Without the log that it writes to stderr by default.
    return Runtime(telemetry=TelemetryConfig(logging=None)), os.getpid()


def _id(job: Handing) -> str:
    return job.run_id if job.number == 1 else f"{job.run_id}/{job.number}"


async def _made(make: Act, cancel: Act, run_id: str, number: int) -> str:
    # In a separate task: this library cancels it too, which Temporal must not notice.
    task = asyncio.ensure_future(make(run_id, number))
    while not task.done():
        activity.heartbeat()
        try:
            await asyncio.wait({task}, timeout=_BEAT.total_seconds())
        except asyncio.CancelledError:
            # Not if Temporal has given it up: the lock of this process shows the owner.
            if _is_cancelled():
                task.cancel()
    try:
        return task.result()
    except asyncio.CancelledError:
        if _is_cancelled():
            await cancel(run_id, number)
            raise
        raise _unlogged("the process that made it has been stopped") from None
    except CannotMakeNowError as error:
        raise _unlogged(str(error), next_retry_delay=_AGAIN) from None
    except Exception:  # noqa: BLE001 - its message stays in the database
        raise _unlogged(f"`kantan-agents runs show {run_id}` says why", non_retryable=True) from None


def _is_cancelled() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def _unlogged(message: str, **options: Any) -> ApplicationError:
    return ApplicationError(message, type="DurableRun", category=ApplicationErrorCategory.BENIGN, **options)
