"""Bounded buffers for the output of a command."""

from __future__ import annotations


class BoundedOutput:
    """Stores the first and last ``size / 2`` bytes of an output."""

    def __init__(self, size: int) -> None:
        self.total = 0
        self._half = max(size // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Add printed bytes."""
        self.total += len(data)
        free = self._half - len(self._head)
        self._head += data[:free]
        self._tail += data[max(free, 0) :][-self._half :]
        too_many = len(self._tail) - self._half
        if too_many > 0:
            del self._tail[:too_many]
        self._left_out += max(len(data) - max(free, 0), 0)

    def take(self, *, is_last: bool) -> str:
        """Return the output since the last call, with a notice of omitted bytes.

        Unless ``is_last``, an unfinished character stays for the next call.
        """
        missing = self._left_out - len(self._tail)
        if missing > 0:
            head = bytes(self._head[: len(self._head) - _unfinished(self._head)])
            begin = _continuing(self._tail)
            missing += len(self._head) - len(head) + begin
            tail = self._tail[begin:]
        else:
            head, tail = b"", self._head + self._tail
        keep = 0 if is_last else _unfinished(tail)
        rest, tail = bytes(tail[len(tail) - keep :]), tail[: len(tail) - keep]
        self._head, self._tail, self._left_out = bytearray(rest), bytearray(), 0
        notice = f"\n[... {missing:,} bytes are not shown ...]\n" if missing > 0 else ""
        # Databases reject NUL in a string.
        return f"{_text(head)}{notice}{_text(tail)}".replace("\0", "\ufffd")


class LatestOutput:
    """Stores the last ``size`` bytes of an output."""

    def __init__(self, size: int) -> None:
        self.total = 0
        self._size = size
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        """Add printed bytes."""
        self.total += len(data)
        self._data += data
        del self._data[: -self._size]

    def text(self) -> str:
        """Return the stored output, after a notice of omitted bytes."""
        missing = self.total - len(self._data)
        begin = _continuing(self._data) if missing else 0
        notice = f"[... {missing + begin:,} bytes are not shown ...]\n" if missing else ""
        return f"{notice}{_text(self._data[begin:])}"


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace")


_MARK = 0xC0  # two bits: 10 in a byte that continues a character, 11 in one that starts a longer one
_CONTINUES = 0x80
_LENGTHS = ((0xF0, 4), (0xE0, 3), (0xC0, 2))


def _continuing(data: bytearray) -> int:
    return next((place for place, byte in enumerate(data[:4]) if byte & _MARK != _CONTINUES), 0)


def _unfinished(data: bytes | bytearray) -> int:
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & _MARK == _CONTINUES:
            continue
        length = next((length for first, length in _LENGTHS if byte >= first), 1)
        return back if back < length else 0
    return 0
