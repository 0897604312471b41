"""The URL of a database: what names one, and who sees its password."""

from __future__ import annotations

import pickle
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.traces.database_url import PostgresUrl, as_place, as_url, is_url
from kantan_agents.traces.recorder import SQLiteRecorder

passwords = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=6, max_size=20).filter(
    lambda text: text not in "postgresql://user@host.example:5432/traces"
)


@given(password=passwords, place=st.sampled_from(["login", "query", "both"]))
def test_no_text_about_a_url_has_its_password(password: str, place: str) -> None:
    secret = quote(password, safe="")
    login = f"user:{secret}" if place != "query" else "user"
    query = f"?connect_timeout=5&password={secret}" if place != "login" else ""
    url = as_url(f"postgresql://{login}@host.example:5432/traces{query}")
    error = f'connection to "{url.secret}" failed: invalid {password!s} or {secret}'
    for text in (str(url), repr(url), f"{url}", f"{url!r}", url.masked(error)):
        assert secret not in text
        assert password not in text
    assert "host.example:5432/traces" in str(url)


def test_a_url_without_a_password_is_shown_as_it_is() -> None:
    for given_url in ("postgresql://user@h/db", "postgres:///db?host=/run/pg", "postgresql://u:@/db?host=/x"):
        assert str(as_url(given_url)) == given_url


def test_a_url_is_no_path_and_a_path_no_url(tmp_path: Path) -> None:
    assert is_url("postgres://h/db")
    assert not is_url("postgresql.sqlite3")
    assert not is_url(tmp_path)
    assert as_place("traces.sqlite3") == Path.cwd() / "traces.sqlite3"
    assert as_place("postgresql://h/db") == as_place(PostgresUrl("postgresql://h/db"))


@pytest.mark.parametrize("given_url", ["mysql://h/db", "postgresql://h", "postgresql://h/\0", 5, None])
def test_what_names_no_database_is_an_error(given_url: object) -> None:
    with pytest.raises(InvalidOptionError, match="E75"):
        as_url(given_url)


def test_it_can_be_sent_to_another_process() -> None:
    url = as_url("postgresql://u:secret@h/db")
    assert pickle.loads(pickle.dumps(url)) == url
    assert (url.database, url.stem, url.resolve()) == ("db", "db", url)


@pytest.mark.parametrize(
    "given_url",
    [
        "postgresql://u@h/db?sslmode=require&sslpassword=s3cret",
        "postgresql://u@h/db?pass%77ord=s3cret",
        "postgresql://u@h/db?PASSWORD=s3%63ret",
        "postgresql://u@h/db?pasword=s3cret",
        "postgresql://u@h/db?oauth_client_secret=s3cret&scram_client_key=s3cret",
        "postgresql://u:a/s3cret@h/db",
        "postgresql://u:a?s3cret@h/db",
        "postgresql://u:s3cret/db",
    ],
)
def test_a_secret_anywhere_in_a_url_is_hidden(given_url: str) -> None:
    url = PostgresUrl(given_url)
    error = f"refused: {given_url}, s3cret"
    assert not [
        one for one in (str(url), repr(url), url.masked(error)) if "s3cret" in one or "s3%63ret" in one
    ]


@pytest.mark.parametrize(
    "given_url",
    [
        "mysql://u:s3cret@h/db",
        "postgresql+psycopg://u:s3cret@h/db",
        "host=h password=s3cret",
        "host=h dbname=d",
    ],
)
def test_a_database_that_is_named_otherwise_is_no_file(given_url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="E75") as raised:
        as_place(given_url)
    assert "s3cret" not in str(raised.value)
    with pytest.raises(InvalidOptionError, match="E75"):
        SQLiteRecorder(given_url)
    assert as_place("a=b.sqlite3").name == "a=b.sqlite3"
    assert as_place(tmp_path) == tmp_path
