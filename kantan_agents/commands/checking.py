"""Arguments held against the schema of the tool, without fetching or stalling anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from kantan_agents.commands.parameters import Parameter
from kantan_agents.commands.problems import Problems

_PATTERN_SIZE = 1_000_000
_PROBLEMS_READ = 200
_MESSAGE = 300


def checker_of(schema: Mapping[str, Any], parameters: Sequence[Parameter]) -> Any:
    """Return a validator of arguments; None if the schema cannot be compiled: the tool checks them itself.

    What has a default need not be given, although the SDK's strict schemas require it.
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


def find_problems(checker: Any, arguments: Mapping[str, Any], problems: Problems) -> None:
    """Add what is wrong with arguments, each mistake with the path of the value it is about.

    Args:
        checker: What ``checker_of`` returned.
        arguments: The arguments.
        problems: What is known already; of those parameters nothing more is said.
    """
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
        if not path and any(f'"{name}"' in found.message for name in known):  # one that could not be read
            continue
        message = found.message if len(found.message) <= _MESSAGE else f"{found.message[: _MESSAGE - 3]}..."
        problems.add(message, ".".join(path) or None)


def _not_fetched(_uri: str) -> NoReturn:
    raise ValueError("nothing is fetched")
