"""``kantan-agents eval run`` and ``eval dataset``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.lab import Dataset
from kantan_agents.testing import Reply
from tests.cli.conftest import Invoke, Outcome
from tests.cli.evaluated_shop import Shop, orders, reply, shop_in
from tests.cli.imports import assert_none_imports_the_sdk
from tests.cli.recorded_runs import Recorded
from tests.programs import Program


def words_of(text: str) -> str:
    """Return a text whose line breaks do not matter."""
    return " ".join(text.split())


# ---- runs and scores


def test_both_prompts_are_run_scored_and_compared(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    outcome = kantan_agents(*evaluated_shop.run("--name", "first"))
    assert (outcome.code, outcome.stderr) == (0, "")
    shown = words_of(outcome.stdout)
    assert "evaluation first dataset orders runs 24 of 24" in shown
    assert "v1 0.333 (12) 0 180" in shown
    assert "v2 1 (12) 0 180" in shown
    assert "better on kind by 0.67" in shown
    assert len(evaluated_shop.server.requests) == 24


def test_as_json_it_has_all_results_and_the_comparison(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    arguments = evaluated_shop.run("--json", "--repeats", "2", "--price", "gpt-5-mini=1,2")
    outcome = kantan_agents(*arguments)
    data = json.loads(outcome.stdout)
    assert (data["name"], data["planned"], len(data["results"])) == ("orders: v1, v2", 48, 48)
    assert data["results"][0]["scores"]["kind"]["value"] == 1.0
    assert data["results"][0]["cost"] == pytest.approx((10 * 1 + 5 * 2) / 1e6)
    assert data["comparison"]["metrics"][0]["verdict"] == "better"


def test_one_variant_is_not_compared(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    agent = f"{evaluated_shop.module}:plain"
    arguments = ["eval", "run", "orders.jsonl", "--db", str(evaluated_shop.db), "--agent", agent]
    data = json.loads(kantan_agents(*arguments, "--json").stdout)
    assert (list(data["variants"]), data["comparison"]) == (["baseline"], None)
    assert "Verdict" not in kantan_agents(*arguments).stdout


def test_the_same_command_makes_nothing_again(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    first = kantan_agents(*evaluated_shop.run())
    evaluated_shop.server.requests.clear()
    again = kantan_agents(*evaluated_shop.run())
    assert again == first
    assert evaluated_shop.server.requests == []


def test_a_new_evaluator_scores_what_is_there(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    kantan_agents(*evaluated_shop.run())
    evaluated_shop.server.requests.clear()
    module = evaluated_shop.module
    arguments = evaluated_shop.run(
        "--evaluator", f"{module}:length", "--evaluator", f"polite={module}:is_kind"
    )
    data = json.loads(kantan_agents(*arguments, "--json").stdout)
    assert data["results"][0]["scores"].keys() == {"kind", "length", "polite"}
    assert evaluated_shop.server.requests == []


def test_failed_scores_and_failed_runs_are_shown(
    kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Any) -> Any:
        is_last = request.input[-1]["content"] == "order 11"
        return Reply("no such order", status=400) if is_last else reply(request)

    with shop_in(tmp_path, monkeypatch, answer) as shop:
        arguments = shop.run("--evaluator", f"{shop.module}:broken")
        outcome = kantan_agents(*arguments)
        codes = {
            most: kantan_agents(*arguments, "--quiet", "--max-failed", most).code
            for most in ("1", "2", "8%", "9%")
        }
    shown = words_of(outcome.stdout)
    assert outcome.code == 1
    assert "error: 2 of 24 runs failed, and --max-failed is 0; the first: o11, v1: Bad" in outcome.stderr
    assert codes == {"1": 1, "2": 0, "8%": 1, "9%": 0}
    assert "Failed runs o11, v1: BadRequestError" in shown
    assert "Failed scores broken: 22 scores, the first: KeyError: 'nothing'" in shown


@pytest.mark.parametrize("most", ["-1", "1.5", "many", "101%", "-1%", "nan%", "%", ""])
def test_the_most_failed_runs_are_a_number_or_a_part(
    kantan_agents: Invoke, evaluated_shop: Shop, most: str
) -> None:
    outcome = kantan_agents(*evaluated_shop.run("--max-failed", most))
    assert (outcome.code, "Invalid option --max-failed: must be a number of runs" in outcome.stderr) == (
        2,
        True,
    )
    assert evaluated_shop.server.requests == []


@pytest.mark.parametrize(
    ("evaluator", "metric", "mean"),
    [
        ("exact", "exact", None),
        ("contains", "contains", None),
        ("contains:ORDER", "contains", 1.0),
        (r"matches:order \d+:", "matches", 1.0),
        ("json_fields:a,b", "json_fields", None),
        ("valid:schema.json", "valid", 0.0),
        ("not_used:search,buy", "not_used", 1.0),
        ("used_tools:search", "used_tools", 0.0),
        ("latency:600", "latency_limit", 1.0),
        ("tokens", "tokens", 15.0),
        ("tokens:14", "tokens_limit", 0.0),
        ("cost:1", "cost_limit", None),
        ("sorry=contains:a=b", "sorry", 0.0),
        ("rouge_l", "rouge_l", None),
    ],
)
def test_ready_made_evaluators_are_named_in_words(
    kantan_agents: Invoke, evaluated_shop: Shop, evaluator: str, metric: str, mean: float | None
) -> None:
    Path("schema.json").write_text('{"type": "object"}')
    arguments = ["eval", "run", "orders.jsonl", "--db", str(evaluated_shop.db)]
    agent = f"{evaluated_shop.module}:agent"
    outcome = kantan_agents(*arguments, "--agent", agent, "--evaluator", evaluator, "--json")
    assert outcome.code == 0, outcome.stderr
    scores = [one["scores"].get(metric, {}).get("value") for one in json.loads(outcome.stdout)["results"]]
    assert scores == [mean] * 12


def test_the_context_and_the_model_reach_the_runs(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    Path("where.md").write_text("Answer kindly in {{ $ctx.city }}.")
    arguments = [
        *("eval", "run", "orders.jsonl", "--db", str(evaluated_shop.db), "--model", "gpt-5"),
        *(
            "--agent",
            f"{evaluated_shop.module}:make",
            "--variant",
            "there=where.md",
            "--context",
            "context.json",
        ),
    ]
    assert kantan_agents(*arguments).code == 0
    requests = evaluated_shop.server.requests
    assert {request.model for request in requests} == {"gpt-5"}
    assert "Answer kindly in Oslo." in {request.system_instructions for request in requests}


def test_an_agent_is_found_by_name_and_by_its_file(
    kantan_agents: Invoke, project: Path, evaluated_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    folder = project / ".claude" / "agents"
    folder.mkdir(parents=True)
    text = "---\nname: clerk\ndescription: Answers.\nversion: v7\ntools: []\n---\nAnswer kindly.\n"
    (folder / "clerk.md").write_text(text)
    orders(2).save("two.jsonl")
    arguments = [
        "eval",
        "run",
        "two.jsonl",
        "--db",
        str(evaluated_shop.db),
        "--model",
        "gpt-5-mini",
        "--json",
    ]
    for agent in ("clerk", str(folder / "clerk.md")):
        outcome = kantan_agents(*arguments, "--agent", agent)
        assert outcome.code == 0, outcome.stderr
        assert [*json.loads(outcome.stdout)["variants"]] == ["v7"]
    assert evaluated_shop.server.requests[0].system_instructions == "Answer kindly.\n"


def test_cases_are_read_from_csv_too(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    Path("orders.csv").write_text("input,expected\norder 1,order 1: wait\norder 3,order 3: wait\n")
    arguments = [
        "eval",
        "run",
        "orders.csv",
        "--db",
        str(evaluated_shop.db),
        "--evaluator",
        "exact",
        "--json",
    ]
    data = json.loads(kantan_agents(*arguments, "--agent", f"{evaluated_shop.module}:agent").stdout)
    assert [one["scores"]["exact"]["value"] for one in data["results"]] == [1.0, 0.0]


def test_quiet_shows_nothing_and_a_terminal_gets_a_progress_bar(
    kantan_agents: Invoke, evaluated_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _self: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert kantan_agents(*evaluated_shop.run("--quiet", "--name", "quiet")) == Outcome(0, "", "")
    outcome = kantan_agents(*evaluated_shop.run("--price", "gpt-5-mini=1,2"))
    assert outcome.code == 0
    assert "24/24" in outcome.stderr
    assert "360 tokens, cost 0.00048" in outcome.stderr


def test_a_judge_judges_by_the_prompt_of_the_agent(
    kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Any) -> str:
        is_judge = "You evaluate answers" in str(request.system_instructions)
        return '{"score": 0.75, "comments": ["short"]}' if is_judge else "fine"

    with shop_in(tmp_path, monkeypatch, answer) as shop:
        orders(2).save("orders.jsonl")
        for options, model in (([], "gpt-5-mini"), (["--judge-model", "gpt-5"], "gpt-5")):
            shop.server.requests.clear()
            arguments = shop.run("--evaluator", "judged", "--name", "judged", "--json", *options)
            data = json.loads(kantan_agents(*arguments).stdout)
            assert {one["scores"]["judge"]["value"] for one in data["results"]} == {0.75}
            asked = [one for one in shop.server.requests if "You evaluate" in str(one.system_instructions)]
            assert len(asked) == 4
            assert all("\nAnswer.\n" in str(one.system_instructions) for one in asked)
            assert {one.model for one in asked} == {model}
        shop.server.requests.clear()
        kantan_agents(*arguments)
        assert shop.server.requests == []
        outcome = kantan_agents(*shop.run("--evaluator", "judged", "--agent", f"{shop.module}:plain"))
    assert (outcome.code, "give 'plain' a Prompt" in outcome.stderr) == (2, True)


# ---- interrupted, or over budget


def test_a_budget_that_is_used_up_is_exit_code_1(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    outcome = kantan_agents(*evaluated_shop.run("--max-tokens", "100", "--concurrency", "1"))
    assert outcome.code == 1
    assert "[E103]" in outcome.stderr
    assert outcome.stderr.count("6 of 24 runs are kept") == 1
    assert outcome.stderr.count("\n") == 1
    assert "runs 6 of 24" in words_of(outcome.stdout)


def test_a_limit_of_cost_needs_prices(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    outcome = kantan_agents(*evaluated_shop.run("--max-cost", "0.0001", "--price", "gpt-5-mini=1,2"))
    assert (outcome.code, "[E103]" in outcome.stderr) == (1, True)
    outcome = kantan_agents(*evaluated_shop.run("--max-cost", "0.0001"))
    assert (outcome.code, "--price MODEL=IN,OUT" in outcome.stderr) == (2, True)


def test_a_model_that_cannot_be_reached_is_one_line(
    kantan_agents: Invoke, evaluated_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    orders(1).save("one.jsonl")
    agent = f"{evaluated_shop.module}:agent"
    outcome = kantan_agents("eval", "run", "one.jsonl", "--db", str(evaluated_shop.db), "--agent", agent)
    assert outcome.code == 2
    assert "127.0.0.1:9" in outcome.stderr
    assert "(0 of 1 runs are kept)" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_after_ctrl_c_the_same_command_goes_on(
    kantan_agents: Invoke,
    start: Callable[..., Program],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fourth, is_over = threading.Event(), threading.Event()
    asked: list[str] = []

    def answer(request: Any) -> Any:
        asked.append(str(request.input[-1]["content"]))
        if len(asked) == 4 and not is_over.is_set():
            fourth.set()
            return Reply("too late", delay=300)
        return reply(request)

    with shop_in(tmp_path, monkeypatch, answer) as shop:
        arguments = shop.run("--concurrency", "1", "--name", "orders")
        program = start(*arguments, env={"PYTHONPATH": str(tmp_path)})
        assert fourth.wait(60)
        program.send_signal(signal.SIGINT)
        stdout, stderr = program.communicate(60)
        is_over.set()
        assert (program.returncode, stdout) == (130, b"")
        assert stderr.decode() == (
            "interrupted: 3 of 24 runs are kept; the same command goes on with the others\n"
        )
        asked.clear()
        outcome = kantan_agents(*arguments)
        assert (outcome.code, len(asked)) == (0, 21)
        assert "runs 24 of 24" in words_of(outcome.stdout)


# ---- bad input


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--evaluator", "exakt"],
            "[E75] Invalid option --evaluator: there is no 'exakt'; did you mean 'exact'",
        ),
        (["--evaluator", "zzzzzz"], "there are exact, contains"),
        (["--evaluator", "exact:5"], "exact takes no value"),
        (["--evaluator", "matches"], "matches needs a regular expression"),
        (["--evaluator", "matches:("], "matches:(: is not a regular expression"),
        (["--evaluator", "latency:soon"], "'soon' is not a number"),
        (["--evaluator", "latency:-1"], "latency:-1: must be a number"),
        (["--evaluator", "used_tools:a,,b"], "used_tools:a,,b: must be the name of a tool"),
        (
            ["--evaluator", "valid:none.json"],
            "error: [kantan-agents][E79] Cannot use none.json: No such file or directory\n",
        ),
        (["--evaluator", "valid:no_schema.json"], "valid:no_schema.json: "),
        (["--evaluator", "judged:5"], "judged takes no value"),
        (["--evaluator", "correctness:5"], "correctness takes no value"),
        (["--evaluator", "groundedness:a,,b"], "groundedness:a,,b: must be names of tools"),
        (["--evaluator", "similar"], "similar needs the name of an embedding model"),
        (["--judge-model", "gpt-5"], "--judge-model: is for --evaluator judged; add it"),
        (["--open-held-out", "final"], "[E75] Invalid option --open-held-out: orders.jsonl is not held out"),
        (["--open-held-out", " "], "[E75] Invalid option --open-held-out: must say why"),
        (["--evaluator", "valid:kind.md"], "[E79] Cannot use kind.md: it is not JSON"),
        (["--evaluator", "json:missing"], "json:missing: [python][AttributeError]"),
        (["--evaluator", "missing_module:x"], "missing_module:x: [python][ModuleNotFoundError]"),
        (["--evaluator", "kind=exact"], "two are named 'kind'; name one of them, such as other=exact"),
        (["--variant", "v3"], "[E75] Invalid option --variant: must be NAME=FILE"),
        (["--variant", "v3=none.md"], "[E79] Cannot use none.md"),
        (["--variant", "v3=empty.md"], "empty.md is empty"),
        (["--variant", "v2=kind.md"], "'v2' is given twice"),
        (["--variant", "v1=kind.md"], "'v1' is the version of the agent's own prompt"),
        (["--agent", "nobody"], "[E32]"),
        (["--agent", "none.md"], "[E30]"),
        (["--agent", "missing_module:agent"], "[E75] Invalid option --agent"),
        (["--agent", "json:loads"], "[E75] Invalid option --agent"),
        (["--context", "none.json"], "[E79] Cannot use none.json"),
        (["--price", "x"], "[E75] Invalid option --price: must be MODEL=IN,OUT"),
        (["--name", " "], "[E75] Invalid option name: must not be empty"),
        (["--db", "missing/eval.db"], "[E79] Cannot use missing/eval.db: its directory does not exist"),
        (["--db", "kind.md"], "[E79] Cannot use kind.md"),
    ],
)
def test_bad_input_is_one_line_and_costs_nothing(
    kantan_agents: Invoke, evaluated_shop: Shop, options: list[str], text: str
) -> None:
    Path("empty.md").write_text("\n")
    Path("no_schema.json").write_text('{"type": 5}')
    outcome = kantan_agents(*evaluated_shop.run(*options))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert evaluated_shop.server.requests == []


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("none.jsonl", None, "[E100]"),
        (
            "cases.txt",
            "hi",
            "[E100] Not a dataset: cases.txt: the name of a dataset ends in .jsonl, .csv or .tsv",
        ),
        ("cases.jsonl", "{", "[E100] Not a dataset: cases.jsonl"),
        ("cases.jsonl", '{"output": 1}', "[E100]"),
        ("cases.jsonl", "", "[E102]"),
    ],
)
def test_a_file_that_is_not_a_dataset_is_one_line(
    kantan_agents: Invoke, evaluated_shop: Shop, name: str, content: str | None, text: str
) -> None:
    if content is not None:
        Path(name).write_text(content)
    agent = f"{evaluated_shop.module}:agent"
    outcome = kantan_agents("eval", "run", name, "--db", str(evaluated_shop.db), "--agent", agent)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_a_sealed_test_set_is_opened_only_with_a_reason_which_is_logged(
    kantan_agents: Invoke, evaluated_shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kantan_agents")
    sealed = orders(50).split().test
    sealed.save("test.jsonl")
    agent = f"{evaluated_shop.module}:agent"
    arguments = ["eval", "run", "test.jsonl", "--db", str(evaluated_shop.db), "--agent", agent]
    outcome = kantan_agents(*arguments)
    assert (outcome.code, "[E106]" in outcome.stderr) == (2, True)
    assert "then open it with --open-held-out REASON" in outcome.stderr
    assert "test set opened" not in caplog.messages
    outcome = kantan_agents(*arguments, "--open-held-out", "before the release", "--json")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stderr == "test set 'orders-test' opened: before the release\n"
    assert len(json.loads(outcome.stdout)["results"]) == len(sealed)
    (logged,) = [one for one in caplog.records if one.message == "test set opened"]
    assert vars(logged)["reason"] == "before the release"


def test_help_and_wrong_options_need_no_sdk(tmp_path: Path) -> None:
    commands = [
        *(["eval", one, "--help"] for one in ("dataset", "run", "list", "show", "compare", "report")),
        ["eval"],
        ["eval", "compare", "a", "b", "--fail-if", "kind"],
        ["eval", "dataset", "cases.jsonl", "--last", "soon"],
        ["eval", "run", "cases.jsonl", "--agent", "a", "--price", "x"],
    ]
    assert_none_imports_the_sdk(commands, cwd=tmp_path)


# ---- datasets of recorded runs


def test_recorded_runs_become_a_dataset(kantan_agents: Invoke, shop: Recorded, tmp_path: Path) -> None:
    target = tmp_path / "cases.jsonl"
    command = ["eval", "dataset", str(target), "--db", str(shop.path), "--prompt", "support"]
    outcome = kantan_agents(*command, "--version", "v1", "--last", "7d")
    assert (outcome.code, outcome.stdout) == (0, "")
    assert outcome.stderr == f"1 case written to {target}\n"
    (case,) = Dataset.load(target)
    assert (case.input, case.expected) == ("Where is order 4711?", "It is on its way.")
    again = kantan_agents(*command)
    assert (again.code, "--force replaces it" in again.stderr) == (2, True)
    assert kantan_agents(*command, "--force", "--sample", "2", "--seed", "1").code == 0
    assert len(Dataset.load(target)) == 2


def test_as_json_a_dataset_has_its_cases_and_what_was_left_out(
    kantan_agents: Invoke, shop: Recorded, tmp_path: Path
) -> None:
    target, path = tmp_path / "cases.jsonl", tmp_path / "traces.sqlite3"
    shutil.copyfile(shop.path, path)
    broken = next(iter(shop.ids.values()))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM kantan_agents_runs WHERE trace_id = ?", (broken,))
    outcome = kantan_agents("eval", "dataset", str(target), "--db", str(path), "--json")
    assert (outcome.code, outcome.stderr) == (0, "")
    data = json.loads(outcome.stdout)
    assert (data["path"], data["cases"]) == (str(target), len(Dataset.load(target)))
    (skipped,) = data["skipped"]
    assert skipped["trace_id"] == broken
    assert "its record is not complete" in skipped["reason"]


def test_failed_runs_become_a_dataset(kantan_agents: Invoke, shop: Recorded, tmp_path: Path) -> None:
    target = tmp_path / "cases.jsonl"
    assert kantan_agents("eval", "dataset", str(target), "--db", str(shop.path), "--failed").code == 0
    assert {case.input for case in Dataset.load(target)} == {"Where is order 4711?", "Are you there?"}


@pytest.mark.parametrize(
    ("output", "options", "text"),
    [
        ("cases.jsonl", ["--prompt", "nothing"], "[E102]"),
        ("cases.txt", [], "[E100]"),
        ("missing/cases.jsonl", [], "[E79]"),
        ("cases.jsonl", ["--last", "soon"], "[E75] Invalid option --last"),
    ],
)
def test_a_dataset_that_cannot_be_made_is_one_line(
    kantan_agents: Invoke,
    shop: Recorded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    options: list[str],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = kantan_agents("eval", "dataset", output, "--db", str(shop.path), *options)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not list(tmp_path.glob("**/*"))
