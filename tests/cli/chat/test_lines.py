"""Standard input that is not a terminal: each line is a question, and nobody can be asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.cli.chat.shop import paid
from tests.cli.chat.terminal import SCRIPT


def asked(server: OfflineServer) -> list[Any]:
    return [request.body["input"][-1]["content"] for request in server.requests]


def test_each_line_is_a_question_of_one_conversation(lines: Any) -> None:
    with OfflineServer(lambda request: f"Answer {len(request.body['input'])}.") as server:
        ended = lines(server, "où?\r\n\n  \nlà".encode())
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Answer 1.\nAnswer 3.\n", "")
    assert asked(server) == ["où?", "là"]


def test_without_a_key_the_error_names_the_variable_and_the_answer_is_kept_as_failed(
    lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OfflineServer([]) as server:
        variables = {**server.environment(), "OPENAI_API_KEY": ""}
        monkeypatch.setattr(server, "environment", lambda: variables)
        ended = lines(server, b"Hi\n")
        assert "[kantan-agents][E47]" in ended.stderr
        assert "OPENAI_API_KEY is empty" in ended.stderr
        resumed = lines(server, b"", "--resume", "last")
    assert "This answer failed." in resumed.stderr


@pytest.mark.parametrize("home", ["file", None])
def test_without_a_folder_for_data_the_chat_goes_on_and_says_so(
    lines: Any, environment: dict[str, str], tmp_path: Path, home: str | None
) -> None:
    (tmp_path / "file").touch()
    del environment["KANTAN_AGENTS_CONVERSATIONS"]
    environment["HOME"] = "~" if home is None else str(tmp_path / home)  # "~": a user without a home folder
    with OfflineServer(["Hello."]) as server:
        ended = lines(server, b"Hi\n")
        assert (ended.returncode, ended.stdout) == (0, "Hello.\n")
        assert ended.stderr.startswith("warning: the conversation is not kept: [kantan-agents][E195] Cannot")
        assert ended.stderr.count("\n") == 1
        named = tmp_path / "file" / "kept"
        for asked_for in (["--resume", "last"], ["--conversations", str(named)]):
            ended = lines(server, b"Hi\n", *asked_for)
            assert ended.returncode == 2
            assert ended.stderr.startswith("error: [kantan-agents][E195]")


def test_a_line_is_neither_a_command_nor_a_file(lines: Any, shop: str, folder: Path) -> None:
    (folder / "secret.txt").write_text("a secret")
    with OfflineServer(lambda _: "ok") as server:
        ended = lines(server, b"/look here\n/exit\n//x\n@secret.txt\n", "--agent", shop)
    assert ended.stdout == "ok\n" * 4
    assert asked(server) == ["/look here", "/exit", "//x", "@secret.txt"]


def test_calls_that_need_an_approval_are_refused_with_a_note(lines: Any, shop: str, folder: Path) -> None:
    calls = [ScriptedToolCall("pay", {"amount": 5}), ScriptedToolCall("lend", {"amount": 6})]
    with OfflineServer([calls, "Half done."]) as server:
        ended = lines(server, b"Pay.\n", "--agent", shop, "--yes", "pay")
    assert (ended.returncode, ended.stdout) == (0, "Half done.\n")
    assert (
        "refused lend: it needs an approval, and nobody can be asked; --yes lend approves it" in ended.stderr
    )
    assert paid(folder) == ["5"]
    outputs = [item["output"] for item in server.requests[1].body["input"] if "output" in item]
    assert sorted(outputs) == [
        "The user did not approve this call. The reason: Nobody could be asked.",
        "paid 5",
    ]


def test_a_pipe_gets_every_byte_of_an_answer(lines: Any) -> None:
    with OfflineServer(["[bold]\x1b[31mred"]) as server:
        assert lines(server, b"x\n").stdout == "[bold]\x1b[31mred\n"


def test_a_failed_answer_is_an_exit_code_and_the_next_line_is_answered(lines: Any) -> None:
    with OfflineServer([Reply("no", status=400), "yes"]) as server:
        ended = lines(server, b"1\n2\n")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "yes\n", "error: [openai][400] no\n")


def test_text_that_is_not_utf_8_is_an_error(lines: Any) -> None:
    with OfflineServer([]) as server:
        ended = lines(server, b"\xff\xfe\n")
    assert ended.returncode == 2
    assert ended.stderr == "error: [kantan-agents][E79] Cannot use -: it is not UTF-8 text\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_a_line(
    preloaded: Any, environment: dict[str, str], folder: Path, tmp_path: Path, number: int
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with OfflineServer(["Hello."]) as server:
        program = preloaded.popen(
            [SCRIPT, f"stdin:{pipe}", "chat"], env={**environment, **server.environment()}, cwd=folder
        )
        try:
            with pipe.open("wb") as writer:
                writer.write(b"Hi\n")
                writer.flush()
                assert program.stdout.readline() == b"Hello.\n"
                program.send_signal(number)
                assert program.wait(60) == 128 + number
        finally:
            program.kill()
            program.communicate(60)


def test_the_program_needs_a_standard_input(environment: dict[str, str], folder: Path) -> None:
    command = ["sh", "-c", f'exec "{sys.executable}" -m kantan_agents chat <&-']
    ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        "error: [kantan-agents][E79] Cannot use -: there is no standard input\n",
    )
