"""The parts of the views of ``kantan-agents traces``: quantities, rows, trees."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kantan_llm.tracing import SpanRecord
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.plain import json_line
from kantan_agents.cli.terminal.read_quantities import read_duration, read_moment, read_size
from kantan_agents.cli.terminal.rows import Column, cell, cut, row_lines
from kantan_agents.cli.terminal.show_quantities import (
    counted,
    duration_text,
    iso_time,
    local_time,
    rate_text,
    size_text,
)
from kantan_agents.cli.traces.span_details import draw_span, readable
from kantan_agents.cli.traces.span_tree import Guides, tree_lines
from kantan_agents.errors import InvalidOptionError
from kantan_agents.traces.input_items import newest_item, question_in
from kantan_agents.traces.sdk_spans import is_sdk_span, without_sdk_spans

COLUMNS = (
    Column("id"),
    Column("count", right=True, named=True),
    Column("name", longest=9),
    Column("text", own_line=True, rest=True),
)


class TestQuantities:
    @pytest.mark.parametrize(
        ("text", "duration"),
        [
            ("90s", timedelta(seconds=90)),
            ("5m", timedelta(minutes=5)),
            ("12h", timedelta(hours=12)),
            (" 30 d ", timedelta(days=30)),
            ("2W", timedelta(weeks=2)),
            ("1.5h", timedelta(minutes=90)),
        ],
    )
    def test_durations(self, text: str, duration: timedelta) -> None:
        assert read_duration(text, "--x") == duration

    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("1B", 1),
            ("2KB", 2000),
            ("2kib", 2048),
            ("1.5MB", 1_500_000),
            ("2GB", 2 * 10**9),
            ("2 GiB", 2 * 2**30),
            ("9007199254740993B", 2**53 + 1),
        ],
    )
    def test_sizes(self, text: str, size: int) -> None:
        assert read_size(text, "--x") == size

    @given(st.text())
    def test_other_text_is_an_error_that_names_the_expected_form(self, text: str) -> None:
        for read in (read_duration, read_size, read_moment):
            reason = _reason(read, text)
            assert reason is None or reason.startswith("must be a")

    def test_a_moment_without_an_offset_is_local(self) -> None:
        local = datetime(2026, 11, 20, 9, 30).astimezone()
        assert read_moment("2026-11-20T09:30", "--x") == local
        assert read_moment("2026-11-20 09:30:00", "--x") == local
        assert read_moment("2026-11-20T09:30:00z", "--x") == datetime(
            2026, 11, 20, 9, 30, tzinfo=timezone.utc
        )
        assert read_moment("2026-11-20", "--x") == datetime(2026, 11, 20).astimezone()

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (None, ""),
            (0, "0 ms"),
            (0.0123, "12 ms"),
            (0.9999, "1.0 s"),
            (59.94, "59.9 s"),
            (59.97, "1 min 0 s"),
            (3599.7, "1 h 0 min"),
            (7260, "2 h 1 min"),
        ],
    )
    def test_durations_are_shown_in_their_unit(self, seconds: float | None, text: str) -> None:
        assert duration_text(seconds) == text

    @pytest.mark.parametrize(
        ("size", "text"),
        [
            (999, "999 bytes"),
            (1000, "1.0 KB"),
            (999_950, "1.0 MB"),
            (2_340_000_000, "2.3 GB"),
            (5e12, "5.0 TB"),
        ],
    )
    def test_sizes_are_shown_in_their_unit(self, size: float, text: str) -> None:
        assert size_text(size) == text

    def test_counts_and_rates(self) -> None:
        assert (counted(1, "run"), counted(1234, "run")) == ("1 run", "1,234 runs")
        assert (rate_text(1, 3), rate_text(0, 0)) == ("33.3%", "")

    def test_moments_are_shown(self) -> None:
        aware = datetime(2026, 11, 20, 9, 30, tzinfo=timezone.utc)
        moment = aware.replace(tzinfo=None)  # kantan-llm's times are naive
        assert iso_time(moment) == iso_time(aware) == "2026-11-20T09:30:00+00:00"
        assert local_time(moment) == aware.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        assert (iso_time(None), local_time(None)) == (None, "")
        assert local_time(datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))).startswith(
            "9999-12-31"
        )


class TestJson:
    @pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
    @given(text=st.text(st.characters()))
    def test_any_text_gives_valid_json_on_one_line(self, encoding: str, text: str) -> None:
        stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        with redirect_stdout(stdout):
            line = json_line({"x": text})
        assert len(line.splitlines()) == 1
        line.encode(encoding)
        assert json.loads(line) == {"x": re.sub("[\ud800-\udfff]", "\ufffd", text)}
        assert "\x9b" not in line


class TestInputItems:
    ITEMS = (
        {"role": "user", "content": [{"type": "input_text", "text": "one"}, {"text": "two"}]},
        {"type": "function_call", "name": "look_up", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "output": "found"},
        {"role": "assistant", "content": []},
    )

    def test_the_question_is_the_last_message_of_the_user(self) -> None:
        assert question_in(json.dumps(self.ITEMS)) == "one two"

    @pytest.mark.parametrize("text", ["", "a text", "[no JSON", "[1, 2]", "[]", "[" * 100_000])
    def test_other_text_is_returned_unchanged(self, text: str) -> None:
        assert question_in(text) == newest_item(text) == text

    @pytest.mark.parametrize(
        ("count", "text"),
        [
            (1, "user: one two"),
            (2, '2 items, the last: look_up({"x": 1})'),
            (3, "3 items, the last: found"),
            (4, '4 items, the last: {"role": "assistant", "content": []}'),
        ],
    )
    def test_the_last_item_of_a_model_calls_input_is_shown(self, count: int, text: str) -> None:
        assert newest_item(json.dumps(self.ITEMS[:count])) == text


IDS = st.sampled_from([f"s{number}" for number in range(8)])


class TestSdkSpans:
    @staticmethod
    def spans(parents: dict[str, str | None], hidden: set[str], failed: set[str]) -> list[SpanRecord]:
        return [
            replace(
                _span(span_id, "", ""),
                parent_id=parent,
                raw={"span_data": {"data": {"sdk_span_type": "turn"} if span_id in hidden else {}}},
                error={"message": "gone"} if span_id in failed else None,
            )
            for span_id, parent in parents.items()
        ]

    @given(
        parents=st.dictionaries(IDS, st.none() | IDS, min_size=1),
        hidden=st.sets(IDS),
        failed=st.sets(IDS),
        depth=st.none() | st.integers(1, 4),
    )
    def test_only_quiet_spans_of_the_sdk_are_hidden_and_no_other_span_is_lost(
        self, parents: dict[str, str | None], hidden: set[str], failed: set[str], depth: int | None
    ) -> None:
        spans = self.spans(parents, hidden, failed)
        kept = without_sdk_spans(spans)
        assert {one.span_id for one in kept} == parents.keys() - (hidden - failed)
        assert not any(is_sdk_span(one) and not one.error for one in kept)
        for one in kept:
            parent, seen = parents[one.span_id], set()
            while parent in hidden - failed and parent in parents and parent not in seen:
                seen.add(parent)
                parent = parents[parent]
            assert one.parent_id == (None if parent in seen else parent)
        drawn = tree_lines(
            Console(),
            kept,
            lambda one: (Text(f"<{one.span_id}>"), ()),
            width=None,
            guides=Guides(),
            depth=depth,
        )
        text = "\n".join(line.plain for line in drawn)
        below = sum(int(number) for number in re.findall(r"(\d+) spans? below", text))
        assert len(re.findall("<", text)) + below == len(kept)


class TestRows:
    @given(
        st.lists(st.tuples(st.text(), st.integers(), st.text(), st.text()), min_size=1, max_size=4),
        st.integers(min_value=20, max_value=200),
    )
    def test_columns_are_narrowed_and_left_out_before_a_table_is_given_up(
        self, values: list[tuple[str, int, str, str]], width: int
    ) -> None:
        columns = (
            Column("id"),
            Column("count", right=True, drop=2),
            Column("name", longest=20, narrow=6, drop=1),
            Column("text", rest=True, own_line=True, narrowest=4),
        )
        rows = [[cell(f"x{row[0]}", longest=10), *map(cell, row[1:])] for row in values]
        head, *lines = row_lines(columns, rows, width)
        assert len(lines) == len(rows)
        assert head.plain.split()[0] == "id"
        assert max(line.cell_len for line in (head, *lines)) <= width

    @given(
        st.lists(st.tuples(st.text(), st.integers(), st.text(), st.text()), min_size=1, max_size=4),
        st.integers(min_value=20, max_value=200),
    )
    def test_no_line_exceeds_the_width_unless_a_single_cell_does(
        self, values: list[tuple[str, int, str, str]], width: int
    ) -> None:
        rows = [[cell(value, longest=16) for value in row[:-1]] + [cell(row[-1])] for row in values]
        lines = list(row_lines(COLUMNS, rows, width))
        assert max(line.cell_len for line in lines) <= max(width, 16)
        assert not any("\n" in line.plain for line in lines)

    def test_in_a_pipe_nothing_is_cut(self) -> None:
        rows = [[cell("x" * 50), cell(1), cell("a long name"), cell("word " * 100)]]
        head, line = row_lines(COLUMNS, rows, None)
        assert head.plain.split() == ["id", "count", "name", "text"]
        assert line.plain.startswith("x" * 50 + "      1  a long name  word word")
        assert line.plain.endswith(("word " * 100).rstrip())

    @given(st.text(), st.integers(min_value=0, max_value=40))
    def test_a_text_is_cut_to_its_column_width(self, text: str, cells: int) -> None:
        shown = cut(cell(text), cells)
        assert shown.cell_len <= cells
        assert shown.plain == cell(text).plain or shown.plain.endswith("..."[:cells])

    def test_a_style_does_not_spread(self) -> None:
        (_, line) = row_lines(COLUMNS, [[cell("a", "red"), cell(1), cell("b"), cell("c")]], 80)
        assert [(span.start, span.end) for span in line.spans if span.style == "red"] == [(0, 1)]


class TestTree:
    @given(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.text(max_size=300)), max_size=10),
        st.integers(min_value=34, max_value=120),
    )
    def test_every_span_is_drawn_once_within_the_width(
        self, spans: list[tuple[int, int, str]], width: int
    ) -> None:
        records = {f"s{number}": _span(f"s{number}", f"s{parent}", text) for number, parent, text in spans}
        console = Console(file=io.StringIO(), width=width)
        drawn: list[str] = []
        draw = draw_span(full=True)

        def recorded(span: SpanRecord) -> tuple[Text, object]:
            drawn.append(span.span_id)
            return draw(span)

        lines = list(tree_lines(console, list(records.values()), recorded, width=width, guides=Guides()))  # type: ignore[arg-type]
        assert sorted(drawn) == sorted(records)
        assert max((cell_len(line.plain) for line in lines), default=0) <= width

    @given(st.text())
    def test_a_cut_text_is_one_line(self, text: str) -> None:
        assert "\n" not in readable(text * 50, full=False).plain


def _reason(read: Callable[[str, str], object], text: str) -> str | None:
    try:
        read(text, "--x")
    except InvalidOptionError as error:
        return error.reason
    return None


def _span(span_id: str, parent_id: str, text: str) -> SpanRecord:
    return SpanRecord(
        trace_id="trace_x",
        span_id=span_id,
        parent_id=parent_id,
        span_type="custom",
        name="n",
        started_at=None,
        ended_at=None,
        ingest_seq=0,
        input=text,
        output=text,
        output_kind=None,
        tool_calls=[{"name": text, "arguments": {"a": text}}],
        structured=None,
        rubric=None,
        usage=None,
        error=None,
        raw=None,
    )
