"""Commands in Markdown files: arguments are inserted once, and nothing in a file is executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import RunState, function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, CommandLoader, Middleware, Next, Run, SlashCommands
from kantan_agents.errors import (
    CommandFileError,
    InvalidOptionError,
    KantanAgentsError,
    ToolNotAllowedError,
    UnknownCommandError,
)
from kantan_agents.testing import ScriptedModel
from kantan_agents.tools.skills import CommandFile
from tests.tools.skills.conftest import call, fill, outputs, shell, shown

REVIEW = """---
description: Reviews a pull request: well
argument-hint: [number] [focus]
allowed-tools: fill
model: haiku
color: red
---

Review $1 with $2 ($ARGUMENTS).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "review.md").write_text(REVIEW, encoding="utf-8")
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "commit.md").write_text("# Write a commit\n\nBe brief.", encoding="utf-8")
    return tmp_path


def test_the_fields_of_a_file_are_read(folder: Path) -> None:
    catalog = CommandLoader(folder).load_commands_now()
    assert catalog.names() == ("commit", "review")
    assert catalog.get("Review") == CommandFile(
        "review",
        "Review $1 with $2 ($ARGUMENTS).\n",
        "Reviews a pull request: well",
        argument_hint="[number] [focus]",
        allowed_tools=("fill",),
        model="haiku",
        extra={"color": "red"},
    )
    assert catalog.get("commit").summary == "Write a commit"
    with pytest.raises(UnknownCommandError):
        catalog.get("nope")


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("$1 and $2 of $ARGUMENTS", 'a "b c" d', 'a and b c of a "b c" d'),
        ("$1$2", "only", "only"),
        ("$10 $ARGUMENTS_X $100", "a", " $ARGUMENTS_X $100"),
        ("Go.", "", "Go."),
        ("Go.", "now", "Go.\n\nARGUMENTS: now"),
        ("$1|$2", "it's me", "it's|me"),
        ("$1", "$ARGUMENTS {{ $ctx.a }}", "$ARGUMENTS"),
    ],
)
def test_arguments_are_inserted(body: str, arguments: str, expected: str) -> None:
    assert CommandFile("go", body).expand(arguments) == expected


@given(st.text(max_size=40))
def test_what_is_typed_is_inserted_once_and_unchanged(arguments: str) -> None:
    assert CommandFile("go", "<$ARGUMENTS>").expand(arguments) == f"<{arguments}>"


def test_shell_lines_and_mentions_stay_text_and_are_named() -> None:
    text = "---\ndescription: x\n---\nStatus: !`git status`\nSee @README.md, not me@example.com\n! ls\n!ls\n"
    command = CommandFile.loads(text, name="go")
    assert command.expand("") == text.partition("---\n")[2].partition("---\n")[2]
    assert [note.line for note in command.notes] == [4, 5, 7]


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"\xff", b"---\nallowed-tools Read\n---\nGo", b"---\n- a\n---\nGo"]
)
def test_a_file_that_is_wrong_is_a_problem_of_the_catalog(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.md").write_bytes(content)
    with pytest.raises(CommandFileError):
        CommandFile.load(tmp_path / "bad.md")
    catalog = CommandLoader(tmp_path).load_commands_now()
    assert (len(catalog), {problem.code for problem in catalog.problems}) == (0, {"E191"})


def test_links_are_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret.md"
    secret.write_text("SECRET", encoding="utf-8")
    (folder / "leak.md").symlink_to(secret)
    (folder / "all").symlink_to(secret.parent)
    catalog = CommandLoader(folder).load_commands_now()
    assert catalog.names() == ("commit", "review")
    assert {folder / "leak.md", folder / "all"} <= {problem.path for problem in catalog.problems}


def agent_of(folder: Path, *steps: Any, rules: Any = None, **options: Any) -> tuple[Agent, Any]:
    model = ScriptedModel([*steps, "Done."])
    commands = SlashCommands(rules or {"allow": "*"}, files=CommandLoader(folder), **options)
    return Agent("dev", "Help.", model=model, tools=[fill, shell], middleware=[commands]), model


async def test_the_text_is_sent_to_the_model_under_the_limit_of_the_file(folder: Path) -> None:
    agent, model = agent_of(folder, call("shell", command="ls"), call("fill", form="A"))
    context = await agent.run_async("/review 12 {{$ctx.key}}", {"key": "s3cret"})
    first = '{"command": "review", "allowed_tools": ["fill"]}'
    text = f"{first}\n\nReview 12 with {{{{$ctx.key}}}} (12 {{{{$ctx.key}}}}).\n"
    assert model.calls[0].input == [{"role": "user", "content": text}]
    assert shown(model, 0) == ["fill"]
    refused, filled = outputs(context)
    assert refused.startswith("[kantan-agents][E8] Tool is not allowed: shell")
    assert filled == "A is filled"


class Twice(Middleware):
    """Makes each run twice."""

    async def run(self, run: Run, call_next: Next) -> None:
        await call_next(run)
        run.result = None
        await call_next(run)


async def test_arguments_that_look_like_a_command_are_not_run_even_if_the_run_is_repeated(
    tmp_path: Path,
) -> None:
    (tmp_path / "say.md").write_text("$ARGUMENTS", encoding="utf-8")
    model = ScriptedModel(["Once.", "Done."])
    commands = SlashCommands({"allow": "*"}, files=CommandLoader(tmp_path))
    agent = Agent("dev", "Help.", model=model, tools=[shell], middleware=[Twice(), commands])
    context = await agent.run_async("/say /shell ls")
    assert outputs(context) == []
    assert [one.input[0]["content"] for one in model.calls] == ["/shell ls"] * 2


async def test_a_resumed_run_is_under_the_limit_of_its_command(folder: Path) -> None:
    model = ScriptedModel([call("sign"), call("shell", command="ls"), "Done."])
    sign = function_tool(lambda: "signed", name_override="sign", needs_approval=True)
    (folder / "contract.md").write_text("---\nallowed-tools: sign\n---\nSign.", encoding="utf-8")
    commands = SlashCommands({"allow": "*"}, files=CommandLoader(folder))
    agent = Agent("dev", "Help.", model=model, tools=[sign, shell], middleware=[commands])
    text = (await agent.run_async("/contract"))["result"].to_state().to_string()
    (folder / "contract.md").unlink()
    state = await RunState.from_string(agent.sdk_agent, text)
    state.approve(state.get_interruptions()[0])
    made = outputs(await agent.run_async(state))
    assert made[-2] == "signed"
    assert made[-1].startswith("[kantan-agents][E8] Tool is not allowed: shell")


@pytest.mark.parametrize("stored", [False, True])
async def test_a_resumed_run_has_the_model_of_its_command(folder: Path, stored: bool) -> None:
    usual, fast = ScriptedModel(["Usual."]), ScriptedModel([call("sign"), call("sign"), "Fast."])
    sign = function_tool(lambda: "signed", name_override="sign", needs_approval=True)
    (folder / "contract.md").write_text("---\nmodel: fast\n---\nSign.", encoding="utf-8")
    commands = SlashCommands({"allow": "*"}, files=CommandLoader(folder), models={"fast": fast})
    agent = Agent("dev", "Help.", model=usual, tools=[sign], middleware=[commands])
    context: Any = await agent.run_async("/contract")
    for _ in range(2):
        state = context["result"].to_state()
        if stored:
            state = await RunState.from_string(agent.sdk_agent, state.to_string())
        state.approve(state.get_interruptions()[0])
        context = await agent.run_async(state)
    assert (context["result"].final_output, usual.calls) == ("Fast.", ())


async def test_what_a_command_has_sent_is_under_its_limit_when_it_is_given_as_items(folder: Path) -> None:
    agent, model = agent_of(folder)
    context: Any = await agent.run_async("/review 1")
    model.enqueue("Done.")
    await agent.run_async(context["result"].input)
    first, again = model.calls
    assert [tool.name for tool in first.tools] == [tool.name for tool in again.tools] == ["fill"]


async def test_user_rules_decide_by_the_name_and_tool_lists_of_the_agent_do_not(folder: Path) -> None:
    agent, _ = agent_of(folder, rules={"allow": ["commit"]})
    with pytest.raises(ToolNotAllowedError):
        await agent.run_async("/review 1")
    file = AgentDefinition("dev", "Helps", "Help.", tools=("fill",))
    commands = SlashCommands({"allow": ["commit"]}, files=CommandLoader(folder))
    limited = Agent.from_definition(file, tools=[fill], model=ScriptedModel(["Done."]), middleware=[commands])
    assert (await limited.run_async("/commit"))["result"].final_output == "Done."


async def test_a_tool_keeps_its_name_and_help_lists_the_files(folder: Path) -> None:
    (folder / "shell.md").write_text("Ignore the tool.", encoding="utf-8")
    (folder / "help.md").write_text("Ignore the help.", encoding="utf-8")
    agent, model = agent_of(folder)
    assert (await agent.run_async("/shell ls"))["result"].final_output == "ls has run"
    listed = (await agent.run_async("/help"))["result"].final_output
    assert "/review [ARGUMENTS]: Reviews a pull request: well" in listed
    explained = (await agent.run_async("/help review"))["result"].final_output
    assert "[number] [focus]" in explained
    assert not model.calls


async def test_a_new_file_is_a_command_at_once(folder: Path) -> None:
    agent, _ = agent_of(folder)
    with pytest.raises(KantanAgentsError):
        await agent.run_async("/later")
    (folder / "later.md").write_text("Do it later.", encoding="utf-8")
    assert (await agent.run_async("/later"))["result"].final_output == "Done."


async def test_the_model_of_a_file_counts_only_if_the_program_maps_it(folder: Path) -> None:
    agent, _ = agent_of(folder)
    assert (await agent.run_async("/review 1"))["result"].final_output == "Done."
    agent, model = agent_of(folder, models={"haiku": ScriptedModel(["By haiku."])})
    assert (await agent.run_async("/review 1"))["result"].final_output == "By haiku."
    assert not model.calls


def test_options_are_checked() -> None:
    for options in ({"files": "commands"}, {"models": ["haiku"]}):
        with pytest.raises(InvalidOptionError):
            SlashCommands({"allow": "*"}, **options)
