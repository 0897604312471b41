"""Checked by mypy and pyright in CI: what the public types infer to."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal

from agents import FunctionTool
from typing_extensions import assert_type

from kantan_agents import (
    DEFAULT_STAGES,
    RUBRIC,
    Agent,
    AgentCatalog,
    AgentDefinition,
    AgentLoader,
    AnthropicProvider,
    ConnectionStats,
    ContentSegment,
    CopyResult,
    Explanation,
    Flip,
    FlipCounts,
    GeminiProvider,
    IncompleteTrace,
    IndexResult,
    JudgeTemplates,
    JudgmentError,
    KantanAgentsError,
    Next,
    OutputMode,
    Pipeline,
    PostgresRecorder,
    Prompt,
    PromptStats,
    Provider,
    ProviderModel,
    ProviderResponse,
    PruneResult,
    RecorderStats,
    RuleViolation,
    Run,
    RunContext,
    SlashCommands,
    SQLiteRecorder,
    Stage,
    StageAttempt,
    StatusJudge,
    StatusRule,
    StatusVerdict,
    StoredTrace,
    StructuredOutputError,
    ToolRetrieval,
    ToolRulesMode,
    TraceStore,
    TraceSummary,
    UnjudgedCall,
    UserRules,
    WhatIf,
    add_trace_processor,
    connection_stats,
    copy_traces,
    detect_matched_rule,
    explain,
    find_tag,
    get_context_with_tool_rules,
    get_effective_tool_rules,
    get_provider_tool_rules,
    judge,
    judge_agent,
    judge_status,
    list_provider_tools,
    parse_structured_output,
    record_traces,
    redact_texts,
    rule_parameter,
    task_tool,
    to_provider_response,
    what_if,
)
from kantan_agents.models.protocol import ArgumentsPiece, ProviderContext, ProviderToolCall, ReasoningPiece
from kantan_agents.models.protocol.translate import messages_to_gemini, response_from_openai_chat
from kantan_agents.models.rubric import Rubric
from kantan_agents.tools.commands import Command, CommandRegistry
from kantan_agents.tools.retrieval import (
    BM25Retriever,
    CombinedRetriever,
    EmbeddingRetriever,
    Retriever,
    ToolMatch,
)
from kantan_agents.traces.capture import (
    ModelAnswer,
    ModelCallRecord,
    ModelRequest,
    OutputRequest,
    PromptRecord,
    RecordedDecision,
    RecordedError,
    RuleSet,
    RunRecord,
    ToolCallRecord,
    ToolDefinition,
)


async def stage(run: Run, call_next: Next) -> None:
    assert_type(run.context, dict[str, Any])
    assert_type(run.instructions, str | None)
    assert_type(call_next(run), Awaitable[None])
    await call_next(run)


class Counting:
    async def __call__(self, run: Run, call_next: Next) -> None:
        await call_next(run)


def two(text: str, context: dict[str, Any]) -> str:
    return text


async def three(text: str, context: dict[str, Any], allow_env: bool) -> str:
    return text


async def use() -> None:
    agent = Agent("a", Prompt("p", "v1", "text", meta={"k": 1}), middleware=[stage, Counting()])
    assert_type(await agent.run_async("hi"), RunContext[str])
    assert_type(agent.run("hi", {}, max_turns=3), RunContext[str])
    assert_type(agent.pipeline, Pipeline)
    assert_type(Pipeline(DEFAULT_STAGES).before("call_sdk", stage), Pipeline)
    assert_type(Pipeline(DEFAULT_STAGES).replace(Counting, ("mine", stage)), Pipeline)
    assert_type(agent.instructions, str | Prompt)
    assert_type(judge(0.5, ["x"]), dict[str, Any])
    assert_type(RUBRIC(score=1, comments=[]).score, float)
    assert_type(RUBRIC.between(0, 10), type[Rubric])
    assert_type(Agent("c", "i", output_type=RUBRIC.between(0, 10)), Agent[Rubric])
    assert_type(judge_agent(Prompt("p", "v", "t"), scale=(0, 10)), Agent[Rubric])
    Agent("a", "b", renderer=two)
    Agent("a", "b", renderer=three, metadata=lambda context: {"k": context["k"]})
    as_stage: Stage = Counting()
    Agent("a", "b", middleware=[("name", as_stage)])
    Agent("a", "b", pipeline=[stage, ("name", as_stage)], tools=[agent]).check_model()
    Agent("a", Prompt("p", "v1", "text", strict=True))


def decide(violation: RuleViolation) -> Literal["feedback", "raise"]:
    assert_type(violation.error, KantanAgentsError)
    assert_type(violation.layers, tuple[str, ...])
    return "raise"


async def decide_later(violation: RuleViolation) -> Literal["feedback", "raise"]:
    return decide(violation)


@rule_parameter("command")
def bash(directory: str, command: str) -> str:
    return directory + command


def tool_rules() -> None:
    Agent("a", "b", tools=[bash], tool_providers="all", on_rule_violation="raise", strict=True)
    Agent("a", "b", tool_providers=["shop"], on_rule_violation=decide)
    agent = Agent("a", "b", tool_providers=None, on_rule_violation=decide_later)
    assert_type(bash("a", "b"), str)
    assert_type(agent.explain_tool("bash", {"command": "ls"}), Explanation)
    assert_type(agent.explain_tool("mcp__files").unknown, str | None)
    assert_type(agent.explain_tool("mcp__files").tools, tuple[Explanation, ...])
    assert_type(explain("bash", tool_rules=ToolRulesMode.DENY_ALL).layer, str | None)
    assert_type(get_context_with_tool_rules({"allow": ["bash"]}), dict[str, Any])
    assert_type(get_effective_tool_rules(context={}), dict[str, Any])
    assert_type(get_provider_tool_rules(), dict[str, Any])
    assert_type(list_provider_tools(), list[str])


def drop_input(record: dict[str, Any]) -> dict[str, Any] | None:
    return record if record["object"] == "trace" else None


async def explained(agent: Agent) -> None:
    assert_type(await agent.explain_tool_async("mcp__files", '{"path": "x"}', {}), Explanation)


async def traces() -> None:
    recorder = record_traces("t.sqlite3", max_queue=5, max_wait=1, redact=drop_input)
    assert_type(recorder, SQLiteRecorder)
    assert_type(recorder.stats(), RecorderStats)
    assert_type(connection_stats(), list[ConnectionStats])
    assert_type(connection_stats()[0].pending_requests, int)
    assert_type(recorder.force_flush(1.5), bool)
    assert_type(await recorder.force_flush_async(), bool)
    add_trace_processor(SQLiteRecorder(recorder.path, redact=redact_texts(str.lower)))
    store = TraceStore(recorder.path)
    assert_type(store.traces(keywords=["a"], metadata={"k": 1}), list[TraceSummary])
    assert_type(await store.traces_async(prompt="p", version="v", limit=None), list[TraceSummary])
    assert_type(store.trace("LAST"), StoredTrace)
    assert_type(store.prompts(), list[PromptStats])
    assert_type(store.prompts()[0].text, str | None)
    assert_type(store.prompt_diff("p", "v1", None), str)
    assert_type(await store.prompt_async("id"), PromptRecord)
    complete_records(store.trace("LAST"))
    answer = what_if({"deny": ["bash"]}, store.recorded_calls(agent="a"), layer="base")
    assert_type(answer, WhatIf)
    assert_type(what_if(ToolRulesMode.DENY_ALL, [store.trace("LAST")]).newly_denied, Sequence[Flip])
    assert_type(answer.by_tool, Mapping[str, FlipCounts])
    assert_type(answer.unjudged, Sequence[UnjudgedCall])
    assert_type(answer.incomplete, Sequence[IncompleteTrace])
    assert_type(answer.flips[0].before.rule, str | None)
    assert_type(store.prune(keep=3, dry_run=True), PruneResult)
    assert_type(store.build_index(progress=lambda done, total: None), IndexResult)
    assert_type(await store.build_index_async(), IndexResult)
    assert_type(store.remove_index(), IndexResult)
    record_traces("t.sqlite3", search_index=False)
    assert_type(record_traces("postgresql://h/db", adopt=True), SQLiteRecorder)
    assert_type(PostgresRecorder("postgresql://h/db").stats(), RecorderStats)
    copied = copy_traces("t.sqlite3", "postgresql://h/db", progress=lambda done, total: None)
    assert_type(copied, CopyResult)
    assert_type(copied.left_out, Sequence[str])
    for record in store.export(tool="search"):
        assert_type(record, dict[str, Any])
    async for summary in store.follow_async(poll=1.0):
        assert_type(summary, TraceSummary)
    record_traces("t.sqlite3", max_que=5)  # type: ignore[call-arg]
    SQLiteRecorder(5)  # type: ignore[arg-type]
    store.traces(keyword="a")  # type: ignore[call-arg]


def complete_records(trace: StoredTrace) -> None:
    assert_type(trace.runs, Sequence[RunRecord])
    assert_type((trace.is_complete, trace.missing), tuple[bool, Sequence[str]])
    agent = trace.runs[0].agents[0]
    assert_type(agent.prompt, PromptRecord | None)
    (call,) = trace.model_calls
    assert_type(call, ModelCallRecord)
    assert_type((call.request, call.answer), tuple[ModelRequest, ModelAnswer | None])
    assert_type((call.request.instructions, call.request.hash), tuple[str | None, str])
    assert_type(call.request.tools, Sequence[ToolDefinition])
    assert_type(call.request.output, OutputRequest | None)
    (tool_call,) = trace.tool_calls
    assert_type(tool_call, ToolCallRecord)
    assert_type((tool_call.decision, tool_call.rules), tuple[RecordedDecision | None, RuleSet])
    assert_type(tool_call.error, RecordedError | None)


async def judges(templates: JudgeTemplates, error: JudgmentError) -> None:
    judge_ = StatusJudge(
        ["passes", StatusRule("fails", name="fix")], model="gpt-6.1-terra", mode="tag", language="ja"
    )
    StatusJudge(["passes"], templates=templates)
    verdict = await judge_.judge("output", {"team": "qa"}, max_turns=2)
    assert_type(verdict, StatusVerdict)
    assert_type((verdict.rule_index, verdict.step, verdict.reason), tuple[int, int, str | None])
    assert_type(verdict.log_method, Literal["structured_output", "tag_fallback", "ai_judge"])
    assert_type(verdict.attempts, tuple[StageAttempt, ...])
    assert_type(verdict.tag, str)
    attempt = verdict.attempts[0]
    assert_type((attempt.model, attempt.usage), tuple[str | None, dict[str, int] | None])
    assert_type(attempt.mode, Literal["native", "tool", "prompt"] | None)
    assert_type(judge_.run("output"), StatusVerdict)
    assert_type(await judge_.detect_matched_rule("output"), StatusVerdict)
    assert_type(await judge_status("output", ["a"], model=None), StatusVerdict)
    assert_type(await detect_matched_rule("output", ["a"], tag="STATUS"), StatusVerdict)
    assert_type(find_tag("[MOVEMENT:1]", 1), int | None)
    assert_type(judge_agent(Prompt("p", "v", "t"), RUBRIC, instructions="i"), Agent[Rubric])
    assert_type(judge_agent(Prompt("p", "v", "t")), Agent[Rubric])
    assert_type(judge_agent(Prompt("p", "v", "t"), Strict), Agent[Strict])
    assert_type(error.code, str)
    StatusJudge([5])  # type: ignore[list-item]
    StatusJudge(["a"], mode="both")  # type: ignore[arg-type]
    judge_agent("text")  # type: ignore[arg-type]


def outputs(mode: OutputMode, error: StructuredOutputError) -> None:
    Agent("a", "b", output_type=list[str], output_mode=mode, output_repairs=2)
    Agent("a", "b", output_type={"type": "object"}, output_mode="prompt")
    assert_type(parse_structured_output("{}"), dict[str, Any] | None)
    assert_type(parse_structured_output("{}", lambda found: "a" in found), dict[str, Any] | None)
    assert_type(error.text, str | None)
    assert_type(error.attempts, tuple[Any, ...])
    Agent("a", "b", output_mode="json")  # type: ignore[arg-type]
    Agent("a", "b", output_repairs="1")  # type: ignore[arg-type]
    parse_structured_output(b"{}")  # type: ignore[arg-type]


async def agent_files(loader: AgentLoader, definition: AgentDefinition) -> None:
    catalog = await loader.load_agents()
    assert_type(catalog, AgentCatalog)
    assert_type(catalog[0], AgentDefinition)
    assert_type(catalog.search("a"), tuple[AgentDefinition, ...])
    assert_type(catalog.details("a"), dict[str, Any])
    assert_type(await loader.get_agent("a"), AgentDefinition)
    assert_type(AgentDefinition.loads("---"), AgentDefinition)
    assert_type(AgentDefinition.load("a.md").dump(), str)
    assert_type(definition.tools, tuple[str, ...] | Literal["*"])
    assert_type(Agent.from_definition(definition, tools=[str], models={"opus": None}, history=0), Agent)
    assert_type(task_tool(loader, max_depth=2, on_failure="raise"), FunctionTool)
    assert_type(task_tool([definition]), FunctionTool)
    AgentDefinition(name="a")  # type: ignore[call-arg]
    task_tool(loader, on_failure="ignore")  # type: ignore[arg-type]
    Agent.from_definition("a")  # type: ignore[arg-type]


def commands(command: Command) -> None:
    rules = UserRules({"allow": ["read"]})
    assert_type(rules.to_dict(), dict[str, Any])
    assert_type(UserRules(ToolRulesMode.DENY_ALL), UserRules)
    UserRules(["read"])  # type: ignore[arg-type]
    Agent("a", "b", middleware=[SlashCommands(rules)])
    made = SlashCommands({"allow": ["read"]}, aliases={"r": "read"}, prefix="!")
    Agent("a", "b", middleware=[made, SlashCommands(ToolRulesMode.ALLOW_ALL)])
    assert_type(command.read("a 1"), dict[str, Any])
    assert_type(CommandRegistry([command]).find("r"), Command | None)
    SlashCommands()  # type: ignore[call-arg]
    SlashCommands(["read"])  # type: ignore[arg-type]


async def retrieval(agent: Agent) -> None:
    retriever: Retriever = CombinedRetriever([BM25Retriever(name_weight=3), EmbeddingRetriever("m")])
    Agent("a", "b", tool_retrieval=ToolRetrieval(8, retriever=retriever, always=["c"]))
    assert_type((await agent.select_tools("x")).shown, Sequence[str])
    assert_type((await agent.select_tools("x")).matches, Sequence[ToolMatch])
    ToolRetrieval(8, BM25Retriever())  # type: ignore[call-arg]
    Agent("a", "b", tool_retrieval=8)  # type: ignore[arg-type]


class Strict(RUBRIC):
    keep: bool


class Echo:
    name = "echo"

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        assert_type(context.tools["a"].parameters, Mapping[str, Any])
        assert_type(context.messages[-1].segments, tuple[ContentSegment, ...])
        return ProviderResponse([ContentSegment.of_text(prompt)], {"usage": {}})


async def providers(agent: Agent) -> None:
    provider: Provider = Echo()
    Agent("a", "b", model=provider)
    ProviderModel(provider)
    response = to_provider_response(await agent.run_async("hi"))
    assert_type(response.tool_calls, tuple[ProviderToolCall, ...])
    assert_type(ProviderResponse.from_json("{}"), ProviderResponse)
    ContentSegment("smell")  # type: ignore[arg-type]
    ProviderModel("echo")  # type: ignore[arg-type]
    to_provider_response("done")  # type: ignore[arg-type]


async def native_providers(context: ProviderContext) -> None:
    claude, gemini = AnthropicProvider("claude-x", api_key="k"), GeminiProvider("gemini-x", timeout=None)
    assert_type(await claude.generate("hi", context), ProviderResponse)
    async for piece in gemini.stream("hi", context):
        assert_type(piece, ContentSegment | ProviderResponse | ReasoningPiece | ArgumentsPiece)
    async with claude as entered:
        assert_type(entered, AnthropicProvider)
    assert_type(Agent("a", "b", model=claude), Agent)
    assert_type(messages_to_gemini([]), dict[str, Any])
    assert_type(response_from_openai_chat({}), ProviderResponse)
    AnthropicProvider("claude-x", on_unreadable="ignore")  # type: ignore[arg-type]
    GeminiProvider("gemini-x", schema_field="schema")  # type: ignore[arg-type]


def mistakes() -> None:
    Agent("a", "b", on_rule_violation="ignore")  # type: ignore[arg-type]
    Agent("a", "b", on_mcp_failure="continue")
    Agent("a", "b", on_mcp_failure={"files": "continue", "mail": "raise"})
    Agent("a", "b", on_mcp_failure="ignore")  # type: ignore[arg-type]
    Agent("a", "b", tool_providers=3)  # type: ignore[arg-type]
    explain("bash", tool_rules="deny_all")  # type: ignore[arg-type]
    Agent("a", None)  # type: ignore[arg-type]
    Agent("a", "b", history="5")  # type: ignore[arg-type]
    Agent("a", "b", middleware=[two])  # type: ignore[list-item]
    Prompt("n", 1, "t")  # type: ignore[arg-type]
