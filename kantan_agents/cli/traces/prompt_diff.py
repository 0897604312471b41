"""``traces prompts NAME --diff``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import typer
from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.console import NOTICE, plain, wide_terminal
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import line_width, print_lines
from kantan_agents.cli.traces.diff_lines import diff_lines
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError

if TYPE_CHECKING:
    from kantan_agents.traces.store import PromptStats, TraceStore

_TWO = 2


@attrs.frozen
class _Step:
    """A change of the prompt; both versions are the same if only the prompt changed."""

    before: str | None
    after: str | None
    diff: str

    @property
    def is_edit(self) -> bool:
        return self.before == self.after


def check_versions(name: str | None, versions: Sequence[str], *, diff: bool) -> Sequence[str]:
    """Return two versions, or () for all."""
    if diff and name is None:
        raise InvalidOptionError(option="--diff", reason="needs the NAME of a prompt")
    if versions and not diff:
        raise InvalidOptionError(option="OLD NEW", reason="are only compared with --diff")
    if versions and len(versions) != _TWO:
        raise InvalidOptionError(option="OLD NEW", reason=f"must be two versions, not {len(versions)}")
    return versions


def diff_prompts(path: Path, name: str, versions: Sequence[str], *, as_json: bool) -> None:
    """Print the changes between two versions (E87 if one has no recorded prompt), or all changes."""
    store = open_store(path)
    if versions:
        old, new = versions
        steps, unknown = [_Step(old, new, store.prompt_diff(name, old, new))], []
    else:
        stats = store.prompts(name)
        steps = list(_steps(store, name, [version for version in stats if version.prompts]))
        unknown = [version for version in stats if not version.prompts]
    if as_json:
        typer.echo(json_text([attrs.asdict(step) for step in steps]))
        return
    console = wide_terminal()
    print_lines(console, _lines(console, name, steps, unknown))


def _lines(
    console: Console, name: str, steps: Sequence[_Step], unknown: Sequence[PromptStats]
) -> Iterator[Text]:
    width = line_width(console)
    for number, step in enumerate(steps):
        if number:
            yield Text()
        before, after = (f"{one_line(name)} {_label(version)}" for version in (step.before, step.after))
        if not step.diff:
            yield plain(f"{before} and {after} have the same text.")
        elif step.is_edit:
            yield plain(f"{after} was edited without a new version:", NOTICE)
        yield from diff_lines(console, step.diff, "", width)
    if steps and unknown:
        yield Text()
    for version in unknown:
        label = _label(version.prompt_version)
        yield plain(f"The text of {one_line(name)} {label} is not recorded.", NOTICE)
    if not steps and not unknown:
        yield plain(f"No two recorded texts of prompt {one_line(name)} found.")


def _steps(store: TraceStore, name: str, stats: Sequence[PromptStats]) -> Iterator[_Step]:
    for number, after in enumerate(stats):
        if number:
            before = stats[number - 1].prompt_version
            yield _Step(before, after.prompt_version, store.prompt_diff(name, before, after.prompt_version))
        if after.texts > 1:
            version = after.prompt_version
            yield _Step(version, version, store.prompt_diff(name, version, version))


def _label(version: str | None) -> str:
    return "(no version)" if version is None else one_line(version)
