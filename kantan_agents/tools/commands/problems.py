"""All problems of one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from kantan_agents.tools.commands.parameters import Parameter

_MAX_SHOWN = 20
_PATTERN_SIZE = 1_000_000
_PROBLEMS_READ = 200
_MESSAGE = 300


class CommandProblems:
    """Collects problems and their parameters."""

    def __init__(self) -> None:
        self.about: set[str] = set()
        self._texts: list[str] = []
        self._count = 0

    def add(self, text: str, about: str | None = None) -> None:
        """Add a problem of ``about``: a parameter, or the path of a value."""
        self._count += 1
        if about is not None:
            self.about.add(about)
        if len(self._texts) < _MAX_SHOWN:
            self._texts.append(text if about is None else f"{about}: {text}")

    def texts(self) -> list[str]:
        """Return the first 20 problems."""
        left = self._count - len(self._texts)
        return [*self._texts, f"and {left} more"] if left else list(self._texts)

    def __bool__(self) -> bool:
        return self._count > 0


def compile_checker(schema: Mapping[str, Any], parameters: Sequence[Parameter]) -> Any:
    """Return a validator, None for a bad schema.

    A parameter with a default is optional, although the SDK's strict schemas require it.
    """
    relaxed = {
        **schema,
        "required": [parameter.name for parameter in parameters if parameter.is_required],
    }
    try:
        return jsonschema_rs.validator_for(
            relaxed,
            mask="Input",
            retriever=_not_fetched,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=_PATTERN_SIZE),
        )
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def find_problems(checker: Any, arguments: Mapping[str, Any], problems: CommandProblems) -> None:
    """Add the checker's problems; a parameter with a problem gets no other."""
    if checker is None:
        return
    known = set(problems.about)
    try:
        errors = list(islice(checker.iter_errors(dict(arguments)), _PROBLEMS_READ))
    except ValueError as error:
        problems.add(f"the arguments cannot be checked: {error}")
        return
    for found in errors:
        path = [str(step) for step in found.instance_path]
        if path and path[0] in known:
            continue
        if not path and any(f'"{name}"' in found.message for name in known):  # its value could not be parsed
            continue
        message = found.message if len(found.message) <= _MESSAGE else f"{found.message[: _MESSAGE - 3]}..."
        problems.add(message, ".".join(path) or None)


def _not_fetched(_uri: str) -> NoReturn:
    raise ValueError("remote references are not fetched")
