"""A file of a project is trusted until it changes; nothing of it is started before."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import attrs
import pytest

from kantan_agents import AgentDefinition, configured_servers
from kantan_agents.errors import MCPNotTrustedError, MCPTrustRecordError
from kantan_agents.tools.mcp.configuration.agent_file import source_of
from kantan_agents.tools.mcp.configuration.configuration import read_configuration
from kantan_agents.tools.mcp.configuration.entry import ServerSource
from kantan_agents.tools.mcp.configuration.trust import TrustRecord
from tests.tools.mcp.configuration.conftest import Project


def source_at(path: Path) -> ServerSource:
    return read_configuration([path]).entries[0].source


def test_a_file_is_not_used_before_it_is_trusted_and_the_error_says_how(project: Project) -> None:
    path = project.add("files", "good")
    with pytest.raises(MCPNotTrustedError) as caught:
        list(configured_servers(path))
    assert f"kantan-agents mcp trust {path}" in str(caught.value)
    TrustRecord.of_user().trust(source_at(path))
    assert [server.name for server in configured_servers(path)] == ["files"]


def test_any_change_of_the_content_asks_again(project: Project) -> None:
    path = project.add("files", "good")
    TrustRecord.of_user().trust(source_at(path))
    content = path.read_text()
    path.write_text(content + "\n")
    with pytest.raises(MCPNotTrustedError, match="has changed since you trusted it"):
        list(configured_servers(path))
    path.write_text(content)
    assert len(list(configured_servers(path))) == 1


def test_a_copy_in_another_folder_is_not_trusted(project: Project, tmp_path: Path) -> None:
    path = project.add("files", "good")
    TrustRecord.of_user().trust(source_at(path))
    copy = tmp_path / ".mcp.json"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(MCPNotTrustedError, match="is not trusted yet"):
        list(configured_servers(copy))


def test_a_link_to_a_trusted_file_is_trusted_as_that_file(project: Project, tmp_path: Path) -> None:
    path = project.add("files", "good")
    TrustRecord.of_user().trust(source_at(path))
    (tmp_path / "link.json").symlink_to(path)
    (server,) = configured_servers(tmp_path / "link.json")
    assert server.name == "files"


def test_the_users_own_file_needs_no_trust_but_a_link_from_there_to_a_project_does(
    project: Project, user: Path
) -> None:
    user.mkdir()
    own = user / "kantan-agents.toml"
    own.write_text('[mcp.servers.own]\ncommand = "own"\n')
    assert [server.name for server in configured_servers(own)] == ["own"]
    (user / ".mcp.json").symlink_to(project.add("files", "good"))
    with pytest.raises(MCPNotTrustedError):
        list(configured_servers(user / ".mcp.json"))


def test_a_caller_can_vouch_for_a_file(project: Project) -> None:
    assert len(list(configured_servers(project.add("files", "good"), trusted=True))) == 1


def test_the_record_is_for_its_owner_only(project: Project, user: Path) -> None:
    path = project.add("files", "good")
    TrustRecord.of_user().trust(source_at(path))
    (file,) = (user / "trusted-mcp").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text()) == {"path": str(path), "sha256": source_at(path).digest}


def test_a_record_that_others_may_write_to_counts_for_nothing(project: Project, user: Path) -> None:
    path = project.add("files", "good")
    record = TrustRecord.of_user()
    record.trust(source_at(path))
    (file,) = (user / "trusted-mcp").iterdir()
    for changed, mode in ((file, 0o666), (file.parent, 0o777)):
        before = stat.S_IMODE(changed.stat().st_mode)
        changed.chmod(mode)
        assert record.distrust(source_at(path)) == "is not trusted yet"
        changed.chmod(before)
    assert record.distrust(source_at(path)) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"path": 1}', '{"sha256": 1}', "\udcff"])
def test_a_damaged_record_counts_for_nothing(project: Project, user: Path, content: str) -> None:
    path = project.add("files", "good")
    record = TrustRecord.of_user()
    record.trust(source_at(path))
    (file,) = (user / "trusted-mcp").iterdir()
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert record.distrust(source_at(path)) == "is not trusted yet"


def test_a_record_of_another_path_or_hash_is_not_taken(project: Project, user: Path) -> None:
    path = project.add("files", "good")
    record, source = TrustRecord.of_user(), source_at(path)
    record.trust(source)
    (file,) = (user / "trusted-mcp").iterdir()
    file.write_text(json.dumps({"path": "/elsewhere", "sha256": source.digest}))
    assert record.distrust(source) == "is not trusted yet"
    assert record.distrust(attrs.evolve(source, digest="0")) is not None


def test_trust_can_be_forgotten(project: Project) -> None:
    path = project.add("files", "good")
    record = TrustRecord.of_user()
    record.trust(source_at(path))
    assert record.forget(path) is True
    assert record.forget(path) is False
    assert record.distrust(source_at(path)) is not None


def test_a_record_that_cannot_be_written_is_e185(project: Project, user: Path) -> None:
    user.parent.mkdir(exist_ok=True)
    user.write_text("a file, not a folder")
    with pytest.raises(MCPTrustRecordError, match="E185"):
        TrustRecord.of_user().trust(source_at(project.add("files", "good")))
    with pytest.raises(MCPTrustRecordError, match="there is no home directory"):
        TrustRecord(None).trust(source_at(project.path))


def test_a_relative_variable_does_not_make_a_folder_of_the_project_the_users_own(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KANTAN_AGENTS_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, ".")
    monkeypatch.setenv("HOME", str(project.folder.parent / "home"))
    with pytest.raises(MCPNotTrustedError):
        list(configured_servers(project.add("files", "good")))


def test_of_a_subagent_file_only_its_servers_count(tmp_path: Path) -> None:
    def definition(prompt: str, command: str) -> AgentDefinition:
        path = tmp_path / "lead.md"
        servers = f"mcpServers:\n  - own:\n      command: {command}\n"
        path.write_text(f"---\nname: lead\ndescription: Leads.\n{servers}---\n{prompt}")
        return AgentDefinition.load(path)

    record = TrustRecord.of_user()
    record.trust(source_of(definition("You lead.", "good")))
    assert record.distrust(source_of(definition("You lead, friendly.", "good"))) is None
    assert record.distrust(source_of(definition("You lead.", "evil"))) is not None
