"""The tool rules of a run hold across the tools: what may not be read is shown by no other tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, AgentDefinition, task_tool
from kantan_agents.errors import InvalidToolRulesError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.toolkit import toolkit
from kantan_agents.toolkit.files.root import Root

Call = tuple[str, dict[str, Any]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/a.py", "src/secrets/key.txt", "secrets/b.txt", "c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"needle of {name}\n")
    return tmp_path


async def answers(
    root: Path,
    rules: dict[str, Any],
    *calls: Call,
    definition: AgentDefinition | None = None,
) -> list[str]:
    """Return what the tools answer in a run under some rules."""
    steps: list[Any] = [
        [function_call(name, arguments, call_id=str(place)) for place, (name, arguments) in enumerate(calls)],
        [assistant_message("done")],
    ]
    model = ScriptedModel(steps)
    tools = toolkit(root, write=True, approval=False)
    if definition is None:
        agent = Agent("reader", "Read.", model=model, tools=tools)
    else:
        agent = Agent.from_definition(definition, model=model, tools=tools)
    await agent.run_async("go", {"tool_rules": rules})
    assert model.last_call is not None
    return [
        str(item["output"]) for item in model.last_call.input if item.get("type") == "function_call_output"
    ]


GREP: Call = ("Grep", {"pattern": "needle", "output_mode": "content", "line_numbers": False})
GLOB: Call = ("Glob", {"pattern": "**"})
LS: Call = ("LS", {"path": "secrets"})
NOTICE = "that the tool rules do not permit to read]"


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ({}, ["c.txt", "secrets/b.txt", "src/a.py", "src/secrets/key.txt"]),
        ({"deny": ["Read(secrets/**)"]}, ["c.txt", "src/a.py", "src/secrets/key.txt"]),
        ({"deny": ["Read(secrets)"]}, ["c.txt", "src/a.py"]),
        ({"deny": ["Read"]}, []),
        ({"allow": ["Grep", "Glob", "Read(src/**)"]}, ["src/a.py", "src/secrets/key.txt"]),
        ({"allow": ["Grep", "Glob", "Read(src/**)"], "deny": ["Read(*.txt)"]}, ["src/a.py"]),
        ({"allow": ["Grep", "Glob"]}, ["c.txt", "secrets/b.txt", "src/a.py", "src/secrets/key.txt"]),
        ({"params": {"Read": {"file_path": {"pattern": r"\.py$"}}}}, ["src/a.py"]),
        ({"params": {"Read": {"file_path": {"pattern": "^/.*/src/"}}}}, ["src/a.py", "src/secrets/key.txt"]),
        ({"deny": ["Grep(src/**)", "Glob(src/**)"]}, None),
    ],
)
async def test_grep_and_glob_show_what_may_be_read(
    root: Path, rules: dict[str, Any], shown: list[str] | None
) -> None:
    calls: list[Call] = [("Grep", {**GREP[1], "path": "."}), ("Glob", {**GLOB[1], "path": "."})]
    grep, glob = await answers(root, rules, *calls)
    wanted = ["c.txt", "secrets/b.txt"] if shown is None else shown
    lines = [line for line in grep.split("\n") if not line.startswith("[")]
    assert lines == [f"{path}:needle of {path}" for path in wanted]
    assert sorted(line for line in glob.split("\n") if not line.startswith("[")) == wanted
    assert (NOTICE in grep) == (NOTICE in glob) == (len(wanted) < 4)


@pytest.mark.parametrize(
    "form", ["{}/secrets/**", "/{}/secrets", "file://{}/secrets/b.txt", "path:{}/secrets"]
)
@pytest.mark.parametrize("key", ["deny", "disallowedTools"])
async def test_an_entry_with_an_absolute_path_holds_for_each_tool(root: Path, form: str, key: str) -> None:
    entries = [f"{tool}({form.format(root)})" for tool in ("Read", "Write", "MultiEdit")]
    path = {"file_path": "secrets/b.txt"}
    changed = {"old_string": "needle", "new_string": "x"}
    file = AgentDefinition("a", "does a", system_prompt="Read.", disallowed_tools=tuple(entries))
    found = await answers(
        root,
        {"deny": entries} if key == "deny" else {},
        ("Read", path),
        ("Write", {**path, "content": "x"}),
        ("Edit", {**path, **changed}),
        ("MultiEdit", {**path, "edits": [changed]}),
        ("Grep", {"pattern": "secrets/b"}),
        ("Read", {"file_path": "src/secrets/key.txt"}),
        definition=file if key != "deny" else None,
    )
    assert "needle of secrets" not in "".join(found)
    assert [answer.startswith("[kantan-agents][E8]") for answer in found[:2]] == [True, True]
    assert "needle of src/secrets/key.txt" in found[-1]
    assert (root / "secrets/b.txt").read_text() == "needle of secrets/b.txt\n"


async def test_an_entry_about_paths_outside_of_the_root_is_an_error_for_a_strict_agent(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    allow = [f"Read(/{root}/src/**)", f"Read({root}/src/**)"]
    rules: dict[str, Any] = {"tool_rules": {"deny": ["Read(//etc/**)", "Read(/etc/**)"], "allow": allow}}
    end = f"matches no path: the root of the tool is '{root}'"
    problems = [
        f"allow: 'Read({root}/src/**)' {end}; an absolute path begins with two slashes",
        f"deny: 'Read(//etc/**)' {end}",
    ]
    model = ScriptedModel([[assistant_message("done")]])
    await Agent("a", "x", model=model, tools=toolkit(root)).run_async("go", dict(rules))
    likely = f"deny: 'Read(/etc/**)' denies only 'etc/**' below the root of the tool, '{root}'"
    warned = sorted(one for record in caplog.records for one in getattr(record, "problems", []))
    assert warned == [*problems, likely]
    with pytest.raises(InvalidToolRulesError) as caught:
        await Agent("a", "x", model=model, tools=toolkit(root), strict=True).run_async("go", dict(rules))
    assert all(problem in str(caught.value) for problem in problems)
    assert likely not in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "is_written"),
    [
        ({"deny": ["Write(secrets/**)"]}, True),
        ({"allow": ["Write(src/**)"]}, True),
        ({"deny": ["Write(src/**)"]}, False),
        ({"allow": ["Write(docs/**)"]}, False),
    ],
)
@pytest.mark.slow  # starts a process
async def test_a_path_is_checked_in_another_process_as_well(
    root: Path, rules: dict[str, Any], is_written: bool
) -> None:
    content = "1,2\n" * 3000  # so many values that they are checked elsewhere
    (answer,) = await answers(root, rules, ("Write", {"file_path": "src/new.csv", "content": content}))
    assert (root / "src/new.csv").exists() is is_written, answer


def test_a_root_is_known_by_its_path_with_and_without_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert set(Root.at(tmp_path / "link").names) >= {f"{tmp_path}/real", f"{tmp_path}/link"}


async def test_ls_and_a_named_file_are_no_way_around(root: Path) -> None:
    rules = {"deny": ["Read(secrets/**)"]}
    named = ("Grep", {"pattern": "needle", "path": "secrets/b.txt"})
    read = ("Read", {"file_path": f"{root}/src/../secrets/b.txt"})
    ls, grep, refused = await answers(root, rules, LS, named, read)
    assert ls == f"[secrets has nothing to list]\n[left out: 1 files {NOTICE}"
    assert grep == f"[nothing found]\n[left out: 1 files {NOTICE}"
    assert "needle" not in refused


async def test_an_edit_shows_nothing_of_a_file_that_may_not_be_read(root: Path) -> None:
    edit = {"file_path": "secrets/b.txt", "old_string": "needles", "new_string": "x"}
    several = {"file_path": "secrets/b.txt", "edits": [{"old_string": "needle", "new_string": "x"}]}
    for answer in await answers(root, {"deny": ["Read(secrets/**)"]}, ("Edit", edit), ("MultiEdit", several)):
        assert "[E166] The tool rules do not permit to read 'secrets/b.txt'" in answer
    assert (root / "secrets/b.txt").read_text() == "needle of secrets/b.txt\n"


async def test_rules_of_the_agent_count_as_well(root: Path) -> None:
    reader = AgentDefinition(
        name="reader", description="reads", system_prompt="Read.", tools=["Grep", "Read(src/*)"]
    )
    (found,) = await answers(root, {}, GREP, definition=reader)
    assert found.split("\n")[0] == "src/a.py:needle of src/a.py"
    assert "[left out: 3 files" in found


async def test_a_delegated_agent_is_under_the_rules_of_the_agent_above(root: Path) -> None:
    model = ScriptedModel(
        [
            [
                function_call(
                    "Task", {"description": "d", "prompt": "p", "subagent_type": "finder"}, call_id="1"
                )
            ],
            [function_call("Grep", GREP[1], call_id="2")],
            [assistant_message("done")],
            [assistant_message("done")],
        ]
    )
    finder = AgentDefinition(name="finder", description="finds", system_prompt="Find.", tools=["Grep"])
    tools = [*toolkit(root), task_tool([finder])]
    agent = Agent("lead", "Lead.", model=model, tools=tools)
    await agent.run_async("go", {"tool_rules": {"deny": ["Read(secrets)"]}})
    outputs = [
        str(item["output"])
        for call in model.calls
        for item in call.input
        if item.get("type") == "function_call_output" and "needle" in str(item["output"])
    ]
    assert outputs
    assert not any("secrets" in output for output in outputs)


@pytest.mark.parametrize(
    ("rules", "is_named"),
    [
        ({}, True),
        ({"deny": ["Read(.env)"]}, False),
        ({"deny": ["Read(**/.env)", "Read(secrets/**)"]}, False),
        ({"allow": ["Read(src/**)", "Grep", "Glob", "LS", "Write"]}, False),
        ({"deny": ["Read"]}, False),
    ],
)
async def test_a_hint_does_not_name_what_a_rule_hides(
    root: Path, rules: dict[str, Any], *, is_named: bool
) -> None:
    (root / ".env").write_text("KEY=1")
    (root / "link").symlink_to(".env")
    calls: list[Call] = [
        ("Read", {"file_path": ".envv"}),
        ("Edit", {"file_path": ".envv", "old_string": "a", "new_string": "b"}),
        ("Grep", {"pattern": "x", "path": ".envv/x"}),
        ("LS", {"path": ".envv"}),
        ("Read", {"file_path": "link"}),
        ("Write", {"file_path": "link", "content": "x"}),
        ("LS", {"path": "link"}),
    ]
    found = await answers(root, rules, *calls)
    hints = [one for one in found if "'.env'" in one]
    assert len(hints) == (len(calls) if is_named else 0), hints


async def test_a_hint_names_a_nearby_file_that_may_be_read(root: Path) -> None:
    for name in ("token1", "token2"):
        (root / name).write_text("x")
    (answer,) = await answers(root, {"deny": ["Read(token1)"]}, ("Read", {"file_path": "token"}))
    assert "did you mean 'token2'?" in answer
    (answer,) = await answers(root, {"deny": ["Read(secrets/**)"]}, ("LS", {"path": "secret"}))
    assert "did you mean" not in answer
