"""The text of a file, and how it was written: encoding, byte order mark, line ends."""

from __future__ import annotations

import codecs

import attrs

_MARKS = (  # longest first: that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class BinaryFileError(Exception):
    """The bytes are not text."""


def marked_encoding(data: bytes) -> tuple[bytes, str | None]:
    """Return the byte order mark at the beginning and its encoding; ``b""`` and None without one."""
    return next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", None))


@attrs.frozen
class FileText:
    """The text of a file with ``\\n`` as its only line end, and what is needed to write it back.

    Attributes:
        text: The text.
        ends: The line end of each line that has one, ``"\\n"`` or ``"\\r\\n"``.
        encoding: How it is encoded.
        mark: The byte order mark.
    """

    text: str
    ends: tuple[str, ...] = attrs.field(repr=False)
    encoding: str = "utf-8"
    mark: bytes = b""

    @classmethod
    def decode(cls, data: bytes) -> FileText:
        """Return the text of a file's bytes; what is neither UTF-8 nor marked is read as Latin-1.

        Raises:
            BinaryFileError: The bytes are not text.
        """
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
        """Return the bytes of the file.

        Raises:
            UnicodeEncodeError: The encoding has no code for a character.
        """
        if "\r\n" not in self.ends:
            return self.mark + self.text.encode(self.encoding)
        pieces = self.text.split("\n")
        raw = "".join(piece + end for piece, end in zip(pieces, (*self.ends, ""), strict=True))
        return self.mark + raw.encode(self.encoding)

    def replaced(self, starts: list[int], old: str, new: str) -> FileText:
        """Return the text with ``old`` replaced at some places; new lines end as their neighbours do.

        Args:
            starts: Where ``old`` begins, in order, without overlaps.
            old: The text there.
            new: The text in its place.
        """
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
    """Return a text of the model with ``\\n`` as its only line end."""
    return text.replace("\r\n", "\n")
