"""``improvement_of``: the result of a search, its files, and code to deploy it."""

from __future__ import annotations

import ast
import json
import shlex
from pathlib import Path

import attrs

from kantan_agents.core.prompt import Prompt
from kantan_agents.lab.improve.arguments import ImproveArguments
from kantan_agents.lab.improve.budget import SearchSpending
from kantan_agents.lab.improve.candidate import Candidate
from kantan_agents.lab.improve.folder import Folder
from kantan_agents.lab.improve.improvement import Improvement
from kantan_agents.lab.improve.lineage import draw_lineage
from kantan_agents.lab.improve.parts import Parts
from kantan_agents.lab.improve.sealed_test import HeldOutResult
from kantan_agents.lab.improve.search import PromptSearch
from kantan_agents.lab.improve.target import ImproveTarget
from kantan_agents.traces.capture.diff_text import text_diff


def improvement_of(
    asked: ImproveArguments,
    target: ImproveTarget,
    parts: Parts,
    search: PromptSearch,
    spending: SearchSpending,
    folder: Folder,
    new: Prompt | None,
    tested: HeldOutResult | None,
) -> Improvement:
    """Return the result of a finished search."""
    agent, old, best = asked.agent, target.old, search.best
    won = new if tested is not None and tested.reason is None else None
    reason = _why_none(search, asked.search.perfect) if tested is None else tested.reason
    diff = ""
    if new is not None:
        diff = text_diff(old.text, new.text, f"{old.name} {old.version}", f"{old.name} {new.version}")
    names = ["lineage", "summary"] + ["diff"] * (new is not None) + ["prompt"] * (won is not None)
    files = folder.places(names)
    return Improvement(
        agent.name,
        old,
        won,
        None if won is not None else reason,
        diff,
        None if tested is None else tested.comparison,
        None if tested is None else tested.opening,
        tuple(_ended(one, search.old, best, tested) for one in search.candidates),
        {"train": len(parts.train), "validation": len(parts.validation), "test": len(parts.test)},
        parts.skipped,
        search.round,
        search.is_out_of_budget,
        spending.tokens,
        spending.cost if asked.runs.prices else None,
        folder.path,
        files,
        () if won is None else rollout_code(old, agent.instructions, won, files["prompt"]),
        "" if won is None else rollout_command(agent.name, asked.store.path),
    )


def _ended(one: Candidate, old: Candidate, best: Candidate | None, tested: HeldOutResult | None) -> Candidate:
    """Return a candidate with its final status and reason."""
    if best is not None and tested is not None and one.number == best.number:
        return attrs.evolve(one, status="winner" if tested.reason is None else "tested", reason=tested.reason)
    if one.status == "rejected":
        return attrs.evolve(one, reason=_why_rejected(one))
    if one.status != "behind":
        return one
    rival = "the old version" if best is None else f"candidate {best.number}"
    score, its_own = [0.0 if each is None else each for each in (one.score, (best or old).score)]
    reason = f"{rival} has {its_own:.3g} on the validation cases, and it has {score:.3g}"
    return attrs.evolve(one, reason=reason)


def _why_rejected(one: Candidate) -> str:
    if one.sample is None:
        return "the search ended before it was tried"
    before = 0.0 if one.parent_sample is None else one.parent_sample
    if one.sample > before:
        return "the search ended before it was validated"
    return (
        f"it has {one.sample:.3g} on the cases that it was made from, no more than version {one.parent} with "
        f"{before:.3g}"
    )


def _why_none(search: PromptSearch, perfect: float) -> str:
    old = search.old.score
    tried, asked = len(search.candidates) - 1, len(search.proposals)
    if old is None:
        reason = "the budget does not suffice for the old version on the validation cases"
    elif old >= perfect:
        reason = "the old version has the best score on every validation case already"
    else:
        reason = f"none of {tried} candidates may win and does better than the old version ({old:.3g})"
    if tried < asked:
        reason += f"; {asked - tried} of {asked} replies of the reflection model were not a new version"
    against = [one for one in search.candidates[1:] if one.status == "not eligible"]
    if against:
        reason += f"; candidate {against[-1].number} is not eligible, because {against[-1].reason}"
    if search.is_out_of_budget:
        reason += "; the budget is used up, and with a higher limit the search goes on"
    return reason


def contents_of(improvement: Improvement) -> dict[str, bytes]:
    """Return the result files, by kind."""
    old = improvement.old
    title = f"Candidates for {old.name}, made from {old.version}"
    texts = {
        "lineage": draw_lineage(title, improvement.candidates),
        "summary": json.dumps(improvement.to_dict(), indent=2, sort_keys=True, default=str) + "\n",
    }
    if improvement.diff:
        texts["diff"] = f"{improvement.diff}\n"
    if improvement.new is not None:
        texts["prompt"] = improvement.new.text
    return {what: text.encode("utf-8", "backslashreplace") for what, text in texts.items()}


def rollout_code(old: Prompt, own: object, new: Prompt, file: Path) -> tuple[str, str]:
    """Return Python for the new version and a rollout; values are literals, so nothing in them is code."""
    shares = f"shares={{{old.version!r}: 1, {new.version!r}: 0}}, ramp=(0, .1, .5, 1)"
    control = "agent.instructions" if old == own else _prompt(old, repr(old.text))
    versions = f"{{{old.version!r}: {control}, {new.version!r}: new}}"
    # Not read_text, which would change line endings.
    return (
        f"new = {_prompt(new, f'Path({str(file)!r}).read_bytes().decode()')}",
        f"rollout = Rollout({versions}, {shares}, unit='user.id', metric='rubric')",
    )


def _prompt(prompt: Prompt, text: str) -> str:
    options = [f"{name}=True" for name in ("strict", "literal") if getattr(prompt, name)]
    meta = None if prompt.meta is None else repr(dict(prompt.meta))
    if meta is not None and _is_literal(meta):
        options.insert(0, f"meta={meta}")
    return f"Prompt({', '.join([repr(prompt.name), repr(prompt.version), text, *options])})"


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def rollout_command(agent: str, database: Path) -> str:
    """Return the command that starts the rollout."""
    return shlex.join(["kantan-agents", "rollout", "promote", agent, "--db", str(database)])
