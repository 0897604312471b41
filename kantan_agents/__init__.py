"""Async-first agents on the OpenAI Agents SDK, with traces, tool rules and composable pipelines.

Public names are loaded on first use, so importing the package is fast and does not import the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from agents import add_trace_processor, set_trace_processors

    from kantan_agents.agent import Agent, agent_of
    from kantan_agents.agent.delegation import task_tool
    from kantan_agents.agent.running.stream import RunStream
    from kantan_agents.agent.stages import DEFAULT_STAGES
    from kantan_agents.core.events import Event, Subscription, subscribe
    from kantan_agents.core.interception import Middleware, ModelCall, ModelNext, ToolCall, ToolNext
    from kantan_agents.core.pipeline import (
        Next,
        Pipeline,
        Run,
        RunContext,
        RunResult,
        Stage,
        run_of,
        run_result,
    )
    from kantan_agents.core.prompt import Prompt
    from kantan_agents.durable import Durable, DurableRuns
    from kantan_agents.errors import (
        JudgmentError,
        KantanAgentsError,
        OutputSchemaError,
        StructuredOutputError,
    )
    from kantan_agents.lab.judges import (
        JudgeTemplates,
        StageAttempt,
        StatusJudge,
        StatusRule,
        StatusVerdict,
        detect_matched_rule,
        find_tag,
        judge_agent,
        judge_status,
    )
    from kantan_agents.lab.replay import Recording, Replay, replay, replay_async
    from kantan_agents.lab.rollout import Rollout
    from kantan_agents.lab.rule_changes import (
        Flip,
        FlipCounts,
        IncompleteTrace,
        UnjudgedCall,
        WhatIf,
        what_if,
    )
    from kantan_agents.middleware import SlashCommands, UserRules
    from kantan_agents.models.finish_reasons import answer_cut_off, finish_reason
    from kantan_agents.models.http_pools import ConnectionStats, connection_stats
    from kantan_agents.models.protocol import (
        AnthropicProvider,
        ContentSegment,
        GeminiProvider,
        Provider,
        ProviderModel,
        ProviderResponse,
        to_provider_response,
    )
    from kantan_agents.models.rubric import RUBRIC, judge
    from kantan_agents.models.structured import OutputAttempt, OutputMode, parse_structured_output
    from kantan_agents.subagent_files import AgentCatalog, AgentDefinition, AgentLoader
    from kantan_agents.tool_rules import ToolRulesMode, get_context_with_tool_rules
    from kantan_agents.toolkit import toolkit
    from kantan_agents.tools.explain import Explanation, explain
    from kantan_agents.tools.facts import rule_parameter
    from kantan_agents.tools.guards.violations import RuleViolation
    from kantan_agents.tools.mcp import (
        ConfiguredServers,
        MCPPrompt,
        configured_servers,
        mcp_prompt,
        resource_text,
        with_resources,
    )
    from kantan_agents.tools.providers.cache import refresh_tool_providers
    from kantan_agents.tools.providers.choice import use_tool_providers
    from kantan_agents.tools.providers.providers import (
        get_effective_tool_rules,
        get_provider_tool_rules,
        list_provider_tools,
    )
    from kantan_agents.tools.retrieval import ToolRetrieval
    from kantan_agents.tools.skills import (
        CommandLoader,
        Skill,
        SkillLoader,
        project_instructions,
        skill_tools,
    )
    from kantan_agents.traces.copying import CopyResult, copy_traces
    from kantan_agents.traces.recorder import RecorderStats, SQLiteRecorder, record_traces, redact_texts
    from kantan_agents.traces.recorder.postgres_recorder import PostgresRecorder
    from kantan_agents.traces.store import (
        IndexResult,
        JudgeSpan,
        PromptStats,
        PruneResult,
        StoredSpan,
        StoredTrace,
        TraceStore,
        TraceSummary,
    )
    from kantan_agents.traces.telemetry import OtelExporter, mcp_trace_client, mcp_trace_meta, trace_headers

__all__ = [
    "DEFAULT_STAGES",
    "RUBRIC",
    "Agent",
    "AgentCatalog",
    "AgentDefinition",
    "AgentLoader",
    "AnthropicProvider",
    "CommandLoader",
    "ConfiguredServers",
    "ConnectionStats",
    "ContentSegment",
    "CopyResult",
    "Durable",
    "DurableRuns",
    "Event",
    "Explanation",
    "Flip",
    "FlipCounts",
    "GeminiProvider",
    "IncompleteTrace",
    "IndexResult",
    "JudgeSpan",
    "JudgeTemplates",
    "JudgmentError",
    "KantanAgentsError",
    "MCPPrompt",
    "Middleware",
    "ModelCall",
    "ModelNext",
    "Next",
    "OtelExporter",
    "OutputAttempt",
    "OutputMode",
    "OutputSchemaError",
    "Pipeline",
    "PostgresRecorder",
    "Prompt",
    "PromptStats",
    "Provider",
    "ProviderModel",
    "ProviderResponse",
    "PruneResult",
    "RecorderStats",
    "Recording",
    "Replay",
    "Rollout",
    "RuleViolation",
    "Run",
    "RunContext",
    "RunResult",
    "RunStream",
    "SQLiteRecorder",
    "Skill",
    "SkillLoader",
    "SlashCommands",
    "Stage",
    "StageAttempt",
    "StatusJudge",
    "StatusRule",
    "StatusVerdict",
    "StoredSpan",
    "StoredTrace",
    "StructuredOutputError",
    "Subscription",
    "ToolCall",
    "ToolNext",
    "ToolRetrieval",
    "ToolRulesMode",
    "TraceStore",
    "TraceSummary",
    "UnjudgedCall",
    "UserRules",
    "WhatIf",
    "add_trace_processor",
    "agent_of",
    "answer_cut_off",
    "configured_servers",
    "connection_stats",
    "copy_traces",
    "detect_matched_rule",
    "explain",
    "find_tag",
    "finish_reason",
    "get_context_with_tool_rules",
    "get_effective_tool_rules",
    "get_provider_tool_rules",
    "judge",
    "judge_agent",
    "judge_status",
    "list_provider_tools",
    "mcp_prompt",
    "mcp_trace_client",
    "mcp_trace_meta",
    "parse_structured_output",
    "project_instructions",
    "record_traces",
    "redact_texts",
    "refresh_tool_providers",
    "replay",
    "replay_async",
    "resource_text",
    "rule_parameter",
    "run_of",
    "run_result",
    "set_trace_processors",
    "skill_tools",
    "subscribe",
    "task_tool",
    "to_provider_response",
    "toolkit",
    "trace_headers",
    "use_tool_providers",
    "what_if",
    "with_resources",
]

_loaded, __dir__ = lazy_names(
    __name__,
    {
        "agents": ("add_trace_processor", "set_trace_processors"),
        "kantan_agents.agent": ("Agent", "agent_of"),
        "kantan_agents.agent.delegation": ("task_tool",),
        "kantan_agents.agent.running.stream": ("RunStream",),
        "kantan_agents.agent.stages": ("DEFAULT_STAGES",),
        "kantan_agents.core.events": ("Event", "Subscription", "subscribe"),
        "kantan_agents.core.interception": ("Middleware", "ModelCall", "ModelNext", "ToolCall", "ToolNext"),
        "kantan_agents.core.pipeline": (
            "Next",
            "Pipeline",
            "Run",
            "RunContext",
            "RunResult",
            "Stage",
            "run_of",
            "run_result",
        ),
        "kantan_agents.core.prompt": ("Prompt",),
        "kantan_agents.durable": ("Durable", "DurableRuns"),
        "kantan_agents.errors": (
            "JudgmentError",
            "KantanAgentsError",
            "OutputSchemaError",
            "StructuredOutputError",
        ),
        "kantan_agents.lab.judges": (
            "JudgeTemplates",
            "StageAttempt",
            "StatusJudge",
            "StatusRule",
            "StatusVerdict",
            "detect_matched_rule",
            "find_tag",
            "judge_agent",
            "judge_status",
        ),
        "kantan_agents.lab.replay": ("Recording", "Replay", "replay", "replay_async"),
        "kantan_agents.lab.rollout": ("Rollout",),
        "kantan_agents.lab.rule_changes": (
            "Flip",
            "FlipCounts",
            "IncompleteTrace",
            "UnjudgedCall",
            "WhatIf",
            "what_if",
        ),
        "kantan_agents.middleware": ("SlashCommands", "UserRules"),
        "kantan_agents.models.protocol": (
            "AnthropicProvider",
            "ContentSegment",
            "GeminiProvider",
            "Provider",
            "ProviderModel",
            "ProviderResponse",
            "to_provider_response",
        ),
        "kantan_agents.models.rubric": ("RUBRIC", "judge"),
        "kantan_agents.models.structured": ("OutputAttempt", "OutputMode", "parse_structured_output"),
        "kantan_agents.subagent_files": ("AgentCatalog", "AgentDefinition", "AgentLoader"),
        "kantan_agents.models.finish_reasons": ("answer_cut_off", "finish_reason"),
        "kantan_agents.models.http_pools": ("ConnectionStats", "connection_stats"),
        "kantan_agents.tools.providers.choice": ("use_tool_providers",),
        "kantan_agents.tool_rules": ("ToolRulesMode", "get_context_with_tool_rules"),
        "kantan_agents.toolkit": ("toolkit",),
        "kantan_agents.tools.explain": ("Explanation", "explain"),
        "kantan_agents.tools.facts": ("rule_parameter",),
        "kantan_agents.tools.guards.violations": ("RuleViolation",),
        "kantan_agents.tools.mcp": (
            "ConfiguredServers",
            "MCPPrompt",
            "configured_servers",
            "mcp_prompt",
            "resource_text",
            "with_resources",
        ),
        "kantan_agents.tools.providers.cache": ("refresh_tool_providers",),
        "kantan_agents.tools.providers.providers": (
            "get_effective_tool_rules",
            "get_provider_tool_rules",
            "list_provider_tools",
        ),
        "kantan_agents.tools.retrieval": ("ToolRetrieval",),
        "kantan_agents.tools.skills": (
            "CommandLoader",
            "Skill",
            "SkillLoader",
            "project_instructions",
            "skill_tools",
        ),
        "kantan_agents.traces.copying": ("CopyResult", "copy_traces"),
        "kantan_agents.traces.recorder": ("RecorderStats", "SQLiteRecorder", "record_traces", "redact_texts"),
        "kantan_agents.traces.recorder.postgres_recorder": ("PostgresRecorder",),
        "kantan_agents.traces.store": (
            "IndexResult",
            "JudgeSpan",
            "PromptStats",
            "PruneResult",
            "StoredSpan",
            "StoredTrace",
            "TraceStore",
            "TraceSummary",
        ),
        "kantan_agents.traces.telemetry": (
            "OtelExporter",
            "mcp_trace_client",
            "mcp_trace_meta",
            "trace_headers",
        ),
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("kantan-agents")
    return _loaded(name)
