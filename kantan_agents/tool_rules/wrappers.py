"""Commands that run another command, and where it begins among their options, operands and values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import attrs

SEPARATOR: Final = ";"
"""Separates two commands in a list of words."""


@attrs.frozen(eq=False)
class Wrapper:
    """Commands that run another command.

    Attributes:
        names: Their names.
        valued: Options whose value may be the next word, in any common implementation.
        code: Options after which the command begins; if there are none, it follows the options and operands.
        operands: Number of words that may precede the command.
        is_text: Whether the command may be one text, after which other words follow.
    """

    names: tuple[str, ...]
    valued: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    operands: int = 0
    is_text: bool = False


def _row(
    names: str, valued: str = "", code: str = "", operands: int = 0, *, is_text: bool = False
) -> Wrapper:
    return Wrapper(tuple(names.split()), tuple(valued.split()), tuple(code.split()), operands, is_text)


WRAPPERS: Final = (
    _row(
        "sudo",
        "-u -g -h -p -C -R -D -T -U -r -t -c -a --user --group --host --prompt --close-from --chroot --chdir"
        " --command-timeout --other-user --role --type --login-class --auth-type",
    ),
    _row("doas", "-u -C -a"),
    _row("pkexec", "--user"),
    _row(
        "su",
        "-g -G -s -w --group --supp-group --shell --whitelist-environment",
        "-c --command --session-command",
        is_text=True,
    ),
    _row(
        "runuser",
        "-u -g -G -s -w --user --group --supp-group --shell --whitelist-environment",
        operands=1,
        is_text=True,
    ),
    _row("env", "-a -C -L -P -u -U --argv0 --chdir --unset"),
    _row("exec", "-a"),
    _row("nice", "-n --adjustment"),
    _row("ionice", "-c -n --class --classdata"),
    _row("chrt", "-T -P -D --sched-runtime --sched-period --sched-deadline", operands=1),
    _row("taskset", operands=1),
    _row("timeout", "-s -k --signal --kill-after", operands=1),
    _row("time", "-f -o --format --output"),
    _row("stdbuf", "-i -o -e --input --output --error"),
    _row(
        "xargs",
        "-a -d -E -I -J -L -n -P -R -S -s --arg-file --delimiter --max-lines --max-args --max-procs"
        " --max-chars --process-slot-var",
    ),
    _row(
        "parallel",
        "-a -d -I -j -L -n -N -P -S --arg-file --colsep --delay --delimiter --jobs --joblog --max-args"
        " --max-procs --results --retries --sshlogin --timeout --workdir",
        is_text=True,
    ),
    _row("find", code="-exec -execdir -ok -okdir"),
    _row("fd fdfind", code="-x -X --exec --exec-batch"),
    _row("watch", "-n -q -s --interval --equexit --shotsdir", is_text=True),
    _row(
        "flock",
        "-w -E --wait --timeout --conflict-exit-code",
        operands=1,
        is_text=True,
    ),
    _row(
        "script",
        "-B -E -I -m -o -O -t -T --echo --log-in --log-io --log-out --log-timing --logging-format"
        " --output-limit",
        operands=1,
        is_text=True,
    ),
    _row("chroot", "--userspec --groups", operands=1),
    _row(
        "unshare",
        "-G -R -S -w --map-group --map-user --propagation --root --setgid --setgroups --setuid --wd",
    ),
    _row("nsenter", "-G -S -t --setgid --setuid --target"),
    _row(
        "setpriv",
        "--ambient-caps --apparmor-profile --bounding-set --egid --euid --groups --inh-caps --pdeathsig"
        " --regid --reuid --rgid --ruid --securebits --selinux-label",
    ),
    _row(
        "systemd-run",
        "-E -H -M -p -u --description --gid --host --machine --nice --on-active --on-calendar --property"
        " --setenv --slice --uid --unit --working-directory",
    ),
    _row(
        "strace ltrace",
        "-a -b -e -E -I -l -n -o -O -p -P -s -S -u -U -X -x --attach --env --output --string-limit --trace"
        " --user",
    ),
    _row(
        "ssh",
        "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w",
        operands=1,
        is_text=True,
    ),
    _row(
        "sh bash dash ash zsh ksh fish",
        "-C -o -O --debug-output --features --init-command --init-file --rcfile",
        is_text=True,
    ),
    _row("trap", is_text=True),
    _row("command builtin eval nohup setsid busybox caffeinate chronic unbuffer noglob nocorrect"),
    _row("! if then elif else while until do coproc and or not begin"),
)
"""The commands that are known to run another command."""

GIT: Final = _row("git", "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree")
"""The options of git in front of its subcommand."""

_BY_NAME: Final = {name: wrapper for wrapper in WRAPPERS for name in wrapper.names}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=.*", re.DOTALL)
_LONGEST_CACHED: Final = 64


class Place(NamedTuple):
    """A place in a list of words, by one reading of the words before it.

    Attributes:
        wrapper: The wrapper whose options may follow, or None.
        is_command: Whether a command may begin here.
        is_value: Whether the value of an option may follow.
        operands: Number of words that may precede the command.
        is_text: Whether the command may end before the words do.
    """

    wrapper: Wrapper | None = None
    is_command: bool = True
    is_value: bool = False
    operands: int = 0
    is_text: bool = False


AT_BEGIN: Final = frozenset([Place()])
"""The places where a list of words begins."""


def places_after(places: frozenset[Place], word: str) -> frozenset[Place]:
    """Return the places after ``word``: one for each way to read it at one of ``places``."""
    if len(word) > _LONGEST_CACHED:
        return _places_after.__wrapped__(places, word)
    return _places_after(places, word)


@lru_cache(maxsize=1024)
def _places_after(places: frozenset[Place], word: str) -> frozenset[Place]:
    return frozenset(after for place in places for after in _after(place, word))


@lru_cache(maxsize=1024)
def begins_command(places: frozenset[Place]) -> bool | None:
    """Return whether a command that begins at ``places`` may end before the words do; None if none begins."""
    return max((place.is_text for place in places if place.is_command), default=None)


def _after(place: Place, word: str) -> Iterator[Place]:
    wrapper = place.wrapper
    if place.is_value:
        yield place._replace(is_value=False)
    if word[0] in "-+":
        # Between commands, the wrapper is unknown, as in `xargs -I {} -P 4 git push`.
        is_code = wrapper is not None and is_option(word, wrapper.code)
        is_value = wrapper is None or is_option(word, wrapper.valued)
        yield place._replace(is_command=place.is_command or is_code, is_value=is_value)
    elif not place.is_command:
        yield place._replace(is_value=False)
    elif (inner := _BY_NAME.get(word.rsplit("/", 1)[-1])) is not None:
        yield Place(inner, not inner.code, False, inner.operands, place.is_text or inner.is_text)
    elif _ASSIGNMENT.fullmatch(word):
        yield place._replace(is_value=False)
    elif place.operands:
        yield place._replace(is_value=False, operands=place.operands - 1)


def is_option(word: str, options: tuple[str, ...]) -> bool:
    """Return whether ``word`` is one of ``options``, whose value follows in the next word.

    Long options may be cut short, short ones joined: ``--us root``, ``-nu root``.
    """
    word = f"-{word[1:].removesuffix('=')}"
    if word in options:
        return True
    if word.startswith("--"):
        return len(word) > 2 and any(option.startswith(word) for option in options)  # noqa: PLR2004
    first = next((place for place, sign in enumerate(word) if f"-{sign}" in options), 0)
    return first == len(word) - 1 > 0
