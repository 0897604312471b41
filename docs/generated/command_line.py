"""The list of commands: docs/reference/command-line.md, from the application of Typer."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from kantan_agents.cli.app import PROGRAM, app

from . import docstrings

ANCHORS = {
    "eval": "evaluations",
    "rollout": "rollouts",
    "runs": "durable-runs",
    "agents": "agents",
    "traces": "traces",
}
"""Second anchors of groups, which guides link to."""

_HIDDEN = {"--help", "-h"}
_OUTSIDE_OF_CODE = re.compile(r"(`[^`]+`)|((?<![\w-])--[a-z][\w-]*)|([*_<\[|])")


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command and group, each with its full name."""
    yield from _below(typer.main.get_command(app), PROGRAM)


def _below(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for command in vars(group)["commands"].values():
        full = f"{name} {command.name}"
        yield full, command
        if "commands" in vars(command):
            yield from _below(command, full)


def markdown() -> str:
    """Return every command: its use, its arguments and options, its exit codes."""
    purposes = ["| Command | Purpose |", "| --- | --- |"]
    for name, command in commands():
        if name.count(" ") == 1:
            anchor = name.replace(" ", "-")
            purposes.append(f"| [`{name}`](#{anchor}) | {_summary(command)} |")
    described = (_described(name, command) for name, command in commands())
    return "\n\n".join(["\n".join(purposes), *described])


def _summary(command: Any) -> str:
    return _prose(" ".join(command.help.split("\n\n")[0].split()))


def _described(name: str, command: Any) -> str:
    level = "#" * name.count(" ")
    blocks = [f"#{level} `{name}`"]
    anchor = ANCHORS.get(name.removeprefix(f"{PROGRAM} "))
    if anchor:
        blocks.insert(0, f'<a id="{anchor}"></a>')
    is_group = "commands" in vars(command)
    if not is_group:
        blocks.append(f"```text\n{_usage(name, command)}\n```")
    for paragraph in inspect.cleandoc(command.help).split("\n\n"):
        blocks.append(_paragraph(paragraph))
    if not is_group:
        blocks += _tables(command)
    return "\n\n".join(blocks)


def _usage(name: str, command: Any) -> str:
    needed = [name]
    options = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            needed.append(_metavar(parameter))
        elif parameter.required:
            options.append(f"{parameter.opts[0]} {parameter.metavar}")
    return " ".join([*needed, *options, "[OPTIONS]"])


def _metavar(argument: Any) -> str:
    shown = argument.metavar.strip("[]")
    shown += "..." if argument.nargs == -1 and not shown.endswith("...") else ""
    return shown if argument.required else f"[{shown}]"


def _paragraph(text: str) -> str:
    example, is_example = re.subn("^Example: ", "", text)
    if is_example:
        return f"```bash\n{' '.join(example.split())}\n```"
    codes, has_codes = re.subn("^Exit codes: ", "", text)
    if has_codes:
        return f"**Exit codes:** {_prose(' '.join(codes.split()))}"
    entries = [re.fullmatch("([^ ].*?): +(.+)", line) for line in text.splitlines()]
    if all(entries) and len(entries) > 1:
        return "\n".join(
            f"- {docstrings.code(entry[1])}: {_prose(entry[2])}"
            for entry in entries
            if entry
        )
    return "\n".join(map(_prose, text.splitlines()))


def _prose(text: str) -> str:
    def shown(match: re.Match[str]) -> str:
        code, option, special = match.groups()
        return code or (f"`{option}`" if option else f"\\{special}")

    return _OUTSIDE_OF_CODE.sub(shown, text)


def _tables(command: Any) -> list[str]:
    arguments = ["| Argument | Meaning |", "| --- | --- |"]
    options = ["| Option | Default | Meaning |", "| --- | --- | --- |"]
    for parameter in command.params:
        meaning = _meaning(parameter)
        if parameter.param_type_name == "argument":
            arguments.append(f"| `{_metavar(parameter)}` | {meaning} |")
        elif not _HIDDEN & set(parameter.opts):
            options.append(
                f"| {_names(parameter)} | {_default(parameter)} | {meaning} |"
            )
    return ["\n".join(table) for table in (arguments, options) if len(table) > 2]


def _names(option: Any) -> str:
    value = f" {option.metavar}" if option.metavar and not option.is_flag else ""
    first, *others = [*option.opts, *option.secondary_opts]
    # A pipe in a code span does not end a cell.
    return ", ".join(f"`{name}`" for name in [f"{first}{value}", *others])


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if option.default in (None, False, "") or option.is_flag:
        return ""
    if not option.show_default and not re.search(r"\|", option.metavar or ""):
        return ""
    if isinstance(option.show_default, str):
        return option.show_default
    shown = option.default
    return f"`{shown:g}`" if isinstance(shown, float) else f"`{shown}`"


def _meaning(parameter: Any) -> str:
    meaning = _prose(" ".join(parameter.help.split()))
    if parameter.envvar:
        meaning += f" Environment variable: `{parameter.envvar}`."
    return meaning
