"""References to environment variables: only allowed ones are expanded, once, and no value is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import configured_servers
from kantan_agents.errors import MCPVariablesError
from kantan_agents.tools.mcp.configuration.entry import ServerEntry, ServerSource
from kantan_agents.tools.mcp.configuration.masking import Masking
from kantan_agents.tools.mcp.configuration.variables import expand, missing_variables, variables_of
from tests.tools.mcp.configuration.conftest import Project

SOURCE = ServerSource(Path("/project/.mcp.json"), "0")
SECRET = "hunter2-hunter2"


def entry(**options: Any) -> ServerEntry:
    return ServerEntry("files", "stdio", SOURCE, **options)


def test_references_in_all_texts_are_expanded() -> None:
    one = entry(command="${A}/run", args=("-x", "${B:-b}${A}"), env={"T": "${C:-}"})
    expanded = expand(one, {"A": "/bin", "C": "c"})
    assert (expanded.command, expanded.args, expanded.env) == ("/bin/run", ("-x", "b/bin"), {"T": "c"})
    web = ServerEntry("w", "http", SOURCE, url="${U}/mcp", headers={"Authorization": "Bearer ${T}"})
    expanded = expand(web, {"U": "https://x", "T": "t"})
    assert (expanded.url, expanded.headers) == ("https://x/mcp", {"Authorization": "Bearer t"})
    assert variables_of(one) == ("A", "B", "C")


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("${A:-b}", {}, "b"),
        ("${A:-b}", {"A": ""}, "b"),  # as in a shell
        ("${A}", {"A": ""}, ""),
        ("$A $ {A} a$", {"A": "x"}, "$A $ {A} a$"),
        ("${A:-x:-y}", {}, "x:-y"),
        ("${A}", {"A": "${B}", "B": "no"}, "${B}"),  # a value is not expanded again
    ],
)
def test_a_reference_becomes_the_value_or_its_default(
    text: str, environ: dict[str, str], expected: str
) -> None:
    assert missing_variables(entry(command=text), environ, {"A"}) == ()
    assert expand(entry(command=text), environ).command == expected


def test_a_variable_that_is_not_allowed_is_not_read_even_if_it_has_a_default() -> None:
    one = entry(command="x", args=("${A:-b}", "${A}", "${B}", "${C}"))
    assert missing_variables(one, {"A": SECRET, "C": SECRET}, {"B", "C"}) == (
        "A may not be read (args[0])",
        "A may not be read (args[1])",
        "B is not set (args[2])",
    )


def test_a_value_that_would_break_a_header_is_refused_without_being_shown() -> None:
    web = ServerEntry("w", "http", SOURCE, url="https://x", headers={"A": "${T}"})
    missing = missing_variables(web, {"T": f"{SECRET}\r\nX: y"}, {"T"})
    assert missing == ("a value for headers.A has a control character",)
    assert missing_variables(web, {"T": f"{SECRET}\u00e4"}, {"T"}) == ("a value for headers.A is not ASCII",)


def test_the_error_names_every_variable_and_how_to_allow_it_and_shows_no_value(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    monkeypatch.delenv("OTHER", raising=False)
    path = project.add("files", "good", env={"T": "${API_TOKEN}", "O": "${OTHER}"})
    servers = configured_servers(path, names=["files"], trusted=True, allow_env=["OTHER"])
    with pytest.raises(MCPVariablesError) as caught:
        list(servers)
    message = str(caught.value)
    assert "API_TOKEN may not be read (env.T); OTHER is not set (env.O)" in message
    assert "allow_env" in message
    assert SECRET not in message
    assert project.log("good") == []


def test_of_all_servers_one_without_its_variables_is_left_out_with_a_warning(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.add("unset", "good", env={"T": "${UNSET_TOKEN}"})
    servers = configured_servers(project.add("files", "good"), trusted=True, allow_env=["UNSET_TOKEN"])
    assert [server.name for server in servers] == ["files"]
    (warned,) = [one.getMessage() for one in caplog.records if one.name == "kantan_agents.mcp"]
    assert "MCP server unset of" in warned
    assert "UNSET_TOKEN is not set (env.T)" in warned
    with pytest.raises(MCPVariablesError):
        servers["unset"]


def test_the_users_own_file_allows_variables_also_for_a_file_that_is_named(
    project: Project, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    path = project.add("files", "good", env={"T": "${API_TOKEN}"})
    user.mkdir()
    (user / "kantan-agents.toml").write_text('[mcp]\nallow_env = ["API_TOKEN"]\n')
    (server,) = configured_servers(path, trusted=True)
    assert SECRET not in repr(server)


NAMES = st.sampled_from(["A", "B", "C"])


@given(
    st.lists(st.tuples(NAMES, st.none() | st.text("xyz:", max_size=3)), max_size=4),
    st.dictionaries(NAMES, st.text(max_size=5)),
    st.frozensets(NAMES),
)
def test_nothing_that_is_not_allowed_is_ever_read(
    references: list[tuple[str, str | None]], environ: dict[str, str], allowed: frozenset[str]
) -> None:
    text = "-".join(f"${{{name}}}" if use is None else f"${{{name}:-{use}}}" for name, use in references)
    one = entry(command=text)
    if missing_variables(one, environ, allowed):
        return
    assert set(variables_of(one)) <= allowed
    only_allowed = {name: value for name, value in environ.items() if name in allowed}
    assert expand(one, environ) == expand(one, only_allowed)


@given(st.text(min_size=4, max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_the_value_of_a_variable_is_masked_wherever_it_appears(secret: str, before: str, after: str) -> None:
    masking = Masking.of(expand(entry(command="${A}"), {"A": secret}))
    shown = masking.masked(f"{before}\x00{secret}\x00{after}")
    assert f"\x00{secret}\x00" not in shown
    assert secret not in repr(masking) or len(secret) < 8
