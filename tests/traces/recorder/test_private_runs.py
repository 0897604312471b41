"""A run without sensitive data leaves nothing of it in the database or in the logs, wherever it occurs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agents
import pytest
from agents import ModelBehaviorError, set_trace_processors
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import RUBRIC, Agent, AgentDefinition, SQLiteRecorder, task_tool
from kantan_agents.middleware import Retry, SlashCommands
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.traces.recorder.database_file import DatabaseFile

PRIVATE = agents.RunConfig(trace_include_sensitive_data=False)
END = [assistant_message("Done.")]


class Records(logging.Handler):
    """Collects everything that log records of any level contain."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts += [record.getMessage(), repr(vars(record)), str(record.exc_info and record.exc_info[1])]


LOGGERS = ("kantan_agents", "kantan_agents.run", "openai.agents")


@pytest.fixture
def logs() -> Iterator[Records]:
    handler = Records()
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in before:
        logging.getLogger(name).setLevel(logging.DEBUG)
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def run(
    steps: list[Any], input: str = "hi", config: Any = PRIVATE, rules: Any = None, **options: Any
) -> None:
    agent = Agent("a", "x", model=ScriptedModel(steps), **options)
    try:
        agent.run(input, {"tool_rules": rules} if rules else {}, run_config=config)
    except Exception:  # noqa: BLE001 - how a run ends does not matter here
        return


def tools(secret: str) -> list[Any]:
    def look(q: str = "") -> str:
        return f"found {secret} for {q}"

    def fail() -> str:
        raise LookupError(secret)

    return [look, fail]


def invented_tool(secret: str) -> None:
    run([[function_call(secret, {}, call_id="1")], END], tools=tools(secret))


def invented_tool_again_and_again(secret: str) -> None:
    run([[function_call(secret, {}, call_id="1")]] * 9, tools=tools(secret))


def invented_handoff(secret: str) -> None:
    target = Agent("target", "x", model=ScriptedModel([END]))
    run([[function_call(f"transfer_to_{secret}", {}, call_id="1")], END], handoffs=[target])


def tool_arguments_and_result(secret: str) -> None:
    run([[function_call("look", {"q": secret}, call_id="1")], END], tools=tools(secret))


def malformed_arguments(secret: str) -> None:
    run([[function_call("look", secret, call_id="1")], END], tools=tools(secret))


def invented_parameter(secret: str) -> None:
    run([[function_call("look", {secret: 1}, call_id="1")], END], tools=tools(secret))


def refused_arguments(secret: str) -> None:
    rules = {"allow": ["look"], "params": {"look": {"q": {"maxLength": 1}}}}
    for policy in ("feedback", "raise"):
        steps = [[function_call("look", {"q": secret}, call_id="1")], END]
        run(steps, rules=rules, tools=tools(secret), on_rule_violation=policy)


def tool_error(secret: str) -> None:
    steps: list[Any] = [[function_call("fail", {}, call_id="1")], END]
    run(steps, tools=tools(secret))
    run(steps, tools=tools(secret), middleware=[Retry(2, tools={"fail"}, initial_delay=0)])


def model_error(secret: str) -> None:
    run([LookupError(secret)])
    run([ModelBehaviorError(f"Tool {secret} not found in agent a")])


def input_and_output(secret: str) -> None:
    run([[assistant_message(secret)]], input=secret)


def structured_output(secret: str) -> None:
    run([[assistant_message(f'{{"score": 0.5, "comments": ["{secret}"]}}')]], output_type=RUBRIC)
    run([[assistant_message(f'{{"{secret}": 0.5}}')]] * 2, output_type=RUBRIC)


def slash_command(secret: str) -> None:
    for text in (f"/look {secret}", f"/{secret}", f"/look --{secret}", f"/fail {secret}"):
        run([END], input=text, tools=tools(secret), middleware=[SlashCommands({"allow": "*"})])


def delegation(secret: str) -> None:
    helper = AgentDefinition(name="helper", description="Helps.", system_prompt="Help.")
    for name in ("helper", secret):
        arguments = {"subagent_type": name, "description": "d", "prompt": secret}
        run([[function_call("Task", arguments, call_id="1")], END, END], tools=[task_tool([helper])])


PLACES: list[Callable[[str], None]] = [
    invented_tool,
    invented_tool_again_and_again,
    invented_handoff,
    tool_arguments_and_result,
    malformed_arguments,
    invented_parameter,
    refused_arguments,
    tool_error,
    model_error,
    input_and_output,
    structured_output,
    slash_command,
    delegation,
]


@given(place=st.sampled_from(PLACES), secret=st.from_regex(r"q[a-z0-9]{11}z", fullmatch=True))
def test_a_secret_at_any_place_of_a_private_run_is_neither_recorded_nor_logged(
    place: Callable[[str], None], secret: str
) -> None:
    handler = Records()
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    with TemporaryDirectory() as directory:
        recorder = SQLiteRecorder(Path(directory) / "t.db", flush_on_sigterm=False, flush_interval=0.0)
        set_trace_processors([recorder])
        logging.getLogger().addHandler(handler)
        try:
            for name in before:
                logging.getLogger(name).setLevel(logging.DEBUG)
            place(secret)
            assert recorder.force_flush()
            content = DatabaseFile(recorder.path).bytes()
        finally:
            logging.getLogger().removeHandler(handler)
            for name, level in before.items():
                logging.getLogger(name).setLevel(level)
            set_trace_processors([])
            recorder.shutdown()
    assert secret.encode() not in content
    assert [text for text in handler.texts if secret in text] == []
    assert handler.texts


def test_a_private_run_still_records_that_a_tool_was_missing(
    recorder: SQLiteRecorder, file: DatabaseFile
) -> None:
    run([[function_call("invented", {}, call_id="1")], END])
    assert recorder.force_flush()
    (error,) = [span.error for span in file.spans(has_error=True)]
    assert error == {"message": "Tool not found", "data": None}


def test_other_trace_processors_do_not_receive_the_invented_name_either() -> None:
    received: list[Any] = []

    class Collector(agents.TracingProcessor):
        def on_span_end(self, span: Any) -> None:
            received.append(span.export())

        def on_trace_start(self, trace: Any) -> None: ...
        def on_trace_end(self, trace: Any) -> None: ...
        def on_span_start(self, span: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

    set_trace_processors([Collector()])
    run([[function_call("invented", {}, call_id="1")], END])
    assert received
    assert "invented" not in repr(received)


def test_a_run_with_sensitive_data_logs_and_records_it(
    recorder: SQLiteRecorder, file: DatabaseFile, logs: Records
) -> None:
    run([[function_call("invented", {}, call_id="1")], END], config=None)
    assert recorder.force_flush()
    assert b"invented" in file.bytes()
    assert any("invented" in text for text in logs.texts)


@pytest.mark.parametrize("value", ["1", "true"])
def test_the_switches_of_the_sdk_keep_content_out_of_debug_logs(
    logs: Records, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    for name in ("TOOL", "MODEL"):
        monkeypatch.setenv(f"OPENAI_AGENTS_DONT_LOG_{name}_DATA", value)
    steps = [[function_call("look", {"q": "quokka"}, call_id="1")], [assistant_message("quokka")]]
    run(steps, config=None, tools=tools("quokka"))
    assert [text for text in logs.texts if "quokka" in text] == []
    assert any("look" in text for text in logs.texts)


def test_a_private_error_is_empty_unless_the_sdk_wrote_it(
    recorder: SQLiteRecorder, file: DatabaseFile
) -> None:
    def set_errors() -> str:
        for error in (
            {"message": "secret", "data": {"secret": 1}},
            {"message": "Max turns exceeded", "data": {}},
        ):
            with agents.custom_span("mine") as span:
                span.set_error(error)
        return ""

    run([[function_call("set_errors", {}, call_id="1")], END], tools=[agents.function_tool(set_errors)])
    assert recorder.force_flush()
    assert [span.error for span in file.spans(name="mine")] == [
        {"message": "not recorded", "data": None},
        {"message": "Max turns exceeded", "data": None},
    ]
