"""Reads the evaluators of ``eval run``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.agent import Agent
from kantan_agents.cli.terminal.inputs import read_text
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import FileArgumentError, InvalidOptionError
from kantan_agents.lab.evaluation import Evaluator, evaluator, evaluators
from kantan_agents.lab.evaluation.evaluators import as_evaluator, judges
from kantan_agents.support.nearest import nearest

_OPTION: Final = "--evaluator"
_JUDGE_OPTION: Final = "--judge-model"
_JUDGED: Final = "judged"
_NAMED: Final = re.compile(r"(?P<metric>[\w.-]+)=(?P<what>.+)", re.DOTALL)


@attrs.frozen
class _Kind:
    """A ready-made evaluator, created from the ``value`` after the colon or by ``default``."""

    make: Callable[[str], Evaluator] | None
    value: str | None
    default: Callable[[], Evaluator] | None = None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InvalidOptionError(option=_OPTION, reason=f"{text!r} is not a number") from error


def _schema(path: str) -> Evaluator:
    text = read_text(Path(path))
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileArgumentError(path=path, reason=f"it is not JSON ({error})") from error
    return evaluators.valid(schema)


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")]


_KINDS: Final = {
    "exact": _Kind(None, None, evaluators.exact),
    "contains": _Kind(evaluators.contains, "a text", evaluators.contains),
    "matches": _Kind(evaluators.matches, "a regular expression"),
    "json_fields": _Kind(
        lambda text: evaluators.json_fields(*_listed(text)), "paths", evaluators.json_fields
    ),
    "valid": _Kind(_schema, "the file of a JSON Schema"),
    "used_tools": _Kind(lambda text: evaluators.used_tools(*_listed(text)), "names of tools"),
    "not_used": _Kind(lambda text: evaluators.not_used(*_listed(text)), "names of tools"),
    "latency": _Kind(lambda text: evaluators.latency(_number(text)), "seconds", evaluators.latency),
    "tokens": _Kind(lambda text: evaluators.tokens(_number(text)), "a number", evaluators.tokens),
    "cost": _Kind(lambda text: evaluators.cost(_number(text)), "an amount", evaluators.cost),
    "normalized": _Kind(None, None, evaluators.normalized),
    "rouge_l": _Kind(None, None, evaluators.rouge_l),
    "chrf": _Kind(None, None, evaluators.chrf),
    "similar": _Kind(evaluators.similar, "the name of an embedding model"),
}


def read_evaluators(
    entries: Sequence[str], agent: Agent[Any], judge_model: str | None = None
) -> list[Evaluator]:
    """Return the evaluators that ``[METRIC=]WHAT`` describes."""
    asking = _judges(agent, judge_model)
    kinds = {**_KINDS, **asking}
    found: dict[str, Evaluator] = {}
    is_judged = False
    for entry in entries:
        named = _NAMED.fullmatch(entry)
        metric, what = (None, entry) if named is None else (named["metric"], named["what"])
        one = _read(what, kinds)
        is_judged = is_judged or what.partition(":")[0] in asking
        one = one if metric is None else attrs.evolve(one, name=metric)
        if one.name in found:
            reason = f"two are named {one.name!r}; name one of them, such as other={what}"
            raise InvalidOptionError(option=_OPTION, reason=reason)
        found[one.name] = one
    if judge_model is not None and not is_judged:
        raise InvalidOptionError(
            option=_JUDGE_OPTION,
            reason=f"is for {_OPTION} {_JUDGED}; add it, or {', '.join(judges.CRITERIA)}",
        )
    return list(found.values())


def _judges(agent: Agent[Any], model: str | None) -> Mapping[str, _Kind]:
    """Return the judges by name; judges of sources take the names of tools."""
    own = agent.model if model is None else model

    def kind(one: judges.Criterion) -> _Kind:
        options: dict[str, Any] = {"tools": agent.tools} if "tools" in one.shows else {}
        if "sources" not in one.shows:
            return _Kind(None, None, lambda: one(model=own, **options))
        return _Kind(
            lambda text: one(model=own, sources=_listed(text)), "names of tools", lambda: one(model=own)
        )

    found = {name: kind(one) for name, one in judges.CRITERIA.items()}
    return {**found, _JUDGED: _Kind(None, None, lambda: _judged(agent, model))}


def _judged(agent: Agent[Any], model: str | None) -> Evaluator:
    prompt = agent.instructions
    if not isinstance(prompt, Prompt):
        reason = (
            f"{_JUDGED} judges by the agent's prompt: give {agent.name!r} a Prompt with a name and a version"
        )
        raise InvalidOptionError(option=_OPTION, reason=reason)
    return evaluators.judged(prompt, model=agent.model if model is None else model)


def _read(what: str, kinds: Mapping[str, _Kind]) -> Evaluator:
    name, mark, value = what.partition(":")
    kind = kinds.get(name)
    if kind is None:
        return _from_module(what) if mark else _unknown(name, kinds)
    if not value:
        if kind.default is None:
            reason = f"{name} needs {kind.value}, such as {name}:..."
            raise InvalidOptionError(option=_OPTION, reason=reason)
        return kind.default()
    if kind.make is None:
        raise InvalidOptionError(option=_OPTION, reason=f"{name} takes no value, and {what!r} has one")
    try:
        return kind.make(value)
    except InvalidOptionError as error:
        # The error names the parameter of a Python function, which the user did not write.
        raise InvalidOptionError(option=_OPTION, reason=f"{what}: {error.reason}") from error


def _from_module(what: str) -> Evaluator:
    found = load_object(what, _OPTION, "app.checks:polite")
    try:
        return as_evaluator(found) if isinstance(found, Evaluator) else evaluator(found)
    except InvalidOptionError as error:
        raise InvalidOptionError(option=_OPTION, reason=f"{what}: {error.reason}") from error


def _unknown(name: str, kinds: Mapping[str, _Kind]) -> Evaluator:
    near = nearest(name, kinds)
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(kinds)}, and MODULE:NAME"
    raise InvalidOptionError(option=_OPTION, reason=f"there is no {name!r}; {hint}")
