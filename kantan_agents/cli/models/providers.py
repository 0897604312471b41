"""``models check`` without a name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import attrs
import httpx
import typer
from rich.text import Text

from kantan_agents.agent.running.portal import background_loop
from kantan_agents.cli.terminal.console import ACCENT, GOOD, LABEL, NOTICE, wide_terminal
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.errors import ModelNotConfiguredError
from kantan_agents.models.configuration import PROVIDERS, Variables, check_url, url_of

_SECONDS: Final = 2.0
_LONGEST_BODY: Final = 1 << 20
_SHOWN: Final = 3
_USUAL_PORTS: Final = {"ollama": (11434,), "lmstudio": (1234,), "compat": (8080, 8000)}
"""The default ports; ``compat`` means llama.cpp and vLLM."""
REFUSED_KEY: Final = (401, 403)
KEY_HINT: Final = "KANTAN_LLM_API_KEY must be the key with which this server was started"
_COLUMNS: Final = (Column("names"), Column("variable"), Column("state"))


@attrs.define
class _Server:
    """A server; ``is_reachable`` is None if it was not contacted, because it is elsewhere."""

    url: str
    is_configured: bool
    is_reachable: bool | None = None
    models: Sequence[str] = ()
    problem: str = ""


@attrs.frozen
class _Provider:
    name: str
    variables: Variables
    servers: list[_Server]

    @property
    def is_set(self) -> bool:
        return _is_set(self.variables.deciding)


def list_providers(*, as_json: bool) -> None:
    """Print usable providers; contact only this machine, and print no key."""
    providers = [_Provider(name, variables, _servers(name, variables)) for name, variables in PROVIDERS]
    background_loop.run(lambda: _ask([server for one in providers for server in one.servers]))
    if as_json:
        typer.echo(json_text({"providers": [_data(one) for one in providers]}))
        return
    console = wide_terminal()
    print_lines(console, row_lines(_COLUMNS, [_row(one) for one in providers], line_width(console)))
    print_lines(console, _notes(providers))


def _is_set(variable: str | None) -> bool:
    return bool(variable and os.environ.get(variable))


def _servers(name: str, variables: Variables) -> list[_Server]:
    if not variables.needs_url:
        return []
    url = url_of(name)
    if url is not None:
        return [_Server(url, is_configured=True, problem=_mistake(name, variables.deciding, url))]
    return [
        _Server(f"http://127.0.0.1:{port}/v1", is_configured=False) for port in _USUAL_PORTS.get(name, ())
    ]


def _mistake(name: str, variable: str, url: str) -> str:
    try:
        check_url(name, variable, url)
    except ModelNotConfiguredError as error:
        return error.reason
    return ""


def _is_here(url: str) -> bool:
    """Return whether a URL can only lead to this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


async def _ask(servers: Sequence[_Server]) -> None:
    async with anyio.create_task_group() as tasks:
        for server in servers:
            if _is_here(server.url) and not server.problem:
                tasks.start_soon(_ask_one, server)


async def _ask_one(server: _Server) -> None:
    """List a server's models; only a URL that the user has set gets the user's key."""
    key = os.environ.get("KANTAN_LLM_API_KEY") if server.is_configured else None
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    server.is_reachable = False
    try:
        with anyio.fail_after(_SECONDS):
            # Neither a proxy nor a redirect may lead to another machine.
            async with (
                httpx.AsyncClient(trust_env=False, follow_redirects=False) as client,
                client.stream("GET", f"{server.url}/models", headers=headers) as response,
            ):
                server.is_reachable = True
                body = bytearray()
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > _LONGEST_BODY:
                        break
        server.models = _names(httpx.Response(response.status_code, content=bytes(body)))
        if not server.models:
            hint = f"; {KEY_HINT}" if response.status_code in REFUSED_KEY else ""
            server.problem = f"HTTP {response.status_code}, and no list of models{hint}"
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError):
        server.is_reachable, server.problem = False, "does not answer"


def _names(response: httpx.Response) -> list[str]:
    try:
        listed = response.json().get("data")
    except (AttributeError, ValueError, RecursionError):
        return []
    names = (one.get("id") for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()
    return [name for name in names if isinstance(name, str)]


def _row(provider: _Provider) -> list[Text]:
    state = cell("set", GOOD) if provider.is_set else cell("not set", LABEL)
    return [cell(f"{provider.name}/...", ACCENT), cell(provider.variables.deciding), state]


def _notes(providers: Sequence[_Provider]) -> Iterator[Text]:
    for provider in providers:
        for server in provider.servers:
            said = _said(provider, server)
            if said:
                yield cell(f"{provider.name}: {said}", GOOD if server.models else NOTICE)


def _said(provider: _Provider, server: _Server) -> str:
    url = _shown(server.url)
    if server.is_reachable:
        names = ", ".join(f"{provider.name}/{name}" for name in server.models[:_SHOWN])
        more = len(server.models) - _SHOWN
        found = f"{names} and {more} more" if more > 0 else names or server.problem
        hint = "" if server.is_configured else f"; export {provider.variables.url}={url}"
        return f"{url} answers: {found}{hint}"
    if not server.is_configured:
        return ""
    if server.is_reachable is None:
        return server.problem or f"{url} is not on this machine, and was not contacted"
    return f"{url} {server.problem}"


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _data(provider: _Provider) -> dict[str, Any]:
    names = (provider.variables.key, provider.variables.url)
    return {
        "provider": provider.name,
        "is_set": provider.is_set,
        "variables": {name: _is_set(name) for name in names if name is not None},
        "servers": [
            {
                "url": _shown(server.url),
                "is_configured": server.is_configured,
                "is_reachable": server.is_reachable,
                "models": list(server.models),
            }
            for server in provider.servers
        ],
    }
