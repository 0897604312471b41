"""Whatever a model calls in whatever order: it leaves no root, and does nothing that the rules deny.

A state machine over one run with real files and a real shell: files and commands in the background outlive a
call, and somebody else puts links into the folder between two of them.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from kantan_agents import Agent, toolkit
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.sizes import size

SECRET = "4711-secret"
OUTSIDE = "0815-outside"
RULES = {
    "allow": [
        "Read(**)",
        "Write(src/**)",
        "Edit(src/**)",
        "MultiEdit(src/**)",
        "Glob",
        "Grep",
        "LS",
        "Bash(ls:*)",
        "Bash(echo:*)",
        "Bash(sleep 0:*)",
        "BashOutput",
        "KillShell",
    ],
    "deny": ["Read(secrets/**)", "Bash(echo pwned:*)"],
}

_PATHS = st.sampled_from(
    [
        *("src/a.txt", "src/new.txt", "src", ".", "", "secrets", "secrets/key.txt", "SECRETS/key.txt"),
        *("src/../secrets/key.txt", "../outside.txt", "src/../../outside.txt", "link", "link/outside.txt"),
        *("src/link", "/etc/passwd", "~/x", "src/./../secrets//key.txt", "secrets/../src/a.txt"),
        *("src/sub", "src/sub/key.txt", "src/sub/outside.txt", "src/sub/x.txt", "src/sub/../secrets/key.txt"),
    ]
)
_TARGETS = st.sampled_from(["../secrets", "../..", "../secrets/key.txt", "../../outside.txt", "/etc", "."])
_TEXTS = st.sampled_from(["x\n", "a", "", SECRET[:4]])
_ALLOWED = st.sampled_from(["ls", "ls -la", "ls src", "echo hi", "echo src/*", "sleep 0"])
_ESCAPES = st.sampled_from(
    [
        *("; cat secrets/key.txt", " && cat ../outside.txt", " | tee pwned", " > pwned"),
        *(" $(cat secrets/key.txt)", " `cat secrets/key.txt`", "\ncat secrets/key.txt", " & touch pwned"),
        *(" <(cat secrets/key.txt)", " ${x:-$(touch pwned)}", "\r\ntouch pwned", " || touch pwned"),
        *(' "$(<secrets/key.txt)"', " $((x[$(touch pwned)]))", " >| src/a.txt <secrets/key.txt"),
    ]
)
_COMMANDS = st.one_of(
    _ALLOWED,
    st.tuples(_ALLOWED, _ESCAPES).map("".join),
    st.sampled_from(["cat secrets/key.txt", "touch pwned", "rm -rf src", "echo pwned", "lsx", "bash -c ls"]),
)
_IDS = re.compile(r"bash_[0-9a-f]{16}")


class OneRun:
    """A run whose model makes the calls that it is given, one after the other."""

    def __init__(self, root: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._calls: asyncio.Queue[Any] = asyncio.Queue()
        self._asked: asyncio.Queue[Any] = asyncio.Queue()
        self._count = 0
        tools = toolkit(root, write=True, shell=True, approval=False)
        agent = Agent("thief", "Try.", model=ScriptedModel(self._answer), tools=tools)
        self._task = self.loop.create_task(
            agent.run_async("Go.", {"tool_rules": RULES}, max_turns=1_000), name="run"
        )
        self.loop.run_until_complete(self._asked.get())

    async def _answer(self, call: Any) -> Any:
        self._asked.put_nowait(call.input)
        return await self._calls.get()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Let the model make a call; return all that it has got to read so far."""
        self._count += 1
        self._calls.put_nowait([function_call(name, arguments, call_id=f"c{self._count}")])
        shown = self.loop.run_until_complete(self._next_input())
        outputs = [item["output"] for item in shown if item.get("type") == "function_call_output"]
        assert len(outputs) == self._count
        return "\n".join(map(str, outputs))

    async def _next_input(self) -> Any:
        asked = asyncio.ensure_future(self._asked.get())
        await asyncio.wait([asked, self._task], return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            asked.cancel()
            await self._task
        return await asked

    def end(self) -> None:
        self._calls.put_nowait([assistant_message("done")])
        context = self.loop.run_until_complete(self._task)
        assert context["result"].final_output == "done"
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


def laid_out(place: Path) -> Path:
    root = place / "root"
    (root / "src").mkdir(parents=True)
    (root / "secrets").mkdir()
    (root / "src" / "a.txt").write_text("a\nb\n")
    (root / "secrets" / "key.txt").write_text(SECRET)
    (place / "outside.txt").write_text(OUTSIDE)
    (root / "link").symlink_to(place, target_is_directory=True)
    (root / "src" / "link").symlink_to(place / "outside.txt")
    return root


class RedTeam(RuleBasedStateMachine):
    """A model that tries everything, in a folder with a secret and with links that lead out of it."""

    shells = Bundle("shells")

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(os.path.realpath(tempfile.mkdtemp()))
        self.root = laid_out(self.place)
        self.run = OneRun(self.root)
        self.seen = ""

    def call(self, name: str, **arguments: Any) -> str:
        before, self.seen = self.seen, self.run.call(name, arguments)
        return self.seen[len(before) :]

    @initialize(target=shells)
    def invent_a_shell(self) -> str:
        return "bash_0123456789abcdef"

    @rule(path=_PATHS)
    def read(self, path: str) -> None:
        self.call("Read", file_path=path)

    @rule(path=_PATHS, text=_TEXTS)
    def write(self, path: str, text: str) -> None:
        self.call("Write", file_path=path, content=text)

    @rule(path=_PATHS, old=_TEXTS, new=_TEXTS, is_one=st.booleans())
    def edit(self, path: str, old: str, new: str, is_one: bool) -> None:
        change = {"old_string": old, "new_string": new}
        if is_one:
            self.call("Edit", file_path=path, **change)
        else:
            self.call("MultiEdit", file_path=path, edits=[change])

    @rule(path=_PATHS, name=st.sampled_from(["Grep", "Glob", "LS"]))
    def look(self, path: str, name: str) -> None:
        more = {
            "Grep": {"pattern": "secret|outside", "output_mode": "content"},
            "Glob": {"pattern": "**/*"},
            "LS": {},
        }
        self.call(name, path=path, **more[name])

    @rule(command=_COMMANDS)
    def run_a_command(self, command: str) -> None:
        self.call("Bash", command=command)

    @rule(target=shells, command=_COMMANDS)
    def begin_a_command(self, command: str) -> Any:
        return multiple(*_IDS.findall(self.call("Bash", command=command, run_in_background=True)))

    @rule(shell=shells, name=st.sampled_from(["BashOutput", "KillShell"]))
    def return_to_a_command(self, shell: str, name: str) -> None:
        self.call(name, **{"bash_id" if name == "BashOutput" else "shell_id": shell})

    @rule(end=_TARGETS)
    def somebody_puts_a_link(self, end: str) -> None:
        sub = self.root / "src" / "sub"
        if sub.is_dir() and not sub.is_symlink():
            shutil.rmtree(sub)
        sub.unlink(missing_ok=True)
        sub.symlink_to(end)

    @rule()
    def somebody_puts_a_folder(self) -> None:
        sub = self.root / "src" / "sub"
        if sub.is_symlink() or not sub.is_dir():
            sub.unlink(missing_ok=True)
            sub.mkdir()
            (sub / "x.txt").write_text("x\n")

    @invariant()
    def nothing_has_got_out(self) -> None:
        assert SECRET not in self.seen
        assert OUTSIDE not in self.seen
        assert "root:x:" not in self.seen

    @invariant()
    def nothing_denied_has_happened(self) -> None:
        assert (self.root / "secrets" / "key.txt").read_text() == SECRET
        assert (self.place / "outside.txt").read_text() == OUTSIDE
        assert {path.name for path in (self.root / "secrets").iterdir()} == {"key.txt"}
        assert {path.name for path in self.root.iterdir()} == {"src", "secrets", "link"}
        assert {path.name for path in self.place.iterdir()} == {"root", "outside.txt"}
        # "src/sub/../secrets" is a folder below "src", which may be written to.
        beside = {"a.txt", "new.txt", "link", "sub", "secrets"}
        assert {path.name for path in (self.root / "src").iterdir()} <= beside

    def teardown(self) -> None:
        self.run.end()
        shutil.rmtree(self.place)


RedTeam.TestCase.settings = settings(
    max_examples=size(20, 10),
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each step may start a shell: minutes to shrink
)
TestRedTeam = RedTeam.TestCase


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (("Read", {"file_path": "src/a.txt"}), "a"),
        (("Bash", {"command": "echo hi"}), "hi"),
        (("Bash", {"command": "echo hi", "run_in_background": True}), "Running in the background"),
        (("Write", {"file_path": "src/new.txt", "content": "x"}), "new.txt"),
    ],
)
def test_what_the_rules_allow_is_done(tmp_path: Path, call: tuple[str, dict[str, Any]], shown: str) -> None:
    run = OneRun(laid_out(tmp_path))
    assert shown in run.call(*call)
    run.end()
