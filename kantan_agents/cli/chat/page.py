"""Shows recorded answers on the page of ``traces open``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from kantan_agents.cli.terminal.database import DATABASE_VARIABLE
from kantan_agents.errors import ChatCommandError
from kantan_agents.tool_rules.worker import worker_command
from kantan_agents.traces.backend import backend_of

_PROGRAM: Final = "kantan-agents"
_PAGE: Final = f"sys.argv[:] = [{_PROGRAM!r}, *sys.argv[3:]]; from kantan_agents.cli.app import main; main()"
_PATIENCE: Final = 30.0


class ChatPage:
    """Opens the trace database's page; ``flush`` blocks."""

    def __init__(self, database: Path, flush: Callable[[], object]) -> None:
        self._database = backend_of(database)
        self._flush = flush
        self._processes: list[Process] = []

    def command(self, trace_id: str) -> list[str]:
        """Return the command that opens a run's page."""
        # A displayed URL lacks its password and would not work in a command.
        place = [] if self._database.file is None else ["--db", str(self._database.file)]
        return [_PROGRAM, "traces", "open", trace_id, *place]

    async def open(self, trace_id: str) -> str:
        """Open a run's page and return its address; E196 on failure."""
        await anyio.to_thread.run_sync(self._flush)
        # In the environment, because all users of the machine can read the command line.
        environment = {**os.environ, DATABASE_VARIABLE: self._database.text}
        process = await anyio.open_process(
            # Not with -m, which would prefer a module of this name in the working directory.
            [*worker_command(_PAGE), "traces", "open", trace_id],
            env=environment,
            stdin=None,
            start_new_session=True,  # Ctrl-C in the chat does not concern it
        )
        self._processes.append(process)
        address = ""
        with anyio.move_on_after(_PATIENCE):
            if process.stdout is not None:
                async for piece in TextReceiveStream(process.stdout):
                    address += piece
                    if "\n" in address:
                        break
        if "\n" not in address:
            raise ChatCommandError(command="/trace open", reason="the page could not be served")
        return address.strip()

    async def close(self) -> None:
        """Stop all open pages."""
        with anyio.CancelScope(shield=True):
            for process in self._processes:
                if process.returncode is None:
                    process.terminate()
                await process.wait()
                await process.aclose()
        self._processes.clear()
