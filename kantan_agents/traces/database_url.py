"""The location of a trace database."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import attrs

from kantan_agents.errors import InvalidOptionError

DEFAULT_PATH: Final = "traces.sqlite3"

_SCHEMES: Final = ("postgresql://", "postgres://")
_HIDDEN: Final = "***"
_SHORTEST_PART: Final = 3
_SECRET_OPTION: Final = re.compile(r"(?i)p\w*wo?r?d|pass(?!file)|secret|token|scram|_key")
"""The driver rejects misspelled options too, with a message that shows the URL."""

_PAIRS: Final = re.compile(
    r"(?i)(?:^|\s)(?:ssl)?password\s*=|^\s*(?:host(?:addr)?|service|dbname|user|port)\s*=\S+\s+\w+\s*="
)
_OTHER_URL: Final = re.compile(r"[A-Za-z][\w+.-]*://")


@attrs.frozen(repr=False)
class PostgresUrl:
    """The URL of a database in Postgres.

    ``str`` and ``repr`` omit the password, so messages, logs and traces never contain it.
    """

    secret: str

    def __str__(self) -> str:
        return self.masked(self.secret)

    def __repr__(self) -> str:
        return f"PostgresUrl({str(self)!r})"

    def masked(self, text: str) -> str:
        """Mask the URL and its passwords, such as in the driver's message."""
        shown = _hidden(self.secret)
        text = text.replace(self.secret, shown)
        for password in self._passwords():
            text = text.replace(password, _HIDDEN)
        return text

    def _passwords(self) -> list[str]:
        found = [one for one in (_login_password(self.secret), *_options(self.secret)) if one]
        # The driver takes an unescaped part for a port.
        found += [part for one in found for part in re.split("[/?@]", one) if len(part) >= _SHORTEST_PART]
        # A message may quote it escaped or decoded.
        both = {*found, *map(unquote, found)}
        return sorted((one for one in both if one != _HIDDEN), key=len, reverse=True)

    @property
    def database(self) -> str:
        """The name of the database; empty if there is none."""
        return unquote(urlsplit(self.secret).path.lstrip("/"))

    @property
    def stem(self) -> str:
        """The name of the database, as ``Path.stem``."""
        return self.database

    def resolve(self) -> PostgresUrl:
        """Return itself: a URL has no links."""
        return self


Place: TypeAlias = Path | PostgresUrl
"""``backend_of`` answers everything except ``resolve`` and ``stem``."""


def is_url(place: object) -> bool:
    """Return whether ``place`` is a URL."""
    return isinstance(place, PostgresUrl) or (isinstance(place, str) and place.startswith(_SCHEMES))


def as_url(place: object, option: str = "path") -> PostgresUrl:
    """Return the URL of a database; raise E75 otherwise."""
    if isinstance(place, PostgresUrl):
        return place
    if not isinstance(place, str) or not place.startswith(_SCHEMES):
        raise InvalidOptionError(option=option, reason="must be a URL such as postgresql://user@host/traces")
    url = PostgresUrl(place)
    try:
        database, parts = url.database, urlsplit(place)
        _ = parts.port
    except ValueError as error:
        raise InvalidOptionError(option=option, reason=f"{url}: {url.masked(str(error))}") from None
    if "\0" in place or not database:
        reason = f"{url} must name a database, such as postgresql://user@host/traces"
        raise InvalidOptionError(option=option, reason=reason)
    return url


def as_place(place: str | os.PathLike[str] | PostgresUrl) -> Place:
    """Return the URL, or the absolute path of a file; raise E75 for anything else."""
    if isinstance(place, PostgresUrl) or is_url(place):
        return as_url(place)
    check_path(place)
    return Path(place).absolute()  # independent of later changes of the working directory


def check_path(place: str | os.PathLike[str]) -> None:
    """Raise E75 for a URL or ``key=value`` pairs: they would become a file name."""
    if isinstance(place, str) and (_OTHER_URL.match(place) or has_pairs(place)):
        reason = "must be the path of a file, or a URL such as postgresql://user@host/traces"
        raise InvalidOptionError(option="path", reason=reason)  # omits the value: it may contain a password


def path_of(place: Place) -> Path:
    """Cast to the type of the public ``path`` attributes."""
    return cast("Path", place)


def has_pairs(text: str) -> bool:
    """Return whether this is the driver's form ``host=db password=...``."""
    return bool(_PAIRS.search(text))


def _login_password(url: str) -> str:
    place = url.partition("://")[2].partition("?")[0]
    # The password may contain an unescaped slash: the driver's message would show the URL.
    if "@" in place:
        return place.rpartition("@")[0].partition(":")[2]
    port = place.partition("/")[0].rpartition("]")[2].rpartition(":")[2]
    return "" if port.isdigit() or ":" not in place else port


def _options(url: str) -> list[str]:
    return [part.partition("=")[2] or part for part in url.partition("?")[2].split("&") if _is_secret(part)]


def _is_secret(part: str) -> bool:
    # Without ``=``, it is the rest of a password with a question mark.
    return bool(part) and ("=" not in part or bool(_SECRET_OPTION.search(unquote(part.partition("=")[0]))))


def _hidden(url: str) -> str:
    place, mark, query = url.partition("?")
    password = _login_password(url)
    if password:
        scheme, _, rest = place.partition("://")
        place = f"{scheme}://{rest.replace(f':{password}', f':{_HIDDEN}', 1)}"
    parts = query.split("&") if mark else ()
    shown = "&".join(
        (f"{part.partition('=')[0]}={_HIDDEN}" if "=" in part else _HIDDEN) if _is_secret(part) else part
        for part in parts
    )
    return f"{place}{mark}{shown}"


def why_refused(path: str | os.PathLike[str]) -> str | None:
    """Return why the default file is not used: a link may have come with the folder."""
    if Path(path) == Path(DEFAULT_PATH) and Path(path).is_symlink():
        return "it is a symbolic link, which may lead anywhere; name the file that it leads to instead"
    return None
