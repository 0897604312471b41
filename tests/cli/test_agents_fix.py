"""``kantan-agents agents fix``: invalid files become valid YAML with the same content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import AgentDefinition
from kantan_agents.cli.agents import fix
from kantan_agents.subagent_files.fix import fixed_text
from tests.cli.agent_folder import ERRORS, REPAIRED, agent_file, broken_folder

PLAIN = b"---\nname: a\n# kept\ndescription: Use: this\ncategory:   'kept'\n---\n\nPrompt: as it is\r\n"
FIXED = PLAIN.replace(b"Use: this", b'"Use: this"')
DIFF = """\
--- a.md
+++ a.md
@@ -1,7 +1,7 @@
 ---
 name: a
 # kept
-description: Use: this
+description: "Use: this"
 category:   'kept'
 ---
\x20
"""


@pytest.fixture
def file(project: Path) -> Path:
    """A repaired file in the current directory."""
    path = project / "a.md"
    path.write_bytes(PLAIN)
    return path


def leftovers(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.endswith(".part")]


def test_it_shows_the_difference_and_writes_it(kantan_agents: Any, file: Path) -> None:
    outcome = kantan_agents("agents", "fix", "a.md")
    assert (outcome.code, outcome.stdout) == (0, DIFF)
    assert outcome.stderr == "fixed a.md\n1 file, 1 fixed\n"
    assert file.read_bytes() == FIXED
    assert leftovers(file.parent) == []


def test_a_dry_run_only_shows_it(kantan_agents: Any, file: Path) -> None:
    outcome = kantan_agents("agents", "fix", "a.md", "--dry-run")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, DIFF, "1 file, 1 to fix\n")
    assert file.read_bytes() == PLAIN


def test_every_fixed_file_keeps_its_content_and_needs_no_second_fix(
    kantan_agents: Any, project: Path
) -> None:
    folder = broken_folder(project / ".claude" / "agents")
    before = {name: AgentDefinition.load(folder / name) for name in REPAIRED}
    outcome = kantan_agents("agents", "fix")
    assert outcome.code == 1
    assert [line for line in outcome.stderr.splitlines() if ": error: " in line] == [
        line for line in kantan_agents("agents", "validate").stdout.splitlines() if ": error: " in line
    ]
    for name, definition in before.items():
        after = AgentDefinition.load(folder / name)
        assert (after, after.repairs) == (definition, ())
    for name, (content, _, _) in ERRORS.items():
        assert (folder / name).read_bytes() == content

    files = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = kantan_agents("agents", "fix")
    assert (again.code, again.stdout) == (1, "")
    assert again.stderr.endswith(f"{len(files)} files, 0 fixed, {len(ERRORS)} errors\n")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == files


def test_valid_files_are_not_changed(kantan_agents: Any, project: Path) -> None:
    path = agent_file(project / ".claude" / "agents" / "a.md", "a")
    inode = path.stat().st_ino
    outcome = kantan_agents("agents", "fix")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "", "1 file, 0 fixed\n")
    assert path.stat().st_ino == inode


def test_the_difference_shows_a_missing_line_end_at_the_end_of_the_file(
    kantan_agents: Any, file: Path
) -> None:
    file.write_bytes(b"---\nname: a\ndescription: b: c\n---\nPrompt")
    assert kantan_agents("agents", "fix", "a.md").stdout.endswith(
        " ---\n Prompt\n\\ No newline at end of file\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="no modes and links there")
def test_the_mode_is_kept_and_a_link_to_a_fixed_file_is_no_error(
    kantan_agents: Any, project: Path, file: Path
) -> None:
    file.chmod(0o640)
    link = project / "agents" / "link.md"
    link.parent.mkdir()
    link.symlink_to("../a.md")
    outcome = kantan_agents("agents", "fix", "agents", "a.md")
    assert outcome.code == 0
    assert outcome.stderr.endswith("2 files, 1 fixed\n")
    assert link.is_symlink()
    assert file.read_bytes() == FIXED
    assert file.stat().st_mode & 0o777 == 0o640
    assert leftovers(project) == leftovers(link.parent) == []


def test_missing_paths_are_an_error(kantan_agents: Any, file: Path) -> None:
    kantan_agents("agents", "fix", "a.md", "none").is_one_error("[E79] Cannot use none: No such file")
    assert file.read_bytes() == PLAIN


class TestNotFixed:
    def check(self, outcome: Any, reason: str, line: int = 1) -> None:
        assert outcome.code == 1
        error = f"a.md:{line}: error: cannot be fixed: {reason} [E30]"
        assert outcome.stderr == f"{error}\n1 file, 0 fixed, 1 error\n"

    def test_a_file_changed_by_another_program_is_not_overwritten(
        self, kantan_agents: Any, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def changed(text: str) -> str | None:
            file.write_bytes(b"another")
            return fixed_text(text)

        monkeypatch.setattr(fix, "fixed_text", changed)
        self.check(kantan_agents("agents", "fix", "a.md"), "it was changed by another program")
        assert file.read_bytes() == b"another"
        assert leftovers(file.parent) == []

    def test_a_file_deleted_by_another_program_is_an_error(
        self, kantan_agents: Any, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def vanished(text: str) -> str | None:
            file.unlink()
            return fixed_text(text)

        monkeypatch.setattr(fix, "fixed_text", vanished)
        self.check(kantan_agents("agents", "fix", "a.md"), "No such file or directory")
        assert not file.exists()
        assert leftovers(file.parent) == []

    def test_a_file_that_may_not_be_written(
        self, kantan_agents: Any, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may do everything
        self.check(kantan_agents("agents", "fix", "a.md"), "it may not be written")
        assert file.read_bytes() == PLAIN

    def test_a_directory_that_may_not_be_written(
        self, kantan_agents: Any, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        is_open = os.open

        def refused(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
            if flags & os.O_CREAT:
                raise PermissionError(13, "Permission denied")
            return is_open(path, flags, mode, **options)

        monkeypatch.setattr(os, "open", refused)
        self.check(kantan_agents("agents", "fix", "a.md"), "Permission denied")
        monkeypatch.undo()
        assert file.read_bytes() == PLAIN

    @pytest.mark.parametrize("text", [None, "---\nname: a\ndescription: other\n---\n", "no front"])
    def test_a_text_with_another_meaning_is_not_written(
        self, kantan_agents: Any, file: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
    ) -> None:
        monkeypatch.setattr(fix, "fixed_text", lambda _: text)
        where = "line 4: description: contains ': ' and is not quoted"
        reason = f"no valid YAML has the same meaning ({where})"
        self.check(kantan_agents("agents", "fix", "a.md"), reason, line=4)
        assert file.read_bytes() == PLAIN

    def test_a_file_with_a_hard_link_is_not_written(self, kantan_agents: Any, file: Path) -> None:
        (file.parent / "b").hardlink_to(file)
        reason = "it has 2 names (hard links), and only this one would change"
        assert f"cannot be fixed: {reason} [E30]" in kantan_agents("agents", "fix", "a.md").stderr
        assert file.read_bytes() == PLAIN


@pytest.mark.skipif(os.name == "nt", reason="no links there")
class TestLinks:
    """No path below the repository leads to a write outside it."""

    @pytest.fixture
    def outside(self, tmp_path: Path) -> Path:
        path = tmp_path / "outside" / "agents" / "a.md"
        path.parent.mkdir(parents=True)
        path.write_bytes(PLAIN)
        return path

    @pytest.mark.parametrize(
        ("link", "target", "arguments"),
        [
            (".claude/agents/a.md", "a.md", []),
            (".claude/agents/a.md", "a.md", [".claude/agents"]),
            (".claude/agents/a.md", "a.md", [".claude/agents/a.md"]),
            (".claude/agents/deep", ".", []),
            (".claude/agents/deep", ".", [".claude/agents/deep"]),
            (".claude/agents/deep", ".", [".claude/agents/deep/a.md"]),
            (".claude/agents", ".", []),
            (".claude/agents", ".", [".claude/agents"]),
            (".claude/agents", ".", ["."]),
            (".claude", "..", []),
            (".claude", "..", [".claude"]),
            (".claude", "..", [".claude/agents/a.md"]),
            ("x", ".", ["x/../agents"]),
            ("x", ".", ["x/../agents/a.md"]),
        ],
    )
    @pytest.mark.parametrize("is_absolute", [False, True])
    @pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
    def test_a_file_behind_a_link_is_skipped_with_the_reason(
        self,
        kantan_agents: Any,
        project: Path,
        outside: Path,
        link: str,
        target: str,
        arguments: list[str],
        is_absolute: bool,
        dry_run: list[str],
    ) -> None:
        (project / link).parent.mkdir(parents=True, exist_ok=True)
        (project / link).symlink_to(os.path.normpath(outside.parent / target))
        inode = outside.stat().st_ino
        paths = [str(project / path) if is_absolute else path for path in arguments]
        outcome = kantan_agents("agents", "fix", *paths, *dry_run)
        assert (outside.read_bytes(), outside.stat().st_ino) == (PLAIN, inode)
        assert leftovers(outside.parent) == []
        if arguments == ["."]:
            return  # directories that begin with a dot are not searched
        assert (outcome.code, outcome.stdout) == (1, "")
        assert ": error: cannot be fixed: " in outcome.stderr
        if ".." not in str(arguments):
            assert "links are not followed; name the file itself, " in outcome.stderr
            assert str(outside) in outcome.stderr

    def test_a_file_that_is_named_by_its_own_path_is_fixed(
        self, kantan_agents: Any, project: Path, outside: Path
    ) -> None:
        assert kantan_agents("agents", "fix", str(outside)).code == 0
        assert outside.read_bytes() == FIXED

    def test_a_linked_home_of_the_user_is_followed(
        self, kantan_agents: Any, project: Path, tmp_path: Path, outside: Path
    ) -> None:
        (tmp_path / "home" / ".claude").symlink_to(outside.parents[1])
        assert kantan_agents("agents", "fix").code == 0
        assert outside.read_bytes() == FIXED


def test_text_in_a_file_cannot_send_control_characters_to_the_terminal(
    kantan_agents: Any, file: Path
) -> None:
    file.write_bytes(b"---\nname: a\ndescription: b: c\ncolor: '[bold]'\n---\n\n\x1b[2J\x07\n")
    file.rename(file.with_name("a\x1b[2J.md"))
    outcome = kantan_agents("agents", "fix", ".")
    assert outcome.code == 0
    assert not {"\x1b", "\x07", "\r"} & set(outcome.stdout + outcome.stderr)
    assert "--- ./a[U+001B][2J.md\n" in outcome.stdout or "--- a[U+001B][2J.md\n" in outcome.stdout
