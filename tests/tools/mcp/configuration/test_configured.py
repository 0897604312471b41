"""Configured servers in runs: started when needed, once, and ended; none keeps the others waiting."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from kantan_agents import (
    Agent,
    AgentDefinition,
    ConfiguredServers,
    Event,
    SlashCommands,
    configured_servers,
    replay_async,
)
from kantan_agents.errors import (
    InvalidMCPConfigurationError,
    InvalidOptionError,
    MCPNotTrustedError,
    MCPServerUnavailableError,
    UnknownMCPServerError,
)
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.mcp.configuration.servers import ConfiguredServer, StdioServer, configured_server
from tests.lab.replay.taping import Case, Tapes
from tests.mcp_servers import RealServers
from tests.tools.conftest import outputs
from tests.tools.mcp.configuration.conftest import Project
from tests.tools.mcp.processes import is_alive

SECRET = "hunter2-hunter2"


def model(*called: tuple[str, dict[str, Any]]) -> ScriptedModel:
    turns = [[function_call(name, values, call_id=f"c{i}")] for i, (name, values) in enumerate(called)]
    return ScriptedModel([*turns, [assistant_message("done")]])


def agent(servers: Any, scripted: ScriptedModel | None = None, **options: Any) -> Agent[Any]:
    return Agent("clerk", "x", model=scripted or model(), mcp_servers=servers, tool_providers=None, **options)


def tool_names(scripted: ScriptedModel) -> list[str]:
    return [tool.name for tool in scripted.calls[0].tools]


def trusted(project: Project, **options: Any) -> ConfiguredServers:
    return configured_servers(project.path, trusted=True, **options)


def test_a_server_with_mistakes_is_left_out_and_takes_no_name(
    project: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "first").mkdir()
    first = tmp_path / "first" / ".mcp.json"
    servers = {"files": {"comand": "x"}, "good": {"command": "y", "alwaysAllow": []}}
    first.write_text(json.dumps({"mcpServers": servers}))
    project.add("files", "good")
    found = configured_servers([first, project.path], trusted=True)
    assert "files" not in found.names  # not the one of the second file
    assert "good" in found.names
    remarks = [record.getMessage() for record in caplog.records if record.name == "kantan_agents.mcp"]
    assert "mcpServers.files: needs a command, or a url" in remarks[0]
    assert "mcpServers.good.alwaysAllow: has no effect" in remarks[2]
    with pytest.raises(InvalidMCPConfigurationError, match="files: needs a command") as caught:
        found["files"]
    assert caught.value.path == str(first.resolve())
    with pytest.raises(InvalidMCPConfigurationError):
        configured_servers(first, names=["files"], trusted=True)


def own(server: Any) -> ConfiguredServer:
    found = configured_server(server)
    assert found is not None
    return found


READ: tuple[str, dict[str, Any]] = ("read", {"path": "a"})


async def test_a_server_is_started_by_the_first_run_and_only_once_for_all_agents_and_runs(
    project: Project,
) -> None:
    project.add("files", "good")
    async with trusted(project) as servers:
        first, second = agent(servers), agent(servers)
        assert project.pids("good") == []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.run_async, "Go")
            tasks.start_soon(second.run_async, "Go")
        scripted = model(READ)
        await agent(servers, scripted).run_async("Go")
        assert "good: content of a" in str(outputs(scripted))
        assert len(project.pids("good")) == 1
        assert is_alive(project.pids("good")[0])
    await project.all_ended()


async def test_runs_in_other_event_loops_use_the_same_process(project: Project) -> None:
    project.add("files", "good")
    async with trusted(project) as servers:
        await agent(servers).run_async("Go")
        for run in (lambda: asyncio.run(agent(servers).run_async("Go")), lambda: agent(servers).run("Go")):
            await anyio.to_thread.run_sync(run)
        assert len(project.pids("good")) == 1
    await project.all_ended()


def test_a_process_ends_with_the_event_loop_that_started_it(project: Project) -> None:
    project.add("files", "good")
    servers = trusted(project)
    asyncio.run(agent(servers).run_async("Go"))
    asyncio.run(project.all_ended())
    asyncio.run(agent(servers).run_async("Go"))  # it is started again
    assert len(project.pids("good")) == 2
    asyncio.run(project.all_ended())


async def test_a_server_that_has_died_is_started_again(project: Project) -> None:
    project.add("files", "good")
    scripted = model(("die", {}), READ)
    async with trusted(project) as servers:
        await agent(servers, scripted).run_async("Go")
        died, read = map(str, outputs(scripted))
        assert "may have been executed or not" in died
        assert "content of a" in read
        assert len(project.pids("good")) == 2


async def test_slow_silent_broken_and_missing_servers_keep_no_other_waiting(project: Project) -> None:
    project.add("good", "good")
    for name in ("nonsense", "silent"):
        project.add(name, name, start_seconds=1)
    project.add("broken", "broken")
    project.servers["missing"] = {"command": "no-such-program"}
    project.write()
    left_out: list[str] = []

    def note(event: Event) -> None:
        if event.type == "mcp_server_omitted":
            left_out.append(event.server)

    async with trusted(project) as servers:
        scripted = model(READ)
        clerk = agent(servers, scripted, on_mcp_failure="continue")
        clerk.subscribe(note)
        await clerk.run_async("Go")
        assert "good: content of a" in str(outputs(scripted))
        assert sorted(left_out) == ["broken", "missing", "nonsense", "silent"]
        # The silent ones have been waited for at the same time, and their processes have ended.
        alone = agent([servers["good"]], other := model(READ))
        await alone.run_async("Go")
        assert "content of a" in str(outputs(other))
    await project.all_ended()


async def test_lines_that_are_not_messages_are_named_in_the_error_and_not_logged_one_by_one(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.add("nonsense", "nonsense")
    errors: list[str] = []

    async def run() -> None:
        with pytest.raises(MCPServerUnavailableError) as caught:
            await agent(servers).run_async("Go")
        errors.append(str(caught.value))

    with caplog.at_level("DEBUG"):
        async with trusted(project) as servers, anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            (server,) = servers
            one = own(server)
            assert isinstance(one, StdioServer)
            with anyio.fail_after(60):
                while True:
                    if one.nonsense.count > 3:
                        break
                    await anyio.sleep(0.01)
            project.let_go("nonsense")
    assert "its standard output has lines that are not messages of MCP: 'Hello!'" in errors[0]
    assert "Hello!" not in caplog.text
    assert caplog.text.count("mcp_server_wrote_no_message") == 1


async def test_the_package_mcp_logs_such_lines_of_other_servers_as_before(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.add("nonsense", "nonsense", start_seconds=0.1)
    async with trusted(project) as servers:
        with pytest.raises(MCPServerUnavailableError):
            await agent(servers).run_async("Go")
    logger = logging.getLogger("mcp.client.stdio")
    with caplog.at_level("ERROR"):
        try:
            raise ValueError("no message")
        except ValueError:
            logger.exception("Failed to parse JSONRPC message from server")
    assert "Failed to parse JSONRPC message from server" in caplog.text


async def test_the_servers_of_an_agent_are_started_at_the_same_time(project: Project) -> None:
    project.add("slow", "slow")
    project.add("good", "good")
    async with trusted(project) as servers, anyio.create_task_group() as tasks:
        tasks.start_soon(agent(servers, on_mcp_failure="continue").run_async, "Go")
        # `good` is the second in the list, and is started although the first never answers until now.
        await project.logged("good", "started")
        await project.logged("slow", "started")
        project.let_go("slow")


async def test_a_server_that_ends_the_run_does_so_without_waiting_for_a_slow_one(project: Project) -> None:
    project.add("slow", "slow")
    project.servers["missing"] = {"command": "no-such-program"}
    project.write()
    async with trusted(project) as servers:
        with anyio.fail_after(120), pytest.raises(MCPServerUnavailableError, match="MCP server missing"):
            await agent(servers).run_async("Go")


async def test_a_recorded_run_that_a_server_ended_is_replayed_with_the_same_error(
    project: Project, tmp_path: Path
) -> None:
    project.add("silent", "silent")
    project.servers["missing"] = {"command": "no-such-program"}
    project.write()
    tapes = Tapes(tmp_path)
    async with trusted(project) as servers:
        clerk = agent(servers)
        await tapes.run(Case(clerk))
        recording = await anyio.to_thread.run_sync(tapes.newest)
        started = len(project.pids("silent"))
        error = (await replay_async(recording, clerk)).error
        assert "MCP server missing" in str(error)
        assert len(project.pids("silent")) == started
    await anyio.to_thread.run_sync(tapes.recorder.shutdown)


async def test_a_server_may_write_any_amount_to_standard_error_of_which_the_end_is_kept(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.add("noisy", "noisy")
    others = set(threading.enumerate())  # those of servers that are open until this process ends
    async with trusted(project) as servers:
        scripted = model(("flood", {}), READ)
        await agent(servers, scripted).run_async("Go")
        assert "flooded" in str(outputs(scripted)[0])
        (server,) = servers
        with anyio.fail_after(60):
            while True:  # the thread that reads may be behind
                if own(server).last_lines(1) == ["the last line"]:
                    break
                await anyio.sleep(0.01)
        assert "StandardError(65536 bytes)" in repr(own(server).standard_error)  # type: ignore[attr-defined]
    assert capfd.readouterr() == ("", "")
    await project.all_ended()
    with anyio.fail_after(60):
        while True:
            readers = {one for one in threading.enumerate() if one.name == "kantan_agents_mcp_stderr"}
            if readers <= others:
                break
            await anyio.sleep(0.01)


async def test_an_answer_after_the_timeout_disturbs_neither_this_call_nor_the_next(project: Project) -> None:
    project.add("files", "good", timeout_seconds=0.5)
    async with trusted(project) as servers:
        scripted = model(("late", {}), READ)
        clerk = agent(servers, scripted)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clerk.run_async, "Go")
            await project.logged("good", "late")
            with anyio.fail_after(60):
                while True:
                    if len(scripted.calls) > 1:
                        break
                    await anyio.sleep(0.01)
            project.let_go("good")
        late, read = map(str, outputs(scripted))
        assert "too late" not in late
        assert "too late" not in read


async def test_a_process_gets_a_small_environment_and_what_is_configured(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OTHER_SECRET", SECRET)
    monkeypatch.setenv("API_TOKEN", SECRET)
    project.add("files", "good", env={"GIVEN": "${API_TOKEN}", "PLAIN": "1"})
    async with trusted(project, allow_env=["API_TOKEN"]) as servers:
        (server,) = servers
        scripted = model(("environment", {}))
        await agent(servers, scripted).run_async("Go")
        (answer,) = outputs(scripted)
        text = str(answer)
        assert repr(own(server)) == f"<StdioServer 'files' of {str(project.path)!r}>"
    assert text.count(SECRET) == 1
    assert all(name in text for name in ("GIVEN", "PLAIN", "PATH"))
    assert not any(name in text for name in ("OPENAI_API_KEY", "OTHER_SECRET", "KANTAN_AGENTS_CONFIG_DIR"))
    assert str(project.folder) in text  # the working directory


async def test_the_secrets_of_a_server_are_masked_in_the_error_of_a_run_and_in_its_log(
    project: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    project.add("broken", "broken", env={"API_TOKEN": "${API_TOKEN}"})
    project.servers["missing"] = {"command": "${API_TOKEN}"}
    project.write()
    with caplog.at_level("DEBUG"):
        async with trusted(project, allow_env=["API_TOKEN"]) as servers:
            for name, shown in (("broken", "it wrote: cannot start with ***"), ("missing", "'***'")):
                with pytest.raises(MCPServerUnavailableError) as caught:
                    await agent([servers[name]]).run_async("Go")
                assert shown in str(caught.value)
                assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


async def test_tools_of_the_same_name_keep_the_name_of_their_server(project: Project) -> None:
    project.add("files", "good")
    project.add("mail", "noisy")
    async with trusted(project) as servers:
        scripted = model(("mcp_files__read", {"path": "a"}), ("mcp_mail__read", {"path": "b"}))
        await agent(servers, scripted).run_async("Go")
        assert {"mcp_files__read", "mcp_mail__read"} <= set(tool_names(scripted))
        assert "read" not in tool_names(scripted)
        files, mail = map(str, outputs(scripted))
        assert "good: content of a" in files
        assert "noisy: content of b" in mail


async def test_an_entry_of_allow_for_one_server_covers_no_tool_of_another(project: Project) -> None:
    project.add("files", "good")
    project.add("mail", "noisy")
    async with trusted(project) as servers:
        scripted = model()
        rules = {"allow": ["read", "mcp__mail__read", "mcp__files__environment"]}
        await agent(servers, scripted).run_async("Go", {"tool_rules": rules})
        # `read` is the name that both servers have chosen, so it allows the tool of neither.
        assert tool_names(scripted) == ["environment", "mcp_mail__read"]
        scripted = model(READ)
        await agent(servers, scripted).run_async("Go", {"tool_rules": {"allow": ["mcp__mail__read"]}})
        assert "noisy: content of a" in str(outputs(scripted))


async def test_prompts_are_slash_commands_and_resources_are_readable(project: Project) -> None:
    project.add("files", "good")
    async with trusted(project) as servers:
        commands = SlashCommands({"allow": ["mcp__files__today"]})
        scripted = model(("read_resource", {"uri": "notes://today"}))
        clerk = agent(servers, scripted, middleware=[commands])
        context = await clerk.run_async("/mcp__files__today")
        assert context["history"][0]["text"] == "Buy milk."
        assert "Buy milk." in str(outputs(scripted))


async def test_a_server_without_the_tools_for_resources_if_its_configuration_says_so(
    project: Project,
) -> None:
    project.add("files", "good", resources=False)
    async with trusted(project) as servers:
        scripted = model()
        await agent(servers, scripted).run_async("Go")
        assert tool_names(scripted) == ["read", "environment", "die", "late", "flood"]


async def test_leaving_the_block_ends_a_process_that_never_finishes_to_start(project: Project) -> None:
    project.add("silent", "silent")
    async with trusted(project) as servers, anyio.create_task_group() as tasks:
        tasks.start_soon(agent(servers).run_async, "Go")
        await project.logged("silent", "started")
        tasks.cancel_scope.cancel()
    with anyio.fail_after(120):
        await project.all_ended()


async def test_the_published_server_for_files_works_from_a_configuration(
    project: Project, real_servers: RealServers, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("Buy milk.")
    project.servers["files"] = dict(await anyio.to_thread.run_sync(real_servers.filesystem, folder))
    project.write()
    async with trusted(project) as servers:
        scripted = model(("read_text_file", {"path": str(folder / "a.txt")}))
        await agent(servers, scripted).run_async("Go", {"tool_rules": {"allow": ["mcp__files"]}})
        assert "Buy milk." in str(outputs(scripted))


# -- subagent files


def definition(project: Project, servers: Any) -> AgentDefinition:
    path = project.folder / ".claude" / "agents" / "lead.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = "" if servers is None else f"mcpServers: {json.dumps(servers)}\n"
    path.write_text(f"---\nname: lead\ndescription: Leads.\n{listed}---\nYou lead.\n")
    return AgentDefinition.load(path)


def servers_of(one: AgentDefinition, servers: Any, **options: Any) -> list[str]:
    made: Agent[Any] = Agent.from_definition(one, model=model(), mcp_configuration=servers, **options)
    return [server.name for server in made.sdk_agent.mcp_servers]


async def test_the_servers_of_a_file_are_those_that_it_names_and_configures(project: Project) -> None:
    project.add("files", "good")
    project.add("mail", "noisy")
    servers = trusted(project)
    inline = {"own": project.server("good")}
    assert servers_of(definition(project, ["files", inline]), servers) == ["files", "own"]
    assert servers_of(definition(project, "files, mail"), servers) == ["files", "mail"]
    assert servers_of(definition(project, {"mail": None, **inline}), servers) == ["mail", "own"]
    assert servers_of(definition(project, None), servers) == []
    assert servers_of(definition(project, ["files"]), servers, mcp_servers=[servers["files"]]) == ["files"]


async def test_two_agents_of_one_file_share_its_own_server(project: Project) -> None:
    project.add("files", "good")
    async with trusted(project) as servers:
        one = definition(project, [{"own": project.server("noisy")}])
        for _ in range(2):
            scripted = model(READ)
            made: Agent[Any] = Agent.from_definition(one, model=scripted, mcp_configuration=servers)
            await made.run_async("Go")
            assert "noisy: content of a" in str(outputs(scripted))
        assert len(project.pids("noisy")) == 1
        assert project.pids("good") == []


async def test_without_a_configuration_a_file_has_no_servers(project: Project) -> None:
    project.add("files", "good")
    made: Agent[Any] = Agent.from_definition(
        definition(project, ["files", {"own": project.server("good")}]), model=model()
    )
    assert made.sdk_agent.mcp_servers == []


async def test_a_server_that_a_file_configures_itself_must_be_trusted(project: Project) -> None:
    project.add("files", "good")
    one = definition(project, [{"own": project.server("good")}])
    with pytest.raises(MCPNotTrustedError, match=r"lead\.md is not trusted yet"):
        servers_of(one, configured_servers(project.path, names=[]))
    text = AgentDefinition.loads(one.dump())  # of no file
    with pytest.raises(MCPNotTrustedError, match="Pass trusted=True if the text is yours"):
        servers_of(text, configured_servers(project.path))
    assert servers_of(text, trusted(project)) == ["own"]


async def test_a_file_must_not_take_the_name_of_a_configured_server(project: Project) -> None:
    project.add("files", "good")
    with pytest.raises(InvalidMCPConfigurationError, match="has another server of this name"):
        servers_of(definition(project, [{"files": {"command": "evil"}}]), trusted(project))


@pytest.mark.parametrize(
    ("servers", "error"),
    [
        (["fils"], UnknownMCPServerError),
        ([{"a": {"comand": "x"}}], InvalidMCPConfigurationError),
        ([["files"]], InvalidMCPConfigurationError),
        ([1], InvalidMCPConfigurationError),
        ([{"a": {"command": "x"}}, {"a": {"command": "y"}}], InvalidMCPConfigurationError),
        (["a b"], InvalidMCPConfigurationError),
        (True, InvalidMCPConfigurationError),
    ],
)
async def test_a_mistake_in_the_servers_of_a_file_is_an_error(
    project: Project, servers: Any, error: type[Exception]
) -> None:
    project.add("files", "good")
    with pytest.raises(error):
        servers_of(definition(project, servers), trusted(project))


async def test_a_configuration_of_another_type_is_e75(project: Project) -> None:
    with pytest.raises(InvalidOptionError, match="mcp_configuration"):
        servers_of(definition(project, ["files"]), ".mcp.json")


async def test_a_copy_of_the_agent_has_the_same_servers(project: Project) -> None:
    project.add("files", "good")
    servers = trusted(project)
    made: Agent[Any] = Agent.from_definition(
        definition(project, ["files"]), model=model(), mcp_configuration=servers
    )
    assert made.clone(name="other").sdk_agent.mcp_servers == [servers["files"]]
