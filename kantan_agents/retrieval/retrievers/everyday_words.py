"""How people say what tools call otherwise: the few actions most tools are made of, and short forms."""

from __future__ import annotations

_ALIKE = """
create: add new make open set start write
delete: remove drop erase clear
update: change edit modify correct fix adjust set
list: all every show which overview
get: show see view open look check read details status
search: find look where any lookup
find: search look where
cancel: stop abort
send: mail message
book: reserve order
reserve: book
schedule: arrange plan book
appointment: visit checkup
"""

_SHORT = """
repository: repo repos
pull request: pr prs
document: doc docs
database: db
application: app apps
photo: pic pics picture pictures
image: pic pics picture pictures
configuration: config
administrator: admin
certificate: cert
virtual machine: vm vms
message: msg
information: info
address: addr
temperature: temp
telephone: phone
"""


def _read(lines: str) -> dict[str, tuple[str, ...]]:
    meant: dict[str, list[str]] = {}
    for line in lines.strip().splitlines():
        term, _, words = line.partition(": ")
        for word in words.split():
            meant.setdefault(word, []).append(term)
    return {word: tuple(terms) for word, terms in meant.items()}


MEANT_BY = _read(_ALIKE)
"""What else an English word of a request may stand for, in words as tools are described with."""

SHORT_FOR = _read(_SHORT)
"""What an English short form stands for."""
