"""The fast tier and the slow one: what runs when, and what the fast tier always has."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tiers
from tests.measure_times import measured
from tests.tiers import Time, Times

ROOT = Path(__file__).resolve().parents[1]
TIMES = Times.read()
PACKAGES = sorted(path.parent.name for path in (ROOT / "kantan_agents").glob("*/__init__.py"))

# What the fast tier has for real, whatever it costs.
REAL = {
    "a run over HTTP",
    "a SQLite file",
    "an MCP server in a process",
    "a durable worker",
    "a page in a browser",
}


def test_the_file_names_tests_that_exist() -> None:
    unknown = [
        f"{path}::{name}" for path, names in TIMES.of.items() for name in names if not exists(path, name)
    ]
    assert unknown == [], "run `python -m tests.measure_times`, or take them out of tests/times.json"


def exists(path: str, name: str) -> bool:
    """Return whether a file defines a test function, without parsing hundreds of files."""
    file = ROOT / path
    *classes, function = name.split("::")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    # The test of a state machine of Hypothesis is inherited.
    return all(f"{one} = " in text or f"class {one}" in text for one in classes) and (
        function == "runTest" or f"def {function}(" in text
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_fast_tests(package: str) -> None:
    functions = slow = 0
    for file in (ROOT / "tests" / package).rglob("test_*.py"):
        functions += file.read_text(encoding="utf-8").count("def test_")
        times = TIMES.of.get(file.relative_to(ROOT).as_posix(), {})
        slow += sum(time.is_slow for time in times.values())
    assert functions > slow, f"tests/{package} has none"


def test_the_fast_tier_has_one_test_of_each_real_part() -> None:
    assert set(reasons_of_fast_tests()) >= REAL


def reasons_of_fast_tests() -> Iterator[str]:
    """Yield the reasons in the marks ``@pytest.mark.fast("REASON")``."""
    for file in (ROOT / "tests").rglob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        if "@pytest.mark.fast(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fast":
                        yield ast.literal_eval(mark.args[0])


TESTS = {
    "test_mixed.py": """
        import pytest
        def test_quick(): pass
        @pytest.mark.parametrize("n", range(3))
        def test_long(n): pass
        @pytest.mark.fast("it is the only one")
        def test_long_and_needed(): pass
        @pytest.mark.slow
        def test_new_and_long(): pass
    """,
    "test_all_long.py": """
        def test_one(): pass
        class TestMore:
            def test_two(self): pass
    """,
}
LONG: dict[str, dict[str, list[float]]] = {
    "test_mixed.py": {"test_long": [90.0, 3], "test_long_and_needed": [30.0, 1]},
    "test_all_long.py": {"test_one": [30.0, 1], "TestMore::test_two": [30.0, 2]},
}
LEFT_OUT = "{} slow tests were left out. All tests: " + tiers.ALL


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with the plugin and two files of tests."""
    for name, code in TESTS.items():
        pytester.makepyfile(**{name.removesuffix(".py"): code})
    pytester.makefile(".json", times=json.dumps(LONG))
    # Also in the processes of pytest-xdist. In this one, the lines below restore the values.
    pytester.makeconftest(
        "from pathlib import Path\nfrom tests import tiers\n"
        "tiers.ROOT = Path(__file__).parent\ntiers.FILE = tiers.ROOT / 'times.json'\n"
    )
    pytester.makeini("[pytest]\nmarkers =\n  fast\n  slow\naddopts = -p tests.tiers")
    monkeypatch.setattr(tiers, "ROOT", pytester.path)
    monkeypatch.setattr(tiers, "FILE", pytester.path / "times.json")
    return pytester


def outcome(project: pytest.Pytester, *arguments: str) -> tuple[int, list[str]]:
    """Return how many tests passed, and the lines about tests that were left out."""
    result = project.runpytest_inprocess("-p", "no:randomly", *arguments)
    lines = [line for line in result.outlines if "left out" in line]
    return result.parseoutcomes().get("passed", 0), lines


def test_a_folder_runs_the_fast_tier(project: pytest.Pytester) -> None:
    expected = (2, [LEFT_OUT.format(7)])
    assert outcome(project) == expected
    assert outcome(project, str(project.path)) == expected


def test_files_without_fast_tests_are_not_imported(project: pytest.Pytester) -> None:
    file = project.path / "test_all_long.py"
    file.write_text("assert False\n" + file.read_text())
    assert outcome(project) == (2, [LEFT_OUT.format(7)])
    file.write_text(file.read_text() + "def test_new(): pass\n")
    assert outcome(project, "--continue-on-collection-errors")[0] == 2  # now it is imported, which fails


def test_a_named_file_or_test_runs_whole(project: pytest.Pytester) -> None:
    assert outcome(project, "test_mixed.py") == (6, [])
    assert outcome(project, "test_all_long.py") == (2, [])
    assert outcome(project, "test_mixed.py::test_long") == (3, [])
    assert outcome(project, "test_mixed.py::test_long[1]") == (1, [])
    assert outcome(project, "test_all_long.py::TestMore") == (1, [])
    # A name that another one starts with.
    assert outcome(project, "test_mixed.py::test_long", "test_mixed.py::test_quick") == (4, [])


def test_a_folder_beside_a_named_test_still_runs_its_fast_tests(project: pytest.Pytester) -> None:
    folder = project.mkdir("more")
    (folder / "test_more.py").write_text("def test_more(): pass\n")
    assert outcome(project, "test_mixed.py::test_long", "more") == (4, [])


def test_marks_choose_from_all_tests(project: pytest.Pytester) -> None:
    assert outcome(project, "-m", "slow or not slow") == (8, [])
    assert outcome(project, "-m", "slow") == (6, [])
    assert outcome(project, "-m", "not slow") == (2, [])


def test_those_that_failed_last_run_whatever_their_tier(project: pytest.Pytester) -> None:
    file = project.path / "test_mixed.py"
    file.write_text(file.read_text().replace("def test_long(n): pass", "def test_long(n): assert n != 1"))
    assert outcome(project, "test_mixed.py") == (5, [])
    file.write_text(file.read_text().replace("assert n != 1", "pass"))
    assert outcome(project, "--last-failed") == (1, [])


def test_the_workers_say_what_they_left_out(project: pytest.Pytester) -> None:
    assert outcome(project, "-n", "1") == (2, [LEFT_OUT.format(7)])


def test_of_several_reports_the_least_time_of_each_test_counts(tmp_path: Path) -> None:
    def report(name: str, **seconds: float) -> Path:
        cases = (
            f'<testcase classname="tests.test_tiers" name="{one}[a]" time="{took}"/>'
            for one, took in seconds.items()
        )
        path = tmp_path / name
        path.write_text(f"<testsuite>{''.join(cases)}</testsuite>", encoding="utf-8")
        return path

    busy = report("busy.xml", test_one=9.0, test_two=2.0, test_gone=5.0)
    idle = report("idle.xml", test_one=0.01, test_two=3.0, test_new=1.0)
    of = measured([busy, idle]).of["tests/test_tiers.py"]
    assert of == {"test_two": Time(2.0, 1), "test_new": Time(1.0, 1)}
