"""Entries of allow that permit any program, because the named one starts others; never complete."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from kantan_agents.tool_rules.calls import is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.wrappers import GIT, WRAPPERS

_PLACE: Final = "PROGRAM"

SHELLS: Final = ("sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "pwsh", "powershell", "cmd", "busybox")

BY_OPTIONS: Final = {
    "find": "find . -exec PROGRAM ;",
    "fd": "fd -x PROGRAM",
    "fdfind": "fdfind -x PROGRAM",
    "rg": "rg --pre PROGRAM x",
    "tar": "tar -cf x . --to-command=PROGRAM",
    "zip": "zip x . -T -TT PROGRAM",
    "rsync": "rsync -e PROGRAM x: .",
    "ssh": "ssh -o ProxyCommand=PROGRAM x",
    "scp": "scp -S PROGRAM x: .",
    "sftp": "sftp -S PROGRAM x",
    "sed": "sed '1e PROGRAM'",
    "awk": "awk 'BEGIN {system(\"PROGRAM\")}'",
    "gawk": "gawk 'BEGIN {system(\"PROGRAM\")}'",
    "mawk": "mawk 'BEGIN {system(\"PROGRAM\")}'",
    "sort": "sort --compress-program=PROGRAM",
    "split": "split --filter=PROGRAM",
    "man": "man -P PROGRAM x",
    "wget": "wget --use-askpass=PROGRAM",
    "gcc": "gcc -wrapper PROGRAM x.c",
    "g++": "g++ -wrapper PROGRAM x.c",
    "gdb": "gdb -ex '!PROGRAM'",
    "vim": "vim -c '!PROGRAM'",
    "vi": "vi -c '!PROGRAM'",
    "nvim": "nvim -c '!PROGRAM'",
    "emacs": "emacs --eval '(shell-command \"PROGRAM\")'",
    "sqlite3": "sqlite3 x '.shell PROGRAM'",
    "psql": "psql -c '\\! PROGRAM'",
    "mysql": "mysql -e '\\! PROGRAM'",
    "make": "make -f FILE",
    "gmake": "gmake -f FILE",
    "just": "just -f FILE",
    "ninja": "ninja -f FILE",
    "cmake": "cmake -E env PROGRAM",
    "pytest": "pytest FILE",
    "tox": "tox -c FILE",
    "nox": "nox -f FILE",
    "crontab": "crontab FILE",
    "tmux": "tmux new PROGRAM",
    "screen": "screen PROGRAM",
}
"""Programs that run another one by an option or a file, even after further words."""

INTERPRETERS: Final = {
    "python": "python -c CODE",
    "pypy": "pypy -c CODE",
    "node": "node -e CODE",
    "nodejs": "nodejs -e CODE",
    "deno": "deno eval CODE",
    "bun": "bun -e CODE",
    "ruby": "ruby -e CODE",
    "perl": "perl -e CODE",
    "php": "php -r CODE",
    "lua": "lua -e CODE",
    "Rscript": "Rscript -e CODE",
    "java": "java FILE",
    "osascript": "osascript -e CODE",
    "npx": "npx -c PROGRAM",
    "uvx": "uvx PACKAGE",
    "bunx": "bunx PACKAGE",
}
"""Programs that run code, unless the next words name it."""

BY_SUBCOMMAND: Final = {
    "git": (
        "git -c alias.x='!PROGRAM' x",
        "archive bisect clone config difftool fetch filter-branch grep ls-remote pull push rebase submodule",
    ),
    "gh": ("gh alias set x '!PROGRAM'", "alias extension"),
    "npm": ("npm exec PACKAGE", "exec x install i add ci init create explore config"),
    "pnpm": ("pnpm dlx PACKAGE", "dlx exec install i add create config"),
    "yarn": ("yarn dlx PACKAGE", "dlx exec install add create config"),
    "pip": ("pip install PACKAGE", "install download wheel config"),
    "pip3": ("pip3 install PACKAGE", "install download wheel config"),
    "pipx": ("pipx run PACKAGE", "run install inject"),
    "uv": ("uv run PROGRAM", "run pip add sync tool build"),
    "poetry": ("poetry run PROGRAM", "run add install build config"),
    "pdm": ("pdm run PROGRAM", "run add install build config"),
    "hatch": ("hatch run PROGRAM", "run shell build"),
    "conda": ("conda run PROGRAM", "run install create"),
    "gem": ("gem install PACKAGE", "install"),
    "bundle": ("bundle exec PROGRAM", "exec install"),
    "composer": ("composer exec PROGRAM", "exec install require"),
    "cargo": ("cargo --config FILE run", "run build test install bench check"),
    "go": ("go run FILE", "run generate test tool install"),
    "dotnet": ("dotnet run", "run build test tool exec"),
    "mvn": ("mvn -f FILE", ""),
    "gradle": ("gradle -b FILE", ""),
    "rake": ("rake -f FILE", ""),
    "docker": ("docker run IMAGE PROGRAM", "run exec build compose buildx"),
    "podman": ("podman run IMAGE PROGRAM", "run exec build compose"),
    "kubectl": ("kubectl exec x -- PROGRAM", "exec run debug apply create"),
}
"""An example, and the subcommands that run another program."""

_RUNS: Final = ("run", "exec", "x", "dlx", "tool")
_WRAPPERS: Final = {name for wrapper in WRAPPERS for name in wrapper.names}
_VERSION: Final = re.compile(r"(?<=[a-z])[\d.]+\Z")
_ENDING: Final = re.compile(r"\.(?:exe|cmd|bat)\Z", re.IGNORECASE)


def remark_on_entry(entry: str) -> str | None:
    """Return why an entry permits any program, if known."""
    if not is_call_pattern(entry):
        return None
    try:
        pattern = parse_call_pattern(entry)
    except ValueError:
        return None
    example = _example(pattern.argument.split(" ")) if pattern.form == "prefix" else None
    return None if example is None else f"{entry} permits any program, as in: {example}"


def _example(words: list[str]) -> str | None:
    name = _ENDING.sub("", words[0].replace("\\", "/").rpartition("/")[2])
    plain = name if name in BY_OPTIONS or name in BY_SUBCOMMAND else _VERSION.sub("", name)
    valued = GIT.valued if name == "git" else ()
    further = [
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and before not in valued  # the value of an option
    ]
    if plain in BY_OPTIONS:
        return BY_OPTIONS[plain]
    if plain in BY_SUBCOMMAND:
        example, subcommands = BY_SUBCOMMAND[plain]
        if not further:
            return example
        if further[0] not in subcommands.split():
            return None
        named = words[words.index(further[0]) + 1 :] if further[0] in _RUNS and len(further) > 1 else []
        return _example(named) if named else " ".join([*words, "..."])
    if plain in INTERPRETERS:
        return None if further else INTERPRETERS[plain]
    if name in SHELLS:
        return None if further else f"{name} -c {_PLACE}"
    # A value of an option, a variable or a number may precede the program.
    return f"{' '.join(words)} {_PLACE}" if name in _WRAPPERS and not _names_a_program(words) else None


def _names_a_program(words: list[str]) -> bool:
    last = words[-1]
    return len(words) > 1 and not (last.startswith("-") or "=" in last or last.isdigit())
