"""``eval label``: asks a reviewer about results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.console import Console

from kantan_agents.cli.terminal.console import LABEL, NOTICE, STRONG, pairs, plain, terminal
from kantan_agents.cli.terminal.inputs import STDIN
from kantan_agents.cli.terminal.plain import json_text, one_line, whole
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import FileArgumentError, InvalidOptionError
from kantan_agents.traces.input_items import item_text

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import Evaluation, LabelItem, LabelledItem, LabelQueue


@attrs.frozen
class LabelArguments:
    """The arguments; None means all."""

    path: Path
    evaluation: str
    metric: str
    by: str
    sample: int | None
    seed: int
    scale: str
    variants: tuple[str, ...] | None


def label_results(asked: LabelArguments, *, as_json: bool) -> None:
    """Ask a reviewer about results."""
    store = open_store(asked.path)
    from kantan_agents.cli.eval.find_variants import find_evaluation
    from kantan_agents.lab.evaluation import LabelQueue, LabelScale

    scale = LabelScale.of(asked.scale, option="--scale")
    evaluation = find_evaluation(store, asked.evaluation)
    queue = LabelQueue.of(
        evaluation,
        asked.metric,
        by=asked.by,
        sample=asked.sample,
        seed=asked.seed,
        variants=asked.variants,
        scale=scale,
    )
    console = terminal(stderr=as_json)
    _introduce(console, evaluation, queue)
    try:
        _Asker(queue, console).ask_all()
    except KeyboardInterrupt:
        kept = counted(queue.labelled, "label")
        typer.echo(f"\ninterrupted: {kept} kept; the same command goes on with the others", err=True)
        raise
    _conclude(console, evaluation, queue, as_json=as_json)


def _introduce(console: Console, evaluation: Evaluation, queue: LabelQueue) -> None:
    known = evaluation.metrics
    if known and queue.metric not in known:
        text = f"no evaluator has scores of {queue.metric}; there are {', '.join(known)}"
        console.print(plain(text, NOTICE))
    if not len(queue):
        console.print(plain(f"Nothing to label for {queue.by}.", LABEL))


def _conclude(console: Console, evaluation: Evaluation, queue: LabelQueue, *, as_json: bool) -> None:
    from kantan_agents.lab.evaluation import agreement

    found = agreement(evaluation, queue.metric)
    if as_json:
        summary: dict[str, Any] = {
            "evaluation": evaluation.name,
            "metric": queue.metric,
            "by": queue.by,
            "labelled": queue.labelled,
            "skipped": queue.skipped,
            "left": len(queue),
            "probability": queue.probability,
            "agreement": found.to_dict(),
        }
        typer.echo(json_text(summary))
        return
    parts = [counted(queue.labelled, "label"), f"{len(queue):,} left"]
    if queue.skipped:
        parts.insert(1, f"{queue.skipped:,} skipped")
    console.print(plain(", ".join(parts)))
    console.print(plain(found.text))


class _Asker:
    def __init__(self, queue: LabelQueue, console: Console) -> None:
        self._queue = queue
        self._console = console
        self._comment: str | None = None

    def ask_all(self) -> None:
        while (item := self._queue.current) is not None:
            self._comment = None
            _show_item(self._console, item, self._queue.total)
            if not self._ask(item):
                return

    def _ask(self, item: LabelItem) -> bool:
        while True:
            line = self._read(f"{self._queue.scale.text}; c comment, s skip, u undo, q quit > ")
            if line is None or line.lower() in ("q", "quit"):
                return False
            command, _, rest = line.partition(" ")
            if command.lower() in ("c", "comment"):
                self._comment = rest.strip() or self._read("comment > ")
            elif line.lower() in ("s", "skip"):
                self._queue.skip(item)
                return True
            elif line.lower() in ("u", "undo"):
                if self._queue.undo() is not None:
                    return True
                self._say("There is nothing to undo.")
            elif line and self._label(item, line):
                return True

    def _label(self, item: LabelItem, line: str) -> bool:
        value = _value(line)
        if value is None:
            self._say(f"The answer must be {self._queue.scale.text}.")
            return False
        try:
            answered = self._queue.label(item, value, comment=self._comment)
        except InvalidOptionError as error:
            if error.option == "item":
                self._say("Its run was deleted meanwhile.")
                self._queue.skip(item)
                return True
            self._say(f"The answer {error.reason}.")
            return False
        _show_answer(self._console, answered, self._queue.metric)
        return True

    def _say(self, text: str) -> None:
        self._console.print(plain(text, NOTICE))

    def _read(self, prompt: str) -> str | None:
        self._console.print(plain(prompt, LABEL), end="", soft_wrap=True)
        self._console.file.flush()
        try:
            line = "" if sys.stdin is None else sys.stdin.readline()
        except UnicodeDecodeError as error:
            raise FileArgumentError(path=STDIN, reason="it is not UTF-8 text") from error
        if not line or not sys.stdin.isatty():
            self._console.print()  # the end of the line was not typed
        return whole(line).strip() if line else None


def _value(line: str) -> float | None:
    answer = line.lower()
    if answer in ("y", "yes", "n", "no"):
        return answer.startswith("y")
    try:
        return float(answer)
    except ValueError:
        return None


def _show_item(console: Console, item: LabelItem, total: int) -> None:
    console.print()
    console.print(plain(f"{item.number} of {total}: {one_line(item.case_id)}", STRONG))
    console.print(pairs(_parts(item)))


def _show_answer(console: Console, answered: LabelledItem, metric: str) -> None:
    """Print the evaluator's score and, at the end, the variants, all hidden before the answer."""
    said = [f"you say {one_line(answered.label or f'{answered.value:g}')}"]
    score = answered.scores.get(metric)
    if score is not None and score.value is not None:
        reason = " ".join(filter(None, (score.label, score.comment)))
        said.append(f"the judge says {score.value:g}{f' ({one_line(reason)})' if reason else ''}")
    elif score is not None:
        said.append("the judge has failed")
    names = [f"{number} is {one_line(name)}" for number, name in answered.variants.items()]
    console.print(plain("; ".join(filter(None, (", ".join(said), ", ".join(names)))), LABEL))


def _parts(item: LabelItem) -> Iterator[tuple[str, str]]:
    if isinstance(item.input, str):
        yield "input", item.input
    else:
        for number, one in enumerate(item.input):
            yield "" if number else "input", item_text(one)
    for number, (name, value) in enumerate(item.context.items()):
        yield "" if number else "context", f"{name}: {_text(value)}"
    for number, call in enumerate(item.tool_calls):
        outcome = "denied" if call.is_denied else _text(call.output)
        yield "" if number else "tools", f"{call.name}({_text(call.arguments)}): {outcome}"
    yield "output", _text(item.output)
    if item.expected is not None:
        yield "expected", _text(item.expected)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
