"""``kantan-agents tools``: explains rules, checks files of rules, lists installed providers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.cli.tools.rules_file import read_rules
from kantan_agents.errors import FileArgumentError, InvalidToolRulesError
from kantan_agents.tool_rules import ToolRules
from tests.cli.imports import assert_none_imports_the_sdk
from tests.distributions import ACME, HALF, LOUD, RIVAL, TORN, WRONG, Installed, Use

FIVE_MISTAKES = """{
  "alow": ["search"],
  "deny": "rm",
  "params": {
    "search": {"query": {"maxlength": 20}},
    "add": {"left": {"minimum": "1"}},
    "grep": {"text": {"pattern": "(?=x)"}}
  }
}"""


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """``written({"deny": [...]})`` is the path of a file that holds this JSON."""

    def write(content: Any) -> str:
        path = tmp_path / "rules.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


class TestHelp:
    def test_the_group_shows_its_commands(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("tools")
        assert (outcome.code, outcome.stderr) == (0, "")
        assert "Usage: kantan-agents tools [OPTIONS] COMMAND [ARGS]..." in outcome.stdout
        for command in ("explain", "check", "list"):
            assert f"│ {command} " in outcome.stdout
        assert "│ tools " in kantan_agents("--help").stdout

    @pytest.mark.parametrize("command", [[], ["explain"], ["check"], ["list"]])
    def test_it_fits_80_columns(self, kantan_agents: Any, command: list[str]) -> None:
        outcome = kantan_agents("tools", *command, "--help")
        assert outcome.code == 0
        assert max(map(len, outcome.stdout.splitlines())) <= 80
        assert not command or "Exit codes: 0 " in outcome.stdout

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["explain"], "Missing argument 'NAME'; see kantan-agents tools explain --help"),
            (["check"], "Missing argument 'FILE'; see kantan-agents tools check --help"),
            (["list", "x"], "Got unexpected extra argument"),
            (["bogus"], "No such command 'bogus'; see kantan-agents tools --help"),
        ],
    )
    def test_mistakes_in_the_arguments(self, kantan_agents: Any, arguments: list[str], message: str) -> None:
        kantan_agents("tools", *arguments).is_one_error(f"[usage] {message}")

    def test_commands_without_providers_do_not_import_the_sdk(self) -> None:
        commands = [
            ["--help"],
            ["check", "/none.json"],
            ["explain", "x", "--rules", "/none.json"],
            ["check", "-"],
        ]
        assert_none_imports_the_sdk([["tools", *command] for command in commands], stdin=b"{}")


class TestCheck:
    def test_a_process_lists_five_different_mistakes(self, process: Any, written: Any) -> None:
        outcome = process("tools", "check", written(FIVE_MISTAKES))
        assert (outcome.code, outcome.stderr) == (2, "")
        lines = outcome.stdout.splitlines()
        assert lines[:4] == [
            "alow: unknown key, there are allow, deny and params",
            "deny: must be \"*\", a list of tool names or None, not 'rm'",
            "params.search.query.maxlength: unknown keyword, did you mean maxLength?",
            "params.add.left.minimum: must be a finite number, not '1'",
        ]
        assert lines[4].startswith("params.grep.text.pattern: '(?=x)' cannot be compiled")
        assert len(lines) == 5

    def test_a_file_without_mistakes(self, kantan_agents: Any, written: Any) -> None:
        for rules in (
            {},
            {"allow": "*", "deny": ["fs.*", "Bash(git push:*)"], "params": {"a": {"b": {"type": "string"}}}},
            {"tool_rules": {"deny": ["rm"]}, "history": [], "customer": {"name": "Aiko"}},
            {"tool_rules": None},
        ):
            path = written(rules)
            outcome = kantan_agents("tools", "check", path)
            assert (outcome.code, outcome.stdout, outcome.stderr) == (0, f"{path}: no mistakes\n", "")

    def test_standard_input(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("tools", "check", "-", stdin=b'\xef\xbb\xbf{"deny": ["rm"]}')
        assert (outcome.code, outcome.stdout) == (0, "-: no mistakes\n")
        outcome = kantan_agents("tools", "check", "-", stdin=b'{"deny": "rm"}')
        assert outcome.code == 2
        assert outcome.stdout.startswith("deny: ")

    def test_duplicate_keys_and_the_mistakes_in_each_of_them(self, kantan_agents: Any, written: Any) -> None:
        text = """{"deny": ["rm"], "deny": "a", "deny": "b", "params": {"t": {
            "p": {"type": "string", "type": "text"}, "p": {"minimum": 1, "minimum": 2}}}}"""
        outcome = kantan_agents("tools", "check", written(text))
        assert outcome.code == 2
        assert outcome.stdout.splitlines() == [
            "deny: appears 3 times; only the last one is used",
            "params.t.p: appears 2 times; only the last one is used",
            "params.t.p.type: appears 2 times; only the last one is used",
            "params.t.p.minimum: appears 2 times; only the last one is used",
            "deny: must be \"*\", a list of tool names or None, not 'a'",
            "deny: must be \"*\", a list of tool names or None, not 'b'",
        ]

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
    def test_numbers_that_json_does_not_have(self, kantan_agents: Any, written: Any, number: str) -> None:
        text = f'{{"params": {{"t": {{"p": {{"minimum": {number}, "enum": [{number}]}}}}}}}}'
        lines = kantan_agents("tools", "check", written(text)).stdout.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["params.t.p.minimum", "params.t.p.enum"]
        text = f'{{"tool_rules": {{}}, "scores": [1, {number}]}}'
        (line,) = kantan_agents("tools", "check", written(text)).stdout.splitlines()
        assert line.startswith("scores[1]: ")

    def test_in_a_context_the_path_begins_with_its_key(self, kantan_agents: Any, written: Any) -> None:
        outcome = kantan_agents("tools", "check", written({"tool_rules": {"deny": "rm"}, "deny": ["rm"]}))
        assert outcome.stdout.splitlines() == [
            "deny: has no effect outside tool_rules",
            "tool_rules.deny: must be \"*\", a list of tool names or None, not 'rm'",
        ]
        outcome = kantan_agents("tools", "check", written({"tool_rules": "deny_all"}))
        assert outcome.stdout == ("tool_rules: must be an object with allow, deny and params, not a str\n")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("[]", "it must contain a JSON object, not a list"),
            ("{", "it is not JSON (Expecting property name"),
            ("", "it is not JSON (Expecting value"),
            ("[" * 200_000, "it is not JSON ("),
            ('{"params": ' * 5000 + "1" + "}" * 5000, "it is "),  # too deep for the parser or for the check
        ],
    )
    def test_a_file_without_rules(self, kantan_agents: Any, written: Any, text: str, reason: str) -> None:
        path = written(text)
        kantan_agents("tools", "check", path).is_one_error(f"[E79] Cannot use {path}: {reason}")

    def test_the_deepest_nesting_the_parser_accepts_does_not_crash(
        self, kantan_agents: Any, written: Any
    ) -> None:
        for depth in (300, 700):
            outcome = kantan_agents("tools", "check", written('{"params": ' * depth + "1" + "}" * depth))
            assert outcome.code == 2
            assert outcome.stdout.startswith("params.params") or "[E79] Cannot use" in outcome.stderr

    def test_files_that_cannot_be_read(self, kantan_agents: Any, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "none.json"):
            kantan_agents("tools", "check", str(path)).is_one_error(f"[E79] Cannot use {path}: ")
        kantan_agents("tools", "check", "-", stdin=b"\xff").is_one_error(
            "[E79] Cannot use -: it is not UTF-8"
        )

    def test_an_entry_that_is_a_full_shell_is_a_warning(self, kantan_agents: Any, written: Any) -> None:
        outcome = kantan_agents("tools", "check", written({"allow": ["Bash(find:*)", "Bash(ls:*)"]}))
        assert (outcome.code, outcome.stdout.endswith(": no mistakes\n")) == (0, True)
        remark = "allow: Bash(find:*) permits any program, as in: find . -exec PROGRAM ;"
        assert outcome.stderr == f"warning: {remark}\n"

    def test_no_standard_input(self, kantan_agents: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        kantan_agents("tools", "check", "-").is_one_error("[E79] Cannot use -: there is no standard input")

    def test_text_in_a_file_cannot_send_control_characters_to_the_terminal(
        self, kantan_agents: Any, written: Any
    ) -> None:
        rules = {"\x1b[2J\n[bold]x": 1, "params": {"t": {"p\x9b2J\nq": {"minimum": "\x07"}}}}
        lines = kantan_agents("tools", "check", written(rules)).stdout.splitlines()
        assert lines == [
            "[U+001B][2J [bold]x: unknown key, there are allow, deny and params",
            "params.t.p[U+009B]2J q.minimum: must be a finite number, not '\\x07'",
        ]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RULE_LIKE = st.fixed_dictionaries(
    {},
    optional={
        "allow": JSON_VALUES,
        "deny": JSON_VALUES,
        "params": st.dictionaries(
            st.sampled_from(["a", "b"]),
            st.dictionaries(
                st.sampled_from(["p", "q.r", "s[]"]),
                st.dictionaries(st.sampled_from(["type", "enum", "minimum", "maxLength"]), JSON_VALUES),
            ),
        ),
        "tool_rules": JSON_VALUES,
    },
)


@given(RULE_LIKE | JSON_VALUES)
def test_any_json_gives_rules_or_a_documented_error(tmp_path_factory: Any, content: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    try:
        rules = read_rules(str(path))
    except (FileArgumentError, InvalidToolRulesError):
        return
    json.dumps(ToolRules.parse(rules).to_dict(), allow_nan=False)


class TestExplain:
    RULES = '{"deny": ["rm"], "params": {"search": {"query": {"maxLength": 3}}}}'

    def test_a_process_shows_the_deciding_rule(
        self, process: Any, written: Any, installed: Installed
    ) -> None:
        outcome = process(
            *("tools", "explain", "search", "--rules", written(self.RULES), "--args", '{"query": "shoes"}'),
            env=installed.environment(ACME),
        )
        assert (outcome.code, outcome.stderr) == (1, "")
        assert outcome.stdout.splitlines()[:3] == [
            "search: denied",
            "  rule: params: search.query.maxLength, in explicit",
            "  error: [kantan-agents][E14] Tool parameter maxLength mismatch: search.query",
        ]

    def test_allowed_exits_with_0_and_refused_with_1(self, kantan_agents: Any, written: Any) -> None:
        rules = written(self.RULES)
        assert kantan_agents("tools", "explain", "anything").code == 0
        assert kantan_agents("tools", "explain", "search", "--rules", rules).code == 0
        assert kantan_agents("tools", "explain", "search", "--rules", rules, "--args", "{}").code == 0
        refused = kantan_agents("tools", "explain", "rm", "--rules", rules)
        assert (refused.code, refused.stderr) == (1, "")
        assert refused.stdout.startswith("rm: denied\n  rule: deny: rm, in explicit\n")

    def test_rules_of_providers_apply_below_explicit_rules(
        self, kantan_agents: Any, use: Use, written: Any
    ) -> None:
        use(ACME)
        outcome = kantan_agents("tools", "explain", "refund", "--rules", written({"allow": "*"}))
        assert outcome.code == 1
        assert "  rule: deny: refund, in provider acme-shop\n" in outcome.stdout

    def test_the_rules_may_be_in_a_context(self, kantan_agents: Any, written: Any) -> None:
        path = written({"tool_rules": {"deny": ["rm"]}, "history": []})
        assert kantan_agents("tools", "explain", "rm", "--rules", path).code == 1
        assert kantan_agents("tools", "explain", "rm", "--rules", written({"tool_rules": None})).code == 0
        stdin = b'{"deny": ["rm"]}'
        assert kantan_agents("tools", "explain", "rm", "--rules", "-", stdin=stdin).code == 1

    def test_arguments_from_a_file(self, kantan_agents: Any, written: Any, tmp_path: Path) -> None:
        arguments = tmp_path / "arguments.json"
        arguments.write_text('{"query": "shoes"}')
        rules = ("--rules", written(self.RULES))
        assert kantan_agents("tools", "explain", "search", *rules, "--args", f"@{arguments}").code == 1
        kantan_agents("tools", "explain", "x", "--args", "@/none").is_one_error("[E79] Cannot use /none: ")

    def test_arguments_that_are_not_a_json_object_are_refused_as_in_a_run(
        self, kantan_agents: Any, written: Any
    ) -> None:
        rules = ("--rules", written(self.RULES))
        outcome = kantan_agents("tools", "explain", "search", *rules, "--args", '{"query": 1, "query": 2}')
        assert outcome.code == 1
        assert "[E10] Tool input must be a JSON object\n" in outcome.stdout
        assert "  arguments: a key occurs twice in them\n" in outcome.stdout
        data = json.loads(
            kantan_agents("tools", "explain", "search", *rules, "--args", "[]", "--json").stdout
        )
        assert data["error"] == {
            "code": "E10",
            "message": "[kantan-agents][E10] Tool input must be a JSON object",
            "reason": "they are not a JSON object",
        }

    def test_json(self, kantan_agents: Any, use: Use, written: Any) -> None:
        use(ACME)
        outcome = kantan_agents(
            "tools", "explain", "search", "--rules", written(self.RULES), "--args", '{"query": "a"}', "--json"
        )
        assert outcome.code == 1
        assert outcome.stdout.count("\n") == 1
        provider = {"query": {"minLength": 2, "maxLength": 20}}
        nothing: dict[str, Any] = {"allow": None, "deny": None, "params": {}}
        assert json.loads(outcome.stdout) == {
            "tool": "search",
            "allowed": False,
            "rule": "params: search.query.minLength",
            "layer": "provider acme",
            "unknown": None,
            "error": {
                "code": "E13",
                "message": "[kantan-agents][E13] Tool parameter minLength mismatch: search.query",
            },
            "merged": {
                "allow": ["search"],
                "deny": [],
                "params": {"search": {"query": {"minLength": 2, "maxLength": 3}}},
            },
            "layers": {
                "base": nothing,
                "provider acme": {"allow": ["search"], "deny": None, "params": {"search": provider}},
                "provider acme-mail": nothing,
                "provider acme-shop": {"allow": None, "deny": [], "params": {}},
                "explicit": {
                    "allow": None,
                    "deny": [],
                    "params": {"search": {"query": {"maxLength": 3}}},
                },
            },
            "remarks": [],
        }
        allowed = json.loads(kantan_agents("tools", "explain", "search", "--json").stdout)
        assert (allowed["allowed"], allowed["error"]) == (True, None)

    def test_mistakes_in_the_rules(self, kantan_agents: Any, written: Any) -> None:
        outcome = kantan_agents("tools", "explain", "x", "--rules", written('{"deny": [], "deny": "rm"}'))
        outcome.is_one_error(
            "[E20] Invalid tool rules: deny: appears 2 times; only the last one is used; deny: must be"
        )

    def test_providers_that_cannot_be_used(self, kantan_agents: Any, use: Use) -> None:
        use(TORN)
        assert kantan_agents("tools", "explain", "x").code == 0
        use(HALF)
        kantan_agents("tools", "explain", "x").is_one_error("[E7] Tool provider must implement")

    def test_the_explanation_has_no_control_characters(self, kantan_agents: Any, use: Use) -> None:
        use(LOUD)
        outcome = kantan_agents("tools", "explain", "\x1b[2J\n[bold]\x9b")
        assert (outcome.code, outcome.stderr) == (0, "")
        assert outcome.stdout.splitlines()[0] == "[U+001B][2J [bold][U+009B]: allowed"
        outcome = kantan_agents("tools", "explain", "\x1b[2J\x9b2J", "--json")
        assert outcome.code == 1
        assert json.loads(outcome.stdout)["tool"] == "\x1b[2J\x9b2J"
        assert "\x1b" not in outcome.stdout
        assert "\x9b" not in outcome.stdout


class TestList:
    def test_without_providers_it_shows_how_to_declare_one(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("tools", "list")
        assert (outcome.code, outcome.stderr) == (0, "")
        assert '[project.entry-points."kantan_agents.tools"]\n' in outcome.stdout
        assert json.loads(kantan_agents("tools", "list", "--json").stdout) == {
            "providers": [],
            "failures": [],
            "not_permitted": [],
        }

    def test_a_process_lists_what_is_installed(self, process: Any, installed: Installed) -> None:
        outcome = process("tools", "list", env=installed.environment(ACME))
        assert (outcome.code, outcome.stderr) == (0, "")
        assert outcome.stdout == (
            "acme (acme-tools 1.2)\n"
            "  tool   search  Search the catalogue.\n"
            '  rules  {"allow": ["search", "send"], "deny": null, '
            '"params": {"search": {"query": {"minLength": 2, "maxLength": 20}}}}\n'
            "\n"
            "acme-mail (acme-tools 1.2)\n"
            "  tool   send  Send a mail.\n"
            '  rules  {"allow": null, "deny": null, "params": {}}\n'
            "\n"
            "acme-shop (acme-tools 1.2)\n"
            "  tool   refund  Refund an order.\n"
            '  rules  {"allow": null, "deny": ["refund"], "params": {}}\n'
        )

    def test_unusable_providers_are_listed_with_the_error_code(self, kantan_agents: Any, use: Use) -> None:
        use(HALF, RIVAL, TORN, WRONG)
        outcome = kantan_agents("tools", "list")
        assert (outcome.code, outcome.stderr) == (1, "")
        where = "provider wrong of wrong-tools 0.3"
        assert outcome.stdout == (
            "rival (rival-tools 2.0)\n"
            "  tool   search\n"
            '  rules  {"allow": null, "deny": null, "params": {"search": {"query": {"maxLength": 5}}}}\n'
            "\n"
            "half (half-tools 0.1) cannot be used\n"
            "  [kantan-agents][E7] Tool provider must implement list_tools and get_tool_rules\n"
            "\n"
            "torn (torn-tools 0.2) cannot be used\n"
            "  [kantan-agents][E22] Tool provider torn of torn-tools 0.2 failed: "
            "ModuleNotFoundError: No module named 'luck'\n"
            "\n"
            "wrong (wrong-tools 0.3) cannot be used\n"
            f"  [kantan-agents][E20] {where}: alow: unknown key, there are allow, deny and params\n"
            f"  [kantan-agents][E20] {where}: deny: must be \"*\", a list of tool names or None, not 'rm'\n"
        )

    def test_json(self, kantan_agents: Any, use: Use) -> None:
        use(RIVAL, TORN)
        outcome = kantan_agents("tools", "list", "--json")
        assert outcome.code == 1
        assert outcome.stdout.count("\n") == 1
        reason = "ModuleNotFoundError: No module named 'luck'"
        assert json.loads(outcome.stdout) == {
            "providers": [
                {
                    "name": "rival",
                    "distribution": "rival-tools",
                    "version": "2.0",
                    "tools": [{"name": "search", "description": ""}],
                    "rules": {
                        "allow": None,
                        "deny": None,
                        "params": {"search": {"query": {"maxLength": 5}}},
                    },
                }
            ],
            "failures": [
                {
                    "name": "torn",
                    "distribution": "torn-tools",
                    "version": "0.2",
                    "code": "E22",
                    "message": f"[kantan-agents][E22] Tool provider torn of torn-tools 0.2 failed: {reason}",
                }
            ],
            "not_permitted": [],
        }

    def test_text_from_a_provider_cannot_send_control_characters_to_the_terminal(
        self, kantan_agents: Any, use: Use
    ) -> None:
        use(LOUD)
        outcome = kantan_agents("tools", "list")
        assert (outcome.code, outcome.stderr) == (0, "")
        assert outcome.stdout == (
            "loud (loud-tools 1.0)\n"
            "  tool   shout[U+001B]]0;owned[U+0007]  [bold]Shouts[/bold] [U+001B][31mred[U+009B]2J\n"
            '  rules  {"allow": null, "deny": ["\\u001b[2J[U+009B]2J"], "params": {}}\n'
        )

    def test_output_printed_by_a_provider_is_not_in_the_json(
        self, process: Any, installed: Installed
    ) -> None:
        outcome = process("tools", "list", "--json", env=installed.environment(LOUD))
        assert (outcome.code, outcome.stderr) == (0, "")
        (provider,) = json.loads(outcome.stdout)["providers"]
        assert provider["tools"][0]["name"] == "shout\x1b]0;owned\x07"
        assert "\x9b" not in outcome.stdout
