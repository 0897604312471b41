"""Each place in the package that can create a file, so that a new one is for its owner only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT

PACKAGE = ROOT / "kantan_agents"
PRIVATE_FUNCTIONS = {"create_private", "open_private", "replace_file"}

EXEMPT = {
    ("support/private_files.py", "O_CREAT"): "creates all others",
    ("cli/agents/new.py", "O_CREAT"): "a file of the project, for everybody who may read the project",
    ("cli/agents/fix.py", "O_CREAT"): "gets the mode of the file of the project that it replaces",
    ("toolkit/files/editing/replace.py", "O_CREAT"): "a file of the project, for everybody who may read it",
    ("lab/improve/journal.py", "open"): "opens a journal that exists, to cut off its last line",
    ("cli/app.py", "open"): "the null device",
    ("durable/storage/database.py", "create_engine"): "a server's; that of a file calls create_private",
    ("traces/kantan_tracers.py", "connect"): "a database that kantan-llm's own tracer has opened before",
    ("traces/recorder/recorder.py", "connect"): "in mode ro or immutable, with which SQLite creates nothing",
    ("traces/trace_file.py", "connect"): "in mode ro, rw or immutable, with which SQLite creates nothing",
    ("traces/recorder/database.py", "connect"): "called after create_private, in `_connect_verified`",
}
"""Places that create no file, or one without contents of the library, with the reason."""

_CREATING = {
    *("copy2", "copyfile", "copytree", "create_engine", "FileHandler", "FileHistory", "mknod", "savez"),
    *("SQLiteSession", "touch", "write_bytes", "write_text", "ZipFile"),
}
"""Functions that create files. Those of ``tempfile`` are for the owner only."""

_QUICKLY = re.compile(rf"O_CREAT|sqlite3\.connect|\bopen\(|{'|'.join(_CREATING)}")


def creating_calls(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what can create a file, with a short name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "O_CREAT":
            yield "O_CREAT", node
        if not isinstance(node, ast.Call):
            continue
        text = ast.unparse(node)
        name = ast.unparse(node.func).rsplit(".", 1)[-1]
        is_existing = "mode=ro" in text or "mode=rw" in text or "':memory:'" in text
        if name in _CREATING or (text.startswith("sqlite3.connect(") and not is_existing):
            yield name, node
        if name == "open" and _is_for_writing(node) and not _is_descriptor(node.args[:1]):
            yield name, node


def _is_for_writing(call: ast.Call) -> bool:
    constants = [node.value for node in (*call.args, *(one.value for one in call.keywords))
                 if isinstance(node, ast.Constant)]  # fmt: skip
    modes = [
        value for value in constants if isinstance(value, str) and value and set(value) <= set("rwaxbt+")
    ]
    return any(set(mode) & set("wax+") for mode in modes)


def _is_descriptor(first: list[ast.expr]) -> bool:
    return bool(first) and ast.unparse(first[0]).startswith(("descriptor", "open_private("))


def open_to_others(source: str) -> set[str]:
    """Return what can create a file in functions that call none of the private functions."""
    tree = ast.parse(source)
    private: set[ast.AST] = set()
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = list(ast.walk(function))
            calls = {ast.unparse(node.func) for node in inside if isinstance(node, ast.Call)}
            private |= set(inside if calls & PRIVATE_FUNCTIONS else ())
    return {name for name, node in creating_calls(tree) if node not in private}


@pytest.mark.slow
def test_every_file_that_the_package_creates_is_private_or_exempt_with_a_reason() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if _QUICKLY.search(source):
            name = path.relative_to(PACKAGE).as_posix()
            found |= {(name, kind) for kind in open_to_others(source)}
    assert found == set(EXEMPT)


@pytest.mark.parametrize(
    "line",
    [
        "sqlite3.connect(path)",
        "sqlalchemy.create_engine(url)",
        "open(path, 'w')",
        "path.open(mode='xb')",
        "path.write_text(text)",
        "os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)",
        "shutil.copyfile(one, other)",
        "SQLiteSession('id', path)",
    ],
)
def test_a_new_place_is_found(line: str) -> None:
    assert _QUICKLY.search(line)
    assert open_to_others(f"def store(path):\n    {line}\n")
    assert not open_to_others(f"def store(path):\n    create_private(path)\n    {line}\n")
