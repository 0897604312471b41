"""Reads and writes dataset files, in the format of their suffix."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kantan_agents.errors import DatasetFileError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.dataset.csv_file import SUFFIXES, read_csv, to_csv
from kantan_agents.lab.evaluation.dataset.jsonl import read_jsonl, to_jsonl
from kantan_agents.support.arguments import checked_path
from kantan_agents.support.replace_file import replace_file

_JSONL: Final = ".jsonl"
_NO_FORMAT: Final = "the name of a dataset ends in .jsonl, .csv or .tsv; import_dataset reads other files"
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def dataset_path(path: str | os.PathLike[str], *, held_out: bool = False) -> Path:
    """Return the path of a dataset file."""
    place = Path(checked_path("path", path))
    suffix = place.suffix.lower()
    if held_out and suffix != _JSONL:
        raise DatasetFileError(path=str(place), reason="a held-out test set is a .jsonl file")
    if suffix not in (_JSONL, *SUFFIXES):
        raise DatasetFileError(path=str(place), reason=_NO_FORMAT)
    return place


def load_cases(place: Path) -> tuple[list[Case], Mapping[str, Any] | None]:
    """Return the cases in a file and, for a held-out test set, its first line."""
    text = read_text(place)
    return (read_csv(place, text), None) if _is_csv(place) else read_jsonl(place, text)


def save_cases(place: Path, cases: Sequence[Case], seal: Mapping[str, Any] | None = None) -> None:
    """Write cases to a file, replacing an existing one."""
    content = to_csv(place, cases) if _is_csv(place) else to_jsonl(cases, seal)
    try:
        replace_file(place, content)
    except OSError as error:
        raise DatasetFileError(path=str(place), reason=error.strerror or str(error)) from error


def _is_csv(place: Path) -> bool:
    return place.suffix.lower() in SUFFIXES


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, without a byte order mark."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DatasetFileError(path=str(path), reason=error.strerror or str(error)) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if content.startswith(_UTF_16):
            reason = "it is UTF-16; save it as UTF-8"
        else:
            line = content.count(b"\n", 0, error.start) + 1
            reason = f"line {line}: it is not UTF-8 ({error.reason}); save it as UTF-8"
        raise DatasetFileError(path=str(path), reason=reason) from error
