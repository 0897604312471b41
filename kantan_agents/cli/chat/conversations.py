"""The SQLite file with stored conversations."""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from kantan_agents.cli.chat.kept_conversation import (
    ChatTurn,
    KeptConversation,
    Kind,
    ListedConversation,
    Outcome,
)
from kantan_agents.cli.terminal.plain import one_line, whole
from kantan_agents.errors import ConversationNotFoundError, ConversationsFileError
from kantan_agents.support.private_files import create_private

_APPLICATION: Final = 0x6B616368
"""In the file's header, so that other databases are not mistaken for this one."""
_VERSION: Final = 1
_PATIENCE: Final = 10.0
_TITLE: Final = 80
_AROUND: Final = 40
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, agent TEXT NOT NULL, title TEXT NOT NULL, changed_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS turns (
    conversation TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL,
    answer TEXT NOT NULL, items TEXT NOT NULL, outcome TEXT NOT NULL, trace_id TEXT, begun_at REAL NOT NULL,
    PRIMARY KEY (conversation, number)
);
CREATE INDEX IF NOT EXISTS newest ON conversations (changed_at);
"""
_LIST: Final = """
SELECT id, agent, title, (SELECT count(*) FROM turns WHERE conversation = id), changed_at
FROM conversations ORDER BY changed_at DESC LIMIT ?
"""
_SEARCH: Final = """
SELECT c.id, c.agent, c.title, (SELECT count(*) FROM turns WHERE conversation = c.id), c.changed_at,
       t.question, t.answer
FROM turns AS t JOIN conversations AS c ON c.id = t.conversation
WHERE has(?, t.question) OR has(?, t.answer)
ORDER BY c.changed_at DESC, t.number DESC
"""
_COPY: Final = """
INSERT INTO turns SELECT ?, number, kind, question, answer, items, outcome, trace_id, begun_at
FROM turns WHERE conversation = ? AND number < ?
"""


class Conversations:
    """Stores conversations in a file that only its owner may read. Several chats may share one file.

    Methods block: call them in a thread. They raise E195 if the file cannot be used or is another kind of
    file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        with self._errors():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_private(path)
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
        try:
            with self._errors():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        connection = self._connection
        connection.create_function("has", 2, _has, deterministic=True)
        with self._transaction():
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            is_new = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if application != _APPLICATION and not is_new:
                raise self._error("it is a database of something else; name another file")
            if version > _VERSION:
                raise self._error("a newer version of kantan-agents has written it")
            if is_new:
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("PRAGMA journal_mode = WAL")

    @staticmethod
    def begin(agent: str) -> KeptConversation:
        """Return a new conversation."""
        return KeptConversation(secrets.token_hex(4), agent)

    def add(self, kept: KeptConversation, turn: ChatTurn) -> KeptConversation:
        """Store a new turn and return the conversation with it.

        If another chat has extended the conversation meanwhile, the result is a copy under another id.
        """
        with self._errors(), self._transaction():
            if self._numbers(kept.id) != [one.number for one in kept.turns]:
                kept = self._copied(kept, turn.number)
            now = time.time()
            title = one_line(whole(turn.question))[:_TITLE]
            self._connection.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET changed_at = excluded.changed_at",
                (kept.id, whole(kept.agent), title, now),
            )
            self._connection.execute(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (kept.id, turn.number, turn.kind, *_content(turn), now),
            )
        return KeptConversation(kept.id, kept.agent, (*kept.turns, turn))

    def change(self, kept: KeptConversation, turn: ChatTurn) -> KeptConversation:
        """Store the changed latest turn."""
        with self._errors(), self._transaction():
            self._connection.execute(
                "UPDATE turns SET question = ?, answer = ?, items = ?, outcome = ?, trace_id = ? "
                "WHERE conversation = ? AND number = ?",
                (*_content(turn), kept.id, turn.number),
            )
        return KeptConversation(kept.id, kept.agent, (*kept.turns[:-1], turn))

    def remove(self, kept: KeptConversation, turn: ChatTurn) -> KeptConversation:
        """Remove the latest turn, which had no effect."""
        with self._errors(), self._transaction():
            row = (kept.id, turn.number)
            self._connection.execute("DELETE FROM turns WHERE conversation = ? AND number = ?", row)
            if not self._numbers(kept.id):
                self._connection.execute("DELETE FROM conversations WHERE id = ?", (kept.id,))
        return KeptConversation(kept.id, kept.agent, kept.turns[:-1])

    def load(self, beginning: str) -> KeptConversation:
        """Return a conversation by the start of its id; E194 unless one matches."""
        with self._errors(), self._lock:
            if beginning == "last":
                query = "SELECT id, agent FROM conversations ORDER BY changed_at DESC LIMIT 1"
                found = self._connection.execute(query).fetchall()
            else:
                # Not `?1`: Python 3.12 takes it for a named placeholder and warns.
                query = "SELECT id, agent FROM conversations WHERE substr(id, 1, length(?)) = ? LIMIT 2"
                values = (whole(beginning), whole(beginning))
                found = self._connection.execute(query, values).fetchall() if beginning else []
            if len(found) != 1:
                reason = "several begin with it" if found else "/resume lists those that are kept"
                raise ConversationNotFoundError(id=beginning, reason=reason)
            (name, agent), rows = (
                found[0],
                self._connection.execute(
                    "SELECT number, kind, question, answer, items, outcome, trace_id FROM turns "
                    "WHERE conversation = ? ORDER BY number",
                    (found[0][0],),
                ).fetchall(),
            )
            if not rows:
                raise ConversationNotFoundError(id=beginning, reason="it has no turns")
            return KeptConversation(name, agent, tuple(map(self._turn, rows)))

    def newest(self, limit: int) -> list[ListedConversation]:
        """Return the latest conversations, latest first."""
        with self._errors(), self._lock:
            return [ListedConversation(*row) for row in self._connection.execute(_LIST, (limit,))]

    def search(self, words: str, limit: int) -> list[ListedConversation]:
        """Search questions and answers, ignoring case."""
        sought = whole(words).casefold()
        found: dict[str, ListedConversation] = {}
        with self._errors(), self._lock:
            for name, agent, title, turns, changed_at, question, answer in self._connection.execute(
                _SEARCH, (sought, sought)
            ):
                said = question if _has(sought, question) else answer
                about = ListedConversation(name, agent, title, turns, changed_at, _around(sought, said))
                found.setdefault(name, about)
                if len(found) == limit:
                    break
        return list(found.values())

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _numbers(self, conversation: str) -> list[int]:
        query = "SELECT number FROM turns WHERE conversation = ? ORDER BY number"
        return [number for (number,) in self._connection.execute(query, (conversation,))]

    def _copied(self, kept: KeptConversation, before: int) -> KeptConversation:
        copy = self.begin(kept.agent)
        self._connection.execute(_COPY, (copy.id, kept.id, before))
        return KeptConversation(copy.id, kept.agent, kept.turns)

    def _turn(self, row: tuple[Any, ...]) -> ChatTurn:
        number, kind, question, answer, items, outcome, trace_id = row
        try:
            loaded = json.loads(items)
        except ValueError as error:
            raise self._error(f"turn {number} is damaged") from error
        return ChatTurn(
            number, cast("Kind", kind), question, answer, tuple(loaded), cast("Outcome", outcome), trace_id
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._error(getattr(error, "strerror", None) or str(error)) from error

    def _error(self, reason: str) -> ConversationsFileError:
        return ConversationsFileError(path=str(self.path), reason=reason)


def _content(turn: ChatTurn) -> tuple[str, str, str, str, str | None]:
    items = json.dumps(turn.items, separators=(",", ":"))
    return whole(turn.question), whole(turn.answer), items, turn.outcome, turn.trace_id


def _has(sought: str, text: str) -> bool:
    return sought in text.casefold()


def _around(sought: str, text: str) -> str:
    at = text.casefold().find(sought)
    start = max(0, at - _AROUND)
    return one_line(f"{'...' if start else ''}{text[start : at + len(sought) + _AROUND]}")
