"""Reads the changes of ``replay cohort``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kantan_agents.cli.terminal.inputs import text_or_file
from kantan_agents.errors import InvalidOptionError

if TYPE_CHECKING:
    from kantan_agents.lab.replay import Change

_FORMS: Final = (
    "model=NAME, prompt=TEXT, prompt=@FILE, settings.NAME=VALUE, rules=@FILE, tool.NAME.description=TEXT or "
    "tool.NAME.parameters=@FILE"
)
_OF_TOOLS: Final = ("description", "parameters")


def read_changes(entries: Sequence[str]) -> list[Change]:
    """Return the changes that ``WHAT=VALUE`` describes."""
    from kantan_agents.lab.replay import Change

    changes: list[Change] = []
    tools: dict[str, dict[str, Any]] = {}
    for entry in entries:
        what, mark, value = entry.partition("=")
        first, _, rest = what.strip().partition(".")
        if not mark or not value:
            _reject(entry)
        if (first, rest) == ("model", ""):
            changes.append(Change.model(value))
        elif (first, rest) == ("prompt", ""):
            changes.append(Change.prompt(Path(value[1:]) if value.startswith("@") else value))
        elif (first, rest) == ("rules", ""):
            changes.append(Change.rules(_json(text_or_file("--change", value), entry)))
        elif first == "settings" and rest:
            changes.append(Change.settings(**{rest: _scalar(value)}))
        elif first == "tool" and rest.rpartition(".")[2] in _OF_TOOLS and rest.rpartition(".")[0]:
            name, _, part = rest.rpartition(".")
            text = text_or_file("--change", value)
            tools.setdefault(name, {})[part] = _json(text, entry) if part == "parameters" else text
        else:
            _reject(entry)
    return [*changes, *(Change.tool(name, **parts) for name, parts in tools.items())]


def _json(text: str, entry: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidOptionError(option="--change", reason=f"{entry!r} is not JSON: {error}") from error


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _reject(entry: str) -> NoReturn:
    raise InvalidOptionError(option="--change", reason=f"must be {_FORMS}, not {entry!r}")
