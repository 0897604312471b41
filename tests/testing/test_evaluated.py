"""``evaluated``, in sessions of pytest of its own."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kantan_agents import Agent, TraceStore
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Evaluation
from kantan_agents.lab.evaluation.evaluators import exact, latency
from kantan_agents.testing import ScriptedModel, evaluated
from tests.programs import Preloaded

from .workers import on_two_workers

PLUGIN = "kantan_agents.testing.pytest_plugin"
HEAD = """
import pytest
from kantan_agents import Agent
from kantan_agents.lab.evaluation import Case, Dataset, evaluator
from kantan_agents.lab.evaluation.evaluators import contains, exact
from kantan_agents.testing import ScriptedModel, evaluated

def question(call):
    return call.input if isinstance(call.input, str) else call.input[0]["content"]

def right_up_to(number):
    "Return an agent that is right about the first questions."
    def answer(call):
        asked = question(call)
        if asked == "boom":
            raise ValueError("it broke")
        return asked if int(asked) < number else "wrong"
    return Agent("a", "Answer.", model=ScriptedModel(answer))

def numbers(count):
    return Dataset("numbers", [Case(str(n), id=f"n{n}", expected=str(n)) for n in range(count)])
"""
TESTS = """
@evaluated(numbers(20), evaluators=exact())
def test_good():
    return right_up_to(20)

@evaluated(numbers(20), evaluators=exact())
def test_bad():
    return right_up_to(5)

@evaluated(numbers(10), evaluators=[contains()])
async def test_uncertain():
    return right_up_to(8)

@evaluated("cases.jsonl", agent=right_up_to(1), evaluators=exact())
def test_from_a_file():
    pass

@pytest.fixture
def limit(request):
    return 20

class TestIt:
    @evaluated(numbers(20), evaluators=exact())
    def test_method(self, limit, request):
        assert request.node.name == "test_method"
        return right_up_to(limit)

    @pytest.mark.parametrize("count", [0, 20])
    @evaluated(numbers(20), evaluators=exact(), repeats=2)
    def test_each(self, count):
        return right_up_to(count)
"""


@pytest.fixture
def session(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "cases.jsonl").write_text('{"input": "0", "expected": "0"}\n')
    return pytester


def run(session: pytest.Pytester, tests: str, *arguments: str) -> pytest.RunResult:
    session.makepyfile(test_it=HEAD + tests)
    options = ["-p", "no:cacheprovider", "-W", "default::UserWarning"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if all(one.value != PLUGIN for one in entry_points(group="pytest11")):
        options += ["-p", PLUGIN]  # a checkout that is not installed
    return session.runpytest_inprocess(*options, *arguments)


def test_a_test_fails_only_if_the_rate_is_too_low_for_certain(session: pytest.Pytester) -> None:
    result = run(session, TESTS)
    result.assert_outcomes(passed=5, failed=2, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "5 of 20 cases pass: 25.0% (95% interval 8.7% to 49.1%), and 90.0% must",
            "  n5: exact 0 (trace_*)",
            "  and 5 more",
            "Look at one: kantan-agents traces show ID --db *traces.sqlite3",
            "  n0 in 2 of 2 runs: exact 0 (trace_*)",
            "*: UncertainPassRateWarning: 8 of 10 cases pass: *; that may be chance: about 40 more cases *",
            "*= pass rates =*",
            "test_it.py::TestIt::test_each*0*: 0 of 20 cases pass: *",
            "test_it.py::test_good: 20 of 20 cases pass: 100.0% *",
        ]
    )


def test_the_failing_cases_are_listed_with_their_comments_and_errors(session: pytest.Pytester) -> None:
    tests = """
cases = Dataset("d", [Case("boom", id="broken"), Case("7", id="seven", expected="sorry")])

@evaluated(cases, evaluators=contains(), min_pass=1.0)
def test_it():
    return right_up_to(0)
"""
    result = run(session, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "0 of 2 cases pass: 0.0% (95% interval 0.0% to 84.2%), and 100.0% must",
            "  broken: ValueError: it broke (trace_*)",
            "  seven: contains 0, missing: 'sorry' (trace_*)",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_rate_that_may_be_chance_fails_if_warnings_are_errors(session: pytest.Pytester) -> None:
    result = run(session, TESTS, "-k", "uncertain", "-W", "error")
    result.assert_outcomes(failed=1, deselected=6)
    ignored = "ignore::kantan_agents.testing.UncertainPassRateWarning"
    run(session, TESTS, "-k", "uncertain", "-W", "error", "-W", ignored).assert_outcomes(
        passed=1, deselected=6
    )


def test_a_test_whose_evaluators_all_fail_does_not_pass(session: pytest.Pytester) -> None:
    tests = """
@evaluator(version="1")
def broken(finished):
    raise KeyError("x")

@evaluated(numbers(3), evaluators=broken)
def test_it():
    return right_up_to(3)
"""
    result = run(session, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "no case has a score; an evaluator that checks something must return True where it passes",
            "3 scores have failed, so nobody knows whether these cases pass:",
            "  n0: broken failed, KeyError: 'x' (trace_*)",
        ]
    )


def test_a_failed_assertion_in_an_evaluator_is_a_case_that_does_not_pass(
    session: pytest.Pytester,
) -> None:
    tests = """
@evaluator
def right(finished):
    assert finished.text == finished.case.expected, "not the right number"
    return True

@evaluator
def silent(finished):
    if finished.text == "wrong":
        raise AssertionError
    return True

@evaluated(numbers(20), evaluators=[right, silent], threshold=0)
def test_it():
    return right_up_to(2)
"""
    result = run(session, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "2 of 20 cases pass: *",
            "  n2: right 0, not the right number; silent 0, an assertion has failed (trace_*)",
            "  and 8 more",
        ]
    )


def test_any_other_error_of_an_evaluator_fails_the_test(session: pytest.Pytester) -> None:
    tests = """
@evaluator(version="1")
def fragile(finished):
    if int(finished.case.expected) >= 18:
        raise KeyError("price")
    return True

@evaluated(numbers(30), evaluators=fragile, min_pass=0.5)
def test_it():
    return right_up_to(30)
"""
    result = run(session, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "12 scores have failed, so nobody knows whether these cases pass:",
            "  n18: fragile failed, KeyError: 'price' (trace_*)",
            "  and 2 more",
            "18 of 18 cases pass: *",
        ]
    )


def test_a_case_is_left_out_if_its_evaluators_return_none(session: pytest.Pytester) -> None:
    tests = """
@evaluator
def right(finished):
    return None if finished.text == "wrong" else True

@evaluated(numbers(20), evaluators=right, min_pass=1.0)
def test_it():
    return right_up_to(15)
"""
    result = run(session, tests)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: 15 of 15 cases pass: *"])


def test_if_all_must_pass_one_failing_repetition_fails_the_test(session: pytest.Pytester) -> None:
    tests = """
calls = []

def answer(call):
    calls.append(question(call))
    return "wrong" if calls.count("7") == 2 and calls[-1] == "7" else question(call)

@evaluated(numbers(20), evaluators=exact(), min_pass=1.0, repeats=2)
def test_it():
    return Agent("a", "Answer.", model=ScriptedModel(answer))
"""
    result = run(session, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["19.5 of 20 cases pass: *, and 100.0% must", "  n7 in 1 of 2 runs: exact 0*"]
    )


@pytest.mark.parametrize(
    ("decorator", "body", "text"),
    [
        ("numbers(3)", "return 3", "*E75*agent*must return an Agent*not int*"),
        ("numbers(3)", "pass", "*E75*agent*not NoneType*"),
        ("'none.jsonl'", "return right_up_to(3)", "*E100*none.jsonl*"),
        ("numbers(50).split().test", "return right_up_to(3)", "*E106*"),
        ("numbers(0)", "return right_up_to(3)", "*E102*"),
        ("numbers(3), max_tokens=0", "return right_up_to(3)", "*E75*max_tokens*"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_of_the_test(
    session: pytest.Pytester, decorator: str, body: str, text: str
) -> None:
    result = run(session, f"\n@evaluated({decorator})\ndef test_it():\n    {body}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([text])


def test_an_evaluation_that_was_stopped_fails_with_its_error(session: pytest.Pytester) -> None:
    tests = """
from kantan_agents.testing import OfflineServer

@evaluated(numbers(5), max_tokens=20, evaluators=exact())
def test_it():
    with OfflineServer(["fine"]) as server:
        bundle = server.bundle()
    return Agent("a", "Answer.", model=bundle)
"""
    result = run(session, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*APIConnectionError*"])


def test_each_session_adds_an_evaluation_to_a_database_that_is_kept(session: pytest.Pytester) -> None:
    tests = """
@evaluated(numbers(3), evaluators=exact(), store="kept.sqlite3")
def test_it():
    return right_up_to(3)
"""
    for _ in range(2):
        run(session, tests).assert_outcomes(passed=1)
    names = [one.name for one in Evaluation.load_all(TraceStore(session.path / "kept.sqlite3"))]
    assert len(set(names)) == 2
    assert all(name.startswith("test_it.py::test_it 20") for name in names)


def test_the_pass_rate_is_in_the_junit_file(session: pytest.Pytester) -> None:
    run(session, TESTS, "-k", "good", "--junitxml", "junit.xml")
    text = (session.path / "junit.xml").read_text()
    assert 'name="kantan_agents_pass_rate" value="20 of 20 cases pass: 100.0% ' in text


def test_it_works_in_the_processes_of_xdist(session: pytest.Pytester, preloaded: Preloaded) -> None:
    session.makepyfile(test_it=HEAD + TESTS)
    command = ["-m", "pytest", *on_two_workers(preloaded, session.path), "-p", "no:cacheprovider"]
    if all(one.value != PLUGIN for one in entry_points(group="pytest11")):
        command += ["-p", PLUGIN]
    finished = preloaded.run(command, cwd=session.path)
    assert finished.returncode == 1, finished.stderr
    assert "2 failed, 5 passed, 1 warning" in finished.stdout
    assert "pass rates" in finished.stdout
    assert "test_it.py::test_good: 20 of 20 cases pass" in finished.stdout


def test_a_session_without_evaluations_has_no_summary(session: pytest.Pytester) -> None:
    result = run(session, "\ndef test_it():\n    pass\n")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*pass rates*")


def test_wrong_options_are_errors_where_they_are_written(tmp_path: Path) -> None:
    agent = Agent("a", "b", model=ScriptedModel([]))
    for min_pass in (0, 1.1, -1, "all"):
        with pytest.raises(InvalidOptionError, match="min_pass"):
            evaluated(tmp_path / "cases.jsonl", min_pass=min_pass, agent=agent)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="lower is better; give it a limit"):
        evaluated(tmp_path / "cases.jsonl", evaluators=latency())
    with pytest.raises(InvalidOptionError, match="two are named 'exact'"):
        evaluated(tmp_path / "cases.jsonl", evaluators=[exact(), exact("x")])
    evaluated(tmp_path / "cases.jsonl", evaluators=latency(2.0))
