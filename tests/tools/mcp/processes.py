"""Server processes that tests kill, stop and keep from starting."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from agents.mcp import MCPServerStdio

from tests.programs import Preloaded

SCRIPT = Path(__file__).with_name("crashing_server.py")


class Processes:
    """The processes of one server, which the library may start several times.

    Attributes:
        folder: Where they write their log.
    """

    def __init__(self, folder: Path, preloaded: Preloaded) -> None:
        self.folder = folder
        self._preloaded = preloaded

    def server(self, name: str = "files", **options: Any) -> MCPServerStdio:
        """Return a server object that is not connected."""
        command, *arguments = self._preloaded.command(SCRIPT, self.folder)
        params: Any = {"command": command, "args": arguments}
        return MCPServerStdio(params, name=name, **options)

    @property
    def log(self) -> list[str]:
        """What the processes did."""
        file = self.folder / "log"
        return file.read_text("utf-8").splitlines() if file.exists() else []

    async def logged(self, line: str) -> None:
        """Wait until the processes have written a line."""
        with anyio.fail_after(60):
            while True:
                if line in self.log:
                    return
                await anyio.sleep(0.01)

    @property
    def pids(self) -> list[int]:
        """Ids of all processes that have started, in order."""
        return [int(line.split()[1]) for line in self.log if line.startswith("started")]

    @property
    def calls(self) -> list[str]:
        """The calls that were executed."""
        return [line for line in self.log if line.startswith(("read", "pay"))]

    def break_it(self) -> None:
        """Keep further processes from starting."""
        (self.folder / "broken").touch()

    def repair(self) -> None:
        """Let processes start again."""
        (self.folder / "broken").unlink()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the newest process."""
        os.kill(self.pids[-1], number)


async def kill(processes: Processes, server: Any) -> None:
    """Kill the newest process, and return when its connection knows."""
    processes.signal(signal.SIGKILL)
    with anyio.fail_after(60):
        while True:
            try:
                await server.session.send_ping()
            except Exception:  # noqa: BLE001 - any: the connection is gone
                return
            await anyio.sleep(0.01)


async def all_ended(processes: Processes) -> None:
    """Return when no process is alive any more; a busy machine takes a moment to end one."""
    with anyio.fail_after(60):
        while True:
            if not any(map(is_alive, processes.pids)):
                return
            await anyio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
