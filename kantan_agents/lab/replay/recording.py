"""``Recording``: the runs of one trace as one readable file, independent of the database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
from typing_extensions import Self

from kantan_agents.core.context import RESERVED_KEYS
from kantan_agents.errors import IncompleteRecordError, NotReplayableError, RecordingFileError
from kantan_agents.support.replace_file import replace_file
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import copied
from kantan_agents.traces.capture.reading import UnknownVersionError, run_record
from kantan_agents.traces.capture.writing import data_of, with_contents_apart
from kantan_agents.traces.store import StoredTrace, TraceStore

FORMAT: Final = "kantan_agents recording"
VERSION: Final = 1


@attrs.frozen
class Recording:
    """The complete records of a run and of all runs inside it.

    Attributes:
        trace_id: Id of the trace that it comes from.
        runs: The records; the outermost run is first.
    """

    trace_id: str
    runs: Sequence[RunRecord]

    @classmethod
    def from_trace(cls, store: TraceStore, trace_id: str, *, run: str | None = None) -> Self:
        """Return the recording of a trace in a database.

        Args:
            store: The database.
            trace_id: Id of the trace, or a part of it as ``store.trace`` takes it.
            run: Id of the run, if the trace has several that are not inside one another.

        Raises:
            TraceNotFoundError: E61, the trace does not exist.
            TraceDatabaseError: E60, the file cannot be read.
            IncompleteRecordError: E90, the trace is not recorded completely.
            NotReplayableError: E93, the trace has several runs, or ``run`` is not one of them.
        """
        return cls.of(store.trace(trace_id), run=run)

    @classmethod
    def of(cls, trace: StoredTrace, *, run: str | None = None) -> Self:
        """Return the recording of a stored trace; see ``from_trace``."""
        trace_id = trace.summary.trace_id
        if trace.missing:
            raise IncompleteRecordError(trace_id=trace_id, reason="; ".join(trace.missing))
        ids = {one.id for one in trace.runs}
        outermost = [one for one in trace.runs if one.parent_run not in ids]
        chosen = [one for one in outermost if run is None or one.id == run]
        if len(chosen) != 1:
            listed = ", ".join(f"{one.id} ({one.agent})" for one in outermost) or "none"
            reason = f"choose one of its runs with run=: {listed}"
            raise NotReplayableError(trace_id=trace_id, reason=reason)
        return cls(trace_id, tuple(_with_inner(chosen[0], trace.runs)))

    @property
    def root(self) -> RunRecord:
        """The outermost run."""
        return self.runs[0]

    def inside(self, run_id: str) -> Sequence[RunRecord]:
        """Return the runs that started directly inside a run."""
        return [one for one in self.runs if one.parent_run == run_id]

    def to_dict(self) -> dict[str, Any]:
        """Return the recording as JSON data; ``from_dict`` reads it back."""
        contents, runs = with_contents_apart([data_of(run) for run in self.runs])
        return {
            "format": FORMAT,
            "version": VERSION,
            "trace_id": self.trace_id,
            "runs": [{"id": run.id, **data} for run, data in zip(self.runs, runs, strict=True)],
            "contents": contents,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], path: str = "the data") -> Self:
        """Return the recording of the JSON data that ``to_dict`` returned.

        Args:
            data: The data.
            path: Name of the data in errors.

        Raises:
            RecordingFileError: E91, the data is not a recording of this or an earlier version.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise RecordingFileError(path=path, reason=f'it has no "format": "{FORMAT}"')
        if not isinstance(data.get("version"), int) or data["version"] > VERSION:
            version = data.get("version")
            reason = f"its version is {version!r}, and this library reads up to {VERSION}; upgrade it"
            raise RecordingFileError(path=path, reason=reason)
        try:
            contents: list[Any] = data["contents"]
            runs = [_run(one, data["trace_id"], contents.__getitem__) for one in data["runs"]]
            recording = cls(data["trace_id"], tuple(runs))
            recording._check()
        except UnknownVersionError as error:
            raise RecordingFileError(path=path, reason=f"{error}; upgrade kantan_agents") from error
        except (LookupError, TypeError, ValueError, AttributeError, msgspec.ValidationError) as error:
            reason = f"it is damaged ({type(error).__name__}: {error}); record it again"
            raise RecordingFileError(path=path, reason=reason) from error
        return recording

    def _check(self) -> None:
        """Read all of it once, so that damage is found before a replay."""
        if not self.runs:
            raise ValueError("it has no runs")
        # From plain data, as `convert` does not look into a value that already has the type.
        msgspec.convert(msgspec.to_builtins(self), type(self))
        for run in self.runs:
            for call in run.model_calls:
                call.request.hash  # noqa: B018 - computed from all parts

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file; an existing file is replaced.

        The same recording always gives the same file: indented JSON with one value a line, fit for a git
        repository. As in the database, secrets are masked and everything else is in clear text. Only the
        owner can read a new file.

        Raises:
            RecordingFileError: E91, the file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, default=_plain)
        try:
            replace_file(Path(path), f"{text}\n".encode(errors="surrogatepass"))
        except OSError as error:
            raise RecordingFileError(path=str(path), reason=error.strerror or str(error)) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a recording from a file.

        Raises:
            RecordingFileError: E91, the file is missing, or it is not a readable recording.
        """
        try:
            text = Path(path).read_text(encoding="utf-8", errors="surrogatepass")
            data = json.loads(text)
        except OSError as error:
            raise RecordingFileError(path=str(path), reason=error.strerror or str(error)) from error
        except (ValueError, RecursionError) as error:
            raise RecordingFileError(path=str(path), reason=f"it is not JSON: {error}") from error
        return cls.from_dict(data, str(path))

    def __repr__(self) -> str:
        root = self.root
        more = f", {len(self.runs) - 1} runs inside" if len(self.runs) > 1 else ""
        return f"<Recording of {root.agent!r}, {len(root.model_calls)} model calls{more}>"


def _with_inner(root: RunRecord, runs: Sequence[RunRecord]) -> list[RunRecord]:
    found = [root]
    for run in found:
        found += [one for one in runs if one.parent_run == run.id and one.id != run.id and one not in found]
    return found


def _run(data: Mapping[str, Any], trace_id: str, resolve: Callable[[int], Any]) -> RunRecord:
    return run_record(str(data["id"]), trace_id, data, resolve)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def earlier_items(recorded: RunRecord) -> list[Any]:
    """Return the items of a session before a run: recorded, or else from its first request."""
    if not recorded.has_session:
        return []
    if recorded.earlier is not None:
        return [copied(item) for item in recorded.earlier]
    first = recorded.model_calls[0].request.input if recorded.model_calls else ()
    sent = recorded.input
    own = 1 if sent is None or isinstance(sent, str) else len(sent)
    before = [] if isinstance(first, str) else list(first)[: max(0, len(first) - own)]
    return [copied(item) for item in before]


def values_before(recorded: RunRecord) -> dict[str, Any]:
    """Return the context values that templates read, by path, as of the run's start."""
    read = recorded.given_context
    if read is None:
        read = {path: value for agent in recorded.agents for path, value in agent.context.items()}
    return {path: copied(value) for path, value in read.items() if path not in RESERVED_KEYS}
