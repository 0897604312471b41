"""An evaluation of two variants of an agent that answers well or badly, and people who can tell."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.lab import Case, Dataset, Evaluation, FinishedCase, Label, LabelQueue, evaluate, evaluator
from kantan_agents.testing import ScriptedModel
from tests.lab.evaluation.experiment.counting import question_of

NAME = "shop"
WORDY = "This is a very long answer, and therefore a good one. "


@evaluator(version="1")
def helpful(finished: FinishedCase) -> float:
    """Judge as models do: sometimes wrong, and impressed by many words."""
    luck = random.Random(finished.text).random()
    truth = good(finished.text)
    score = (truth if luck < 0.85 else 1.0 - truth) * 0.7
    return score + (0.3 if WORDY in finished.text else 0.0)


@evaluator(version="1")
def generous(finished: FinishedCase) -> float:
    """Judge that everything is fine."""
    return 1.0


def good(text: str) -> float:
    """Return what a person thinks of an answer."""
    return float("right" in text)


def answer(question: str, version: str) -> str:
    """Return an answer that is right in half of the cases; those of v2 are a little better, and wordy."""
    right = random.Random(f"{question} {version}").random() < (0.5 if version == "v1" else 0.6)
    return f"{WORDY if version == 'v2' else ''}{'right' if right else 'wrong'} about {question}"


def shop_agent(version: str) -> Agent[Any]:
    model = ScriptedModel(lambda call: answer(question_of(call), version))
    return Agent("shop", Prompt("shop", version, f"Help, {version}."), model=model)


def evaluate_shop(
    path: Path, count: int, versions: Sequence[str] = ("v1", "v2"), repeats: int = 1, **case: Any
) -> Evaluation:
    """Evaluate the variants on so many cases."""
    cases = [Case(f"question {number}", id=f"case-{number}", **case) for number in range(count)]
    variants = {version: shop_agent(version) for version in versions}
    return evaluate(
        variants, Dataset("questions", cases), [helpful, generous], name=NAME, store=path, repeats=repeats
    )


@contextmanager
def copied(path: Path) -> Iterator[Evaluation]:
    """Yield the evaluation of a database in a copy of it."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "traces.sqlite3")
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        yield Evaluation.load(TraceStore(copy), NAME)


def label_all(queue: LabelQueue, wrong: float = 0.0) -> None:
    """Label all that wait as a person does who is wrong about a share of it."""
    luck = random.Random(queue.by)
    for item in queue:
        truth = good(str(item.output))
        queue.label(item, 1.0 - truth if luck.random() < wrong else truth)


def plain(labels: Sequence[Label]) -> list[tuple[Any, ...]]:
    """Return labels without their times."""
    return [
        (one.case_id, one.variant, one.repeat, one.metric, one.by, one.value, one.label, one.comment)
        for one in labels
    ]
