"""No sequence of calls returns or changes a byte outside of the root, whatever links and paths there are."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.sizes import size
from tests.toolkit.files.calling import Tools, snapshot

SECRET = "gE7-outside"
_NAMES = st.sampled_from(["a", "b", "c", "link", "x.txt"])
_INSIDE = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)


class Confinement(RuleBasedStateMachine):
    """A root folder with real files and links, and a folder beside it that nobody may see."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.new_event_loop()
        self.base = Path(os.path.realpath(tempfile.mkdtemp()))
        self.root, self.outside = self.base / "root", self.base / "outside"

    @initialize()
    def make(self) -> None:
        self.root.mkdir()
        for folder in (self.outside, self.outside / "a", self.outside / "a" / "b", self.base / "root2"):
            folder.mkdir()
            (folder / "x.txt").write_text(f"{SECRET} here\n")
        (self.base / "root.txt").write_text(SECRET)
        self.before = {name: snapshot(self.base / name) for name in ("outside", "root2")}
        self.tools = Tools(self.root)
        self.links = ["link"]
        (self.root / "link").symlink_to("../outside")

    def targets(self) -> list[str]:
        """Paths that lead out of the root, and some that do not."""
        return [
            "../outside", "../../outside", "../outside/a/b/x.txt", "../root2/x.txt", "../root.txt",
            str(self.outside), str(self.outside / "x.txt"), f"{self.root}/../outside", f"{self.root}2/x.txt",
            "/", ".", "a", "a/b", "x.txt", str(self.root / "a"),
        ]  # fmt: skip

    @rule(path=_INSIDE, text=st.sampled_from(["one\n", "one\r\ntwo", ""]))
    def put_file(self, path: str, text: str) -> None:
        target = self.root / path
        if not self.leads_out(target):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            except OSError:
                pass

    @rule(path=_INSIDE, data=st.data())
    def put_link(self, path: str, data: st.DataObject) -> None:
        place = self.root / path
        if self.leads_out(place.parent):
            return
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            place.unlink(missing_ok=True)
            place.symlink_to(data.draw(st.sampled_from(self.targets())))
            self.links.append(path)
        except OSError:
            pass

    def leads_out(self, path: Path) -> bool:
        return not os.path.realpath(path).startswith(f"{self.root}/") and path != self.root

    @rule(
        tool=st.sampled_from(["Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS"]),
        tail=st.sampled_from(["", "/x.txt", "/a/x.txt", "/new.txt", "/a/new/new.txt", "/..", "/../x.txt"]),
        is_absolute=st.booleans(),
        data=st.data(),
    )
    def call(self, tool: str, tail: str, is_absolute: bool, data: st.DataObject) -> None:
        heads = st.sampled_from(self.links) | st.sampled_from(self.targets()) | _INSIDE
        path = f"{self.root}/" * is_absolute + data.draw(heads) + tail
        edit = {"old_string": "one", "new_string": "1"}
        arguments: dict[str, dict[str, Any]] = {
            "Read": {"file_path": path},
            "Write": {"file_path": path, "content": "written"},
            "Edit": {"file_path": path, **edit},
            "MultiEdit": {"file_path": path, "edits": [edit]},
            "Glob": {
                "pattern": data.draw(st.sampled_from(["**", "*", f"{path}/*", "a/**/x.txt"])),
                "path": path,
            },
            "Grep": {"pattern": ".", "path": path, "output_mode": "content"},
            "LS": {"path": path},
        }
        answer = self.runner.run_until_complete(self.tools(tool, **arguments[tool]))
        assert SECRET not in answer
        if tool == "Glob":
            for line in answer.splitlines():
                assert line.startswith("[") or "E16" in line or not self.leads_out(self.root / line)

    @invariant()
    def outside_is_unchanged(self) -> None:
        if hasattr(self, "before"):
            assert {name: snapshot(self.base / name) for name in self.before} == self.before
            assert (self.base / "root.txt").read_text() == SECRET
            assert sorted(path.name for path in self.base.iterdir()) == [
                "outside",
                "root",
                "root.txt",
                "root2",
            ]

    def teardown(self) -> None:
        self.runner.run_until_complete(self.runner.shutdown_default_executor())
        self.runner.close()
        shutil.rmtree(self.base)


Confinement.TestCase.settings = settings(
    max_examples=size(25, 12),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would repeat it for minutes
)
TestConfinement = Confinement.TestCase
