"""Decides about one call in another process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kantan_agents.errors import (
    PARAMETER_ERRORS,
    KantanAgentsError,
    ToolInputError,
    ToolNotAllowedError,
    ToolParameterError,
)
from kantan_agents.tool_rules.arguments import parse_arguments
from kantan_agents.tool_rules.calls import texts_to_match
from kantan_agents.tool_rules.decide import Decision, ToolFacts, decide_received, decide_written
from kantan_agents.tool_rules.rules import ToolRules

LIFETIME_SECONDS: Final = 20
"""A process ends after this time, even without its parent."""

PROGRAM: Final = "from kantan_agents.tool_rules.worker import main; main(parent)"

_PR_SET_PDEATHSIG: Final = 1

_NEEDED: Final = ("kantan_agents", "attr", "jsonschema_rs")
_START: Final = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); parent = int(sys.argv[2]); "


def worker_command(program: str = PROGRAM) -> list[str]:
    """Return the command that runs Python code with ``parent``, this process's id."""
    places = json.dumps(_places())
    return [sys.executable or "", "-I", "-c", _START + program, places, str(os.getpid())]


def _places() -> list[str]:
    """Return this process's module path without the working directory.

    A tool may write to folders with programs. So the folders of the loaded modules come first, and no new
    file can replace a module.
    """
    library = str(Path(__file__).parents[2])
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _NEEDED]
    used = {os.path.abspath(Path(file).parent.parent) for file in files if file}  # noqa: PTH100 - unchanged
    standard = os.path.dirname(os.__file__)  # noqa: PTH120
    used |= {standard, os.path.join(standard, "lib-dynload")}  # noqa: PTH118
    try:
        working = os.getcwd()  # noqa: PTH109
    except OSError:  # it was deleted
        working = ""
    groups: tuple[list[str], ...] = ([], [], [])
    for entry in dict.fromkeys((*map(str, sys.path), library)):
        place = os.path.join(working, entry)  # noqa: PTH118
        if place in used:
            groups[place == working].append(place)  # needed modules are there, such as in a container
        elif entry and place != working:
            groups[2].append(place)
    return [place for group in groups for place in group]


def task_of(
    rules: ToolRules,
    tool: ToolFacts,
    arguments: str | Mapping[str, Any],
    *,
    written: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the JSON task for ``decide``.

    ``written`` are the model's arguments, if ``arguments`` are the received ones.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "rules": rules.about(tool.names, tool.origin),
        "folds_denials": rules.folds_denials,
        "names": tool.names,
        "parameter": tool.parameter,
        "schema": dict(tool.schema),
        "kind": tool.kind,
        "roots": tool.roots,
        "folded": _folded(rules, tool, arguments),
        "canonical": _canonical(tool, arguments),
        "arguments": text,
        "written": written,
        "knows_received": tool.received is not None,
    }


def _folded(rules: ToolRules, tool: ToolFacts, arguments: str | Mapping[str, Any]) -> dict[str, str] | None:
    """Fold here: another process cannot call ``tool.fold``."""
    if tool.fold is None or isinstance(arguments, str):
        return None
    calls = (*rules.denied_calls(tool.names), *rules.allowed_calls(tool.names, tool.origin))
    texts = texts_to_match(arguments.get(tool.parameter)) if calls and tool.parameter is not None else None
    return {text: tool.fold(text) for text in (*(call.argument for call in calls), *(texts or ()))}


def _canonical(tool: ToolFacts, arguments: str | Mapping[str, Any]) -> dict[str, str | None] | None:
    if tool.canonical is None or tool.parameter is None or isinstance(arguments, str):
        return None
    texts = texts_to_match(arguments.get(tool.parameter)) or []
    return {text: tool.canonical(text) for text in ("", *texts)}


def decide(task: dict[str, Any]) -> dict[str, Any]:
    """Return the decision about a call, for a task of ``task_of``.

    Returns:
        ``allowed``, ``key`` and ``entry`` of the decision; for a broken parameter rule also ``keyword``,
        ``param_name`` and ``limit``, for invalid arguments ``reason``.
    """
    folded = task["folded"]
    fold = folded.__getitem__ if folded is not None else None
    # A separate task decides about the arguments that the function receives.
    received = _no_readings if task["knows_received"] else None
    canonical = task["canonical"]
    tool = ToolFacts(
        tuple(task["names"]),
        task["parameter"],
        task["schema"],
        fold=fold,
        received=received,
        kind=task["kind"],
        canonical=None if canonical is None else canonical.__getitem__,
        roots=tuple(task["roots"]),
    )
    rules = ToolRules.parse(task["rules"], folds_denials=task["folds_denials"])
    try:
        arguments = parse_arguments(tool.name, task["arguments"])
        if task["written"] is not None:
            decision = decide_received(rules, tool, arguments, task["written"]) or Decision(allowed=True)
        else:
            decision = decide_written(rules, tool, arguments)
    except ToolInputError as error:
        return {"allowed": False, "key": "params", "entry": tool.name, "reason": error.reason}
    found = {"allowed": decision.allowed, "key": decision.key, "entry": decision.entry}
    broken = decision.error
    if isinstance(broken, ToolParameterError):
        found |= {"keyword": broken.keyword, "param_name": broken.param_name, "limit": broken.limit}
    return found


def _no_readings(_: Mapping[str, Any]) -> list[dict[str, Any]]:
    return []


def decision_of(found: dict[str, Any], tool: ToolFacts) -> Decision:
    """Return the decision that ``decide`` described."""
    return Decision(found["allowed"], found["key"], found["entry"], _error_of(found, tool), awaited=True)


def _error_of(found: dict[str, Any], tool: ToolFacts) -> KantanAgentsError | None:
    if found["allowed"]:
        return None
    if "reason" in found:
        return ToolInputError(tool_name=tool.name, reason=found["reason"])
    if "keyword" not in found:
        return ToolNotAllowedError(tool_name=tool.name)
    # JSON has no tuples, but rules and their errors have.
    limit = tuple(found["limit"]) if isinstance(found["limit"], list) else found["limit"]
    kind = PARAMETER_ERRORS[found["keyword"]]
    return kind(tool_name=tool.name, param_name=found["param_name"], limit=limit)


def main(parent: int) -> None:
    """This process does not outlive ``parent``."""
    _end_with(parent)
    json.dump(decide(json.load(sys.stdin)), sys.stdout)


def _end_with(parent: int) -> None:
    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIFETIME_SECONDS)
    if sys.platform == "linux":
        # A match holds the interpreter lock, so Python code here cannot notice the parent's exit.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit()
