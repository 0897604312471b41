"""Git repositories in a project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import attrs

from kantan_agents.toolkit.named_files.gitlinks import MOST_LINKS, content_of, gitlinks
from kantan_agents.toolkit.named_files.programs import programs, words_of

_MOST = 500
_MOST_INCLUDED = 50
_MOST_BYTES = 10_000
_LARGE = frozenset(("branches", "hooks", "info", "lfs", "logs", "objects", "refs", "rr-cache"))
# With the first, git reads its configuration elsewhere. The others are in every repository.
_OF_REPOSITORIES = ("commondir", "config", "config.worktree", "hooks", "info/attributes")


@attrs.frozen
class Repository:
    """A repository; ``places`` are git's data folders: ``.git``, or the target of the file ``.git``."""

    folder: str
    places: tuple[str, ...]

    @property
    def index(self) -> str:
        """The index file, which may list other repositories."""
        return f"{self.places[0]}/index"


def repositories(folder: str) -> Iterator[Repository]:
    """Yield the repository of a folder, if any, and its submodules and worktrees below it."""
    top, waiting, seen = folder, [folder], {folder}
    while waiting and len(seen) <= MOST_LINKS:
        folder = waiting.pop()
        found = Repository(folder, tuple(_places(f"{folder}/.git")))
        yield found
        # An unreadable index is no reason to stop: the command is still watched.
        parts = {f"{folder}/{link}" for link in gitlinks(found.index) or ()}
        parts |= {one for one in _worktrees(found) if one.startswith(f"{top}/")}
        waiting += parts - seen
        seen |= parts


def _worktrees(repository: Repository) -> Iterator[str]:
    for place in repository.places:
        for one in _inner(f"{place}/worktrees")[0]:
            yield os.path.dirname(os.path.realpath(os.path.join(one, _line(f"{one}/gitdir"))))


def used_by_git(repository: Repository) -> Iterator[str]:
    """Yield the files that git executes or reads its configuration from."""
    root = repository.folder
    if os.path.isfile(f"{root}/.git"):  # a worktree or a submodule: it names the folder
        yield f"{root}/.git"
    for git in repository.places:
        inner = [git]
        for folder in (f"{git}/modules", f"{git}/worktrees"):
            found, is_all = _inner(folder)
            inner += found
            yield from () if is_all else (folder,)
        for one in inner:
            yield from (f"{one}/{name}" for name in _OF_REPOSITORIES)
            if os.path.isfile(f"{one}/gitdir"):  # of another worktree
                yield f"{one}/gitdir"
            yield from _configured(root, f"{one}/config", os.path.dirname(one))
    home = os.path.expanduser("~")
    for file in (f"{home}/.gitconfig", f"{home}/.config/git/config"):
        yield from _configured(root, file, root)


def _places(git: str) -> Iterator[str]:
    led = _line(git).removeprefix("gitdir:").strip() if os.path.isfile(git) else ""
    place = os.path.normpath(os.path.join(os.path.dirname(git), led)) if led else git
    yield place
    common = _line(f"{place}/commondir")
    if common:
        yield os.path.normpath(os.path.join(place, common))


def _line(file: str) -> str:
    return os.fsdecode(content_of(file, _MOST_BYTES).partition(b"\0")[0].strip())


def _inner(folder: str) -> tuple[list[str], bool]:
    waiting, found = [folder], list[str]()
    for _ in range(_MOST):
        if not waiting:
            return found, True
        place = waiting.pop()
        is_repository = os.path.exists(f"{place}/HEAD")
        found += [place] if is_repository else []
        # Also below a repository: a command can make any folder look like one.
        with suppress(OSError):
            entries = (entry for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False))
            waiting += [entry.path for entry in entries if not (is_repository and entry.name in _LARGE)]
    return found, False


def _configured(root: str, file: str, base: str) -> Iterator[str]:
    waiting = [file]
    for _ in range(_MOST_INCLUDED):
        if not waiting:
            return
        file = waiting.pop()
        words = words_of(file)
        for key, word in pairwise(words):
            if key.lower() == "hookspath":
                yield os.path.normpath(os.path.join(root, os.path.expanduser(word)))
            elif key.lower() == "path":  # of an include
                included = os.path.normpath(os.path.join(os.path.dirname(file), os.path.expanduser(word)))
                waiting.append(included)
                yield included
        for folder in dict.fromkeys((root, base)):
            yield from programs(folder, words)
