"""Async-first agents on the OpenAI Agents SDK, with traces, tool rules and composable pipelines.

Public names are loaded on first use, so importing the package is fast and does not import the SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
        JudgementError,
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
    from kantan_agents.support.http_pools import ConnectionStats, connection_stats
    from kantan_agents.tool_rules import ToolRulesMode, get_context_with_tool_rules
    from kantan_agents.toolkit import toolkit
    from kantan_agents.tools import (
        Explanation,
        RuleViolation,
        explain,
        get_effective_tool_rules,
        get_provider_tool_rules,
        list_provider_tools,
        refresh_tool_providers,
        rule_parameter,
        use_tool_providers,
    )
    from kantan_agents.tools.mcp import (
        ConfiguredServers,
        MCPPrompt,
        configured_servers,
        mcp_prompt,
        resource_text,
        with_resources,
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
    "JudgementError",
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
    "configured_servers",
    "connection_stats",
    "copy_traces",
    "detect_matched_rule",
    "explain",
    "find_tag",
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

_HOMES = {
    "CommandLoader": "kantan_agents.tools.skills",
    "Skill": "kantan_agents.tools.skills",
    "SkillLoader": "kantan_agents.tools.skills",
    "project_instructions": "kantan_agents.tools.skills",
    "skill_tools": "kantan_agents.tools.skills",
    "DEFAULT_STAGES": "kantan_agents.agent.stages",
    "RUBRIC": "kantan_agents.models.rubric",
    "Agent": "kantan_agents.agent",
    "AgentCatalog": "kantan_agents.subagent_files",
    "AgentDefinition": "kantan_agents.subagent_files",
    "AgentLoader": "kantan_agents.subagent_files",
    "AnthropicProvider": "kantan_agents.models.protocol",
    "ConfiguredServers": "kantan_agents.tools.mcp",
    "ConnectionStats": "kantan_agents.support.http_pools",
    "ContentSegment": "kantan_agents.models.protocol",
    "CopyResult": "kantan_agents.traces.copying",
    "Event": "kantan_agents.core.events",
    "Explanation": "kantan_agents.tools",
    "Flip": "kantan_agents.lab.rule_changes",
    "FlipCounts": "kantan_agents.lab.rule_changes",
    "GeminiProvider": "kantan_agents.models.protocol",
    "IncompleteTrace": "kantan_agents.lab.rule_changes",
    "JudgeSpan": "kantan_agents.traces.store",
    "JudgementError": "kantan_agents.errors",
    "JudgeTemplates": "kantan_agents.lab.judges",
    "KantanAgentsError": "kantan_agents.errors",
    "MCPPrompt": "kantan_agents.tools.mcp",
    "Middleware": "kantan_agents.core.interception",
    "ModelCall": "kantan_agents.core.interception",
    "ModelNext": "kantan_agents.core.interception",
    "Next": "kantan_agents.core.pipeline",
    "OtelExporter": "kantan_agents.traces.telemetry",
    "OutputAttempt": "kantan_agents.models.structured",
    "OutputMode": "kantan_agents.models.structured",
    "OutputSchemaError": "kantan_agents.errors",
    "Pipeline": "kantan_agents.core.pipeline",
    "PostgresRecorder": "kantan_agents.traces.recorder.postgres_recorder",
    "Prompt": "kantan_agents.core.prompt",
    "PromptStats": "kantan_agents.traces.store",
    "Provider": "kantan_agents.models.protocol",
    "ProviderModel": "kantan_agents.models.protocol",
    "ProviderResponse": "kantan_agents.models.protocol",
    "IndexResult": "kantan_agents.traces.store",
    "PruneResult": "kantan_agents.traces.store",
    "RecorderStats": "kantan_agents.traces.recorder",
    "Recording": "kantan_agents.lab.replay",
    "Durable": "kantan_agents.durable",
    "DurableRuns": "kantan_agents.durable",
    "Rollout": "kantan_agents.lab.rollout",
    "Replay": "kantan_agents.lab.replay",
    "RuleViolation": "kantan_agents.tools",
    "Run": "kantan_agents.core.pipeline",
    "RunContext": "kantan_agents.core.pipeline",
    "RunResult": "kantan_agents.core.pipeline",
    "RunStream": "kantan_agents.agent.running.stream",
    "SQLiteRecorder": "kantan_agents.traces.recorder",
    "SlashCommands": "kantan_agents.middleware",
    "Stage": "kantan_agents.core.pipeline",
    "StageAttempt": "kantan_agents.lab.judges",
    "StatusJudge": "kantan_agents.lab.judges",
    "StatusRule": "kantan_agents.lab.judges",
    "StatusVerdict": "kantan_agents.lab.judges",
    "StoredSpan": "kantan_agents.traces.store",
    "StoredTrace": "kantan_agents.traces.store",
    "StructuredOutputError": "kantan_agents.errors",
    "Subscription": "kantan_agents.core.events",
    "ToolCall": "kantan_agents.core.interception",
    "ToolNext": "kantan_agents.core.interception",
    "ToolRetrieval": "kantan_agents.tools.retrieval",
    "ToolRulesMode": "kantan_agents.tool_rules",
    "TraceStore": "kantan_agents.traces.store",
    "TraceSummary": "kantan_agents.traces.store",
    "UnjudgedCall": "kantan_agents.lab.rule_changes",
    "UserRules": "kantan_agents.middleware",
    "WhatIf": "kantan_agents.lab.rule_changes",
    "add_trace_processor": "agents",
    "agent_of": "kantan_agents.agent",
    "configured_servers": "kantan_agents.tools.mcp",
    "connection_stats": "kantan_agents.support.http_pools",
    "copy_traces": "kantan_agents.traces.copying",
    "detect_matched_rule": "kantan_agents.lab.judges",
    "explain": "kantan_agents.tools",
    "find_tag": "kantan_agents.lab.judges",
    "get_context_with_tool_rules": "kantan_agents.tool_rules",
    "get_effective_tool_rules": "kantan_agents.tools",
    "get_provider_tool_rules": "kantan_agents.tools",
    "judge": "kantan_agents.models.rubric",
    "judge_agent": "kantan_agents.lab.judges",
    "judge_status": "kantan_agents.lab.judges",
    "list_provider_tools": "kantan_agents.tools",
    "mcp_prompt": "kantan_agents.tools.mcp",
    "mcp_trace_client": "kantan_agents.traces.telemetry",
    "mcp_trace_meta": "kantan_agents.traces.telemetry",
    "parse_structured_output": "kantan_agents.models.structured",
    "record_traces": "kantan_agents.traces.recorder",
    "redact_texts": "kantan_agents.traces.recorder",
    "refresh_tool_providers": "kantan_agents.tools",
    "replay": "kantan_agents.lab.replay",
    "replay_async": "kantan_agents.lab.replay",
    "resource_text": "kantan_agents.tools.mcp",
    "rule_parameter": "kantan_agents.tools",
    "run_of": "kantan_agents.core.pipeline",
    "run_result": "kantan_agents.core.pipeline",
    "set_trace_processors": "agents",
    "subscribe": "kantan_agents.core.events",
    "task_tool": "kantan_agents.agent.delegation",
    "to_provider_response": "kantan_agents.models.protocol",
    "toolkit": "kantan_agents.toolkit",
    "trace_headers": "kantan_agents.traces.telemetry",
    "what_if": "kantan_agents.lab.rule_changes",
    "with_resources": "kantan_agents.tools.mcp",
    "use_tool_providers": "kantan_agents.tools",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("kantan-agents")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
