"""Serves the page's application with uvicorn: ``served.py SCRIPT OPTIONS``.

Additional endpoints let a test observe the process.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import Request

from kantan_agents import Event, subscribe


def load(script: str) -> Any:
    """Import the script of the page and return the module."""
    spec = importlib.util.spec_from_file_location("service", script)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["service"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def open_sockets() -> int:
    """Return the number of sockets that this process has open."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += str(descriptor.readlink()).startswith("socket:")
        except FileNotFoundError:  # the descriptor that listed the others
            continue
    return count


def add_endpoints(app: Any) -> None:
    """Add the endpoints with which a test reads the state and the events."""
    observed: dict[str, list[tuple[int, str]]] = defaultdict(list)
    kinds: Counter[str] = Counter()

    def observe(event: Event) -> None:
        kinds[event.type] += 1
        observed[event.run_id].append((event.sequence, event.type))

    subscribe(observe)

    async def state() -> dict[str, Any]:
        own = asyncio.current_task()
        names = [_name(task) for task in asyncio.all_tasks() if task is not own]
        return {"tasks": sorted(names), "sockets": open_sockets(), "kinds": kinds}

    async def events(run_id: str) -> list[tuple[int, str]]:
        return observed[run_id]

    app.get("/-/state")(state)
    app.get("/-/events/{run_id}")(events)


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", repr(task))


def refuse_mallory(service: Any) -> None:
    """Give one customer's context invalid tool rules, so that the run fails with E18."""

    async def context(request: Request) -> dict[str, Any]:
        customer = request.headers["x-customer"]
        return {"customer": customer} | ({"tool_rules": 1} if customer == "mallory" else {})

    service.app.dependency_overrides[service.request_context] = context


async def pass_on(request: Any, call_next: Any) -> Any:
    """Middleware that passes each request on unchanged."""
    return await call_next(request)


def main(script: str, options: dict[str, Any]) -> None:
    """Serve until a signal arrives; the first line of the output is the port."""
    service = load(script)
    service.HEARTBEAT = options.get("heartbeat", service.HEARTBEAT)
    if "runs" in options:
        service.places = asyncio.BoundedSemaphore(options["runs"])
    add_endpoints(service.app)
    refuse_mallory(service)
    if options.get("middleware"):
        service.app.middleware("http")(pass_on)  # Starlette's BaseHTTPMiddleware

    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    if "send_buffer" in options:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options["send_buffer"])
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        service.app,
        log_level="warning",
        loop="asyncio",
        http="h11",
        timeout_graceful_shutdown=options.get("grace"),
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
