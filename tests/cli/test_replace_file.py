"""A file is replaced atomically and never becomes readable for more users."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.agents import below
from kantan_agents.cli.agents.fix import replace_file
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
    replace_file(file, b"old", b"new", boundary=file.parent)
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
        replace_file(file, b"old", b"new", boundary=file.parent)
    finally:
        os.umask(umask)
    assert set(modes) == {0o600}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_owner_and_group_are_kept(file: Path) -> None:
    os.chown(file, 12345, 23456)
    file.chmod(0o640)
    replace_file(file, b"old", b"new", boundary=file.parent)
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
    replace_file(file, b"old", b"new", boundary=file.parent)
    assert (file.read_bytes(), mode(file)) == (b"new", after)


def test_a_file_with_a_hard_link_is_not_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "b.md").hardlink_to(file)
    with pytest.raises(FileArgumentError, match=r"it has 2 names \(hard links\), and only this one would"):
        replace_file(file, b"old", b"new", boundary=file.parent)
    assert (tmp_path / "b.md").read_bytes() == file.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_neither_a_link_nor_its_target_is_replaced(file: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    link = tmp_path / "sub" / "link.md"
    link.symlink_to("../a.md")
    with pytest.raises(FileArgumentError, match="it is a link, and links are not followed; name the file"):
        replace_file(link, b"old", b"new", boundary=file.parent)
    assert link.is_symlink()
    assert file.read_bytes() == b"old"


def test_a_file_that_becomes_a_link_while_it_is_replaced_leaves_the_target_alone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside" / "secret.md"
    outside.parent.mkdir()
    outside.write_bytes(b"old")
    inside = tmp_path / "inside"
    inside.mkdir()
    path = inside / "a.md"
    replaced, is_replaced = [], os.replace

    def swapping(*names: Any, **options: Any) -> None:
        path.unlink()
        path.symlink_to(outside)
        is_replaced(*names, **options)
        replaced.append(path.is_symlink())

    monkeypatch.setattr(os, "replace", swapping)
    path.write_bytes(b"old")
    replace_file(path, b"old", b"new", boundary=inside)
    assert (replaced, path.read_bytes(), outside.read_bytes()) == ([False], b"new", b"old")


def test_a_directory_that_becomes_a_link_while_a_file_is_replaced_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for directory in (inside, outside):
        directory.mkdir()
        (directory / "a.md").write_bytes(b"old")
    may_write = os.access

    def swapping(*names: Any, **options: Any) -> bool:
        inside.rename(tmp_path / "moved")
        inside.symlink_to(outside)
        return may_write(*names, **options)

    monkeypatch.setattr(os, "access", swapping)
    replace_file(inside / "a.md", b"old", b"new", boundary=tmp_path)
    assert (outside / "a.md").read_bytes() == b"old"
    assert (tmp_path / "moved" / "a.md").read_bytes() == b"new"


def test_without_descriptors_of_directories_links_are_not_followed_either(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(below, "_USES_DESCRIPTORS", False)
    replace_file(file, b"old", b"new", boundary=tmp_path.parent)
    (tmp_path / "link").symlink_to(".")
    for path in (tmp_path / "link" / "a.md", tmp_path / "link.md"):
        if path.name == "link.md":
            path.symlink_to("a.md")
        with pytest.raises(FileArgumentError, match="links are not followed"):
            replace_file(path, b"new", b"newer", boundary=tmp_path.parent)
    assert file.read_bytes() == b"new"


def test_a_full_disk_leaves_the_old_content_and_no_temporary_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileArgumentError, match="No space left on device"):
        replace_file(file, b"old", b"new", boundary=file.parent)
    assert (file.read_bytes(), only(file)) == (b"old", True)
