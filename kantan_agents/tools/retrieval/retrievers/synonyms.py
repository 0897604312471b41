"""English synonyms for the most common actions in tool names, and abbreviations."""

from __future__ import annotations

_SYNONYM_LINES = """
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

_ABBREVIATION_LINES = """
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


SYNONYMS = _read(_SYNONYM_LINES)
"""Maps an English word of a request to the words that tools use for it."""

ABBREVIATIONS = _read(_ABBREVIATION_LINES)
"""Maps an English abbreviation to its long forms."""
