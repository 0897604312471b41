"""Finds words in code and documentation that make a native reader stumble.

``python docs/check_words.py [FILE ...]`` reads the prose of Markdown pages and of Python files (docstrings, comments,
names) and prints each word that has a better one, as ``file:line: found; use: ...``. Without arguments it reads every
file that git tracks. The exit code is 1 if anything is found.

Code fences and code spans are skipped. Strings other than docstrings are read in the package, where users see them;
in tests they are data.
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
TESTS = ROOT / "tests" / "docs" / "test_check_words.py"
# Files of an earlier version, which stay unchanged.
OLD = ROOT / "tests" / "old_layout" / "data"

# Regular expressions of whole words, in any case; a space matches any whitespace.
PROSE = {
    r"rooms?": "package or module; for capacity: space",
    r"told|tells": "notified, emitted, reported, shown",
    r"hears|heard|hear of": "receives, observes, is notified",
    r"(the|its|their) way (in|out)": "before or after call_next",
    r"shelf|shelves": "tool index",
    r"laws?": "property or invariant",
    r"cures?|cured": "fix",
    r"mends?|mended|mending": "fix, repair",
    r"judging": "evaluation, LLM-as-a-judge, a judge",
    r"of (your|his|our|the user's) own|of ours": "your own X, custom X, the library's X",
    r"is no \w+": "is not a ..., is missing",
    r"(?-i:is none)": "is missing, is not one",
    r"stands?": "is, appears",
    r"(comes|come|came) to": "gives, is",
    r"goes by|go by": "is named, uses",
    r"makes? of|made of (it|them)": "turns into",
    r"whoever|whosoever": "name the actor",
    r"put right|puts right": "repaired, corrected",
}
# The words of everyday English that older pages used for things that the field has a word for.
IN_PAGES = {
    r"(?-i:what) (is|are|was|were|has been|have been)": "name the thing: the answer, the stored values",
    r"(a|another|each|every|one) text|texts": "a string, a prompt, an answer",
    r"begin|begins|began|begun|beginning|beginnings": "start, prefix",
    r"refus(e|es|ed|ing|al|als)": "deny (tool rules), reject (everything else)",
    r"says": "states, determines, shows",
    r"(those|that) of": "repeat the noun",
    r"kept": "stored, retained",
    r"nobody|somebody|everybody|people": "no one, a reviewer, users, everyone",
    r"places?": "location, position",
    r"units?": "work item, sampling unit",
    r"newest": "latest",
    r"(leave|leaves|left|leaving) out": "omit",
    r"(end|ends|ended|ending) (the|a|its) run": "aborts, fails, stops the run",
    r"(go|goes|went|gone|going) on": "resume, continue",
    r"(make|makes|made|making) (a|the|each|every) runs?|runs? (is|are) made": "run",
    r"hand-offs?": "handoff, as the SDK writes",
    r"at once": "immediately, at the same time",
    r"as (it|they) (is|are|was|were)": "unchanged",
    r"sealed": "held-out",
    r"of (its|their|one's) own": "its own, dedicated, separate",
    r"draws?|drawn|drew|drawing": "sample, assign",
    r"asked": "called, prompted, requested",
    r"besides?": "next to, alongside",
    r"figures?": "metrics, numbers, results",
    r"markers?": "placeholder",
    r"also (if|when)": "even if, even when",
    r"contents": "content",
    r"\w*(summar|optim|recogn|organ|normal|serial|author|initial|custom|minim|maxim|real|general|special|standard|anonym|categor|priorit|synchron|token|final|capital|emphas)is(e|es|ed|er|ers|ing|ation|ations)": "American spelling: -ize",
    r"\w*(behaviour|colour|favour|honour|neighbour|labour)\w*|licences?|judgements?|(label|model|travel|signal)l(ed|ing)|catalogues?|grey|centres?|whilst|analys(e|es|ed|ing)": "American spelling",
}
# Where docstrings and comments avoid these words as well, apart from modules whose docstrings are sent to models.
READ = ROOT / "kantan_agents"
SENT = (
    READ / "lab/evaluation/evaluators/judges/verdicts.py",
    READ / "lab/evaluation/simulation/simulated.py",
)
# Plain English that the expressions above would find.
ALLOWED = (
    r"(living|meeting|chat|hotel) rooms?|room for",
    r"the way in which",
    r"there is (no|none)",
    r"is no (longer|more|less|fewer|later|earlier|larger|smaller|different|better|worse)",
    r"is no (need|such|way|use|reason|match)",
    r"stands? (for|out|alone|in for)|stands?-\w+|-stands?",
    r"when it comes to|(comes|come|came) to (an|its|a) (end|halt|stop)",
    r"(in|take|takes|took|taking) place|in place of|a text file",
    r"units? tests?|(sampling|work) units?|go on call",
)
NAMES = r"(^|_)(told|tells|telling|hears|heard|room|rooms|shelf|shelves|laws?|cures?|mends?|mended|mending|judging)(_|$)"


def _words(expression: str) -> re.Pattern[str]:
    expression = expression.replace(" ", r"\s+")
    return re.compile(rf"(?<!\w)(?:{expression})\b", re.IGNORECASE)


_PROSE = [(_words(expression), better) for expression, better in PROSE.items()]
_IN_PAGES = [(_words(expression), better) for expression, better in IN_PAGES.items()]
_ALLOWED = _words("|".join(ALLOWED))
_NAMES = re.compile(NAMES)
_CODE = re.compile(r"``.+?``|`[^`\n]+`|<!--.*?-->|https?://\S+|\]\([^)]*\)", re.DOTALL)
# The name of an argument or an attribute, or a decorator, in a docstring.
_ARGUMENT = re.compile(r"^ +(?:\*?\w+(?=[:=])|@.*)", re.MULTILINE)
_FENCE = re.compile(
    r"^(?P<fence> *(?:```|~~~)).*?^(?P=fence)", re.MULTILINE | re.DOTALL
)

NAME_ADVICE = "a name in the field's words"
Found = tuple[int, str, str]


def in_prose(
    text: str, first_line: int = 1, words: list[tuple[re.Pattern[str], str]] = _PROSE
) -> Iterator[Found]:
    """Yield line, words and advice for each find in a string of several lines."""
    text = _ALLOWED.sub(_blank, _CODE.sub(_blank, text))
    for pattern, better in words:
        for match in pattern.finditer(text):
            yield (
                first_line + text.count("\n", 0, match.start()),
                " ".join(match[0].split()),
                better,
            )


def in_markdown(text: str) -> Iterator[Found]:
    """Yield what is found in the prose of a page."""
    yield from in_prose(_FENCE.sub(_blank, text), words=[*_PROSE, *_IN_PAGES])


def in_python(text: str, *, with_texts: bool, is_read: bool = False) -> Iterator[Found]:
    """Yield the finds in docstrings, comments and names; in all other strings too if ``with_texts``.

    Docstrings and comments of a read package avoid the words of pages, too.
    """
    tree = ast.parse(text)
    words = [*_PROSE, *_IN_PAGES] if is_read else _PROSE
    # A text that is a statement documents what is above it: a module, a class, a function, an attribute.
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in documentation:
                prose = _ARGUMENT.sub(_blank, node.value)
                yield from in_prose(prose, node.lineno, words)
            elif with_texts:
                yield from in_prose(node.value, node.lineno)
    yield from _in_tokens(text, words)


def _in_tokens(text: str, words: list[tuple[re.Pattern[str], str]]) -> Iterator[Found]:
    comment: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.NAME and _NAMES.search(token.string.lower()):
            yield line, token.string, NAME_ADVICE
        elif token.type == tokenize.COMMENT:
            if comment and line != last + 1:
                yield from in_prose("\n".join(comment), last - len(comment) + 1, words)
                comment = []
            comment.append(token.string.lstrip("# "))
            last = line
    yield from in_prose("\n".join(comment), last - len(comment) + 1, words)


def in_file(path: Path) -> list[Found]:
    """Return what is found in one file and in its name, in the order of the lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        found = set(in_markdown(text))
    else:
        found = set(
            in_python(
                text,
                with_texts=path.is_relative_to(ROOT / "kantan_agents"),
                is_read=path.is_relative_to(READ) and path not in SENT,
            )
        )
    if _NAMES.search(path.stem.lower()):
        found.add((1, path.name, NAME_ADVICE))
    return sorted(found)


def tracked() -> Iterable[Path]:
    """Yield every page and Python file that git tracks, except this one and its test, which hold the words."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.py"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return (
        path
        for path in paths
        if path not in (HERE, TESTS) and path.exists() and not path.is_relative_to(OLD)
    )


def main(arguments: list[str]) -> int:
    """Print everything that is found; return the exit code."""
    count = 0
    for path in [Path(name).resolve() for name in arguments] or tracked():
        for line, words, better in in_file(path):
            shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            print(f"{shown}:{line}: {words!r}; use: {better}")
            count += 1
    print(f"{count} words to replace" if count else "no word to replace")
    return 1 if count else 0


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
