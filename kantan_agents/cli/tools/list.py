"""``tools list``: the installed tool providers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import typer

from kantan_agents.cli.terminal.console import suppress_output
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line, printable
from kantan_agents.errors import PREFIX, InvalidToolRulesError
from kantan_agents.tools.providers.cache import collected_providers
from kantan_agents.tools.providers.choice import GROUP, VARIABLE, Declaration
from kantan_agents.tools.providers.entry_points import (
    Collected,
    ProviderFailure,
    ToolProvider,
)

NOT_PERMITTED = f"is not permitted by {VARIABLE}"
NONE_INSTALLED = f"""\
No installed distribution declares a tool provider. Declare one in its pyproject.toml:

[project.entry-points."{GROUP}"]
NAME = "package.module:Provider"
"""


def list_providers(*, as_json: bool) -> None:
    """Print all providers; exit with 1 if one cannot be used."""
    with suppress_output():
        collected = collected_providers()
    typer.echo(json_text(as_data(collected)) if as_json else "\n".join(_lines(collected)))
    if collected.failures:
        raise typer.Exit(EXIT_FAILED)


def as_data(collected: Collected) -> dict[str, Any]:
    """Return all providers as JSON data."""
    return {
        "providers": [
            {
                **_declared(provider.declared),
                "tools": [{"name": tool.name, "description": _first_line(tool)} for tool in provider.tools],
                "rules": provider.rules.to_dict(),
            }
            for provider in collected.providers
        ],
        "failures": [
            {**_declared(failure.declared), "code": failure.error.code, "message": str(failure.error)}
            for failure in collected.failures
        ],
        "not_permitted": [_declared(declared) for declared in collected.withheld],
    }


def _declared(declared: Declaration) -> dict[str, Any]:
    return {"name": declared.name, "distribution": declared.distribution, "version": declared.version}


def _first_line(tool: Any) -> str:
    description = getattr(tool, "description", None)
    lines = description.strip().splitlines() if isinstance(description, str) else []
    return one_line(lines[0]) if lines else ""


def _lines(collected: Collected) -> Iterator[str]:
    if not collected.declared:
        yield NONE_INSTALLED.rstrip()
    parts = [*map(_provider_lines, collected.providers), *map(_failure_lines, collected.failures)]
    parts += [iter([one_line(f"{one.name} ({one}) {NOT_PERMITTED}")]) for one in collected.withheld]
    for index, part in enumerate(parts):
        if index:
            yield ""
        yield from part


def _provider_lines(provider: ToolProvider) -> Iterator[str]:
    yield one_line(f"{provider.name} ({provider.declared})")
    names = [one_line(tool.name) for tool in provider.tools]
    width = max(map(len, names), default=0)
    for name, tool in zip(names, provider.tools, strict=True):
        yield f"  tool   {name.ljust(width)}  {_first_line(tool)}".rstrip()
    # Not one_line(): a shortened rule would be a different rule.
    yield printable(f"  rules  {json.dumps(provider.rules.to_dict(), ensure_ascii=False)}")


def _failure_lines(failure: ProviderFailure) -> Iterator[str]:
    yield one_line(f"{failure.name} ({failure.declared}) cannot be used")
    error = failure.error
    if isinstance(error, InvalidToolRulesError):
        yield from (f"  {PREFIX}[{error.code}] {one_line(problem)}" for problem in error.problems)
    else:
        yield f"  {one_line(str(error))}"
