"""The content of a file."""

from __future__ import annotations

import codecs

import attrs

_MARKS = (  # longest first: the mark of UTF-32 starts with the mark of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class BinaryFileError(Exception):
    """The bytes are not text."""


def marked_encoding(data: bytes) -> tuple[bytes, str | None]:
    """Return the byte order mark and its encoding, or ``b""`` and None."""
    return next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", None))


@attrs.frozen
class FileText:
    """The content of a file with ``\\n`` as its only line end, and everything to write it back."""

    text: str
    ends: tuple[str, ...] = attrs.field(repr=False)
    encoding: str = "utf-8"
    mark: bytes = b""

    @classmethod
    def decode(cls, data: bytes) -> FileText:
        """Decode a file, by default as UTF-8 or else Latin-1."""
        mark, encoding = marked_encoding(data)
        body = data[len(mark) :]
        if encoding in (None, "utf-8") and b"\0" in body:
            raise BinaryFileError
        try:
            raw = body.decode(encoding or "utf-8")
        except UnicodeDecodeError as error:
            if encoding is not None:
                raise BinaryFileError from error
            encoding, raw = "latin-1", body.decode("latin-1")
        pieces = raw.split("\n")
        ends = tuple("\r\n" if piece.endswith("\r") else "\n" for piece in pieces[:-1])
        text = raw.replace("\r\n", "\n") if "\r\n" in ends else raw
        return cls(text, ends, encoding or "utf-8", mark)

    def encode(self) -> bytes:
        """Encode the file."""
        if "\r\n" not in self.ends:
            return self.mark + self.text.encode(self.encoding)
        pieces = self.text.split("\n")
        raw = "".join(piece + end for piece, end in zip(pieces, (*self.ends, ""), strict=True))
        return self.mark + raw.encode(self.encoding)

    def replaced(self, starts: list[int], old: str, new: str) -> FileText:
        """Replace ``old`` at ``starts``, which are sorted; new lines end as their neighbors do."""
        removed, added = old.count("\n"), new.count("\n")
        pieces: list[str] = []
        ends: list[str] = []
        place = line = 0
        for start in starts:
            first = line + self.text.count("\n", place, start)
            kept = self.ends[first : first + min(removed, added)]
            near = self.ends[first : first + 1] or self.ends[-1:] or ("\n",)
            ends += (*self.ends[line:first], *kept, *near * (added - len(kept)))
            pieces += (self.text[place:start], new)
            place, line = start + len(old), first + removed
        return attrs.evolve(self, text="".join((*pieces, self.text[place:])), ends=(*ends, *self.ends[line:]))


def unified(text: str) -> str:
    """Return a string with ``\\n`` as its only line end."""
    return text.replace("\r\n", "\n")
