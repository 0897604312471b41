"""Datasets as JSON Lines, stable in a git diff."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kantan_agents.errors import DatasetFileError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, read_json
from kantan_agents.lab.evaluation.dataset.located_cases import REFERENCES, LocatedCases, without_input
from kantan_agents.support.nearest import nearest

SEAL: Final = "kantan_agents_sealed"
_KEYS: Final = ("context", "conversation", "earlier", "expected", "id", "input", "metadata")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def to_jsonl(cases: Iterable[Case], seal: Mapping[str, Any] | None = None) -> bytes:
    """Return cases as JSON Lines: sorted keys, UTF-8, LF, without empty or missing values."""
    lines = [] if seal is None else [_line({SEAL: seal})]
    lines += [_line(_data(case)) for case in cases]
    return "".join(f"{line}\n" for line in lines).encode()


def _data(case: Case) -> dict[str, Any]:
    data: dict[str, Any] = {"id": case.id, "input": case.input}
    if case.context:
        data["context"] = case.context
    if case.expected is not None:
        data["expected"] = case.expected
    if case.metadata:
        data["metadata"] = case.metadata
    if case.conversation is not None:
        data["conversation"] = case.conversation
    if case.earlier:
        data["earlier"] = case.earlier
    return data


def _line(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, sort_keys=True)
    # Half a surrogate pair has no UTF-8, but JSON can escape it. A recorded string may have one.
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read_jsonl(path: Path, text: str) -> tuple[list[Case], Mapping[str, Any] | None]:
    """Return the cases, and the first line of a held-out test set."""
    found = LocatedCases(path)
    seal: Mapping[str, Any] | None = None
    for number, line in _lines(text):
        try:
            data = read_json(line)
        except NotJSONDataError as error:
            raise found.error(number, str(error)) from error
        if not isinstance(data, dict):
            raise found.error(number, f"it is a {_kind(data)}; a case is a JSON object with an input")
        if SEAL in data:
            if seal is not None or found.cases or len(data) > 1 or not isinstance(data[SEAL], dict):
                raise found.error(
                    number, "it is a damaged first line of a held-out test set; restore the file from git"
                )
            seal = data[SEAL]
            continue
        found.add(number, _checked_keys(found, number, _with_expected(found, number, data)))
    return found.cases, seal


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Not splitlines(), which splits at characters that JSON allows unescaped.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.strip()


def _checked_keys(found: LocatedCases, number: int, data: dict[str, Any]) -> dict[str, Any]:
    if "input" not in data:
        raise found.error(number, without_input(data))
    for key in data:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            hint = (
                "put it into metadata" if near is None else f"did you mean {near!r}? Or put it into metadata"
            )
            raise found.error(number, f"the key {key!r} is unknown; {hint}")
    return {key: value for key, value in data.items() if value is not None or key == "input"}


def _with_expected(found: LocatedCases, number: int, data: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in REFERENCES if name in data]
    if len(names) + ("expected" in data) > 1:
        raise found.error(
            number, f"it has {', '.join(['expected'] * ('expected' in data) + names)}; keep one"
        )
    if names and isinstance(data[names[0]], list):
        raise found.error(number, f"{names[0]} is a list of answers; write the right one, as expected")
    return {"expected" if key in names else key: value for key, value in data.items()}


def _kind(data: Any) -> str:
    if isinstance(data, bool) or data is None:
        return json.dumps(data)
    if isinstance(data, (str, list)):
        return "text" if isinstance(data, str) else "list"
    return "number"


def checked_seal(path: Path, seal: Mapping[str, Any], content_hash: str) -> str:
    """Return the name of a held-out test set; E100 if its cases have changed."""
    if seal.get("hash") != content_hash:
        reason = "its cases were changed after it was held out; restore the file from git, or split again"
        raise DatasetFileError(path=str(path), reason=reason)
    name = seal.get("name")
    return name if isinstance(name, str) and name else path.stem
