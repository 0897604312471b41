"""Folders of subagent files: valid ones, invalid ones of every kind, and files with hostile texts."""

from __future__ import annotations

from pathlib import Path

HOSTILE_NAME = "evil \x1b[2J[bold]x\x9b"
HOSTILE_DESCRIPTION = "bad \x1b]0;title\x07 [red]d[/nope] :smile:"

ERRORS = {
    "bytes.md": (b"---\nname: a\ndescription: \xff\n---\n", 3, "E30"),
    "empty.md": (b"---\nname: empty\n", 1, "E31"),
    "no-front.md": (b"name: a\ndescription: b\n---\nA prompt.\n", 1, "E30"),
    "no-mapping.md": (b"---\n- a\n---\n", 2, "E31"),
    "no-name.md": (b"---\ndescription: x\n---\n", 1, "E31"),
    "no-description.md": (b"---\nname: x\n---\n", 1, "E31"),
    "turns.md": (b"---\nname: x\ndescription: y\nmaxTurns: many\n---\n", 4, "E31"),
    "reserved.md": (b"---\nname: x\ndescription: y\ncontext:\n  history: []\n---\n", 4, "E31"),
    "reserved-users.md": (
        b"---\nname: x\ndescription: y\ncontext:\n  user_rules: {allow: '*'}\n---\n",
        4,
        "E31",
    ),
}
"""Files that cannot be loaded: bytes, line, code."""

REPAIRED = {
    "colon.md": b"---\nname: colon\ndescription: Use this: always\n---\n\nPrompt\n",
    "star.md": b"---\r\nname: star\r\n# a comment\r\ndescription: Stars\r\ntools: *\r\n---\r\n\r\nPrompt\r\n",
    "quote.md": b'---\nname: quote\ndescription: "never closed\ncolor: red\n---\nPrompt',
    "bom.md": b"\xef\xbb\xbf---\nname: bom\ndescription: A: b\nmine: [1, 2]\n---\n\n---\nuser: x\n",
    "open.md": b"---\nname: open\ndescription: no closing line\n\nPrompt\n",
}
"""Files that are not valid YAML and are repaired while they are read."""


def agent_file(
    path: Path, name: str, description: str = "Does it.", more: str = "", prompt: str = "Do."
) -> Path:
    """Write a valid subagent file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{prompt}".encode())
    return path


def broken_folder(directory: Path) -> Path:
    """Fill a directory with all of ``ERRORS`` and ``REPAIRED``."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, (content, _, _) in ERRORS.items():
        (directory / name).write_bytes(content)
    for name, content in REPAIRED.items():
        (directory / name).write_bytes(content)
    return directory


def hostile_file(path: Path) -> Path:
    """Write a subagent file with hostile name, description and prompt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name, description = (
        text.replace("\x1b", "\\e").replace("\x07", "\\a").replace("\x9b", "\\x9b")
        for text in (HOSTILE_NAME, HOSTILE_DESCRIPTION)
    )
    more = 'tools: "Bash(\\e[2J"\n"odd\\e[1m": "\\e[3m"\n'
    front = f'name: "{name}"\ndescription: "{description}"\n{more}'
    path.write_bytes(f"---\n{front}---\n\n\x1b[31mred [bold]\r\n".encode())
    return path
