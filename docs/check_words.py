"""Keeps words out of code and documentation that a native reader would stumble over.

``python docs/check_words.py [FILE ...]`` reads the prose of Markdown pages and of this repository's Python files
(docstrings, comments, names) and prints each word that has a better one, as ``file:line: found; use ...``. Without
arguments it reads every file that git tracks. The exit code is 1 if anything is found.

Text in code fences and code spans is code, not prose. String literals that are not docstrings are read where users
see them, in the package, and not in tests, where they are data.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve()

PROSE = {
    r"rooms?": "package or module",
    r"told|tells": "notified, emitted, reported, shown",
    r"hears|heard|hear of": "receives, observes, is notified",
    r"(the|its|on the|their) way (in|out)": "before or after call_next",
    r"shelf|shelves": "tool index",
    r"laws?": "property or invariant",
    r"cures?|cured": "fix",
    r"mends?|mended|mending": "fix, repair",
    r"judging": "evaluation, LLM-as-a-judge, a judge",
    r"of (your|his|our|the user's) own|of ours": "your own X, custom X, the library's X",
    r"(?<!there )is no (?!longer|more|need|such|way|use|reason|different|better|worse|match)\w+": "is not a ..., is missing",
    r"(?<!there )is none": "is missing, is not one",
    r"(?<!-)stands?(?! for)(?!-)": "is, appears",
    r"(?<!when it )(comes|come|came) to(?! (an|its|a) end)": "gives, is",
    r"goes by|go by": "is named, uses",
    r"(makes|made|make) of (?!(JSON|YAML|text|bytes|strings|dicts|lists))": "turns into",
    r"whoever|whosoever": "name the actor",
    r"put right|puts right": "repaired, corrected",
}
NAMES = r"(^|_)(told|tells|telling|hears|heard|room|rooms|shelf|laws?|cures?|mends?|mended|mending|judging)(_|$)"

_PROSE = [
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), better)
    for words, better in PROSE.items()
]
_NAMES = re.compile(NAMES)
_CODE = re.compile(r"``.+?``|`[^`\n]+`|<!--.*?-->|https?://\S+|\]\([^)]*\)", re.DOTALL)
_FENCE = re.compile(
    r"^(?P<fence> *(?:```|~~~)).*?^(?P=fence)", re.MULTILINE | re.DOTALL
)

Found = tuple[int, str, str]


def in_prose(text: str, first_line: int = 1) -> Iterator[Found]:
    """Yield line, words and advice for each find in a text of several lines."""
    text = _CODE.sub(_blank, text)
    for pattern, better in _PROSE:
        for match in pattern.finditer(text):
            yield (
                first_line + text.count("\n", 0, match.start()),
                " ".join(match[0].split()),
                better,
            )


def in_markdown(text: str) -> Iterator[Found]:
    """Yield what is found in the prose of a page."""
    yield from in_prose(_FENCE.sub(_blank, text))


def in_python(text: str, *, with_texts: bool) -> Iterator[Found]:
    """Yield what is found in docstrings, comments and names; in all other texts too if ``with_texts``."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)
    }  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if with_texts or id(node) in docstrings:
                yield from in_prose(node.value, node.lineno)
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield from in_prose(
                node.value.value, node.lineno
            )  # a text behind an attribute documents it
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and _NAMES.search(token.string.lower()):
            yield token.start[0], token.string, "a name in the field's words"
        elif token.type == tokenize.COMMENT:
            if (
                comments
                and comments[-1][0] + comments[-1][1].count("\n") + 1 == token.start[0]
            ):
                comments[-1] = (
                    comments[-1][0],
                    f"{comments[-1][1]}\n{token.string.lstrip('# ')}",
                )
            else:
                comments.append((token.start[0], token.string.lstrip("# ")))
    for line, comment in comments:
        yield from in_prose(comment, line)


def in_file(path: Path) -> list[Found]:
    """Return what is found in one file, in the order of its lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        found = in_markdown(text)
    else:
        found = in_python(text, with_texts=path.is_relative_to(ROOT / "kantan_agents"))
    return sorted(set(found))


def tracked() -> Iterable[Path]:
    """Yield every page and every Python file that git tracks, but for this one, which holds the words."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.py"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return (path for path in paths if path != HERE and path.exists())


def main(arguments: list[str]) -> int:
    """Print everything that is found; return the exit code."""
    count = 0
    for path in [Path(name).resolve() for name in arguments] or tracked():
        for line, words, better in in_file(path):
            print(f"{path.relative_to(ROOT)}:{line}: {words!r}; use: {better}")
            count += 1
    print(f"{count} words to replace" if count else "no word to replace")
    return 1 if count else 0


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _has_docstring(node: ast.AST) -> bool:
    if (
        not isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        )
        or not node.body
    ):
        return False
    first = node.body[0]
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
