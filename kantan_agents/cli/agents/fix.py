"""``agents fix``: makes invalid files valid YAML."""

from __future__ import annotations

import difflib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import typer
from rich.text import Text

from kantan_agents.cli.agents.below import PlaceBelow, boundary_of, link_error, place_below
from kantan_agents.cli.agents.files import AgentFile, FoundPath, find_files, read_files
from kantan_agents.cli.agents.problems import path_text, problem_line
from kantan_agents.cli.terminal.console import BAD, GOOD, LABEL, plain, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.rows import print_lines
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.errors import AgentFileError, FileArgumentError, InvalidDefinitionError
from kantan_agents.subagent_files import AgentDefinition, Problem
from kantan_agents.subagent_files.fix import fixed_text
from kantan_agents.subagent_files.problems import unreadable

_STYLES = {"+": GOOD, "-": BAD, "@": LABEL}

_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
_OWNER_ONLY = 0o600
_GROUP, _OTHERS = 0o070, 0o007


def fix_agents(paths: Sequence[Path], *, dry_run: bool) -> None:
    """Print the changes, and write them unless ``dry_run``."""
    found = find_files(paths)
    problems, fixed, count = list(found.problems), 0, 0
    # Each file is read just before its fix: of two paths to one file, the second finds it fixed. Files behind
    # links come last, because they are not written.
    for file in read_files(sorted(found.files, key=_is_behind_a_link)):
        if not file.is_agent:
            continue
        count += 1
        failures = file.errors or _fix(file, dry_run=dry_run)
        problems += failures
        fixed += not failures and file.definition is not None and file.definition.is_repaired
    for problem in problems:
        typer.echo(problem_line(problem).plain, err=True)
    errors = f", {counted(len(problems), 'error')}" if problems else ""
    typer.echo(f"{counted(count, 'file')}, {fixed} {'to fix' if dry_run else 'fixed'}{errors}", err=True)
    if problems:
        raise typer.Exit(EXIT_FAILED)


def _fix(file: AgentFile, *, dry_run: bool) -> tuple[Problem, ...]:
    if file.definition is None or not file.definition.is_repaired:
        return ()
    text = _fixed_text(file)
    if text is None:
        return (_unfixable(file.path, file.definition.repairs),)
    boundary = boundary_of(file.tree)
    try:
        check_replaceable(file.path, boundary=boundary)
        print_lines(wide_terminal(), _changes(file, text))
        if dry_run:
            return ()
        replace_file(file.path, file.data, text.encode(), boundary=boundary)
    except FileArgumentError as error:
        return (unreadable(str(file.path), f"cannot be fixed: {error.reason}"),)
    typer.echo(f"fixed {path_text(file.path)}", err=True)
    return ()


def _is_behind_a_link(found: FoundPath) -> bool:
    try:
        check_replaceable(found.path, boundary=boundary_of(found.tree))
    except FileArgumentError:
        return True
    return False


def _unfixable(path: Path, repairs: Sequence[Problem]) -> Problem:
    places = "; ".join(f"line {repair.line}: {repair.message}" for repair in repairs)
    message = f"cannot be fixed: no valid YAML has the same meaning ({places})"
    return Problem(path, repairs[0].line, message, "error", AgentFileError.code)


def _fixed_text(file: AgentFile) -> str | None:
    """Return a repaired file, or None if its definition would change."""
    text = fixed_text(file.data.decode())
    if text is None:
        return None
    try:
        definition = AgentDefinition.loads(text.encode(), path=file.path)
    except (AgentFileError, InvalidDefinitionError):
        return None
    return text if definition == file.definition and not definition.is_repaired else None


def _changes(file: AgentFile, text: str) -> Iterator[Text]:
    name = path_text(file.path)
    before, after = (_lines(part) for part in (file.data.decode(), text))
    for line in difflib.unified_diff(before, after, name, name, lineterm=""):
        is_head = line.startswith(("---", "+++")) and line[4:] == name
        yield plain(line, LABEL if is_head else _STYLES.get(line[0], ""))


def _lines(text: str) -> list[str]:
    # Not splitlines, which splits at more characters than diff does.
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def replace_file(path: Path, before: bytes, after: bytes, *, boundary: Path) -> None:
    """Replace a file's content atomically, without following links below ``boundary``.

    The file retains its mode and, if possible, owner and group. It never becomes readable for more users. E79
    if it is behind a link, has changed since, has hard links, or cannot be written.
    """
    with _place(path, boundary) as place:
        status = _checked_status(path, place)
        if not os.access(place.name, os.W_OK, dir_fd=place.directory):
            raise FileArgumentError(path=str(path), reason="it may not be written")
        beside = place.beside(f".{secrets.token_hex(8)}.part")
        try:
            _write(beside, place, after, status)
            if _read(place) != before:
                raise FileArgumentError(path=str(path), reason="it was changed by another program")
            # If the name has become a link by now, the link is replaced, not its target.
            os.replace(beside, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=place.directory)


def check_replaceable(path: Path, *, boundary: Path) -> None:
    """Raise E79 if ``replace_file`` is impossible."""
    with _place(path, boundary) as place:
        _checked_status(path, place)


@contextmanager
def _place(path: Path, boundary: Path) -> Iterator[PlaceBelow]:
    try:
        with place_below(boundary, path) as place:
            yield place
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=str(path), reason=reason) from error


def _checked_status(path: Path, place: PlaceBelow) -> os.stat_result:
    status = os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise link_error(Path(os.path.abspath(path)), path)  # noqa: PTH100 - a link is not followed
    if not stat.S_ISREG(status.st_mode):
        raise FileArgumentError(path=str(path), reason="it is not a regular file")
    if status.st_nlink > 1:
        reason = f"it has {status.st_nlink} names (hard links), and only this one would change"
        raise FileArgumentError(path=str(path), reason=reason)
    return status


def _read(place: PlaceBelow) -> bytes:
    with open(os.open(place.name, _READ, dir_fd=place.directory), "rb") as file:  # noqa: PTH123 - the flags
        return file.read()


def _write(name: str, place: PlaceBelow, content: bytes, like: os.stat_result) -> None:
    descriptor = os.open(name, _FLAGS, _OWNER_ONLY, dir_fd=place.directory)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - the flags
        file.write(content)
        file.flush()
        if hasattr(os, "fchown"):
            # By descriptor, because the name may belong to another file by now.
            _copy_ownership(file.fileno(), like)
        os.fsync(file.fileno())


def _copy_ownership(file: int, like: os.stat_result) -> None:
    """Copy group, owner and mode to a file, in this order: each step may reset a later one."""
    mode = like.st_mode & 0o777
    if not _chown(file, -1, like.st_gid):
        # The file has a different group, which must not get more permissions than all other users have.
        mode = (mode & ~_GROUP) | ((mode & _OTHERS) << 3)
    _chown(file, like.st_uid, -1)
    os.fchmod(file, mode)


def _chown(file: int, owner: int, group: int) -> bool:
    try:
        os.fchown(file, owner, group)
    except OSError:
        # Without the permission to change it, the current user owns the file.
        return False
    return True
