"""Subagent files in every shape found in practice, written by hand.

``python -m tests.subagent_files.real_world_files DIRECTORY`` writes them into a directory, for
``kantan-agents agents validate DIRECTORY``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import attrs


@attrs.frozen
class Sample:
    """A file and its intended content.

    Attributes:
        content: Its bytes.
        line: The line of the reported problem; None if the file is valid.
        description: The description.
        name: The name, if it differs from the file name.
        tools: The tools it may use.
        prompt: The prompt.
        severity: ``"error"`` if it cannot be read, ``"no agent"`` if it is not meant as an agent.
    """

    content: bytes
    line: int | None = None
    description: str = "Reviews code."
    name: str | None = None
    tools: tuple[str, ...] | Literal["*"] = "*"
    prompt: str = "You review.\n"
    severity: Literal["warning", "error", "no agent"] = "warning"


def front(*lines: str, newline: str = "\n", close: str = "---", prompt: str = "You review.\n") -> bytes:
    return newline.join(["---", *lines, close, "", prompt]).encode()


EXAMPLE = "<example>\nuser: 'Look at it'\nassistant: 'I will: now'\n</example>"

SAMPLES: dict[str, Sample] = {
    "sound": Sample(front("name: sound", "description: Reviews code.")),
    "colon": Sample(front("name: colon", "description: Use it: always"), 3, "Use it: always"),
    "literal-newlines": Sample(
        front(
            "name: literal-newlines",
            r"description: Use it when: asked.\n\n<example>\nuser: 'Look at it'\n</example>",
            "model: sonnet",
        ),
        3,
        "Use it when: asked.\n\n<example>\nuser: 'Look at it'\n</example>",
    ),
    "literal-newlines-in-quotes": Sample(
        front("name: literal-newlines-in-quotes", r'description: "One.\\nTwo: three."'),
        None,
        "One.\nTwo: three.",
    ),
    "unindented": Sample(
        front(
            "name: unindented",
            "description: Use it when asked. Examples:",
            *EXAMPLE.split("\n"),
            "",
            "Context: a commit",
            "user: 'Done'",
            "tools: Read, Grep",
        ),
        4,
        f"Use it when asked. Examples:\n{EXAMPLE}\n\nContext: a commit\nuser: 'Done'",
        tools=("Read", "Grep"),
    ),
    "quote-does-not-close": Sample(
        front("name: quote-does-not-close", 'description: "Reviews code.', "color: red"), 3
    ),
    "quotes-within-quotes": Sample(
        front("name: quotes-within-quotes", 'description: "Say "hello" to: all"'), 3, 'Say "hello" to: all'
    ),
    "byte-order-mark": Sample(b"\xef\xbb\xbf" + front("name: byte-order-mark", "description: Reviews code.")),
    "crlf": Sample(
        front("name: crlf", "description: Use: it", newline="\r\n", prompt="You review.\r\n---\r\n"),
        3,
        "Use: it",
        prompt="You review.\r\n---\r\n",
    ),
    "no-break-space": Sample(front("name:\u00a0no-break-space", "description:\u202fReviews code."), 2),
    "emoji": Sample(
        front("name: emoji", "description: Reviews 🦀 code: fast 🚀"), 3, "Reviews 🦀 code: fast 🚀"
    ),
    "tabs": Sample(
        front("name: tabs", "description: Reviews code.", "tools:", "\t- Read", "\t- Grep"),
        5,
        tools=("Read", "Grep"),
    ),
    "duplicate-keys": Sample(
        front(
            "name: first",
            "name: duplicate-keys",
            "description: Reviews code.",
            "tools: Read, Write",
            "tools: Read",
        ),
        3,
        tools=("Read",),
    ),
    "block-scalar": Sample(
        front("name: block-scalar", "description: |", "  Reviews code: all", "  of it."),
        None,
        "Reviews code: all\nof it.",
    ),
    "folded-scalar": Sample(
        front("name: folded-scalar", "description: >-", "  Reviews code: all", "  of it."),
        None,
        "Reviews code: all of it.",
    ),
    "comments": Sample(front("# who", "name: comments", "# what", "description: Reviews code. # all of it")),
    "many-dashes": Sample(front("name: many-dashes", "description: Reviews code.", close="--------")),
    "rules-in-the-body": Sample(
        front("name: rules-in-the-body", "description: Reviews code.", prompt="One\n---\nTwo\n---\n"),
        prompt="One\n---\nTwo\n---\n",
    ),
    "no-closing-line": Sample(b"---\nname: no-closing-line\ndescription: Reviews code.\n\nYou review.\n", 4),
    "yes": Sample(front("name: yes", "description: on", "version: 1.10"), None, "on"),
    "all-tools": Sample(front("name: all-tools", "description: Reviews code.", "tools: *"), 4),
    "no-tools": Sample(front("name: no-tools", "description: Reviews code.", "tools:"), tools=()),
    "tools-with-parentheses": Sample(
        front(
            "name: tools-with-parentheses",
            "description: Reviews code.",
            "tools: Agent(a, b), Bash(git diff:*)",
        ),
        tools=("Agent(a, b)", "Bash(git diff:*)"),
    ),
    "tools-with-blanks": Sample(
        front(
            "name: tools-with-blanks", "description: Reviews code.", "tools: Read Bash(git diff:*) mcp__x__*"
        ),
        tools=("Read", "Bash(git diff:*)", "mcp__x__*"),
    ),
    "no-slug": Sample(
        front("name: Python DevOps/CI-CD Expert", "description: Reviews code."),
        name="Python DevOps/CI-CD Expert",
    ),
    "bullets": Sample(
        front("name: bullets", "description: Reviews code.", "tools:", "  * Read", "  * Grep"),
        4,
        tools=("Read", "Grep"),
    ),
    "another-case": Sample(
        front("name: another-case", "description: Reviews code.", "Allowed-Tools: Read"), 4, tools=("Read",)
    ),
    "all-but-one": Sample(
        front("name: all-but-one", "description: Reviews code.", "tools: all, except Bash"),
        4,
        severity="error",
    ),
    "denied-in-part": Sample(
        front("name: denied-in-part", "description: Reviews code.", "disallowedTools: Bash(rm:*, Write"),
        4,
        severity="error",
    ),
    "indented-tools": Sample(
        front("name: indented-tools", "description: Use: it", "  tools: Read"), 4, severity="error"
    ),
    "alias-in-broken-file": Sample(
        front("name: b", "x: &x [Bash]", "disallowedTools: *x", "description: Use: it"), 4, severity="error"
    ),
    "hex-colour": Sample(front("name: hex-colour", "description: Reviews code.", "color: #ff8800"), 4),
    "no-frontmatter": Sample(b"# Agents\n\nHow to write them.\n", 1, severity="no agent"),
    "no-opening-line": Sample(b"name: a\ndescription: b\n---\nYou review.\n", 1, severity="error"),
    "no-name": Sample(front("description: Reviews code."), 1, severity="error"),
    "no-description": Sample(front("name: no-description"), 1, severity="error"),
    "no-utf-8": Sample(b"---\nname: no-utf-8\ndescription: caf\xe9\n---\n", 3, severity="error"),
    "empty": Sample(b"", 1, severity="no agent"),
    "turns": Sample(
        front("name: turns", "description: Reviews code.", "maxTurns: many"), 4, severity="error"
    ),
    "reserved": Sample(
        front("name: reserved", "description: Reviews code.", "context:", "  tool_rules: {allow: '*'}"),
        4,
        severity="error",
    ),
    "runs-code": Sample(
        front("name: runs-code", "description: !!python/object/apply:os.system [id]"), 3, severity="error"
    ),
}


def write_samples(directory: Path) -> Path:
    """Write all of them into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, wild in SAMPLES.items():
        (directory / f"{name}.md").write_bytes(wild.content)
    return directory


if __name__ == "__main__":
    print(write_samples(Path(sys.argv[1])))
