"""Messages with files, as ``@notes.txt``."""

from __future__ import annotations

import base64
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.cli.agents.below import link_error, place_below
from kantan_agents.cli.chat.kept_conversation import Item
from kantan_agents.cli.terminal.plain import one_line, whole
from kantan_agents.cli.terminal.show_quantities import size_text
from kantan_agents.errors import FileArgumentError, FileMentionError

# At the start or after white space: aiko@example.com is not a mention.
_MENTION: Final = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_MAX_FILES: Final = 20
_BEHIND: Final = ".,;:!?)]}'\""
_IMAGES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_IMAGE_NAMES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
NOTE: Final = "[A note of the chat, not of the user: {}]"
"""Prefix of notes in a message that the user did not type; never foreign text."""

FILE: Final = "The file "

MAX_TEXT: Final = 100_000
MAX_IMAGE: Final = 5_000_000
# O_NONBLOCK: opening a pipe would wait for a writer. Windows lacks some flags.
_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOCTTY")
)


@attrs.frozen
class ChatMessage:
    """A message; ``notes`` inform the user about named files."""

    item: Item
    notes: tuple[str, ...] = ()

    def with_text(self, text: str) -> ChatMessage:
        """Return it with additional text for the model."""
        content = self.item["content"]
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
        added = {"type": "input_text", "text": text}
        return attrs.evolve(self, item={**self.item, "content": [*parts, added]})


def read_message(text: str, folder: Path) -> ChatMessage:
    """Return a message as an input item with the files of ``folder`` that it names.

    A name without a file remains text, and a note reports it: ``@aiko`` may be a person. E193 for a file that
    is outside the folder, a link, binary or too large, and for too many.
    """
    text = whole(text)
    parts: list[dict[str, Any]] = []
    notes: list[str] = []
    for name in dict.fromkeys(_names(text, folder)):
        if not is_file_inside(folder, name):
            notes.append(f"@{one_line(name)} is not a file here; it was sent as text")
            continue
        if len(parts) == _MAX_FILES:
            raise FileMentionError(name=one_line(name), reason=f"a message has at most {_MAX_FILES} files")
        part, note = _part(folder, name)
        parts.append(part)
        notes.append(note)
    if not parts:
        return ChatMessage({"role": "user", "content": text}, tuple(notes))
    content = [{"type": "input_text", "text": text}, *parts]
    return ChatMessage({"role": "user", "content": content}, tuple(notes))


def _names(text: str, folder: Path) -> Iterator[str]:
    for quoted, word in _MENTION.findall(text):
        name = quoted or word
        short = name.rstrip(_BEHIND)
        # "Look at @notes.txt." ends a sentence, unless a file has that name.
        yield name if quoted or not short or is_file_inside(folder, name) else short


def _part(folder: Path, name: str) -> tuple[dict[str, Any], str]:
    shown = one_line(name)
    if name.lower().endswith(_IMAGE_NAMES):
        content, size = _read_inside(folder, name, MAX_IMAGE)
        kind = _image_kind(content)
        if kind is None:
            raise FileMentionError(name=shown, reason="it is not a PNG, JPEG, GIF or WebP image")
        if size > MAX_IMAGE:
            reason = f"it has {size_text(size)}, and an image may have {size_text(MAX_IMAGE)}"
            raise FileMentionError(name=shown, reason=reason)
        url = f"data:{kind};base64,{base64.b64encode(content).decode()}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}, f"@{shown}: an image"
    content, size = _read_inside(folder, name, MAX_TEXT)
    is_cut = size > len(content)
    text = _decoded(content, shown, is_cut=is_cut)
    extent = f"the first {size_text(len(content))} of {size_text(size)}" if is_cut else size_text(size)
    heading = f"{FILE}{shown} ({extent}):"
    return {"type": "input_text", "text": f"{heading}\n\n{text}"}, f"@{shown}: {extent}"


def _image_kind(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _IMAGES if content.startswith(beginning)), None)


def _decoded(content: bytes, name: str, *, is_cut: bool) -> str:
    if b"\0" in content:
        raise FileMentionError(name=name, reason="it is binary")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        longest = 4  # bytes of a character; the last one may be cut off
        if is_cut and error.start > len(content) - longest:
            return content[: error.start].decode("utf-8-sig")
        raise FileMentionError(name=name, reason="it is not UTF-8 text") from error


def is_file_inside(folder: Path, name: str) -> bool:
    """Return whether to read a name: it exists in the folder, or leads out of it, an error."""
    try:
        path = _path(folder, name)
        return not path.is_relative_to(folder) or (os.path.lexists(path) and not path.is_dir())
    except (OSError, ValueError):  # too long, or has a character that no name has
        return False


def _read_inside(folder: Path, name: str, limit: int) -> tuple[bytes, int]:
    """Return the first bytes of a file in a folder, and its size; raise E193 if it cannot be read.

    Each part of the path is opened below an open folder, without following links: no one can swap one.
    """
    path, shown = _path(folder, name), one_line(name)
    if not path.is_relative_to(folder) or path == folder:
        raise FileMentionError(name=shown, reason="it is outside of the working folder")
    try:
        with place_below(folder, path) as place:
            descriptor = os.open(place.name, _FLAGS, dir_fd=place.directory)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise FileMentionError(name=shown, reason="it is not a file with text or an image")
                content = _read(descriptor, limit + 1)
                return content[:limit], max(status.st_size, len(content))  # it may grow meanwhile
            finally:
                os.close(descriptor)
    except FileArgumentError as error:
        raise FileMentionError(name=shown, reason=error.reason) from error
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ELOOP:
            raise FileMentionError(name=shown, reason=link_error(path, path).reason) from error
        raise FileMentionError(name=shown, reason=getattr(error, "strerror", None) or str(error)) from error


def _path(folder: Path, name: str) -> Path:
    return Path(os.path.abspath(folder / name))  # noqa: PTH100 - links are not followed


def _read(descriptor: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(descriptor, limit)):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)
