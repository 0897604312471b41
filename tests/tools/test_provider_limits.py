"""Nobody gets tools of installed packages by surprise: limits for a process, origins, and a notice."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from agents import HostedMCPTool
from agents.mcp import MCPServerStdio
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import (
    Agent,
    get_provider_tool_rules,
    list_provider_tools,
    refresh_tool_providers,
    use_tool_providers,
)
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.tools.origins import tool_origins
from kantan_agents.tools.providers.choice import permitted_providers
from tests.distributions import ACME, RIVAL, Installed, Use
from tests.programs import Preloaded

VARIABLE = "KANTAN_AGENTS_TOOL_PROVIDERS"


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("KANTAN_AGENTS_STATE_DIR", str(tmp_path / "state"))
    yield
    use_tool_providers(None)
    refresh_tool_providers()


def agent(**options: Any) -> Agent:
    return Agent("a", "x", model=ScriptedModel([[assistant_message("Done.")]]), **options)


async def names_of(built: Agent) -> set[str]:
    context = await built.run_async("hi", {"tool_rules": {"allow": "*"}})
    assert context
    model: Any = built.sdk_agent.model
    return {tool.name for tool in model.calls[0].tools}


# Limits


@pytest.mark.parametrize(
    ("variable", "call", "expected"),
    [
        (None, None, {"search", "send", "refund"}),
        ("all", None, {"search", "send", "refund"}),
        ("none", None, set()),
        ("acme", None, {"search"}),
        (" acme , acme-mail,not-installed", None, {"search", "send"}),
        (None, (), set()),
        (None, ("acme",), {"search"}),
        ("all", ("acme",), {"search"}),
        ("none", ("acme",), set()),
        ("acme,acme-mail", ("acme-mail", "acme-shop"), {"send"}),
        ("acme", (None,), {"search"}),
    ],
)
def test_the_variable_and_the_call_both_limit_the_providers_of_the_process(
    use: Use, monkeypatch: pytest.MonkeyPatch, variable: str | None, call: Any, expected: set[str]
) -> None:
    if variable is not None:
        monkeypatch.setenv(VARIABLE, variable)
    if call is not None:
        use_tool_providers(*call)
    use(ACME)
    assert {tool for tool in list_provider_tools() if tool in {"search", "send", "refund"}} == expected
    built = repr(agent())
    assert {name for name in ("search", "send", "refund") if name in built} == expected
    assert set(get_provider_tool_rules()["deny"] or ()) == ({"refund"} if "refund" in expected else set())


def test_a_permitted_provider_that_is_not_installed_is_logged_once_with_the_installed_ones(
    use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    use_tool_providers("acmee")
    use(ACME)
    with caplog.at_level(logging.WARNING, "kantan_agents.tools"):
        assert "search" not in repr(agent())
        agent()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("permitted tool providers are not installed: acmee (installed: acme, ")


def test_a_provider_that_is_not_permitted_is_not_even_imported(
    installed: Installed, preloaded: Preloaded, tmp_path: Path
) -> None:
    log = tmp_path / "imported"
    script = "from kantan_agents import Agent; print(Agent('a', 'x', model='gpt-6.1-terra'))"
    environment = {**installed.environment(ACME), "ACME_IMPORTED": str(log), "OPENAI_API_KEY": "x"}
    for value, is_imported in (("none", False), ("other", False), ("acme", True)):
        done = preloaded.run(["-c", script], env={**environment, VARIABLE: value})
        assert done.returncode == 0, done.stderr
        assert log.exists() is is_imported, value


@pytest.mark.parametrize("choice", [["acme-mail"], ["acme", "acme-mail"]])
def test_an_agent_cannot_choose_a_provider_that_the_process_does_not_permit(use: Use, choice: Any) -> None:
    use_tool_providers("acme")
    use(ACME)
    with pytest.raises(InvalidOptionError, match=r"names acme-mail, which .* does not permit"):
        agent(tool_providers=choice)
    assert "acme-tools" in repr(agent(tool_providers=["acme"]))
    assert "acme-mail" not in repr(agent(tool_providers="all"))


def test_existing_agents_keep_their_tools(use: Use) -> None:
    use(ACME)
    before = agent()
    use_tool_providers()
    assert "search" in repr(before)
    assert "search" not in repr(agent())


@pytest.mark.parametrize("value", ["", ",", "acme,", "none,acme", "all,acme", "all,none"])
def test_an_unclear_variable_is_an_error_and_permits_nothing(
    use: Use, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    use(ACME)
    monkeypatch.setenv(VARIABLE, value)
    for act in (agent, list_provider_tools):
        with pytest.raises(InvalidOptionError, match=VARIABLE):
            act()
    agent(tool_providers=None)


@pytest.mark.parametrize("names", [("",), (1,), ("acme", None), (["acme"],), (None, None)])
def test_names_of_providers_must_be_texts(names: Any) -> None:
    with pytest.raises(InvalidOptionError, match="must be names of tool providers, or None alone"):
        use_tool_providers(*names)


NAMES = st.frozensets(st.sampled_from(["a", "b", "c"]))


@given(variable=st.none() | NAMES, calls=st.lists(NAMES, max_size=3))
def test_no_call_permits_what_the_variable_does_not(variable: Any, calls: list[frozenset[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if variable is not None:
            patch.setenv(VARIABLE, ",".join(variable) or "none")
        for names in calls:
            use_tool_providers(*names)
        permitted = permitted_providers()
        use_tool_providers(None)
    everything = frozenset("abc")
    expected = (everything if variable is None else variable) & (calls[-1] if calls else everything)
    assert (everything if permitted is None else permitted) == expected


# Origins


def get_order() -> str:
    """Return an order."""
    return "4711"


ORIGINS = (
    "own: get_order; MCP server hosted: its tools; acme (acme-tools 1.2): search; "
    "acme-mail (acme-tools 1.2): send; acme-shop (acme-tools 1.2): refund; MCP server files: its tools"
)


async def test_repr_and_trace_name_the_origin_of_every_tool(use: Use, traces: Any) -> None:
    use(ACME)
    hosted = HostedMCPTool({"type": "mcp", "server_label": "hosted", "server_url": "https://example.com"})
    server = MCPServerStdio({"command": "never-started"}, name="files")
    built = agent(
        tools=[get_order, hosted], mcp_servers=[server], tool_providers=["acme", "acme-mail", "acme-shop"]
    )
    assert repr(built).endswith(f", tools=[{ORIGINS}])")
    recorded = agent(tools=[get_order], tool_providers=["acme"])
    await recorded.run_async("hi")
    origins = "own: get_order; acme (acme-tools 1.2): search"
    (trace,) = traces.traces(metadata={"tool_origins": origins})
    assert trace.metadata["agent_name"] == "a"


async def test_an_agent_without_tools_has_no_origins(traces: Any) -> None:
    built = agent(tool_providers=None)
    assert "tools" not in repr(built)
    await built.run_async("hi")
    (trace,) = traces.traces()
    assert "tool_origins" not in trace.metadata


@given(
    names=st.lists(st.text(min_size=1, max_size=200), max_size=100),
    servers=st.lists(st.text(max_size=200), max_size=100),
)
def test_the_text_about_origins_is_bounded(names: list[str], servers: list[str]) -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    origins = tool_origins([Named(name) for name in names], (), [Named(name) for name in servers])
    assert len(origins) <= 11
    assert len(json.dumps(origins)) < 20_000


# The notice


def notices(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        getattr(record, "provider", "")
        for record in caplog.records
        if record.getMessage().startswith("an installed package gives new tools to agents: ")
    ]


def start(use: Use, *distributions: Any) -> None:
    """Create the first agent after a start."""
    use(*distributions)
    agent(tool_providers="available")


def test_a_package_that_appears_between_two_starts_is_logged_once(
    use: Use, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    use_tool_providers("acme", "acme-mail", "acme-shop")
    start(use)
    assert notices(caplog) == []
    start(use, ACME)
    assert notices(caplog) == ["acme", "acme-mail", "acme-shop"]
    start(use)
    assert len(notices(caplog)) == 3
    (file,) = (tmp_path / "state").iterdir()
    if os.name != "nt":
        assert file.stat().st_mode & 0o777 == 0o600


def test_the_first_start_remembers_without_a_notice(use: Use, caplog: pytest.LogCaptureFixture) -> None:
    start(use, ACME)
    assert notices(caplog) == []
    start(use)
    assert notices(caplog) == []


def test_without_providers_nothing_is_written(
    use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(ACME)
    agent(tool_providers=None)
    list_provider_tools()
    monkeypatch.setenv(VARIABLE, "none")
    agent()
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"providers": 5}', '{"providers": [5]}', "[" * 100_000])
def test_a_broken_state_file_is_replaced_without_an_error(
    use: Use, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    start(use)
    (file,) = (tmp_path / "state").iterdir()
    file.write_text(content)
    with caplog.at_level(logging.DEBUG, "kantan_agents.tools"):
        start(use, ACME)
    assert notices(caplog) == []
    assert "acme-mail" in file.read_text()
    assert "state file replaced" in caplog.text


@pytest.mark.parametrize(
    "block", [Path.touch, lambda path: (path / "x").mkdir(parents=True) or path.chmod(0o500)]
)
def test_a_state_directory_that_cannot_be_used_is_no_error(
    use: Use, tmp_path: Path, caplog: pytest.LogCaptureFixture, block: Callable[[Path], Any]
) -> None:
    block(tmp_path / "state")
    with caplog.at_level(logging.DEBUG, "kantan_agents.tools"):
        start(use, ACME)
    assert notices(caplog) == []
    if (tmp_path / "state").is_file():
        assert "tool providers not remembered" in caplog.text


def test_concurrent_starts_leave_a_complete_file(
    installed: Installed, preloaded: Preloaded, tmp_path: Path
) -> None:
    script = dedent("""
        from kantan_agents import Agent
        Agent("a", "x", model="gpt-6.1-terra")
    """)
    environment = {
        **installed.environment(ACME, RIVAL),
        "OPENAI_API_KEY": "x",
        "KANTAN_AGENTS_STATE_DIR": str(tmp_path / "state"),
        VARIABLE: "acme",
    }
    with ThreadPoolExecutor() as threads:
        ends = list(threads.map(lambda _: preloaded.run(["-c", script], env=environment), range(4)))
    assert {done.returncode for done in ends} == {0}
    (file,) = (tmp_path / "state").iterdir()
    assert ["acme", "acme-tools"] in json.loads(file.read_text())["providers"]
