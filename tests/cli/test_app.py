"""The program as a whole: help, version, wrong arguments, errors as one line."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import APIConnectionError, APIStatusError, DefaultAsyncHttpxClient

import kantan_agents as kantan_agents_package
from kantan_agents.cli.terminal.failures import describe, exit_code
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.cli.terminal.plain import MAX_LINE, one_line, printable
from kantan_agents.errors import ContextTypeError, InvalidOptionError, ModelNotFoundError
from tests.cli.conftest import PROGRAM
from tests.cli.imports import assert_none_imports_the_sdk
from tests.programs import Preloaded

WITHOUT_OUTPUT = Path(__file__).with_name("without_output.py")


def test_without_arguments_it_shows_its_help(kantan_agents: Any) -> None:
    outcome = kantan_agents()
    assert outcome.code == 0
    assert "Usage: kantan-agents [OPTIONS] COMMAND [ARGS]..." in outcome.stdout
    assert outcome.stderr == ""
    assert outcome.stdout.strip() == kantan_agents("--help").stdout.strip()


@pytest.mark.parametrize("arguments", [["-h"], ["--help"], ["demo", "--help"], ["run", "-h"]])
def test_help_fits_80_columns(kantan_agents: Any, arguments: Any) -> None:
    outcome = kantan_agents(*arguments)
    assert outcome.code == 0
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_help_names_every_option(kantan_agents: Any) -> None:
    shown = kantan_agents("run", "--help").stdout
    for option in ("--model", "--instructions", "--context", "--db", "--json", "Exit codes: 0 answered"):
        assert option in shown
    shown = kantan_agents("demo", "--help").stdout
    for option in ("--model", "--db", "--keep"):
        assert option in shown


def test_version(kantan_agents: Any) -> None:
    outcome = kantan_agents("--version")
    assert outcome.code == 0
    assert re.fullmatch(
        r"kantan-agents \S+ \(openai-agents \d+\.\d+\.\d+, Python 3\.\d+\.\d+\)\n", outcome.stdout
    )


def test_commands_without_a_model_do_not_import_the_sdk() -> None:
    commands = [["--help"], ["run", "--help"], ["--version"], ["run", "a", "--context", "/none.json"]]
    assert_none_imports_the_sdk(commands)


def test_it_can_be_run_as_a_program() -> None:
    command = [*PROGRAM, "run", "hi", "--modle", "x"]
    outcome = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert outcome.returncode == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("error: [kantan-agents][usage] No such option: --modle")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "No such command 'bogus'; see kantan-agents --help"),
        (["run"], "Missing argument 'QUESTION'; see kantan-agents run --help"),
        (["run", "a", "b"], "Got unexpected extra argument"),
        (["demo", "--keep=1"], "Option '--keep' does not take a value"),
        (["run", "a", "--model"], "Option '--model' requires an argument"),
    ],
)
def test_a_wrong_argument_gives_one_line_and_exit_code_2(
    kantan_agents: Any, arguments: Any, message: str
) -> None:
    outcome = kantan_agents(*arguments)
    assert outcome.code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith(f"error: [kantan-agents][usage] {message}")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no sh there")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_a_program_that_is_started_without_standard_output_works(closed: str) -> None:
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM, "--version"]
    finished = subprocess.run(shell, capture_output=True, check=False, timeout=120)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, b"", b"")


@pytest.mark.parametrize("closed", ["1", "1,2"])
def test_without_standard_output_it_works_and_prints_nothing(
    project: Path, preloaded: Preloaded, closed: str
) -> None:
    codes = {
        "--version": 0,
        "agents validate .": 0,
        "agents list --json": 0,
        "tools list": 0,
        "agents show nobody": 2,
        "agents fix none": 2,
    }
    for line, code in codes.items():
        ended = preloaded.run([WITHOUT_OUTPUT, closed, *line.split()], cwd=project)
        assert (ended.returncode, ended.stdout, "Traceback" in ended.stderr) == (code, "", False), line
        assert "AttributeError" not in ended.stderr


# openai 2 is built on httpx, openai 3 on httpx2.
HTTPX = sys.modules[DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0]]
SENT_TO = "http://127.0.0.1:8080/chat/completions"
REQUEST = HTTPX.Request("POST", "http://me:secret@127.0.0.1:8080/chat/completions?key=secret")


def status_error(status: int) -> APIStatusError:
    """Return the error of the OpenAI client for a response with this status."""
    body = {"message": "File Not Found"}
    return APIStatusError("Error", response=HTTPX.Response(status, request=REQUEST), body=body)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ContextTypeError(got="list"), "[kantan-agents][E5] Context must be a dict"),
        (ModelNotFoundError(model="x"), "[kantan-agents][E19] Model not found: x"),
        (status_error(404), f"[openai][404] File Not Found ({SENT_TO})"),
        (status_error(405), f"[openai][405] File Not Found ({SENT_TO})"),
        (status_error(401), "[openai][401] File Not Found"),
        (
            APIConnectionError(message=f"No answer from {SENT_TO}.", request=REQUEST),
            f"[openai][APIConnectionError] No answer from {SENT_TO}.",
        ),
        (RuntimeError("[kantan-llm][E2] Missing KEY"), "[kantan-llm][E2] Missing KEY"),
        (RuntimeError("one\n\n  two\r\nthree"), "[python][RuntimeError] one two three"),
        (RuntimeError("\x1b[31mred\x07"), "[python][RuntimeError] [U+001B][31mred[U+0007]"),
        (RuntimeError(), "[python][RuntimeError] no further details"),
        (subprocess.SubprocessError("x"), "[subprocess][SubprocessError] x"),
    ],
)
def test_every_error_is_one_line_with_its_code(error: Exception, line: str) -> None:
    assert describe(error) == line


def test_a_very_long_error_is_cut() -> None:
    line = describe(RuntimeError("<html>" * 1000))
    assert len(line) == MAX_LINE
    assert line.endswith("<html ...")


def test_a_bad_argument_exits_with_2_and_a_failed_run_with_1() -> None:
    assert exit_code(ModelNotFoundError(model="x")) == 2
    assert exit_code(RuntimeError("x")) == 1


@given(st.text())
def test_one_line_returns_one_line(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert len(line) <= MAX_LINE
    assert one_line(line) == line


@given(st.text() | st.text("a\x1b\u202e\u2066\u2069\u200e\u200f\u061c\u200d"))
def test_printable_shows_everything_but_control_characters_as_it_is(text: str) -> None:
    kept = printable(text)
    assert not set("\x1b\x9b\u202e\u2066\u200f\u061c") & set(kept)
    assert printable(kept) == kept
    visible = "".join(character for character in text if character.isprintable())
    shown = re.sub(r"\[U\+[0-9A-F]{4,6}\]", "", kept)
    assert "".join(character for character in shown if character.isprintable()) == visible


@pytest.mark.parametrize("first", ["", "{folder}"])
def test_a_file_in_the_working_directory_takes_the_place_of_no_module(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.path.realpath(tmp_path)
    monkeypatch.chdir(folder)
    places = [*sys.path]
    program = str(Path(kantan_agents_package.__file__).with_name("__main__.py"))
    monkeypatch.setattr(sys, "path", [first.format(folder=folder), *places])
    runpy.run_path(program, run_name="imported")
    assert sys.path == places
    runpy.run_path(program, run_name="imported")
    assert sys.path == places  # what else comes first stays


def test_a_module_of_the_working_directory_is_loaded_and_later_files_take_the_place_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_of_mine.py").write_text("from shop_beside_it import shop")
    (tmp_path / "shop_beside_it.py").write_text("shop = 'mine'")
    monkeypatch.chdir(tmp_path)
    places = [place for place in sys.path if place]
    monkeypatch.setattr(sys, "path", [*places])
    assert load_object("shop_of_mine:shop", "--agent", "a:b") == "mine"
    assert sys.path == [*places, ""]
    with pytest.raises(InvalidOptionError):
        load_object("shop_of_nobody:shop", "--agent", "a:b")
    assert sys.path == [*places, ""]
