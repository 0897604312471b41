"""The scope of "always"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, Literal

import attrs

from kantan_agents.errors import InvalidOptionError, InvalidToolRulesError
from kantan_agents.middleware.approve.calls import PendingCall
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call

_SHELL: Final = "Bash"
_WRITING: Final = ("Write", "Edit", "MultiEdit")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9-]*")

# With any arguments, these only read, or check and test the code of a folder. Other programs may run
# anything: only the identical command is approved for later.
_HARMLESS: Final = frozenset(
    {
        *("base64", "basename", "cat", "cksum", "cmp", "column", "comm", "cut", "date", "df", "diff"),
        *("dirname", "du", "echo", "egrep", "expr", "false", "fgrep", "file", "fold", "free", "grep"),
        *("head", "id", "join", "jq", "ls", "md5sum", "nl", "nproc", "od", "paste", "printf", "ps", "pwd"),
        *("readlink", "realpath", "seq", "sha1sum", "sha256sum", "stat", "strings", "tac", "tail", "test"),
        *("tr", "true", "uname", "uptime", "wc", "which", "whoami"),
        *("black", "flake8", "isort", "mypy", "pyright", "pytest", "ruff"),
    }
)
# The second word selects the action of these, and some actions may do anything.
_BY_SUBCOMMAND: Final = {
    "git": frozenset(
        {"archive", "bisect", "clone", "config", "difftool", "fetch", "filter-branch", "grep", "hook"}
        | {"ls-remote", "mergetool", "pull", "push", "rebase", "submodule"}
    ),
    "npm": frozenset({"config", "exec", "explore", "init", "run", "run-script", "x"}),
    "pnpm": frozenset({"config", "dlx", "exec", "run"}),
    "yarn": frozenset({"config", "dlx", "exec", "node", "run"}),
    "cargo": frozenset({"run"}),
    "go": frozenset({"generate", "run", "tool"}),
    "pip": frozenset({"config"}),
    "poetry": frozenset({"config", "run", "shell"}),
    "uv": frozenset({"run", "tool", "x"}),
}


@attrs.frozen
class StandingApproval:
    """The later calls that an answer covers; a folder has a ``root``."""

    agent: str
    tool: str
    kind: Literal["folder", "command", "host", "call"]
    value: str
    root: str = ""

    @property
    def words(self) -> str:
        """Its scope, in words for the user."""
        match self.kind:
            case "folder" if self.value:
                return f"changes of files in {self.value}/"
            case "folder":
                return f"changes of files in {self.root}/"
            case "command":
                return f"commands that begin with {self.value}"
            case "host":
                return f"calls of {self.tool} for {self.value}"
        return "this command" if self.tool == _SHELL else f"calls of {self.tool} with these arguments"

    def covers(self, call: PendingCall, facts: ToolFacts) -> bool:
        """Return whether it covers a later call."""
        if call.agent != self.agent:
            return False
        if self.kind == "folder":
            path = _path(call, facts)
            is_same_root = call.tool in _WRITING and facts.roots[:1] == (self.root,)
            return is_same_root and path is not None and _is_below(path, self.value)
        if call.tool != self.tool:
            return False
        if self.kind == "command":
            from kantan_agents.toolkit.protected import names_protected  # an agent with Bash has imported it

            if names_protected(str(call.values.get("command"))):
                return False
            return _grants(ToolRules.parse({"allow": [f"{_SHELL}({self.value}:*)"]}), call, facts)
        return self == standing_approval(call, facts)


def standing_approval(call: PendingCall, facts: ToolFacts) -> StandingApproval:
    """Return the scope of "always"."""
    path = _path(call, facts)
    if call.tool in _WRITING and path is not None:
        folder = str(PurePosixPath(path).parent)
        return StandingApproval(
            call.agent, call.tool, "folder", "" if folder == "." else folder, facts.roots[0]
        )
    host = facts.texts(call.values) if facts.kind == "domain" else None
    if host:
        return StandingApproval(call.agent, call.tool, "host", host[0])
    beginning = _beginning(call.values.get("command")) if call.tool == _SHELL else None
    # Not for a chain of commands, which the rules recognize.
    if beginning is not None:
        standing = StandingApproval(call.agent, call.tool, "command", beginning)
        if standing.covers(call, facts):
            return standing
    same = call.values.get("command") if call.tool == _SHELL else None  # whatever its description
    return StandingApproval(call.agent, call.tool, "call", same if isinstance(same, str) else call.arguments)


@attrs.frozen(eq=False)
class GivenApprovals:
    """The approvals of ``--yes``, as ``Bash(git status:*)``."""

    names: frozenset[str]
    entries: Mapping[str, ToolRules]

    @classmethod
    def of(cls, given: Collection[str], option: str = "--yes") -> GivenApprovals:
        """Return the approvals of an option."""
        try:
            entries = {one: ToolRules.parse({"allow": [one]}) for one in given if "(" in one}
        except InvalidToolRulesError as error:
            raise InvalidOptionError(option=option, reason=str(error)) from error
        return cls(frozenset(given).difference(entries), entries)

    def cover(self, call: PendingCall, facts: ToolFacts, *, is_protected: bool) -> bool:
        """Return whether a call needs no question; a protected file needs an entry with its exact path."""
        # An MCP tool is known by its full name and by its server's name.
        if not is_protected and not self.names.isdisjoint(call.names):
            return True
        for entry, rules in self.entries.items():
            is_exact = not set("*?[{") & set(entry)
            if (is_exact or not is_protected) and _grants(rules, call, facts):
                return True
        return False


def _grants(rules: ToolRules, call: PendingCall, facts: ToolFacts) -> bool:
    arguments: Mapping[str, Any] = call.values
    return decide_call(rules, facts, arguments).allowed


def _path(call: PendingCall, facts: ToolFacts) -> str | None:
    texts = facts.texts(call.values) if facts.kind == "path" and facts.roots else None
    return texts[0] if texts else None


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _beginning(command: Any) -> str | None:
    words = command.split() if isinstance(command, str) else []
    if not words or not _PROGRAM.fullmatch(words[0]):
        return None
    program = words[0]
    second = words[1] if len(words) > 1 and _SUBCOMMAND.fullmatch(words[1]) else None
    unsafe = _BY_SUBCOMMAND.get(program)
    if unsafe is None:
        return program if program in _HARMLESS else None
    return None if second is None or second in unsafe else f"{program} {second}"
