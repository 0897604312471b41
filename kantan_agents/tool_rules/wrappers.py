"""Commands that run another command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import attrs

SEPARATOR: Final = ";"


@attrs.frozen(eq=False)
class Wrapper:
    """Commands that run another command.

    Attributes:
        valued: Options whose value may be the next word, in any common implementation.
        code: Options that precede the command; without any, it follows the options and operands.
        is_text: Whether the command may be a single string, followed by other words.
        is_late: Whether any of several joined options takes the next word: ``bash -oc pipefail``.
    """

    names: tuple[str, ...]
    valued: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    operands: int = 0
    is_text: bool = False
    is_late: bool = False


def _row(
    names: str,
    valued: str = "",
    code: str = "",
    operands: int = 0,
    *,
    is_text: bool = False,
    is_late: bool = False,
) -> Wrapper:
    return Wrapper(
        tuple(names.split()), tuple(valued.split()), tuple(code.split()), operands, is_text, is_late
    )


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
    _row("sg", operands=1, is_text=True),
    _row("fakeroot", "-l -f -i -s -b --lib --faked --fd-base"),
    _row("firejail prlimit"),
    _row(
        "xvfb-run",
        "-e -f -n -p -s -w --auth-file --error-file --server-args --server-num --wait --xauth-protocol",
    ),
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
        is_late=True,
    ),
    _row("trap", is_text=True),
    _row("caffeinate", "-t -w"),
    _row("eval", is_text=True),
    _row("command builtin nohup setsid busybox chronic unbuffer noglob nocorrect"),
    _row("! if then elif else while until do coproc and or not begin"),
)

GIT: Final = _row("git", "-C -c --attr-source --config-env --git-dir --namespace --super-prefix --work-tree")

_BY_NAME: Final = {name: wrapper for wrapper in WRAPPERS for name in wrapper.names}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=.*", re.DOTALL)
_LONGEST_CACHED: Final = 64
_NO_WRAPPERS: Final[frozenset[Wrapper]] = frozenset()


def _with_option(options: Callable[[Wrapper], tuple[str, ...]]) -> dict[str, frozenset[Wrapper]]:
    found: dict[str, frozenset[Wrapper]] = {}
    for wrapper in (*WRAPPERS, GIT):
        for option in options(wrapper):
            first = 3 if option.startswith("--") else len(option)
            for end in range(first, len(option) + 1):
                found[option[:end]] = found.get(option[:end], _NO_WRAPPERS) | {wrapper}
    return found


_VALUED: Final = _with_option(lambda wrapper: wrapper.valued)
_CODE: Final = _with_option(lambda wrapper: wrapper.code)


class Place(NamedTuple):
    """A position in a list of words, by one reading of the words before it.

    ``is_text``: the command may end before the words do.
    """

    wrapper: Wrapper | None = None
    is_command: bool = True
    is_value: bool = False
    operands: int = 0
    is_text: bool = False


AT_BEGIN: Final = frozenset([Place()])


class Word(NamedTuple):
    """A word: the wrappers whose value (``valued``) or command (``code``) may follow."""

    is_option: bool = False
    is_assignment: bool = False
    names: Wrapper | None = None
    valued: frozenset[Wrapper] = _NO_WRAPPERS
    code: frozenset[Wrapper] = _NO_WRAPPERS


def word_of(text: str) -> Word:
    """Return a word's meaning."""
    return _word_of.__wrapped__(text) if len(text) > _LONGEST_CACHED else _word_of(text)


@lru_cache(maxsize=1024)
def _word_of(text: str) -> Word:
    if text[0] in "-+":
        return Word(is_option=True, valued=_wrappers_with(text, _VALUED), code=_wrappers_with(text, _CODE))
    inner = _BY_NAME.get(text.rsplit("/", 1)[-1])
    return Word(names=inner, is_assignment=inner is None and _ASSIGNMENT.fullmatch(text) is not None)


def _wrappers_with(word: str, options: dict[str, frozenset[Wrapper]]) -> frozenset[Wrapper]:
    """Return the wrappers whose option, at the end of a word, takes the next word.

    Long options may be abbreviated, short ones joined: ``--us root``, ``-nu root``.
    """
    word = f"-{word[1:].removesuffix('=')}"
    if word.startswith("--"):
        return options.get(word, _NO_WRAPPERS)
    before = _NO_WRAPPERS.union(*(options.get(f"-{sign}", _NO_WRAPPERS) for sign in set(word[1:-1])))
    joined = options.get(f"-{word[-1]}", _NO_WRAPPERS) - before
    return options.get(word, _NO_WRAPPERS) | joined | {wrapper for wrapper in before if wrapper.is_late}


@lru_cache(maxsize=1024)
def places_after(places: frozenset[Place], word: Word) -> frozenset[Place]:
    """Return one position for each reading."""
    return frozenset(after for place in places for after in _after(place, word))


@lru_cache(maxsize=1024)
def begins_command(places: frozenset[Place]) -> bool | None:
    """Whether a command here may end before the words do; None if none starts."""
    return max((place.is_text for place in places if place.is_command), default=None)


def _after(place: Place, word: Word) -> Iterator[Place]:
    if place.is_value:
        yield place._replace(is_value=False)
    if word.is_option:
        # Between commands, the wrapper is unknown: `xargs -I {} -P 4 git push`.
        is_value = place.wrapper is None or place.wrapper in word.valued
        yield place._replace(is_command=place.is_command or place.wrapper in word.code, is_value=is_value)
    elif not place.is_command:
        yield place._replace(is_value=False)
    elif (inner := word.names) is not None:
        yield Place(inner, not inner.code, False, inner.operands, place.is_text or inner.is_text)
    elif word.is_assignment:
        yield place._replace(is_value=False)
    elif place.operands:
        yield place._replace(is_value=False, operands=place.operands - 1)
