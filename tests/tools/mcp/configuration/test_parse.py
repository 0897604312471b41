"""What a configuration file may contain, and how mistakes in it are reported."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidMCPConfigurationError, MCPFileError
from kantan_agents.tools.mcp.configuration.entry import ServerSource
from kantan_agents.tools.mcp.configuration.parse import parse_servers
from kantan_agents.tools.mcp.configuration.read_file import read_file

SECRET = "s3cr3t-V4lue-0123456789"
NAME_MISTAKE = "a name must consist of letters, digits and . - _, and begin and end with a letter or digit"
SOURCE = ServerSource(Path("/project/.mcp.json"), "0")


def written(folder: Path, content: Any, name: str = ".mcp.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def problems_of(server: Any, name: str = "files") -> tuple[str, ...]:
    return parse_servers({name: server}, SOURCE, "mcpServers").problems


def test_the_three_transports_are_read_from_json(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "$schema": "https://example.com/schema.json",
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "files"], "env": {"A": "${B:-c}"}, "cwd": "sub"},
                "old": {"type": "sse", "url": "https://example.com/sse", "headers": {"X-Key": "${KEY}"}},
                "new": {"type": "http", "url": "https://example.com/mcp", "timeout_seconds": 5},
                "short": {"url": "https://example.com/mcp", "disabled": True, "resources": False},
            },
        },
    )
    files, old, new, short = read_file(path).entries
    assert (files.transport, files.command, files.args) == ("stdio", "npx", ("-y", "files"))
    assert (files.env, files.cwd, files.source.folder) == ({"A": "${B:-c}"}, "sub", tmp_path.resolve())
    assert (old.transport, old.url, old.headers) == ("sse", "https://example.com/sse", {"X-Key": "${KEY}"})
    assert (new.transport, new.timeout_seconds, new.resources) == ("http", 5.0, True)
    assert (short.transport, short.is_disabled, short.resources) == ("http", True, False)


def test_toml_has_the_same_servers_and_other_tables_are_ignored(tmp_path: Path) -> None:
    text = '[chat]\nmodel = "x"\n[mcp.servers.files]\ncommand = "npx"\nargs = ["files"]\nstart_seconds = 3\n'
    path = written(tmp_path, text, "kantan-agents.toml")
    (entry,) = read_file(path).entries
    assert (entry.name, entry.command, entry.args, entry.start_seconds) == ("files", "npx", ("files",), 3.0)


def test_all_mistakes_of_a_file_are_in_one_error_with_their_places(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "mcpServer": {},
            "mcpServers": {
                "a b": {"command": "x"},
                "files": {"comand": "x"},
                "web": {"type": "http", "url": "example.com", "args": [], "headers": {"a b": "c"}},
                "odd": {"type": "carrier pigeon"},
                "list": ["x"],
                "late": {"command": "x", "timeout_seconds": 0, "disabled": "yes", "args": ["a", 1]},
            },
        },
    )
    with pytest.raises(InvalidMCPConfigurationError) as caught:
        read_file(path)
    assert caught.value.problems == (
        "mcpServer: is not known; the nearest key is 'mcpServers'",
        f"mcpServers.a b: {NAME_MISTAKE}",
        "mcpServers.files: needs a command, or a url",
        "mcpServers.files.comand: is not known; the nearest key is 'command'",
        "mcpServers.web.args: is not for a server of the type http",
        "mcpServers.web.url: must be the address of a server, such as https://mcp.example.com/mcp",
        "mcpServers.web.headers.a b: is not the name of a header",
        "mcpServers.odd.type: must be stdio, sse or http, not 'carrier pigeon'",
        "mcpServers.list: must be a configuration, not list",
        "mcpServers.late.args[1]: must be text, not int",
        "mcpServers.late.disabled: must be true or false, not str",
        "mcpServers.late.timeout_seconds: must be a number of seconds up to 3600, not 0",
    )
    assert all(problem in str(caught.value) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({"command": ""}, ".command: must not be empty"),
        ({"type": "stdio"}, ".command: is missing"),
        ({"type": "http"}, ".url: is missing"),
        ({"command": "x", "env": {"A=B": "c"}}, ".env.A=B: is not the name of a variable"),
        ({"command": "x", "env": {"A": 1}}, ".env.A: must be text, not int"),
        ({"command": "x", "env": []}, ".env: must map names to texts, not list"),
        ({"command": "x", "args": "y"}, ".args: must be a list of texts, not str"),
        ({"command": "x", "args": ["\0"]}, ".args[0]: has a null character"),
        ({"command": "x\n"}, ".command: has a control character"),
        ({"command": "${A"}, ".command: has ${ without a reference such as ${NAME} or ${NAME:-default}"),
        ({"command": "${A B}"}, ".command: refers to 'A B', which is not the name of a variable"),
        ({"command": "${}"}, ".command: refers to '', which is not the name of a variable"),
        ({"command": "x", "cwd": "${HOME}"}, ".cwd: cannot refer to a variable"),
        ({"url": "file:///etc/passwd"}, ".url: must be the address of a server"),
        ({"url": "https://x/", "headers": {"A": "b\r\nC: d"}}, ".headers.A: has a control character"),
        ({"url": "https://x/", "headers": {"A": "\u00e4"}}, ".headers.A: must be ASCII"),
        ({"command": "x", "start_seconds": True}, ".start_seconds: must be a number of seconds"),
        ({"command": "x", "start_seconds": 1e9}, ".start_seconds: must be a number of seconds"),
        (None, ": must be a configuration, not null"),
    ],
)
def test_a_mistake_is_named_with_its_place(server: Any, problem: str) -> None:
    assert [one for one in problems_of(server) if one.startswith(f"mcpServers.files{problem}")]


@pytest.mark.parametrize("name", ["git_hub", "a", "A1", "x" * 40, "a-b-c", "a.b", "io.github.files"])
def test_a_name_that_fits_into_the_names_of_tools_is_accepted(name: str) -> None:
    assert problems_of({"command": "x"}, name) == ()


@pytest.mark.parametrize("name", ["", "a__b", "_a", "a_", "-a", "x" * 41, "ä", ".a", "a.", "a/b", "a\nb"])
def test_a_name_that_does_not_fit_is_refused(name: str) -> None:
    assert len(problems_of({"command": "x"}, name)) == 1


def test_two_names_that_differ_only_by_case_or_separator_are_a_mistake() -> None:
    servers = {"git-hub": {"command": "x"}, "GitHub": {"command": "y"}, "git.hub": {"command": "z"}}
    parsed = parse_servers(servers, SOURCE, "mcpServers")
    why = "differs from 'git-hub' only by case or by . - _, so that people would confuse them"
    assert parsed.problems == (f"mcpServers.GitHub: {why}", f"mcpServers.git.hub: {why}")


def test_a_mistake_in_a_server_is_one_of_that_server_only(tmp_path: Path) -> None:
    servers = {"bad name": {"command": "x"}, "good": {"command": "y"}, "worse": ["z"]}
    bad, good, worse = read_file(written(tmp_path, {"mcpServers": servers})).entries
    assert (bad.name, bad.mistakes) == ("bad name", (f"mcpServers.bad name: {NAME_MISTAKE}",))
    assert (good.command, good.mistakes, good.remarks) == ("y", (), ())
    assert (worse.name, worse.mistakes) == ("worse", ("mcpServers.worse: must be a configuration, not list",))


OF_OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "Windsurf": (
        {"serverUrl": "https://x.test/mcp"},
        {"transport": "http", "url": "https://x.test/mcp"},
        [".serverUrl: read as url"],
    ),
    "Gemini": (
        {"httpUrl": "https://x.test/mcp", "timeout": 30_000},
        {"transport": "http", "url": "https://x.test/mcp", "timeout_seconds": 60.0},
        [".httpUrl: read as url", ".timeout: has no effect: it is in seconds or in milliseconds"],
    ),
    "Cline": (
        {"command": "x", "autoApprove": ["a"], "alwaysAllow": ["b"], "timeout": 60, "disabled": False},
        {"transport": "stdio", "command": "x"},
        [".autoApprove: has no effect", ".alwaysAllow: has no effect", ".timeout: has no effect"],
    ),
    "a transport": (
        {"transport": "sse", "url": "https://x.test/sse"},
        {"transport": "sse", "url": "https://x.test/sse"},
        [".transport: read as type"],
    ),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_keys_of_other_programs_are_accepted_with_a_remark(name: str) -> None:
    options, values, remarks = OF_OTHERS[name]
    (entry,) = parse_servers({"files": options}, SOURCE, "mcpServers").entries
    assert {key: getattr(entry, key) for key in values} == values
    assert entry.mistakes == ()
    assert len(entry.remarks) == len(remarks)
    for found, remark in zip(entry.remarks, remarks, strict=True):
        assert found.startswith(f"mcpServers.files{remark}")


@pytest.mark.parametrize(
    "options",
    [
        {"url": "https://x.test/", "serverUrl": "https://y.test/"},
        {"command": "x", "excludeTools": ["delete"]},
        {"command": "x", "disabledTools": ["delete"]},
        {"command": "x", "serverUrl": "https://x.test/"},
    ],
)
def test_a_key_that_may_limit_or_contradict_is_a_mistake(options: dict[str, Any]) -> None:
    (entry,) = parse_servers({"files": options}, SOURCE, "mcpServers").entries
    assert len(entry.mistakes) == 1


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (".mcp.json", "{", "it is not JSON (line 1)"),
        (".mcp.json", "[" * 100_000, "it is not JSON"),
        ("kantan-agents.toml", "a = ", "it is not TOML"),
        (".mcp.json", " " * 1_100_000, "it is larger than 1048576 bytes"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_e180(tmp_path: Path, name: str, text: str, reason: str) -> None:
    with pytest.raises(MCPFileError) as caught:
        read_file(written(tmp_path, text, name))
    assert caught.value.reason.startswith(reason)


def test_a_file_that_is_missing_or_a_folder_or_a_pipe_or_not_utf_8_is_e180(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.json").write_bytes(b'{"mcpServers": {"\xe4": {}}}')
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("missing.json", "folder", "pipe.json", "latin.json"):
        with pytest.raises(MCPFileError, match="E180"):
            read_file(tmp_path / name)


@pytest.mark.parametrize(
    ("servers", "place"),
    [
        ('"files": {"command": "good", "command": "bad"}', "files.command"),
        ('"files": {"command": "x", "env": {"A": "1", "A": "2"}}', "files.env.A"),
        ('"files": {"command": "good"}, "files": {"command": "bad"}', "files"),
    ],
)
def test_a_key_that_appears_twice_is_a_mistake_of_its_server_because_a_reader_may_see_the_first_only(
    tmp_path: Path, servers: str, place: str
) -> None:
    text = f'{{"mcpServers": {{{servers}, "other": {{"command": "x"}}}}}}'
    mistakes = {entry.name: entry.mistakes for entry in read_file(written(tmp_path, text)).entries}
    assert mistakes == {"files": (f"mcpServers.{place}: appears several times",), "other": ()}


def test_inputs_of_vs_code_are_a_remark_and_a_mistake_only_where_they_are_used(tmp_path: Path) -> None:
    servers = {"files": {"command": "x"}, "web": {"command": "x", "env": {"KEY": "${input:key}"}}}
    file = read_file(written(tmp_path, {"inputs": [{"id": "key"}], "mcpServers": servers}))
    assert [len(entry.mistakes) for entry in file.entries] == [0, 1]
    assert all(entry.remarks[0].startswith("inputs: has no effect") for entry in file.entries)


def test_a_file_that_has_servers_twice_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InvalidMCPConfigurationError, match="mcpServers: appears several times"):
        read_file(written(tmp_path, '{"mcpServers": {}, "mcpServers": {"files": {"command": "x"}}}'))


@pytest.mark.parametrize("content", [[], "text", 1, None, {}, {"mcpServers": []}, {"mcpServers": None}])
def test_a_file_without_servers_is_e181(tmp_path: Path, content: Any) -> None:
    with pytest.raises(InvalidMCPConfigurationError):
        read_file(written(tmp_path, json.dumps(content)))


def test_a_project_must_not_allow_variables(tmp_path: Path) -> None:
    path = written(tmp_path, '[mcp]\nallow_env = ["AWS_SECRET_ACCESS_KEY"]\n', "kantan-agents.toml")
    with pytest.raises(InvalidMCPConfigurationError, match="counts only in your own configuration"):
        read_file(path)
    assert read_file(path, is_own=True).allow_env == {"AWS_SECRET_ACCESS_KEY"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("${A:-${B}}"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["type", "command", "args", "env", "cwd", "url", "headers", "disabled", "resources", "timeout_seconds"]
)


@given(st.dictionaries(st.text(max_size=8), st.dictionaries(KEYS | st.text(max_size=8), VALUES) | VALUES))
def test_any_data_gives_entries_or_mistakes_and_never_an_exception(servers: Any) -> None:
    parsed = parse_servers(servers, SOURCE, "mcpServers")
    assert [entry.name for entry in parsed.entries] == [*servers]
    for entry in parsed.entries:
        assert all(one.startswith(f"mcpServers.{entry.name}") for one in entry.mistakes)
        assert entry.mistakes or bool(entry.command) is (entry.transport == "stdio")


@given(KEYS, st.sampled_from([SECRET, [SECRET], {SECRET: 1}, {"A": [SECRET]}, {"A": SECRET}]))
def test_no_message_about_a_wrong_value_shows_it(key: str, value: Any) -> None:
    if key == "type":
        return  # its value is shown: it is one of a few words
    shown = " ".join(problems_of({"command": "x", key: value}))
    wrong_name = isinstance(value, dict) and SECRET in value  # a name is not a secret
    assert wrong_name or SECRET not in shown


def test_repr_and_description_of_a_server_hide_secrets() -> None:
    servers = {
        "web": {"url": f"https://user:{SECRET}@example.com/mcp?key={SECRET}", "headers": {"X": SECRET}},
        "files": {"command": "x", "args": ["--api-key", SECRET, f"--token={SECRET}"], "env": {"A": SECRET}},
    }
    for entry in parse_servers(servers, SOURCE, "mcpServers").entries:
        assert SECRET not in repr(entry)
        assert SECRET not in entry.shown


def test_reading_a_file_imports_neither_the_sdk_nor_mcp() -> None:
    import subprocess

    code = (
        "import sys, kantan_agents.tools.mcp.configuration.configuration as one\n"
        "import kantan_agents.tools.mcp.configuration.agent_file\n"
        "import kantan_agents.tools.mcp.configuration.trust\n"
        "one.read_configuration()\n"
        "print([name for name in ('agents', 'mcp', 'openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
