"""The variants of an evaluation, and its missing runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.agent import Agent
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.experiment.rows import ResultKey, Stored
from kantan_agents.lab.experiment.identity import identity_of, model_of

Variants = Agent[Any] | Iterable[Agent[Any]] | Mapping[str, Agent[Any] | Prompt | str]


@attrs.frozen
class Variant:
    """A named agent; see ``identity_of`` for its hash."""

    name: str
    agent: Agent[Any]
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return its stored fields as JSON data."""
        given = self.agent.instructions
        prompt = given if isinstance(given, Prompt) else None
        return {
            "hash": self.hash,
            "agent": self.agent.name,
            "model": model_of(self.agent),
            "prompt": None if prompt is None else prompt.name,
            "version": None if prompt is None else prompt.version,
        }


async def variants_of(
    given: Variants, agent: Agent[Any] | None, options: Mapping[str, Any]
) -> tuple[Variant, ...]:
    """Return variants with names."""
    if isinstance(given, Mapping):
        named = [(_name(name), _agent(name, one, agent)) for name, one in given.items()]
    else:
        listed = [given] if isinstance(given, Agent) else _listed(given)
        named = [(default_name(one), one) for one in listed]
    if not named:
        raise _invalid("give at least one agent")
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise _invalid(f"two are named {name!r}; name them: {{'a': ..., 'b': ...}}")
    return tuple([Variant(name, one, await identity_of(name, one, options)) for name, one in named])


def default_name(agent: Agent[Any]) -> str:
    """Return the prompt's name and version, or the agent's name."""
    prompt = agent.instructions
    if not isinstance(prompt, Prompt):
        return agent.name
    return f"{prompt.name} {prompt.version}" if prompt.version else prompt.name


def _listed(given: Any) -> list[Agent[Any]]:
    if isinstance(given, (str, Prompt)) or not isinstance(given, Iterable):
        raise _invalid(f"must be an Agent, several, or a dict, not {type(given).__name__}")
    listed = list(given)
    for one in listed:
        if not isinstance(one, Agent):
            raise _invalid(f"must be Agents, or a dict of prompts by name, not {type(one).__name__}")
    return listed


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise _invalid(f"a name must be a text, not {name!r}")
    return name


def _agent(name: str, given: Any, agent: Agent[Any] | None) -> Agent[Any]:
    if isinstance(given, Agent):
        return given
    if not isinstance(given, (Prompt, str)):
        raise _invalid(f"{name!r} must be an Agent or a Prompt, not {type(given).__name__}")
    if agent is None:
        raise InvalidOptionError(option="agent", reason=f"is needed: {name!r} is a prompt without an agent")
    own = agent.instructions
    if isinstance(given, str) and isinstance(own, Prompt):
        given = attrs.evolve(own, text=given, version=name, id=None)
    made: Agent[Any] = agent.clone(instructions=given)
    return made


def _invalid(reason: str) -> InvalidOptionError:
    return InvalidOptionError(option="variants", reason=reason)


@attrs.frozen
class MissingRun:
    """One run of a case, with the evaluators that have not scored it.

    ``replaces`` marks a finished result that cannot be scored without its content.
    """

    case: Case
    variant: Variant
    repeat: int
    row: int | None
    evaluators: Sequence[Evaluator]
    replaces: bool = False


def find_missing_runs(
    cases: Sequence[Case],
    variants: Sequence[Variant],
    repeats: int,
    evaluators: Sequence[Evaluator],
    stored: Stored,
) -> Iterator[MissingRun]:
    """Yield the missing runs, and runs without scores of all evaluators.

    Variants alternate, so that a slow hour of a provider affects all of them. The first variant of each case
    is random, as concurrent runs end one after the other.
    """
    done: list[tuple[Evaluator, Collection[int]]] = [
        (one, stored.scored.get((one.name, one.version), ())) for one in evaluators
    ]
    for repeat in range(repeats):
        for case in cases:
            for variant in _in_turn(variants, case, repeat):
                row = stored.rows.get(key_of(case, variant, repeat))
                if row is None:
                    yield MissingRun(case, variant, repeat, None, evaluators)
                    continue
                left = [one for one, rows in done if row not in rows]
                if left and row in stored.withheld:
                    yield MissingRun(case, variant, repeat, None, evaluators, replaces=True)
                elif left:
                    yield MissingRun(case, variant, repeat, row, left)


def _in_turn(variants: Sequence[Variant], case: Case, repeat: int) -> Sequence[Variant]:
    # By the hash of the case, so that the order is reproducible.
    first = (int(case.hash, 16) + repeat) % len(variants)
    return [*variants[first:], *variants[:first]]


def key_of(case: Case, variant: Variant, repeat: int) -> ResultKey:
    """Return the identity of a run."""
    return case.id, case.hash, variant.hash, repeat
