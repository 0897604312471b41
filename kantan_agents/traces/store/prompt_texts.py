"""Reads recorded prompts from the records of runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import attrs

from kantan_agents.traces.capture import PromptRecord
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.record_tables import CONTENTS
from kantan_agents.traces.store.figures import PromptVersion
from kantan_agents.traces.store.run_records import has_run_tables

NEWEST: Final = 10
"""Per version; dynamic instructions may have one for each run."""

# NULL for a damaged item; half a surrogate pair must not become a str.
_VALID: Final = "CASE WHEN json_valid(body) THEN body END"
_BY_ID: Final = f"""SELECT CAST(body AS BLOB) FROM {CONTENTS}
WHERE kind = 'prompt' AND json_extract({_VALID}, '$.id') = ? ORDER BY id"""  # noqa: S608
_PROMPTS: Final = f"""SELECT id, body, json_extract({_VALID}, '$.name') AS name,
json_extract({_VALID}, '$.version') AS version, json_extract({_VALID}, '$.text') AS prompt_text
FROM {CONTENTS} WHERE kind = 'prompt'"""  # noqa: S608
_TEXTS: Final = f"""SELECT id, body, name, version FROM (
SELECT p.*, ROW_NUMBER() OVER (PARTITION BY name, version, prompt_text ORDER BY id DESC) AS newest
FROM ({_PROMPTS}) AS p) AS numbered WHERE newest = 1"""  # noqa: S608
_NEWEST: Final = f"""SELECT CAST(body AS BLOB), texts FROM (
SELECT id, body, name, COUNT(*) OVER (PARTITION BY name, version) AS texts,
ROW_NUMBER() OVER (PARTITION BY name, version ORDER BY id DESC) AS place FROM ({_TEXTS}) AS texts) AS placed
WHERE name IS NOT NULL AND place <= {NEWEST} AND (:name IS NULL OR name = :name) ORDER BY id"""  # noqa: S608


@attrs.frozen
class PromptTexts:
    """The recorded prompts of one name and version.

    ``prompts`` are the latest of ``count``, the oldest first.
    """

    count: int
    prompts: Sequence[PromptRecord]


def prompts_with_id(connection: sqlite3.Connection, prompt_id: str) -> list[PromptRecord]:
    """Return the prompts of an id, the oldest first; users may reuse an id."""
    if not has_run_tables(connection):
        return []
    return list(_prompts(body for (body,) in connection.execute(_BY_ID, (prompt_id,))))


def texts_by_version(connection: sqlite3.Connection, name: str | None) -> Mapping[PromptVersion, PromptTexts]:
    """Return the prompts by name and version."""
    if not has_run_tables(connection):
        return {}
    found: dict[PromptVersion, PromptTexts] = {}
    for body, count in connection.execute(_NEWEST, {"name": name}):
        for prompt in _prompts([body]):
            version = (prompt.name, prompt.version)
            known = found.get(version, PromptTexts(count, ()))
            found[version] = attrs.evolve(known, prompts=(*known.prompts, prompt))
    return found


def _prompts(bodies: Iterator[bytes] | Sequence[bytes]) -> Iterator[PromptRecord]:
    for body in bodies:
        with suppress(TypeError, ValueError):
            yield PromptRecord(**decode(body))
