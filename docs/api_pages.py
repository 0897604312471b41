"""Generates the pages of the API when the site is built: a hook of mkdocs, named in .mkdocs.yml.

``PAGES`` has the pages in their order. Names, kinds, summaries and descriptions come from the code, by
``public_names.py``. A name that several packages export is on the first page that has it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from public_names import PACKAGES, Name, names

FOLDER = "reference/api"
INDEX = f"{FOLDER}/index.md"

# Members that are not for users: methods of the SDK's interfaces, and those that only the library calls.
_HIDDEN = ("!^_", "!^on_(trace|span)_", "!fork", "!roll_back")
_SOME = 8
"""How many names the first sentence of a page has."""
_CLASSES = "middleware"
"""The page and the folder of the ready-made middleware, whose classes have a page each."""
_HIDDEN_OF_ERRORS = (*_HIDDEN, "!^code$", "!^template$")


class Page(NamedTuple):
    """A page: its file, its title, the guide that shows how to use it, and its packages.

    A package followed by a colon and names stands for these names, one followed by a slash and modules for the names
    that these modules define, and one alone for all names that are on no earlier page.
    """

    file: str
    title: str
    guide: str
    packages: tuple[str, ...]


_ROOT = "kantan_agents"
PAGES = (
    Page(
        "agents",
        "Agents and runs",
        "start/quickstart.md",
        (
            f"{_ROOT}: Agent RunStream Run RunContext RunResult run_result run_of finish_reason answer_cut_off "
            "task_tool agent_of connection_stats ConnectionStats",
        ),
    ),
    Page(
        "prompts",
        "Prompts",
        "guides/prompts-and-context.md",
        (f"{_ROOT}: Prompt project_instructions",),
    ),
    Page(
        "structured-output",
        "Structured output",
        "guides/structured-output.md",
        (
            f"{_ROOT}: OutputMode OutputAttempt parse_structured_output StructuredOutputError OutputSchemaError",
        ),
    ),
    Page(
        "subagent-files",
        "Subagent files",
        "guides/subagent-files.md",
        (
            f"{_ROOT}: AgentLoader AgentDefinition AgentCatalog",
            "kantan_agents.subagent_files",
        ),
    ),
    Page(
        "skills",
        "Skills",
        "guides/skills-and-commands.md",
        (
            f"{_ROOT}: Skill SkillLoader skill_tools CommandLoader",
            "kantan_agents.tools.skills",
        ),
    ),
    Page(
        "commands",
        "Slash commands",
        "guides/skills-and-commands.md",
        (f"{_ROOT}: SlashCommands UserRules", "kantan_agents.tools.commands"),
    ),
    Page(
        "tools",
        "Tools",
        "guides/tools.md",
        (
            f"{_ROOT}: toolkit rule_parameter ToolRetrieval list_provider_tools get_provider_tool_rules "
            "get_effective_tool_rules use_tool_providers refresh_tool_providers",
            "kantan_agents.toolkit.shell",
            "kantan_agents.toolkit.web",
            "kantan_agents.toolkit.todo_write",
            "kantan_agents.toolkit.ask_user_question",
            "kantan_agents.tools.retrieval",
        ),
    ),
    Page(
        "mcp",
        "MCP servers",
        "guides/mcp.md",
        (
            f"{_ROOT}: configured_servers ConfiguredServers with_resources resource_text mcp_prompt MCPPrompt "
            "mcp_trace_client mcp_trace_meta",
        ),
    ),
    Page(
        "tool-rules",
        "Tool rules",
        "guides/tool-rules.md",
        (
            f"{_ROOT}: ToolRulesMode get_context_with_tool_rules explain Explanation RuleViolation what_if WhatIf "
            "Flip FlipCounts UnjudgedCall IncompleteTrace",
        ),
    ),
    Page(
        "pipeline",
        "Pipeline",
        "guides/middleware.md",
        (
            f"{_ROOT}: Middleware ModelCall ModelNext ToolCall ToolNext Pipeline Stage Next DEFAULT_STAGES",
            "kantan_agents.agent.stages",
        ),
    ),
    Page(
        "middleware",
        "Ready-made middleware",
        "reference/middleware/index.md",
        ("kantan_agents.middleware",),
    ),
    Page(
        "events",
        "Events",
        "guides/streaming.md",
        (f"{_ROOT}: Event subscribe Subscription", "kantan_agents.core.events"),
    ),
    Page(
        "durable", "Durable runs", "guides/durable-runs.md", ("kantan_agents.durable",)
    ),
    Page(
        "recording",
        "Record traces",
        "guides/record-traces.md",
        (
            f"{_ROOT}: record_traces SQLiteRecorder PostgresRecorder RecorderStats redact_texts copy_traces "
            "CopyResult add_trace_processor set_trace_processors",
        ),
    ),
    Page(
        "trace-store",
        "Search traces",
        "guides/search-traces.md",
        (
            f"{_ROOT}: TraceStore TraceSummary StoredTrace StoredSpan JudgeSpan PromptStats PruneResult "
            "IndexResult",
        ),
    ),
    Page(
        "complete-records",
        "Complete records of runs",
        "guides/search-traces.md",
        ("kantan_agents.traces.capture",),
    ),
    Page(
        "opentelemetry",
        "OpenTelemetry",
        "guides/opentelemetry.md",
        (
            f"{_ROOT}: OtelExporter trace_headers",
            "kantan_agents.traces.telemetry.sending",
        ),
    ),
    Page(
        "judges",
        "Judges",
        "guides/judges.md",
        (
            f"{_ROOT}: RUBRIC judge judge_agent StatusJudge judge_status detect_matched_rule find_tag StatusRule "
            "StatusVerdict StageAttempt JudgeTemplates JudgmentError",
            "kantan_agents.models.rubric",
            "kantan_agents.lab: ENGLISH JAPANESE",
        ),
    ),
    Page(
        "replay",
        "Replay",
        "guides/replay.md",
        (
            f"{_ROOT}: Recording Replay replay replay_async",
            "kantan_agents.lab: record_again record_again_async Cohort Skipped Change replay_cohort "
            "replay_cohort_async Experiment RunOutcome ChangedDecision NewCall UsageMetrics",
        ),
    ),
    Page(
        "improve",
        "Improve a prompt",
        "guides/improve.md",
        (
            "kantan_agents.lab: improve improve_async Improvement Candidate Opening ImproveProgress",
        ),
    ),
    Page(
        "rollout",
        "Rollouts",
        "guides/rollout.md",
        (
            f"{_ROOT}: Rollout",
            "kantan_agents.lab: Arm record_score record_score_async rollouts status status_async promote "
            "promote_async stop stop_async history RolloutState RolloutChange RolloutStatus ArmMetrics "
            "MetricEvidence GuardEvidence",
            "kantan_agents.lab.rollout.evidence",
        ),
    ),
    Page(
        "labels",
        "Labels",
        "guides/judges.md",
        (
            "kantan_agents.lab: LabelQueue LabelItem LabelledItem LabelScale add_label remove_label labels_of Label "
            "agreement LabelAgreement judge_quality JudgeQuality Measure corrected_compare CorrectedComparison "
            "corrected_score CorrectedScore",
        ),
    ),
    Page(
        "datasets",
        "Datasets",
        "guides/compare-versions.md",
        (
            "kantan_agents.lab: Dataset Case Split HeldOutDataset import_dataset DatasetDiff ChangedCase simulated "
            "SimulatedUser goal_met",
        ),
    ),
    Page(
        "evaluation", "Evaluation", "guides/compare-versions.md", ("kantan_agents.lab",)
    ),
    Page(
        "evaluators",
        "Evaluators",
        "guides/compare-versions.md",
        (
            "kantan_agents.lab.evaluation.evaluators",
            "kantan_agents.lab.evaluation.evaluators.judges",
        ),
    ),
    Page(
        "testing",
        "Testing",
        "guides/testing.md",
        (
            "kantan_agents.testing",
            "kantan_agents.testing.pytest_plugin",
            "kantan_agents.testing.strategies",
            "kantan_agents.testing.properties",
        ),
    ),
    Page(
        "providers",
        "Custom providers",
        "reference/custom-providers.md",
        (
            f"{_ROOT}: Provider ProviderModel ProviderResponse ContentSegment to_provider_response "
            "AnthropicProvider GeminiProvider",
            "kantan_agents.models.protocol",
            "kantan_agents.models.protocol.values",
        ),
    ),
    Page(
        "translations",
        "Translations of requests",
        "reference/custom-providers.md",
        ("kantan_agents.models.protocol.translate",),
    ),
    Page(
        "errors",
        "Errors of agents and tools",
        "reference/errors.md",
        (
            f"{_ROOT}: KantanAgentsError",
            "kantan_agents.errors / root running middleware structured specified tool_rules toolkit toolkit_files "
            "definitions skills",
        ),
    ),
    Page(
        "more-errors",
        "Errors of everything else",
        "reference/errors.md",
        ("kantan_agents.errors",),
    ),
)


class Section(NamedTuple):
    """The names of one package on a page."""

    package: str
    names: tuple[Name, ...]


@cache
def written() -> dict[str, str]:
    """Return the pages of names that pages written by hand describe, from ``reference/api``, by path."""
    found = {}
    for page in sorted((Path(__file__).parent / "reference" / _CLASSES).glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE):
            found[path] = f"../{_CLASSES}/{page.name}"
    return found


@cache
def sections() -> dict[str, tuple[Section, ...]]:
    """Return the sections of each page, by its file.

    Raises:
        PluginError: A page has a name that its package lacks, or a public name is on no page.
    """
    placed: set[str] = set()
    found: dict[str, tuple[Section, ...]] = {}
    for page in PAGES:
        of_page: list[Section] = []
        for entry in page.packages:
            package, _, listed = entry.partition(": ")
            package, _, modules = package.partition(" / ")
            public = {
                name.name: name
                for name in names(package)
                if name.is_of(package, modules.split())
            }
            if missing := set(listed.split()) - set(public):
                raise PluginError(
                    f"docs/api_pages.py: {package} has no {sorted(missing)}"
                )
            chosen = [public[name] for name in listed.split() or public]
            new = tuple(name for name in chosen if name.home not in placed)
            placed.update(name.home for name in new)
            new = tuple(name for name in new if name.path not in written())
            of_page.append(Section(package, new))
        found[page.file] = tuple(of_page)
    public_names = [name for package in PACKAGES for name in names(package)]
    if left := sorted(name.path for name in public_names if name.home not in placed):
        raise PluginError(f"docs/api_pages.py: no page has {left}")
    return found


def on_config(config: Any) -> None:
    """Put the pages into the navigation, behind their index."""
    (reference,) = (part["Reference"] for part in config["nav"] if "Reference" in part)
    (api,) = (part for part in reference if "API" in part)
    api["API"] = [INDEX, *(f"{FOLDER}/{page.file}.md" for page in PAGES)]


def on_files(files: Files, config: Any) -> None:
    """Add the pages to the site."""
    docs = Path(config["docs_dir"])
    files.append(File.generated(config, INDEX, content=_index()))
    for page in PAGES:
        files.append(
            File.generated(
                config, f"{FOLDER}/{page.file}.md", content=_page(page, docs)
            )
        )


def _index() -> str:
    lines = [
        "# API\n",
        "The public API is every name on these pages. Everything else may change without notice.",
        "A number such as (spec 8.1) in a description refers to a rule in the",
        "[specification](../specification.md).",
    ]
    for page in PAGES:
        lines += [
            f"\n## [{page.title}]({page.file}.md)\n",
            "| Name | Kind | Summary |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| [`{name.name}`]({page.file}.md#{name.path}) | {name.kind} | {name.summary} |"
            for section in sections()[page.file]
            for name in section.names
        ]
        if page.file == _CLASSES:
            lines += [
                f"| [`{name.name}`]({written()[name.path]}#{name.path}) | {name.kind} | {name.summary} |"
                for name in names(f"{_ROOT}.{_CLASSES}")
                if name.path in written()
            ]
    return "\n".join(lines) + "\n"


def _page(page: Page, docs: Path) -> str:
    guide = docs / page.guide
    title = (
        guide.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        if guide.exists()
        else page.title
    )
    shown = [
        f"`{name.name}`" for section in sections()[page.file] for name in section.names
    ]
    some = ", ".join(shown[:_SOME]) + (
        f" and {len(shown) - _SOME} more names" if len(shown) > _SOME else ""
    )
    lines = [
        f"# {page.title}\n",
        f"{some}. How to use them: [{title}](../../{page.guide}).\n",
    ]
    for section in sections()[page.file]:
        if section.names:
            lines.append(f"## {section.package}\n")
        lines += map(_entry, section.names)
    return "\n".join(lines)


def _entry(name: Name) -> str:
    if name.documented is None:
        return f"### {name.name} {{ #{name.path} }}\n\n{name.summary}\n"
    hidden = _HIDDEN_OF_ERRORS if name.package == "kantan_agents.errors" else _HIDDEN
    options = [f"filters: {list(hidden)}"]
    if name.kind == "exception":
        options.append("separate_signature: false")
    if name.inherited:
        options.append(f"inherited_members: {name.inherited}")
    return "\n      ".join([f"::: {name.path}\n    options:", *options]) + "\n"
