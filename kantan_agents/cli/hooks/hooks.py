"""Runs hooks in separate process groups, outside the sandbox."""

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
    """A hook has blocked a call; the message is for the model."""


async def _warn(text: str) -> None:
    typer.echo(f"warning: {one_line(text)}", err=True)


class Hooks(Middleware):
    """The hooks for all agents of a command."""

    def __init__(self, file: HooksFile | None, folder: str) -> None:
        self.warn: Callable[[str], Awaitable[None]] = _warn
        self.session: Callable[[], str] = partial(str, uuid.uuid4())
        self._file = file
        self._folder = folder
        self._env = {} if file is None else _environment(folder)
        self._early: dict[PendingCall, list[HookOutcome]] = {}

    @classmethod
    def of_user(cls, root: Path | None, *, off: bool = False) -> Hooks:
        """Read the user's hooks, and name each on standard error."""
        folder = os.path.realpath(root or ".")
        file = None if off else read_hooks(folder)
        if file is not None:
            typer.echo(f"note: hooks of {one_line(str(file.path))}; --no-hooks turns them off", err=True)
            for hook in file.hooks:
                typer.echo(f"  {one_line(f'{hook.event} {hook.matcher.pattern}')}: {hook.shown}", err=True)
        return cls(file, folder)

    def guard_runs(self) -> None:
        """Apply to every run in this context."""
        if self._file is not None:
            inherited_layers.set(layers_of([self]))

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Run hooks before and after an allowed call."""
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
        """Return why a call is blocked, or "", before the user is prompted. Hooks do not run twice."""
        self._early[call] = outcomes = await self._run("PreToolUse", _about(call), call.names)
        return _refusal_of(outcomes)

    async def _refusal(self, call: PendingCall) -> str:
        known = self._early.pop(call, [])
        others = await self._run("PreToolUse", _about(call), call.names, [one.hook for one in known])
        return _refusal_of([*known, *others])

    async def submit(self, prompt: str) -> tuple[str, str]:
        """Return why a prompt is blocked, or "", and additions to it."""
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
    reasons = [f"A hook of the user blocks this call: {one.objection}" for one in outcomes if one.objection]
    if any(one.fault for one in outcomes):
        reasons.append("A hook of the user that checks this call has failed, so it was not made.")
    return "\n".join(reasons)


def _as_pending(call: ToolCall) -> PendingCall:
    names = tuple(dict.fromkeys((call.name, *facts_of_call(call).names)))
    # For an MCP tool, the name with its server, as in the prompts to the user.
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
    """Why a hook blocks (``objection``) or failed (``fault``)."""

    hook: Hook
    stdout: str = ""
    objection: str | None = None
    fault: str | None = None


async def run_hook(hook: Hook, given: bytes, cwd: str, env: Mapping[str, str]) -> HookOutcome:
    """Run a hook. Cancellation and the timeout kill its processes."""
    command = ["/bin/sh", "-c", hook.command]
    try:
        with anyio.CancelScope(shield=True):  # a half-started process could never be ended
            process: Any = await anyio.open_process(command, cwd=cwd, env=env, start_new_session=True)
    except (OSError, ValueError) as error:
        return HookOutcome(hook, fault=f"it cannot be started: {error}")
    _ignore_broken_input(process)
    written = {process.stdout: b"", process.stderr: b""}
    flood = anyio.CancelScope()

    async def send() -> None:
        # A hook need not read. Before 4.12, anyio raises the pipe's own error.
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
                # Background processes may still hold its pipes.
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
    """Retrieve the outcome of a process's input: Python 3.10 logs an error otherwise."""
    if sys.version_info < (3, 11):
        process._process._protocol._stdin_closed.add_done_callback(asyncio.Future.exception)


def _outcome(hook: Hook, code: int, stdout: str, stderr: str) -> HookOutcome:
    if code == _BLOCKS:
        return HookOutcome(hook, objection=stderr or "it gave no reason")
    if code:
        return HookOutcome(hook, fault=f"exit code {code}" + (f": {stderr}" if stderr else ""))
    if stdout.startswith("{") and _DECISION.search(stdout):  # a denial must not count as a permission
        return HookOutcome(hook, fault="it printed a decision as JSON, but only its exit code decides")
    return HookOutcome(hook, stdout)
