from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.toolkit.shell.bounded_output import BoundedOutput, LatestOutput

CHUNKS = st.lists(st.binary(max_size=40), max_size=12)


def split(data: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[begin:end] for begin, end in pairwise(cuts)]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.lists(st.integers(0, 60)))
def test_what_fits_is_returned_unchanged_however_it_is_split_and_taken(text: str, places: list[int]) -> None:
    output = BoundedOutput(10_000)
    taken = ""
    for chunk in split(text.encode(), places):
        output.add(chunk)
        taken += output.take(is_last=False)
    assert taken + output.take(is_last=True) == text


@given(CHUNKS, st.integers(2, 60))
def test_never_more_is_kept_than_the_size(chunks: list[bytes], size: int) -> None:
    output = BoundedOutput(size)
    for chunk in chunks:
        output.add(chunk)
        assert len(output._head) + len(output._tail) <= size
    assert output.total == sum(map(len, chunks))


@given(st.binary(max_size=300).map(lambda data: bytes(byte & 0x7F | 1 for byte in data)), st.integers(2, 60))
def test_the_shown_and_the_missing_bytes_are_all_of_them(data: bytes, size: int) -> None:
    output = BoundedOutput(size)
    output.add(data)
    shown = output.take(is_last=True).encode()
    half = size // 2
    if len(data) <= 2 * half:
        assert shown == data
    else:
        notice = f"\n[... {len(data) - 2 * half:,} bytes are not shown ...]\n".encode()
        assert shown == data[:half] + notice + data[-half:]


@given(
    st.text(st.characters(min_codepoint=0x80, codec="utf-8"), min_size=50, max_size=80), st.integers(10, 60)
)
def test_no_character_is_cut_in_two_where_something_is_left_out(text: str, size: int) -> None:
    output = BoundedOutput(size)
    output.add(text.encode())
    assert "\ufffd" not in output.take(is_last=True) or "\ufffd" in text


@given(CHUNKS, st.integers(1, 60))
def test_the_latest_output_is_the_end_of_all_of_it(chunks: list[bytes], size: int) -> None:
    output = LatestOutput(size)
    for chunk in chunks:
        output.add(chunk)
        assert len(output._data) <= size
    data = b"".join(chunks)
    notice, _, text = output.text().rpartition("...]\n") if len(data) > size else ("", "", output.text())
    missing = int(notice.split()[1].replace(",", "")) if notice else 0
    assert text == data[missing:].decode("utf-8", "replace")
    assert len(data) - missing <= size


def test_the_latest_output_begins_with_a_whole_character() -> None:
    output = LatestOutput(5)
    output.add("ab€€".encode())
    assert output.text() == "[... 5 bytes are not shown ...]\n€"
