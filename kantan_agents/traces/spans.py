"""Records a run with the SDK's tracing."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, cast

import agents
from agents import Span, custom_span, get_current_trace
from agents.tracing import get_trace_provider

from kantan_agents.core.interception import error_message, redacted_input
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import KantanAgentsError, RecorderReplacedError
from kantan_agents.models.rubric import rubric_of
from kantan_agents.models.structured import json_data
from kantan_agents.support.log import get_logger
from kantan_agents.traces.capture.captured import ending
from kantan_agents.traces.final_span import GenerationSpanData, copied_data
from kantan_agents.traces.ids import trace_id_of
from kantan_agents.traces.kantan_tracers import TRACERS, share_sqlite_tracers
from kantan_agents.traces.metadata import JUDGE_SPAN, RECOVERY_SPAN, RUN_SPAN, STOP_SPAN
from kantan_agents.traces.registry import Main, main_recorder, recorders

_OUTPUT_MODE = object()
_FINAL_SPANS = object()
_log = get_logger("kantan_agents.tracing")


class RunTrace:
    """Records a run in its own trace or, inside an open trace, on a span.

    The metadata must be complete on entry. It becomes the trace's or, inside an open trace, the data of a
    ``custom`` span named ``agent_run``, so that it is never lost (spec 4). An error is recorded and
    propagates; the trace always closes.

    Readers take a run with its own trace as ended once its final span is recorded. Therefore that span ends
    here, after all middleware.
    """

    # Not a generator: unfinished runs would keep their frames in memory.

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> None:
        if TRACERS in sys.modules:  # otherwise no tracer exists
            share_sqlite_tracers()
        run, outer = self._run, get_current_trace()
        self._is_inside = outer is not None
        if outer is not None:
            run.trace_id = _known_id(outer)
            self._record: Any = custom_span(RUN_SPAN, run.metadata, disabled=run.run_config.tracing_disabled)
        else:
            config = run.run_config
            self._record = agents.trace(
                config.workflow_name,
                trace_id=config.trace_id or trace_id_of(run.id),
                group_id=config.group_id,
                metadata=run.metadata,
                tracing=config.tracing,
                disabled=config.tracing_disabled,
            )
            run.trace_id = _known_id(self._record)
        self._record.__enter__()
        if self._is_inside and self._record.parent_id is None:
            # After another run in this trace, nothing else shows that this one has started.
            for recorder in recorders():
                recorder.on_run_start(self._record)
        if Main.recorder is not None and run.trace_id is not None:
            _log_lost_recorder(run.trace_id)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            run = self._run
            begun = run.state.pop(_FINAL_SPANS, ())
            for span in begun:
                span.finish()
            if error is not None:
                self._record_failure(error)
            elif not (self._is_inside or begun):
                with _final_span(run):
                    pass
        finally:
            capture, self._run._capture = self._run._capture, None
            captured = capture.finished(error) if capture is not None else None
            if captured is None:
                self._record.__exit__(kind, error, traceback)
            else:
                captured.record_id = self._record.span_id if self._is_inside else self._record.trace_id
                token = ending.set(captured)
                try:
                    self._record.__exit__(kind, error, traceback)
                finally:
                    ending.reset(token)

    def _record_failure(self, error: BaseException) -> None:
        run, span_error = self._run, _span_error(self._run, error)
        if self._is_inside:
            self._record.set_error(span_error)
        with _final_span(run, _input(run) if run.records_sensitive_data else None) as span:
            span.set_error(span_error)


def _known_id(trace: agents.Trace) -> str | None:
    # With tracing off, the SDK's traces are "no-op" and export nothing.
    return trace.trace_id if trace.export() else None


def _span_error(run: Run, error: BaseException) -> Any:
    data: dict[str, Any] = {"error_type": type(error).__name__}
    if isinstance(error, KantanAgentsError):
        data["code"] = error.code
    # The message may quote the model or the user.
    message = error_message(run, error) if run.records_sensitive_data else ""
    return {"message": message or type(error).__name__, "data": data}


def record_final_output(run: Run) -> None:
    """Start the final ``generation`` span, which ends with the run (spec 5.3).

    kantan-llm's keyword search reads it, because ``response`` spans have neither input nor output. A rubric
    is also on a ``custom`` span, for ``kantan_llm.tracing.analysis``. Without sensitive data, the span is
    empty.
    """
    result = run.result
    if not run.records_sensitive_data:
        _begin_final_span(run)
        return
    output = getattr(result, "final_output", result)
    rubric = None if isinstance(output, str) else rubric_of(output, _declared_type(result))
    if rubric is not None:
        recorded: Any = {"rubric": copied_data(rubric)}
    else:
        recorded = json_data(output)
    _begin_final_span(run, _input(run), recorded, run.state.get(_OUTPUT_MODE))
    if rubric is not None:
        verdict = {"output_kind": "judge", "rubric": _with_comment(rubric)}
        with custom_span(JUDGE_SPAN, verdict, disabled=run.run_config.tracing_disabled):
            pass


def _declared_type(result: Any) -> Any:
    output_type = getattr(getattr(result, "last_agent", None), "output_type", None)
    return getattr(output_type, "output_type", output_type)


def record_recovery(run: Run, attempt: int, steps: int, elapsed: float) -> None:
    """Record on a ``custom`` span that this process resumes a run; ``elapsed`` is in seconds."""
    data = {"agent_run_id": run.id, "attempt": attempt, "steps": steps, "elapsed": round(elapsed, 3)}
    with custom_span(RECOVERY_SPAN, data, disabled=run.run_config.tracing_disabled):
        pass


def record_stop(run: Run) -> None:
    """Record on a ``custom`` span that the stream's reader stopped after a turn."""
    data = {"agent_run_id": run.id, "turns": getattr(run.result, "current_turn", None)}
    with custom_span(STOP_SPAN, data, disabled=run.run_config.tracing_disabled):
        pass


def _begin_final_span(run: Run, given: Any = None, answer: Any = None, config: Any = None) -> None:
    # Active middleware may change the items in place.
    span = _final_span(run, given if type(given) is str else copied_data(given), answer, config)
    span.start()
    run.state[_FINAL_SPANS] = (*run.state.get(_FINAL_SPANS, ()), span)


def _final_span(run: Run, given: Any = None, answer: Any = None, config: Any = None) -> Span[Any]:
    data = GenerationSpanData(run.agent.name, given, answer, config)
    return get_trace_provider().create_span(data, disabled=run.run_config.tracing_disabled)


def set_output_mode(run: Run, mode: str, attempts: int) -> None:
    """Set a structured output's mode and attempts for the final span."""
    run.state[_OUTPUT_MODE] = {"output_mode": mode, "output_attempts": attempts}


def record_metadata(run: Run, metadata: dict[str, Any]) -> None:
    """Record the metadata of a handoff target, which takes over the run."""
    with custom_span(RUN_SPAN, metadata, disabled=run.run_config.tracing_disabled):
        pass


def _input(run: Run) -> Any:
    given = run.input if isinstance(run.input, str) else _recordable(user_input(run))
    return redacted_input(run, given)


def user_input(run: Run) -> Any:
    """Return the user's input; the original one of a resumed ``RunState``."""
    if isinstance(run.input, (str, list)):
        return run.input
    return getattr(run.result, "input", None)


def _recordable(value: Any) -> Any:
    if value is None or isinstance(value, (str, dict)):
        return value
    if isinstance(value, list):
        # A conversation may have thousands of items, almost all dicts.
        return [item if isinstance(item, (str, dict)) else cast("Any", _recordable(item)) for item in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return value if isinstance(value, (int, float, bool)) else str(value)


def _with_comment(rubric: dict[str, Any]) -> dict[str, Any]:
    # kantan-llm groups failed verdicts by the first word of `comment`.
    comments = rubric.get("comments")
    if "comment" in rubric or not isinstance(comments, list) or not comments:
        return rubric
    return {**rubric, "comment": str(comments[0])}


def _log_lost_recorder(trace_id: str) -> None:
    recorder = main_recorder()
    if recorder is None or Main.is_known_lost or not recorder.misses(trace_id):
        return
    # The SDK has no public access to its processors. Another provider may have none.
    multi = getattr(get_trace_provider(), "_multi_processor", None)
    known = recorders()
    if any(processor in known for processor in getattr(multi, "_processors", known)):
        return  # traces are recorded, perhaps in another file
    Main.is_known_lost = True
    error = RecorderReplacedError(path=str(recorder.path))
    _log.warning(str(error), code=error.code, **error.data)
