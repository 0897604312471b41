"""Runs one hook in a process group of its own, outside of the sandbox, and reads what it says."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import anyio
import attrs

from kantan_agents.cli.hooks.hook import Hook

_BLOCKS: Final = 2
_DECISION: Final = re.compile(r'"(permissionDecision|decision|continue)"\s*:')
_MOST_BYTES: Final = 30_000
_REST_SECONDS: Final = 0.2


@attrs.frozen
class HookOutcome:
    """How a hook has ended.

    Attributes:
        hook: The hook.
        stdout: What it wrote to standard output.
        objection: Why it blocks; None if it does not.
        fault: Why it counts as failed; None if it has not failed.
    """

    hook: Hook
    stdout: str = ""
    objection: str | None = None
    fault: str | None = None


async def run_hook(hook: Hook, given: bytes, cwd: str, env: Mapping[str, str]) -> HookOutcome:
    """Run a hook. If this task is cancelled, or the time is up, its processes are killed.

    Args:
        hook: The hook.
        given: What it reads from standard input.
        cwd: Where it starts.
        env: Its environment.
    """
    command = ["/bin/sh", "-c", hook.command]
    try:
        with anyio.CancelScope(shield=True):  # nothing could end a process that was started half
            process: Any = await anyio.open_process(command, cwd=cwd, env=env, start_new_session=True)
    except (OSError, ValueError) as error:
        return HookOutcome(hook, fault=f"it cannot be started: {error}")
    written = {process.stdout: b"", process.stderr: b""}
    flood = anyio.CancelScope()

    async def send() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it need not read
            await process.stdin.send(given)
            await process.stdin.aclose()

    async def receive(stream: Any) -> None:
        async for piece in stream:
            written[stream] += piece
            if len(written[stream]) > _MOST_BYTES:
                flood.cancel()

    try:
        with anyio.move_on_after(hook.seconds) as limit, flood:
            async with anyio.create_task_group() as group:
                group.start_soon(send)
                for stream in written:
                    group.start_soon(receive, stream)
                await process.wait()
                # What it has left in the background may have its pipes.
                group.cancel_scope.deadline = anyio.current_time() + _REST_SECONDS
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if flood.cancel_called:
        return HookOutcome(hook, fault=f"it wrote more than {_MOST_BYTES} bytes")
    if limit.cancel_called:
        return HookOutcome(hook, fault=f"it took more than {hook.seconds:g} seconds")
    return _outcome(
        hook, process.returncode, *(text.decode("utf-8", "replace").strip() for text in written.values())
    )


def _outcome(hook: Hook, code: int, stdout: str, stderr: str) -> HookOutcome:
    if code == _BLOCKS:
        return HookOutcome(hook, objection=stderr or "it gave no reason")
    if code:
        return HookOutcome(hook, fault=f"exit code {code}" + (f": {stderr}" if stderr else ""))
    if stdout.startswith("{") and _DECISION.search(stdout):  # not to take a refusal for a permission
        return HookOutcome(hook, fault="it printed a decision as JSON, but only its exit code decides")
    return HookOutcome(hook, stdout)
