"""The list of errors: docs/reference/errors.md, from the classes of ``kantan_agents.errors``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from kantan_agents import errors
from kantan_agents.errors import KantanAgentsError

from . import docstrings


class Section(NamedTuple):
    """Errors of one module.

    Attributes:
        title: The heading.
        note: What holds for all of them, in Markdown.
    """

    title: str
    note: str


SECTIONS = {
    "specified": Section(
        "Agents, context, models and tools",
        "Guides: [Prompts and context](../guides/prompts-and-context.md), [Tools](../guides/tools.md), "
        "[Tool rules](../guides/tool-rules.md), [Models](../guides/models.md).",
    ),
    "tool_rules": Section(
        "Tool calls and tool providers",
        "Guides: [Tools](../guides/tools.md), [Tool rules](../guides/tool-rules.md).",
    ),
    "running": Section(
        "Pipeline, options and event loops",
        "Guides: [Middleware](../guides/middleware.md), [Streaming](../guides/streaming.md), "
        "[Deploying](../guides/deploying.md).",
    ),
    "mcp": Section("MCP servers", "Guide: [MCP servers](../guides/mcp.md)."),
    "definitions": Section(
        "Subagent files and delegation",
        "Guide: [Subagent files](../guides/subagent-files.md).",
    ),
    "structured": Section(
        "Structured output and judges",
        "Guides: [Structured output](../guides/structured-output.md), [Judges](../guides/judges.md).",
    ),
    "protocol": Section(
        "Model providers, slash commands and tool retrieval",
        "[Custom model providers](custom-providers.md). Guides: [Skills and commands]"
        "(../guides/skills-and-commands.md), [Tools](../guides/tools.md).",
    ),
    "tracing": Section(
        "Traces",
        "Guides: [Record traces](../guides/record-traces.md), [Search traces](../guides/search-traces.md). "
        "A run never fails because of its recording: the logger `kantan_agents.tracing` writes E62 to E66, once for "
        "each problem, and `recorder.stats()` counts the spans of E62, E63 and E65.",
    ),
    "middleware": Section(
        "Middleware", "[Ready-made middleware](middleware/index.md)."
    ),
    "replay": Section(
        "Records and replays",
        "Guide: [Replay](../guides/replay.md).",
    ),
    "evaluation": Section(
        "Evaluations",
        "Guides: [Compare versions](../guides/compare-versions.md), [Judges](../guides/judges.md).",
    ),
    "rollout": Section("Rollouts", "Guide: [Rollout](../guides/rollout.md)."),
    "improve": Section(
        "Improving prompts", "Guide: [Improve a prompt](../guides/improve.md)."
    ),
    "telemetry": Section(
        "OpenTelemetry",
        "Guide: [OpenTelemetry](../guides/opentelemetry.md). E132 and E133 are logged, never raised.",
    ),
    "postgres": Section(
        "Traces in Postgres", "Guide: [Maintain traces](../guides/maintain-traces.md)."
    ),
    "durable": Section(
        "Durable runs", "Guide: [Durable runs](../guides/durable-runs.md)."
    ),
    "toolkit_files": Section(
        "File tools",
        "Guide: [File and shell tools](../guides/file-and-shell-tools.md). The model gets these messages as the "
        "result of its call, except E165.",
    ),
    "toolkit": Section(
        "Shell and web tools",
        "Guide: [File and shell tools](../guides/file-and-shell-tools.md). The model gets these messages as the "
        "result of its call, except E168.",
    ),
    "skills": Section(
        "Skills, command files and project instructions",
        "Guide: [Skills and commands](../guides/skills-and-commands.md).",
    ),
    "chat": Section("Chats in the terminal", "Guide: [Chat](../guides/chat.md)."),
    "installation": Section(
        "Installation",
        "[Install](../start/install.md). E124, E130 and E140 are the same error for improving prompts, "
        "OpenTelemetry and Postgres.",
    ),
}
"""The sections, by the module of ``kantan_agents.errors``."""
_IN_SECTION = dict.fromkeys(("E28", "E37", "E38", "E39"), "mcp")
"""The sections of errors whose module has another subject."""


def classes() -> Iterator[type[KantanAgentsError]]:
    """Yield every public error that has a code."""
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, KantanAgentsError):
            if hasattr(value, "code"):
                yield value


def fix_of(error: type[KantanAgentsError]) -> str:
    """Return how to fix an error: the fix of its class, or else of the first base that has one."""
    fixes = (docstrings.parts(base).fix for base in error.__mro__)
    return next(filter(None, fixes), "")


def markdown() -> str:
    """Return all errors, by subject and code."""
    by_module = defaultdict(list)
    for error in classes():
        module = error.__module__.rpartition(".")[2]
        by_module[_IN_SECTION.get(error.code, module)].append(error)
    blocks = []
    for module, (title, note) in SECTIONS.items():
        blocks += [f"## {title}", note]
        for error in sorted(by_module[module], key=lambda error: int(error.code[1:])):
            blocks.append(_described(error))
    return "\n\n".join(blocks)


def _described(error: type[KantanAgentsError]) -> str:
    name = error.__name__
    blocks = [
        f"### {error.code} `{name}` {{#{error.code.lower()}}}",
        docstrings.code(error.template),
        *docstrings.parts(error).paragraphs,
    ]
    fix = fix_of(error)
    if fix:
        blocks.append(f"**Fix:** {fix[0].upper()}{fix[1:]}")
    attributes = [
        attribute
        for attribute in docstrings.parts(error).attributes
        if f"{{{attribute}" not in error.template
    ]
    if attributes:
        listed = ", ".join(f"`{attribute}`" for attribute in attributes)
        blocks.append(f"More attributes: {listed}.")
    return "\n\n".join(blocks)
