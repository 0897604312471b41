"""``Hooks``: runs the user's hooks at their events, and says what they object to.

A hook runs in a process group of its own, outside of the sandbox.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import typer

from kantan_agents.cli.hooks.hook import Event, Hook
from kantan_agents.cli.hooks.read_hooks import PROJECT_VARIABLE, HooksFile, read_hooks
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.core.interception import Middleware, ToolCall, ToolNext, inherited_layers, layers_of
from kantan_agents.middleware.approve.calls import PendingCall
from kantan_agents.tools.facts import facts_of_call

_OF_DESKTOP: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")

_BLOCKS: Final = 2
_DECISION: Final = re.compile(r'"(permissionDecision|decision|continue)"\s*:')
_MOST_BYTES: Final = 30_000
_REST_SECONDS: Final = 0.2


class BlockedByHookError(Exception):
    """A hook has blocked a call; the text says so to the model."""


async def _warn(text: str) -> None:
    typer.echo(f"warning: {one_line(text)}", err=True)


class Hooks(Middleware):
    """The hooks of the user, for all agents of a command.

    Args:
        file: The file that describes them; None for no hooks.
        folder: The project's folder, without links.

    Attributes:
        warn: Shows a line to the person.
        session: Returns the id of the conversation.
    """

    def __init__(self, file: HooksFile | None, folder: str) -> None:
        self.warn: Callable[[str], Awaitable[None]] = _warn
        self.session: Callable[[], str] = partial(str, uuid.uuid4())
        self._file = file
        self._folder = folder
        self._env = {} if file is None else _environment(folder)
        self._early: dict[PendingCall, list[HookOutcome]] = {}

    @classmethod
    def of_user(cls, root: Path | None, *, off: bool = False) -> Hooks:
        """Read the user's hooks, and name each on standard error.

        Args:
            root: The folder of the tools; None for the working folder.
            off: Whether to use none.

        Raises:
            HooksFileError: E199, as ``read_hooks``.
        """
        folder = os.path.realpath(root or ".")
        file = None if off else read_hooks(folder)
        if file is not None:
            typer.echo(f"note: hooks of {one_line(str(file.path))}; --no-hooks turns them off", err=True)
            for hook in file.hooks:
                typer.echo(f"  {one_line(f'{hook.event} {hook.matcher.pattern}')}: {hook.shown}", err=True)
        return cls(file, folder)

    def guard_runs(self) -> None:
        """Apply to every run that starts in this context, also inside of others."""
        if self._file is not None:
            inherited_layers.set(layers_of([self]))

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Let hooks decide when the rules have allowed the call, and show them its result."""
        made: list[tuple[ToolCall, PendingCall]] = []

        async def gate(passed: ToolCall) -> str | None:
            pending = _as_pending(passed)
            refusal = await self._refusal(pending)
            if not refusal:
                made.append((passed, pending))
                return None
            passed.refusal = BlockedByHookError(refusal)
            return refusal

        call._gate = gate
        output = await call_next(call)
        if not made or made[-1][0].error is not None:
            return output
        return await self._after(made[-1][1], output)

    async def ask_early(self, call: PendingCall) -> str:
        """Return why a call is not made, before a person is asked about it; empty if it may be.

        The hooks that have run count when the call is made, and do not run again.
        """
        self._early[call] = outcomes = await self._run("PreToolUse", _about(call), call.names)
        return _refusal_of(outcomes)

    async def _refusal(self, call: PendingCall) -> str:
        known = self._early.pop(call, [])
        others = await self._run("PreToolUse", _about(call), call.names, [one.hook for one in known])
        return _refusal_of([*known, *others])

    async def submit(self, prompt: str) -> tuple[str, str]:
        """Return why a prompt is not sent, empty if it is, and what is added to it."""
        self._early.clear()  # of calls that were not made
        outcomes = await self._run("UserPromptSubmit", {"prompt": prompt})
        objections = [f"{one.hook.shown}: {one.objection}" for one in outcomes if one.objection]
        objections += ["a hook has failed" for one in outcomes if one.fault]
        added = "\n".join(one.stdout for one in outcomes if one.stdout)
        return "; ".join(objections), f"\n\nAdded by a hook of the user:\n{added}" if added else ""

    async def stop(self, answer: str) -> None:
        """Run the hooks for the end of an answer."""
        data = {"stop_hook_active": False, "last_assistant_message": answer}
        for one in await self._run("Stop", data):
            if one.objection:
                await self.warn(f"{one.hook.shown}: {one.objection}")

    async def _after(self, call: PendingCall, output: Any) -> Any:
        data = {**_about(call), "tool_response": output if isinstance(output, str) else str(output)}
        for one in await self._run("PostToolUse", data, call.names):
            if one.objection and isinstance(output, str):
                output += f"\n\nA hook of the user says about this call: {one.objection}"
            elif one.objection:
                await self.warn(f"{one.hook.shown}: {one.objection}")
        return output

    async def _run(
        self, event: Event, data: Mapping[str, Any], names: Sequence[str] = (), done: Sequence[Hook] = ()
    ) -> list[HookOutcome]:
        """Run the hooks of an event at the same time, and warn of those that fail."""
        file, outcomes = self._file, list[HookOutcome]()
        if file is None:
            return outcomes
        common = {"session_id": self.session(), "cwd": self._folder, "hook_event_name": event}
        given = f"{json.dumps({**common, **data})}\n".encode()

        async def run(hook: Hook) -> None:
            outcomes.append(await run_hook(hook, given, str(file.folder), self._env))

        async with anyio.create_task_group() as group:
            for hook in file.hooks:
                if hook.event == event and hook not in done and (not names or hook.concerns(names)):
                    group.start_soon(run, hook)
        for one in outcomes:
            if one.fault:
                await self.warn(f"{event} hook {one.hook.shown} has failed: {one.fault}")
        return outcomes


def _refusal_of(outcomes: Sequence[HookOutcome]) -> str:
    """Return what a model gets instead of the result of a call; empty if no hook blocks it."""
    reasons = [f"A hook of the user blocks this call: {one.objection}" for one in outcomes if one.objection]
    if any(one.fault for one in outcomes):
        reasons.append("A hook of the user that checks this call has failed, so it was not made.")
    return "\n".join(reasons)


def _as_pending(call: ToolCall) -> PendingCall:
    names = tuple(dict.fromkeys((call.name, *facts_of_call(call).names)))
    # The name with that of the server, if it is a tool of one; so a person is asked about it, too.
    shown = next((one for one in names if one.startswith("mcp__") and one.count("__") > 1), call.name)
    return PendingCall(call.call_id, shown, call.arguments, call.agent, names=names)


def _about(call: PendingCall) -> dict[str, Any]:
    about = {"tool_name": call.tool, "tool_input": call.values, "tool_use_id": call.call_id}
    return {**about, "agent_type": call.agent}


def _environment(folder: str) -> dict[str, str]:
    # Imported here: most commands have no hooks.
    from kantan_agents.toolkit.shell.environment import clean_environment
    from kantan_agents.tools.mcp.configuration.own_start import OwnStart

    of_desktop = {name: os.environ[name] for name in _OF_DESKTOP if name in os.environ}
    return {**clean_environment(of_desktop), **OwnStart.of({}, {}).env, PROJECT_VARIABLE: folder}


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
    """Run a hook. If this task is canceled, or the time is up, its processes are killed.

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
    _ignore_broken_input(process)
    written = {process.stdout: b"", process.stderr: b""}
    flood = anyio.CancelScope()

    async def send() -> None:
        # It need not read. Before 4.12, anyio raises the error of the pipe itself.
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
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


def _ignore_broken_input(process: Any) -> None:
    """Ask how the input of a process has ended: Python 3.10 logs an error if nobody does."""
    if sys.version_info < (3, 11):
        process._process._protocol._stdin_closed.add_done_callback(asyncio.Future.exception)


def _outcome(hook: Hook, code: int, stdout: str, stderr: str) -> HookOutcome:
    if code == _BLOCKS:
        return HookOutcome(hook, objection=stderr or "it gave no reason")
    if code:
        return HookOutcome(hook, fault=f"exit code {code}" + (f": {stderr}" if stderr else ""))
    if stdout.startswith("{") and _DECISION.search(stdout):  # not to take a refusal for a permission
        return HookOutcome(hook, fault="it printed a decision as JSON, but only its exit code decides")
    return HookOutcome(hook, stdout)
