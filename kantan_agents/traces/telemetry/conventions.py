"""The names from the OpenTelemetry conventions for generative AI, and our own.

The conventions (https://github.com/open-telemetry/semantic-conventions-genai) are "Development": a later
version may rename any. The copies in ``opentelemetry-semantic-conventions`` are older.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/gen-ai/{VERSION}"

CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT_ON: Final = frozenset({"true", "1", "span_only", "span_and_event"})
CONTENT_OFF: Final = frozenset({"", "false", "0", "no_content", "event_only"})

# Attributes.

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
OUTPUT_TYPE: Final = "gen_ai.output.type"
AGENT_NAME: Final = "gen_ai.agent.name"
PROMPT_NAME: Final = "gen_ai.prompt.name"
PROMPT_VERSION: Final = "gen_ai.prompt.version"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_MODALITY: Final = "gen_ai.token.modality"  # noqa: S105
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
ERROR_TYPE: Final = "error.type"
SESSION_ID: Final = "session.id"
"""From the general conventions. Backends group by it and by ``USER_ID``."""
USER_ID: Final = "user.id"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

REQUEST_SETTINGS: Final = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_output_tokens": "gen_ai.request.max_tokens",
}

# Attributes with content, which are opt-in.

INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"

# Values of OPERATION.

CHAT: Final = "chat"
INVOKE_AGENT: Final = "invoke_agent"
INVOKE_WORKFLOW: Final = "invoke_workflow"
EXECUTE_TOOL: Final = "execute_tool"

# Values of PROVIDER, by names of kantan-llm and this library, and by hosts.

PROVIDERS: Final = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "azure": "azure.ai.openai",
}
HOSTS: Final = {
    "anthropic.com": "anthropic",
    "azure.com": "azure.ai.openai",
    "deepseek.com": "deepseek",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "groq.com": "groq",
    "mistral.ai": "mistral_ai",
    "moonshot.ai": "moonshot_ai",
    "openai.com": "openai",
    "openrouter.ai": "openrouter",
    "perplexity.ai": "perplexity",
    "x.ai": "x_ai",
}
UNKNOWN_PROVIDER: Final = "openai"
"""For an unknown host: it indicates the format, and the client uses OpenAI's."""

# Events.

EVALUATION_RESULT: Final = "gen_ai.evaluation.result"

# Metrics.

INFERENCE_DURATION: Final = "gen_ai.client.inference.duration"
INPUT_TOKEN_SUM: Final = "gen_ai.client.inference.usage.input_tokens"  # noqa: S105
OUTPUT_TOKEN_SUM: Final = "gen_ai.client.inference.usage.output_tokens"  # noqa: S105
CACHE_READ_SUM: Final = "gen_ai.client.inference.usage.cache_read.input_tokens"
REASONING_SUM: Final = "gen_ai.client.inference.usage.reasoning.output_tokens"
INPUT_TOKENS_OF_CALL: Final = "gen_ai.client.inference.operation.input_tokens"
OUTPUT_TOKENS_OF_CALL: Final = "gen_ai.client.inference.operation.output_tokens"
AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
SECONDS_BUCKETS: Final = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
)
TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
UNKNOWN_MODALITY: Final = "unknown"

# Our own.

OWN: Final = "kantan_agents."
TRACE_ID: Final = "kantan_agents.trace_id"
RUN_ID: Final = "kantan_agents.run_id"
SPAN_ID: Final = "kantan_agents.span_id"
WORKFLOW: Final = "kantan_agents.workflow"
METADATA: Final = "kantan_agents.metadata."
CODE: Final = "kantan_agents.code"
RULE: Final = "kantan_agents.rule"
LAYERS: Final = "kantan_agents.layers"
ANSWER: Final = "kantan_agents.answer"
TRIGGERED: Final = "kantan_agents.guardrail.triggered"
FROM_AGENT: Final = "kantan_agents.from_agent"
TO_AGENT: Final = "kantan_agents.to_agent"
SERVER: Final = "kantan_agents.mcp.server"
TURNS: Final = "kantan_agents.turns"
RESUMED: Final = "kantan_agents.resumed"
REPLAYED: Final = "kantan_agents.replayed"
OUTCOME: Final = "kantan_agents.outcome"
DATA: Final = "kantan_agents.data"
TOOL_REFUSED: Final = "kantan_agents.tool_refused"
APPROVAL_NEEDED: Final = "kantan_agents.approval_needed"
APPROVAL_GIVEN: Final = "kantan_agents.approval_given"
HANDED_OFF: Final = "kantan_agents.handed_off"
STOPPED: Final = "kantan_agents.stopped_after_turn"
CUT_OFF: Final = "kantan_agents.answer_cut_off"

OTEL_TRACE_ID: Final = "otel_trace_id"
