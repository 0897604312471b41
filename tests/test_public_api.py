from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import agents
import pytest

import kantan_agents


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_every_public_name_exists_and_has_a_home() -> None:
    for name in kantan_agents.__all__:
        assert getattr(kantan_agents, name) is not None
    assert set(kantan_agents.__all__) == set(kantan_agents._HOMES)
    assert set(kantan_agents.__all__) <= set(dir(kantan_agents))


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
        ".protocol",
        ".events",
        ".middleware",
        ".interception",
        ".definitions",
        ".retrieval",
        ".capture",
    )
    meanings: dict[str, object] = {}
    for package in packages:
        module = import_module(f"kantan_agents{package}")
        for name in module.__all__:
            value = getattr(module, name)
            assert meanings.setdefault(name, value) is value, f"{module.__name__}.{name}"
