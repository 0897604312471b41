from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import agents
import pytest

import kantan_agents


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_every_public_name_exists_and_has_a_home() -> None:
    for name in kantan_agents.__all__:
        assert getattr(kantan_agents, name) is not None
    assert set(kantan_agents.__all__) <= set(dir(kantan_agents))


PACKAGE = Path(kantan_agents.__file__).parent
LAZY = [path for path in sorted(PACKAGE.rglob("__init__.py")) if "lazy_names(" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_a_package_that_loads_names_on_first_use_lists_each_name_three_times(path: Path) -> None:
    exported: set[str] = set()
    homes: dict[str, str] = {}
    typed: dict[str, str] = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            exported = set(ast.literal_eval(node.value))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names":
            table: dict[str, tuple[str, ...]] = ast.literal_eval(node.args[1])
            homes = {name: module for module, names in table.items() for name in names}
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            imports = [statement for statement in node.body if isinstance(statement, ast.ImportFrom)]
            typed = {alias.name: str(one.module) for one in imports for alias in one.names}
    assert homes == typed
    assert set(homes) == exported
    # Importing a module binds it in its package, and a name that is bound is not looked for.
    modules = {one.stem for one in path.parent.iterdir() if one.suffix == ".py" or one.is_dir()}
    package = import_module(".".join(path.parent.relative_to(PACKAGE.parent).parts))
    assert all(
        callable(getattr(package, name)) for name in exported & modules if (path.parent / name).is_dir()
    )
    assert not [name for name in exported & modules if not (path.parent / name).is_dir()]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Agnet'"):
        _ = kantan_agents.Agnet


def test_importing_the_package_does_not_import_the_sdk() -> None:
    code = (
        "import sys, kantan_agents\n"
        "print([m for m in ('agents', 'openai', 'kantan_llm', 'attrs', 'structlog') if m in sys.modules])"
    )
    assert run_python(code).strip() == "[]"


def test_an_agent_needs_no_more_of_the_openai_client_than_the_sdk() -> None:
    code = (
        "import sys, agents; of_sdk = {m for m in sys.modules if m.startswith('openai.')}\n"
        "from kantan_agents import Agent\n"
        "print(len({m for m in sys.modules if m.startswith('openai.')} - of_sdk))"
    )
    assert run_python(code).strip() == "0"


def test_a_prompt_needs_no_sdk() -> None:
    code = (
        "import sys; from kantan_agents import Prompt, Pipeline; Prompt('n', 'v', 't')\n"
        "print('agents' in sys.modules)"
    )
    assert run_python(code).strip() == "False"


def test_spec_1_tracing_functions_are_those_of_the_sdk() -> None:
    assert kantan_agents.add_trace_processor is agents.add_trace_processor
    assert kantan_agents.set_trace_processors is agents.set_trace_processors


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert kantan_agents.__version__ == version("kantan-agents")


def test_no_public_name_means_two_things() -> None:
    packages = (
        "",
        ".testing",
        ".models.protocol",
        ".core.events",
        ".middleware",
        ".core.interception",
        ".subagent_files",
        ".tools.retrieval",
        ".traces.capture",
        ".lab",
    )
    meanings: dict[str, object] = {}
    for package in packages:
        module = import_module(f"kantan_agents{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType):  # callable, with the name of its function
                value = getattr(value, name)
            assert meanings.setdefault(name, value) is value, f"{module.__name__}.{name}"
