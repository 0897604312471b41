"""A file is replaced atomically and never becomes readable for more users."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.agents.replace_file import replace_file
from kantan_agents.errors import FileArgumentError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no modes, owners and links there")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    return path


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def only(path: Path) -> bool:
    return list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644, 0o664, 0o755])
def test_the_mode_is_kept(file: Path, bits: int) -> None:
    file.chmod(bits)
    replace_file(file, b"old", b"new")
    assert (file.read_bytes(), mode(file), only(file)) == (b"new", bits, True)


@pytest.mark.parametrize("call", ["fchmod", "fchown"])
def test_other_users_cannot_read_the_new_file_before_its_mode_and_owner_are_set(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    modes: list[int] = []
    done = getattr(os, call)

    def noted(descriptor: int, *rest: int) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o777)
        done(descriptor, *rest)

    monkeypatch.setattr(os, call, noted)
    umask = os.umask(0)
    try:
        replace_file(file, b"old", b"new")
    finally:
        os.umask(umask)
    assert set(modes) == {0o600}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_owner_and_group_are_kept(file: Path) -> None:
    os.chown(file, 12345, 23456)
    file.chmod(0o640)
    replace_file(file, b"old", b"new")
    status = file.stat()
    assert (status.st_uid, status.st_gid, mode(file)) == (12345, 23456, 0o640)


@pytest.mark.parametrize(("before", "after"), [(0o640, 0o600), (0o664, 0o644), (0o660, 0o600)])
def test_if_the_group_cannot_be_kept_the_new_group_gets_no_extra_permissions(
    file: Path, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    file.chmod(before)
    monkeypatch.setattr(os, "fchown", refused)
    replace_file(file, b"old", b"new")
    assert (file.read_bytes(), mode(file)) == (b"new", after)


def test_a_file_with_a_hard_link_is_not_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "b.md").hardlink_to(file)
    with pytest.raises(FileArgumentError, match=r"it has 2 names \(hard links\), and only this one would"):
        replace_file(file, b"old", b"new")
    assert (tmp_path / "b.md").read_bytes() == file.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_the_target_of_a_link_is_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link.md").symlink_to("../a.md")
    replace_file(tmp_path / "sub" / "link.md", b"old", b"new")
    assert (tmp_path / "sub" / "link.md").is_symlink()
    assert file.read_bytes() == b"new"


def test_a_full_disk_leaves_the_old_content_and_no_temporary_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileArgumentError, match="No space left on device"):
        replace_file(file, b"old", b"new")
    assert (file.read_bytes(), only(file)) == (b"old", True)
