"""Whatever a model calls in whatever order: it leaves no root, and does nothing that the rules deny."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, toolkit
from kantan_agents.testing import ScriptedModel, assistant_message, function_call

SECRET = "4711-secret"
OUTSIDE = "0815-outside"
RULES = {
    "allow": [
        "Read(**)",
        "Write(src/**)",
        "Edit(src/**)",
        "Glob",
        "Grep",
        "LS",
        "Bash(ls:*)",
        "Bash(echo:*)",
    ],
    "deny": ["Read(secrets/**)", "Bash(echo pwned:*)"],
}

_PATHS = st.sampled_from(
    [
        *("src/a.txt", "src/new.txt", "src", ".", "", "secrets", "secrets/key.txt", "SECRETS/key.txt"),
        *("src/../secrets/key.txt", "../outside.txt", "src/../../outside.txt", "link", "link/outside.txt"),
        *("src/link", "/etc/passwd", "~/x", "src/./../secrets//key.txt", "secrets/../src/a.txt"),
    ]
)
_TEXTS = st.sampled_from(["x\n", "a", "", SECRET[:4]])
_ALLOWED = st.sampled_from(["ls", "ls -la", "ls src", "echo hi", "echo src/*"])
_ESCAPES = st.sampled_from(
    [
        *(
            "; cat secrets/key.txt",
            " && cat ../outside.txt",
            " | tee pwned",
            " > pwned",
            " $(cat secrets/key.txt)",
        ),
        *(" `cat secrets/key.txt`", "\ncat secrets/key.txt", " & touch pwned", " <(cat secrets/key.txt)"),
        *(" ${x:-$(touch pwned)}", "\r\ntouch pwned"),
    ]
)
_COMMANDS = st.one_of(
    _ALLOWED,
    st.tuples(_ALLOWED, _ESCAPES).map("".join),
    st.sampled_from(["cat secrets/key.txt", "touch pwned", "rm -rf src", "echo pwned", "lsx", "bash -c ls"]),
)

_CALLS = st.one_of(
    st.builds(lambda path: ("Read", {"file_path": path}), _PATHS),
    st.builds(lambda path, text: ("Write", {"file_path": path, "content": text}), _PATHS, _TEXTS),
    st.builds(
        lambda path, old, new: ("Edit", {"file_path": path, "old_string": old, "new_string": new}),
        _PATHS,
        _TEXTS,
        _TEXTS,
    ),
    st.builds(
        lambda path: ("Grep", {"pattern": "secret|outside", "path": path, "output_mode": "content"}), _PATHS
    ),
    st.builds(lambda path: ("Glob", {"pattern": "**/*", "path": path}), _PATHS),
    st.builds(lambda path: ("LS", {"path": path}), _PATHS),
    st.builds(lambda command: ("Bash", {"command": command}), _COMMANDS),
)


def _laid_out(place: Path) -> Path:
    root = place / "root"
    (root / "src").mkdir(parents=True)
    (root / "secrets").mkdir()
    (root / "src" / "a.txt").write_text("a\nb\n")
    (root / "secrets" / "key.txt").write_text(SECRET)
    (place / "outside.txt").write_text(OUTSIDE)
    (root / "link").symlink_to(place, target_is_directory=True)
    (root / "src" / "link").symlink_to(place / "outside.txt")
    return root


async def _made(root: Path, calls: list[tuple[str, dict[str, Any]]]) -> str:
    """Let a model make the calls one after the other; return all that it got to read."""
    replies: list[Any] = [
        [function_call(name, arguments, call_id=f"c{number}")]
        for number, (name, arguments) in enumerate(calls)
    ]
    model = ScriptedModel([*replies, [assistant_message("done")]])
    tools = toolkit(root, write=True, shell=True, approval=False)
    agent = Agent("thief", "Try.", model=model, tools=tools)
    context = await agent.run_async("Go.", {"tool_rules": RULES}, max_turns=len(calls) + 1)
    outputs = [item for item in context["result"].new_items if item.type == "tool_call_output_item"]
    assert len(outputs) == len(calls)
    return "\n".join(str(item.output) for item in outputs)


# Not shrunk: each example starts shells, so that would take minutes.
@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@given(calls=st.lists(_CALLS, min_size=1, max_size=5))
def test_no_sequence_of_calls_leaves_the_root_or_does_what_a_rule_denies(
    calls: list[tuple[str, dict[str, Any]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        root = _laid_out(place)
        seen = anyio.run(_made, root, calls)
        assert SECRET not in seen
        assert OUTSIDE not in seen
        assert "root:x:" not in seen
        assert (root / "secrets" / "key.txt").read_text() == SECRET
        assert (place / "outside.txt").read_text() == OUTSIDE
        assert {path.name for path in root.iterdir()} == {"src", "secrets", "link"}
        assert {path.name for path in place.iterdir()} == {"root", "outside.txt"}


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (("Read", {"file_path": "src/a.txt"}), "a"),
        (("Bash", {"command": "echo hi"}), "hi"),
        (("Write", {"file_path": "src/new.txt", "content": "x"}), "new.txt"),
    ],
)
def test_what_the_rules_allow_is_done(tmp_path: Path, call: tuple[str, dict[str, Any]], shown: str) -> None:
    assert shown in anyio.run(_made, _laid_out(tmp_path), [call])
