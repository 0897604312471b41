"""``agents show``: one agent with its fields and prompt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer
from rich.text import Text

from kantan_agents.cli.agents.agent_to_run import find_agent
from kantan_agents.cli.agents.problems import path_text, problem_line
from kantan_agents.cli.agents.skills_here import SkillsHere
from kantan_agents.cli.agents.tools_here import ToolsHere
from kantan_agents.cli.terminal.console import ACCENT, LABEL, NOTICE, plain, terminal
from kantan_agents.cli.terminal.plain import json_text, one_line, printable
from kantan_agents.cli.terminal.rows import line_width, print_lines
from kantan_agents.cli.traces.span_details import text_of
from kantan_agents.cli.traces.span_tree import hanging
from kantan_agents.errors import InvalidOptionError
from kantan_agents.subagent_files import AgentCatalog, AgentDefinition, AgentLoader
from kantan_agents.subagent_files.frontmatter.keys import KEY_OF
from kantan_agents.subagent_files.remarks import kept_without_effect, remarks_of
from kantan_agents.tools.providers.choice import declared_providers, permitted_providers

_GAP = 2
_MAX_LABEL = 20
_KEPT = "kept, no effect here: "


def show_agent(name: str, *, only_prompt: bool, as_json: bool) -> None:
    """Print an agent."""
    if only_prompt and as_json:
        raise InvalidOptionError(option="--prompt", reason="cannot be combined with --json")
    catalog = AgentLoader().load_agents_now()
    definition = find_agent(catalog, name)
    if as_json:
        unknown = [tool.name for tool in ToolsHere().unknown_in(definition)]
        data = {
            **catalog.details(definition.name),
            "kept_without_effect": list(kept_without_effect(definition)),
            "tool_providers": [*_provider_names()],
            "unknown_tools": unknown,
            "unknown_skills": [skill.name for skill in SkillsHere().unknown_in(definition)],
        }
        typer.echo(json_text(data, default=str))
    elif not only_prompt:
        print_lines(terminal(), _lines(catalog, definition))
    elif sys.stdout.isatty():
        typer.echo(printable(definition.system_prompt))
    else:
        # As bytes, so that the text layer changes no line ends or characters.
        typer.echo(definition.system_prompt.encode(), nl=False)


def _lines(catalog: AgentCatalog, definition: AgentDefinition) -> Iterator[Text]:
    console = terminal()
    width = line_width(console)
    facts = [(one_line(label), text) for label, text in _facts(catalog, definition) if text.plain]
    width_of_labels = min(max(Text(label).cell_len for label, _ in facts), _MAX_LABEL) + _GAP
    for label, text in facts:
        first = plain(label, LABEL)
        first.append(" " * max(width_of_labels - first.cell_len, _GAP))
        yield from hanging(console, first, Text(" " * first.cell_len), text, width)
    prompt = plain(definition.system_prompt.strip("\r\n"))
    if prompt.plain.strip():
        yield Text()
        yield from prompt.split(allow_blank=True)


def _facts(catalog: AgentCatalog, definition: AgentDefinition) -> Iterator[tuple[str, Text]]:
    yield "name", plain(one_line(definition.name), ACCENT)
    yield "description", plain(definition.description.strip())
    yield "scope", plain(catalog.scope_of(definition))
    yield "path", plain("" if definition.path is None else path_text(definition.path))
    for field, key in KEY_OF.items():
        if field not in ("name", "description"):
            yield key, _value(field, getattr(definition, field))
        if field == "tools":
            # The sources of its tools, apart from the program that runs it.
            yield "providers", plain(", ".join(map(one_line, _provider_names())))
    for key, value in definition.extra.items():
        yield key, plain(text_of(value).strip())
    kept = kept_without_effect(definition)
    yield "unused", plain(f"{_KEPT}{', '.join(map(one_line, kept))}" if kept else "")
    unknown = (ToolsHere().remark_on(definition), SkillsHere().remark_on(definition))
    for number, remark in enumerate([*remarks_of(definition), *filter(None, unknown)]):
        yield "" if number else "remarks", plain(one_line(remark.message), NOTICE)
    for number, repair in enumerate(definition.repairs):
        yield "" if number else "repairs", problem_line(repair)


def _provider_names() -> Iterator[str]:
    permitted = permitted_providers()
    for declared, _ in declared_providers():
        if permitted is None or declared.name in permitted:
            yield f"{declared.name} ({declared})"


def _value(field: str, value: Any) -> Text:
    if field == "tools":
        return plain("all" if value == "*" else ", ".join(value) or "none")
    if value is None or value == ():
        return Text()
    return plain(", ".join(value) if isinstance(value, tuple) else text_of(value).strip())
