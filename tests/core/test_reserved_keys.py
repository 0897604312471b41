"""Only the caller's code sets permissions: no file, model, tool or stored value writes a reserved key."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import kantan_agents
from kantan_agents import (
    Agent,
    AgentDefinition,
    AgentLoader,
    SlashCommands,
    StatusJudge,
    UserRules,
    task_tool,
)
from kantan_agents.core.context import PERMISSIONS, RESERVED_KEYS, is_reserved, reserved_in
from kantan_agents.errors import InvalidDefinitionError, InvalidOptionError, KantanAgentsError
from kantan_agents.middleware import Redact
from kantan_agents.middleware.slash_commands.rules import user_layers
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.testing.strategies import json_values, tool_rules
from kantan_agents.tool_rules import ToolRules
from kantan_agents.toolkit.todo_write import todo_write
from kantan_agents.tools.rules_in_force import rules_in_force

PACKAGE = Path(kantan_agents.__file__).parent
SPELLINGS = (
    "User_Rules",
    "userRules",
    "user-rules",
    "USER RULES",
    " user_rules ",
    "\uff54ool_rules",
    "toolRules",
)
KEYS = (*RESERVED_KEYS, *SPELLINGS)
OPEN = {"allow": "*"}


def file_text(context: Any, name: str = "worker") -> str:
    return f"---\nname: {name}\ndescription: Works.\ncontext: {json.dumps(context)}\n---\nYou work."


def agent_file(key: str) -> Any:
    return AgentDefinition.loads(file_text({"customer": "Aiko", key: OPEN}))


def merged_agent_file(key: str) -> Any:
    text = "---\nname: x\ndescription: y\nmine: &mine\n  {key}: {{allow: '*'}}\ncontext:\n  <<: *mine\n---\nx"
    return AgentDefinition.loads(text.format(key=json.dumps(key)))


def definition_in_code(key: str) -> Any:
    return AgentDefinition("worker", "Works.", "You work.", context={key: OPEN})


ENTRANCES: dict[str, tuple[Callable[[str], Any], type[KantanAgentsError]]] = {
    "agent/from_definition.py": (agent_file, InvalidDefinitionError),
    "agent/from_definition.py, merged": (merged_agent_file, InvalidDefinitionError),
    "agent/from_definition.py, in code": (definition_in_code, InvalidDefinitionError),
    "agent/stages/store_output.py": (lambda key: Agent("a", "x", output_dest=key), InvalidOptionError),
    "agent/stages/store_output.py, of a file": (
        lambda key: Agent.from_definition(AgentDefinition("a", "b", "c"), output_dest=key),
        InvalidOptionError,
    ),
    "agent/stages/store_output.py, of children": (
        lambda key: task_tool([], output_dest=key),
        InvalidOptionError,
    ),
    "agent/stages/store_output.py, of judges": (
        lambda key: StatusJudge(["done"], output_dest=key),
        InvalidOptionError,
    ),
    "toolkit/todo_write.py": (lambda key: todo_write(key=key), InvalidOptionError),
    "middleware/redact/redact.py": (lambda key: Redact(restore=True, keep_in=key), InvalidOptionError),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_no_entrance_accepts_a_reserved_key(entrance: str, key: str) -> None:
    enter, error = ENTRANCES[entrance]
    with pytest.raises(error):
        enter(key)


@pytest.mark.parametrize("entrance", [name for name in ENTRANCES if "judges" not in name])
def test_every_entrance_accepts_other_keys(entrance: str) -> None:
    for key in ("customer", "rules", "users", "user_rules_2", "Result", "History"):
        ENTRANCES[entrance][0](key)


def test_every_place_that_writes_a_chosen_key_is_an_entrance_of_this_test() -> None:
    writers = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if _writes_chosen_key(node):
                writers.add(path.relative_to(PACKAGE).as_posix())
    assert writers == {entrance.partition(",")[0] for entrance in ENTRANCES}


def _writes_chosen_key(node: ast.AST) -> bool:
    """Return whether a node is ``store(context, key, ...)`` or ``context[key] = ...`` with a variable key."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "store":
        return not isinstance(node.args[1], ast.Constant)
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(
        isinstance(target, ast.Subscript)
        and ast.unparse(target.value) == "run.context"
        and not isinstance(target.slice, ast.Constant)
        for target in targets
    )


def test_the_reserved_keys_are_written_in_one_place() -> None:
    assert PERMISSIONS == ("tool_rules", "user_rules")
    assert RESERVED_KEYS == ("tool_rules", "user_rules", "result", "history")
    listing = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(
            isinstance(node, (ast.Tuple, ast.List, ast.Set))
            and {"result", "tool_rules"} <= {getattr(item, "value", None) for item in node.elts}
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    ]
    assert listing == []


@given(st.text())
def test_a_key_is_reserved_only_if_it_reads_like_one(key: str) -> None:
    assert is_reserved(key) == bool(reserved_in([key]))
    if not any(letter.isalnum() for letter in key):
        assert not is_reserved(key)
    for known in PERMISSIONS:
        assert is_reserved(known.upper())
        assert not is_reserved(f"{known}{key}x") or not key.strip()


async def test_a_file_with_a_reserved_key_is_listed_as_a_problem_and_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "worker.md").write_text(file_text({"user_rules": OPEN}), encoding="utf-8")
    catalog = await AgentLoader([tmp_path]).load_agents()
    (problem,) = catalog.problems
    assert "contains 'user_rules', a key reserved by the library" in problem.message
    assert problem.line == 4
    assert len(catalog) == 0


foreign = st.dictionaries(
    st.sampled_from(KEYS) | st.text(max_size=8),
    json_values(max_leaves=4) | tool_rules(["delete", "note"]) | st.just(OPEN),
    max_size=4,
)


@given(foreign, foreign, foreign, st.sampled_from(KEYS) | st.just("answer"), st.booleans())
def test_whatever_files_models_and_tools_say_the_rules_stay_those_of_the_caller(
    of_file: Any, of_tool: Any, of_model: Any, output_dest: str, has_rules: bool
) -> None:
    deleted: list[str] = []

    def note(text: str) -> Any:
        """Note."""
        return of_tool

    def delete(name: str) -> str:
        """Delete."""
        deleted.append(name)
        return "deleted"

    own: dict[str, Any] = {"tool_rules": {"deny": ["delete"]}} if has_rules else {}
    own["user_rules"] = UserRules({"allow": ["note"]})
    calls = [function_call("note", {"text": json.dumps(of_model)}, call_id="n")]
    if has_rules:
        calls.append(function_call("delete", {"name": "a"}, call_id="d"))
    model = ScriptedModel([calls, [assistant_message(json.dumps(of_model))]])
    context = dict(own)
    try:
        agent: Agent[Any] = Agent.from_definition(
            AgentDefinition.loads(file_text(of_file)),
            model=model,
            tools=[note, delete],
            output_type={"type": "object"},
            output_dest=output_dest,
            middleware=[SlashCommands({"allow": []})],
        )
        agent.run("Hello", context)
    except KantanAgentsError as error:
        event(f"refused with {error.code}")
    else:
        event("run")
        assert rules_of(context) == rules_of(dict(own))
        with pytest.raises(KantanAgentsError):
            agent.run("/delete a", context)
    assert deleted == []


def rules_of(context: dict[str, Any]) -> tuple[Any, Any]:
    standing = Agent("a", "x", tool_providers=None).standing_rules
    for_users = user_layers(ToolRules(allow=()), context, standing)
    return rules_in_force(context, standing).rules.to_dict(), for_users.rules.to_dict()


async def test_a_structured_answer_that_looks_like_a_context_changes_no_rules() -> None:
    model = ScriptedModel([[assistant_message(json.dumps({"tool_rules": OPEN, "user_rules": OPEN}))]])
    agent = Agent("a", "x", model=model, output_type={"type": "object"}, output_dest="answer")
    context = await agent.run_async("Hello", {"tool_rules": {"deny": "*"}})
    assert context["answer"] == {"tool_rules": OPEN, "user_rules": OPEN}
    assert context["tool_rules"] == {"deny": "*"}
    assert "user_rules" not in context


async def test_a_delegated_agent_gets_the_rules_of_its_parent_and_gives_none_back() -> None:
    seen: list[Any] = []
    child = AgentDefinition.loads(file_text({"customer": "evil", "rules": OPEN}))

    async def look(run: Any, call_next: Any) -> None:
        await call_next(run)
        seen.append((run.agent.name, run.context.get("tool_rules"), run.context.get("customer")))
        run.context["tool_rules"] = dict(OPEN)

    arguments = {"description": "d", "prompt": "Go", "subagent_type": "worker"}
    steps: list[Any] = [
        [function_call("Task", arguments, call_id="t")],
        [assistant_message("child")],
        [assistant_message("parent")],
    ]
    task = task_tool([child], middleware=[look])
    boss = Agent("boss", "x", model=ScriptedModel(steps), tools=[task])
    rules = {"deny": ["delete"]}
    context = await boss.run_async("Go", {"tool_rules": rules, "customer": "Aiko"})
    assert seen == [("worker", {"deny": ["delete"]}, "Aiko")]
    assert context["tool_rules"] is rules
    assert rules == {"deny": ["delete"]}
    assert context["customer"] == "Aiko"
