"""Tool providers of distributions installed by pip (spec 9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from agents import HostedMCPTool, WebSearchTool

from kantan_agents import (
    Agent,
    ToolRulesMode,
    explain,
    get_context_with_tool_rules,
    get_effective_tool_rules,
    get_provider_tool_rules,
    list_provider_tools,
)
from kantan_agents.errors import (
    ContextTypeError,
    DuplicateToolError,
    InvalidOptionError,
    InvalidToolRulesError,
    ToolNotAllowedError,
    ToolProviderFailedError,
    ToolProviderInterfaceError,
    ToolRulesTypeError,
    UnknownToolProviderError,
)
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tools.providers.choice import Declaration
from kantan_agents.tools.providers.entry_points import ToolProvider
from kantan_agents.tools.providers.providers import tools_with_providers
from tests.distributions import (
    ACME,
    HALF,
    ODD,
    RIVAL,
    TORN,
    TWIN,
    UNRULY,
    WRONG,
    Distribution,
    Installed,
    Use,
)
from tests.programs import Preloaded

ACME_RULES = {
    "allow": ["search", "send"],
    "deny": ["refund"],
    "params": {"search": {"query": {"minLength": 2, "maxLength": 20}}},
}


@pytest.fixture
def python(installed: Installed, preloaded: Preloaded) -> Callable[..., Any]:
    """Run a script in a separate process with installed distributions; the script prints JSON."""

    def run(script: str, *distributions: Distribution, **variables: str) -> Any:
        environment = {**installed.environment(*distributions), **variables}
        finished = preloaded.run(["-W", "error", "-c", dedent(script)], env=environment)
        assert finished.returncode == 0, finished.stderr
        return json.loads(finished.stdout)

    return run


def calling(*calls: tuple[str, dict[str, Any]]) -> ScriptedModel:
    steps = [[function_call(name, arguments, call_id=f"c{n}")] for n, (name, arguments) in enumerate(calls)]
    return ScriptedModel([*steps, [assistant_message("done")]])


def outputs(model: ScriptedModel) -> list[str]:
    """Return the results that the model got for its calls."""
    assert model.last_call is not None
    return [
        str(item["output"]) for item in model.last_call.input if item.get("type") == "function_call_output"
    ]


def shown(model: ScriptedModel) -> list[str]:
    return [tool.name for tool in model.calls[0].tools]


class TestInAProcessOfItsOwn:
    def test_an_object_a_class_and_a_factory_provide_tools_and_rules(self, python: Any) -> None:
        found = python(
            """
            import json
            import kantan_agents as k
            from kantan_agents.tools.providers.cache import collected_providers

            print(json.dumps({
                "providers": {p.name: [t.name for t in p.tools] for p in collected_providers().providers},
                "declared": sorted({str(p.declared) for p in collected_providers().providers}),
                "tools": k.list_provider_tools(),
                "rules": k.get_provider_tool_rules(),
                "effective": k.get_effective_tool_rules(tool_rules={"allow": ["add"], "deny": ["search"]}),
            }))
            """,
            ACME,
        )
        assert found == {
            "providers": {"acme": ["search"], "acme-mail": ["send"], "acme-shop": ["refund"]},
            "declared": ["acme-tools 1.2"],
            "tools": ["search", "send", "refund"],
            "rules": ACME_RULES,
            "effective": {
                "allow": ["search", "send", "add"],
                "deny": ["refund", "search"],
                "params": ACME_RULES["params"],
            },
        }

    def test_they_are_collected_once_for_all_threads(self, python: Any, tmp_path: Path) -> None:
        imported = tmp_path / "imported"
        found = python(
            """
            import json, logging, threading
            import kantan_agents as k
            import kantan_agents.tools.providers.entry_points as entry_points

            logging.basicConfig(level="WARNING")
            loaded = []
            load = entry_points._load
            entry_points._load = lambda declared, entry: loaded.append(entry.name) or load(declared, entry)
            together, tools = threading.Barrier(8), []

            def ask():
                together.wait()
                tools.append(k.list_provider_tools())

            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            k.Agent("a", "b")
            k.get_provider_tool_rules()
            print(json.dumps({"loaded": loaded, "tools": tools}))
            """,
            ACME,
            TORN,
            ACME_IMPORTED=str(imported),
        )
        assert found["loaded"] == ["acme", "acme-mail", "acme-shop", "torn"]
        assert found["tools"] == [["search", "send", "refund"]] * 8
        assert imported.read_text() == "imported\n"

    def test_an_agent_has_the_tools_and_obeys_the_rules(self, python: Any) -> None:
        found = python(
            """
            import asyncio, json
            from kantan_agents import Agent, set_trace_processors
            from kantan_agents.testing import ScriptedModel, assistant_message, function_call

            set_trace_processors([])
            calls = [
                ("search", {"query": "shoes"}), ("search", {"query": "x"}), ("refund", {"order": "7"}),
            ]
            model = ScriptedModel(
                [[function_call(*call, call_id=str(n))] for n, call in enumerate(calls)]
                + [[assistant_message("done")]]
            )
            context = asyncio.run(Agent("shop", "Sell.", model=model).run_async("hi"))
            outputs = [i["output"] for i in model.last_call.input if i.get("type") == "function_call_output"]
            print(json.dumps({
                "shown": [tool.name for tool in model.calls[0].tools],
                "outputs": [output.splitlines()[0] for output in outputs],
                "answer": context["result"].final_output,
            }))
            """,
            ACME,
        )
        assert found["shown"] == ["search", "send"]
        assert found["outputs"] == [
            "acme found shoes",
            "[kantan-agents][E13] Tool parameter minLength mismatch: search.query",
            "[kantan-agents][E8] Tool is not allowed: refund",
        ]
        assert found["answer"] == "done"

    def test_a_provider_that_fails_to_import_is_logged_and_the_others_load(self, python: Any) -> None:
        found = python(
            """
            import json, logging

            records = []
            handler = logging.Handler()
            handler.emit = records.append
            logging.getLogger().addHandler(handler)

            import kantan_agents as k
            from kantan_agents.errors import ToolProviderFailedError

            refused = []
            k.Agent("a", "b")
            for choice in ("all", ["torn"], ["acme", "torn"]):
                try:
                    k.Agent("a", "b", tool_providers=choice)
                except ToolProviderFailedError as error:
                    refused.append([error.provider, error.distribution, error.reason, str(error)])
                    assert isinstance(error.__cause__, ModuleNotFoundError)
            print(json.dumps({
                "tools": k.list_provider_tools(),
                "logged": [[r.levelname, r.msg, r.provider, r.distribution, r.code] for r in records],
                "refused": refused,
            }))
            """,
            ACME,
            TORN,
        )
        reason = "ModuleNotFoundError: No module named 'luck'"
        message = f"[kantan-agents][E22] Tool provider torn of torn-tools 0.2 failed: {reason}"
        assert found == {
            "tools": ["search", "send", "refund"],
            "logged": [["WARNING", "tool provider left out", "torn", "torn-tools 0.2", "E22"]],
            "refused": [["torn", "torn-tools 0.2", reason, message]] * 3,
        }

    def test_installed_and_uninstalled_distributions_are_noticed_after_a_refresh(
        self, python: Any, tmp_path: Path
    ) -> None:
        site = tmp_path / "site"
        site.mkdir()
        found = python(
            """
            import json, os, pathlib, shutil, sys
            import kantan_agents as k

            site = pathlib.Path(os.environ["SITE"])
            sys.path[:0] = [str(site), os.environ["TESTS"]]
            before = k.list_provider_tools()

            from distributions import ACME, pip_install
            pip_install(ACME, site)
            still = k.list_provider_tools()
            k.refresh_tool_providers()
            installed = k.list_provider_tools()
            for path in site.glob("acme_tools*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            kept = k.list_provider_tools()
            k.refresh_tool_providers()
            print(json.dumps([before, still, installed, kept, k.list_provider_tools()]))
            """,
            SITE=str(site),
            TESTS=str(Path(__file__).parents[1]),
        )
        tools = ["search", "send", "refund"]
        assert found == [[], [], tools, tools, []]


class TestEffectiveRules:
    """Spec 9.2, 9.3, 9.5 to 9.7."""

    def test_without_providers_there_are_no_tools_and_rules(self) -> None:
        assert list_provider_tools() == []
        nothing: dict[str, Any] = {"allow": None, "deny": None, "params": {}}
        assert get_provider_tool_rules() == get_effective_tool_rules() == nothing

    def test_without_explicit_rules_the_providers_rules_are_effective(self, use: Use) -> None:
        use(ACME)
        assert get_provider_tool_rules() == get_effective_tool_rules() == ACME_RULES
        contexts: list[dict[str, Any]] = [{}, {"tool_rules": None}, {"tool_rules": {}}]
        for context in contexts:
            assert get_effective_tool_rules(context=context) == ACME_RULES

    def test_explicit_keywords_win_and_names_are_a_union(self, use: Use) -> None:
        use(ACME)
        explicit = {
            "allow": ["add"],
            "deny": ["send", "refund"],
            "params": {"search": {"query": {"maxLength": 5}, "limit": {"maximum": 3}}},
        }
        expected = {
            "allow": ["search", "send", "add"],
            "deny": ["refund", "send"],
            "params": {"search": {"query": {"minLength": 2, "maxLength": 5}, "limit": {"maximum": 3}}},
        }
        assert get_effective_tool_rules(tool_rules=explicit) == expected
        assert get_effective_tool_rules(context={"tool_rules": explicit}) == expected

    def test_the_later_provider_name_wins(self, use: Use) -> None:
        use(ACME, RIVAL)
        assert get_provider_tool_rules()["params"] == {"search": {"query": {"minLength": 2, "maxLength": 5}}}

    def test_the_argument_counts_and_the_context_does_not(self, use: Use) -> None:
        use(ACME)
        rules = get_effective_tool_rules(
            context={"tool_rules": {"deny": ["context"]}}, tool_rules={"deny": ["argument"]}
        )
        assert rules["deny"] == ["refund", "argument"]

    @pytest.mark.parametrize(
        ("mode", "allow", "deny"),
        [
            (ToolRulesMode.ALLOW_ALL, "*", ["refund"]),
            (ToolRulesMode.DENY_ALL, ["search", "send"], "*"),
            (ToolRulesMode.RECOMMENDED, ["search", "send"], ["refund"]),
        ],
    )
    def test_a_mode_can_be_used_as_rules(self, use: Use, mode: ToolRulesMode, allow: Any, deny: Any) -> None:
        use(ACME)
        expected = {"allow": allow, "deny": deny, "params": ACME_RULES["params"]}
        assert get_effective_tool_rules(tool_rules=mode) == expected
        assert get_effective_tool_rules(context=get_context_with_tool_rules(mode)) == expected

    @pytest.mark.parametrize("ask", [get_effective_tool_rules, lambda **given: explain("x", **given)])
    def test_values_that_are_not_rules_are_refused(self, ask: Any) -> None:
        for given in ("allow_all", ["search"]):
            with pytest.raises(ToolRulesTypeError) as refused:
                ask(tool_rules=given)
            assert str(refused.value) == "[kantan-agents][E18] Tool rules must be a dict"
        for rules in (["search"], "deny_all", ToolRulesMode.DENY_ALL):  # as a run has it
            with pytest.raises(ToolRulesTypeError, match="E18"):
                ask(context={"tool_rules": rules})
        with pytest.raises(ContextTypeError, match="E5"):
            ask(context=["search"])
        with pytest.raises(InvalidToolRulesError, match=r"E20\].*alow: unknown key"):
            ask(tool_rules={"alow": []})

    def test_results_are_copies(self, use: Use) -> None:
        use(ACME)
        get_provider_tool_rules()["deny"].clear()
        get_provider_tool_rules()["params"]["search"]["query"].clear()
        assert get_provider_tool_rules() == ACME_RULES


class TestAgent:
    async def test_an_agents_tool_wins_over_a_providers_tool_of_the_same_name(self, use: Use) -> None:
        use(ACME)

        def search(query: str) -> str:
            """Search at home."""
            return f"home found {query}"

        model = calling(("search", {"query": "shoes"}), ("search", {"query": "x"}))
        await Agent("a", "b", tools=[search], model=model).run_async("hi")
        assert shown(model) == ["search", "send"]
        found, refused = outputs(model)
        assert found == "home found shoes"
        assert refused.startswith(
            "[kantan-agents][E13]"
        )  # rules concern the name, wherever the tool comes from

    async def test_explicit_rules_override_the_providers(self, use: Use) -> None:
        use(ACME)
        model = calling(("search", {"query": "x"}), ("send", {"text": "hi", "address": "a"}))
        context = {"tool_rules": {"deny": ["send"], "params": {"search": {"query": {"minLength": 1}}}}}
        await Agent("a", "b", model=model).run_async("hi", context)
        assert shown(model) == ["search"]
        found, refused = outputs(model)
        assert found == "acme found x"
        assert refused.startswith(str(ToolNotAllowedError(tool_name="send")))

    async def test_a_declared_rule_parameter_is_used(self, use: Use) -> None:
        use(ACME)
        model = calling(
            ("send", {"text": "bob", "address": "eve"}), ("send", {"text": "eve", "address": "bob"})
        )
        await Agent("a", "b", model=model).run_async("hi", {"tool_rules": {"deny": ["send(eve)"]}})
        refused, sent = outputs(model)
        assert refused.startswith(str(ToolNotAllowedError(tool_name="send")))
        assert sent == "acme sent eve to bob"

    async def test_names_choose_providers(self, use: Use) -> None:
        use(ACME, TORN)
        model = calling(("refund", {"order": "7"}))
        await Agent("a", "b", model=model, tool_providers=["acme-mail", "acme-mail"]).run_async("hi")
        assert shown(model) == ["send"]

    async def test_none_chooses_no_providers(self, use: Use) -> None:
        use(ACME, HALF, TORN, WRONG)
        model = calling()
        agent = Agent("a", "b", model=model, tool_providers=None)
        await agent.run_async("hi")
        assert shown(model) == []
        assert agent.explain_tool("refund").allowed
        assert explain("refund", tool_providers=None).allowed
        assert Agent("a", "b", tool_providers=[]).explain_tool("refund").allowed

    async def test_an_agent_keeps_the_providers_it_was_created_with(self, use: Use) -> None:
        model = calling()
        agent = Agent("a", "b", model=model)
        use(ACME)
        await agent.run_async("hi")
        assert shown(model) == []


class TestMistakes:
    def test_a_collision_names_both_providers(self, use: Use) -> None:
        use(ACME, RIVAL)
        with pytest.raises(DuplicateToolError) as refused:
            Agent("a", "b")
        error = refused.value
        assert (error.tool_name, error.first, error.second) == ("search", "acme", "rival")
        assert str(error) == (
            "[kantan-agents][E23] Tool search comes from two providers, acme and rival; "
            "choose with tool_providers=[...]"
        )
        Agent("a", "b", tool_providers=["rival"])

        def search(query: str) -> str:
            """Search."""
            return query

        Agent("a", "b", tools=[search])

    def test_a_collision_of_equal_names_names_the_distributions(self, use: Use) -> None:
        use(ACME, TWIN)
        with pytest.raises(DuplicateToolError) as refused:
            Agent("a", "b", tool_providers=["acme"])
        assert (refused.value.first, refused.value.second) == (
            "acme of acme-tools 1.2",
            "acme of twin-tools 2.0",
        )
        layers = explain("search").layers
        assert layers["provider acme"]["params"] == {"search": {"query": {"minLength": 2, "maxLength": 5}}}

    @pytest.mark.parametrize("choice", ["available", "all", ["half"]])
    def test_a_wrong_interface_is_an_error(self, use: Use, choice: Any) -> None:
        use(ACME, HALF)
        with pytest.raises(ToolProviderInterfaceError) as refused:
            Agent("a", "b", tool_providers=choice)
        assert (refused.value.provider, refused.value.distribution) == ("half", "half-tools 0.1")
        assert (
            str(refused.value)
            == "[kantan-agents][E7] Tool provider must implement list_tools and get_tool_rules"
        )
        Agent("a", "b", tool_providers=["acme"])

    @pytest.mark.parametrize(
        ("distribution", "where", "problems"),
        [
            (
                WRONG,
                "provider wrong of wrong-tools 0.3",
                [
                    "alow: unknown key, there are allow, deny and params",
                    "deny: must be \"*\", a list of tool names or None, not 'rm'",
                ],
            ),
            (
                UNRULY,
                "provider unruly of unruly-tools 0.4",
                ["the rules must be a dict with allow, deny and params, not a list"],
            ),
        ],
    )
    def test_mistakes_in_rules_are_an_error(
        self, use: Use, distribution: Distribution, where: str, problems: list[str]
    ) -> None:
        use(distribution)
        for ask in (lambda: Agent("a", "b"), get_provider_tool_rules, lambda: explain("x")):
            with pytest.raises(InvalidToolRulesError) as refused:
                ask()
            assert list(refused.value.problems) == [f"{where}: {problem}" for problem in problems]

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("Demanding", "TypeError: "),
            ("leaving", "SystemExit: no licence"),
            (
                "misdeclared",
                "InvalidOptionError: [kantan-agents][E75] Invalid option rule_parameter: tool paint",
            ),
            ("missing", "AttributeError: "),
            ("nameless", "ToolNameRequiredError: [kantan-agents][E4] Tool must define name"),
            (
                "nested",
                "InvalidOptionError: [kantan-agents][E75] Invalid option tool_providers: must be None",
            ),
            ("uncountable", "TypeError: 'int' object is not iterable"),
        ],
    )
    def test_any_failure_of_a_provider_is_reported(self, use: Use, name: str, reason: str) -> None:
        use(ODD)
        Agent("a", "b")
        with pytest.raises(ToolProviderFailedError) as refused:
            Agent("a", "b", tool_providers=[name])
        assert (refused.value.provider, refused.value.distribution) == (name, "odd-tools 0.5")
        assert refused.value.reason.startswith(reason)

    def test_a_provider_may_have_no_tools_and_no_rules(self, use: Use) -> None:
        use(ODD)
        Agent("a", "b", tool_providers=["bare"])

    def test_an_unknown_name_is_an_error(self, use: Use) -> None:
        use(ACME, TORN)
        with pytest.raises(UnknownToolProviderError) as refused:
            Agent("a", "b", tool_providers=["acme", "amce"])
        assert (refused.value.provider, refused.value.installed) == (
            "amce",
            "acme, acme-mail, acme-shop, torn",
        )

    def test_a_name_is_an_error_if_nothing_is_installed(self) -> None:
        with pytest.raises(UnknownToolProviderError, match=r"E24\] .* acme \(installed: none\)"):
            Agent("a", "b", tool_providers=["acme"])

    @pytest.mark.parametrize("choice", ["acme", "", 5, True, b"all", [None], [["acme"]], ["acme", 3]])
    def test_a_bad_option_is_an_error(self, use: Use, choice: Any) -> None:
        use(ACME)
        with pytest.raises(
            InvalidOptionError, match=r"E75\] Invalid option tool_providers: must be"
        ) as refused:
            Agent("a", "b", tool_providers=choice)
        assert repr(choice) in str(refused.value)

    def test_an_error_raised_again_has_no_old_frames(self, use: Use) -> None:
        use(TORN)
        errors = []
        for _ in range(2):
            with pytest.raises(ToolProviderFailedError) as refused:
                Agent("a", "b", tool_providers="all")
            errors.append(refused.value)
        assert errors[0] is not errors[1]
        assert errors[0].__cause__ is errors[1].__cause__
        assert len(refused.traceback) < 10

    @pytest.mark.parametrize("metadata", [None, b"", b"Name: \xff\xfe\n"])
    def test_damaged_metadata_do_not_affect_other_providers(
        self, use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: bytes | None
    ) -> None:
        info = tmp_path / "damaged-1.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text("[kantan_agents.tools]\ndamaged = no_such_module\n")
        if metadata is not None:
            (info / "METADATA").write_bytes(metadata)
        monkeypatch.syspath_prepend(tmp_path)
        use(ACME)
        assert list_provider_tools() == ["search", "send", "refund"]
        with pytest.raises(ToolProviderFailedError) as refused:
            Agent("a", "b", tool_providers="all")
        assert (refused.value.provider, refused.value.distribution) == ("damaged", "an unknown distribution")


class TestHostedTools:
    """Hosted tools have the name of their kind; MCP servers are distinguished by their label."""

    @staticmethod
    def provider(name: str, *tools: Any) -> ToolProvider:
        return ToolProvider(Declaration(name, name, "1"), tools, ToolRules())

    @staticmethod
    def server(label: str) -> HostedMCPTool:
        return HostedMCPTool(
            tool_config={"type": "mcp", "server_label": label, "server_url": "http://127.0.0.1/"}
        )

    def test_servers_with_different_labels_do_not_collide(self) -> None:
        one, two, own = self.server("one"), self.server("two"), self.server("own")
        providers = [self.provider("a", one), self.provider("b", two)]
        assert tools_with_providers([own], providers) == [own, one, two]

    def test_servers_with_equal_labels_collide(self) -> None:
        providers = [self.provider("a", self.server("one")), self.provider("b", self.server("one"))]
        with pytest.raises(DuplicateToolError, match="mcp__one"):
            tools_with_providers([], providers)
        own = self.server("one")
        assert tools_with_providers([own], providers) == [own]

    def test_the_agents_own_hosted_tool_wins(self) -> None:
        own = WebSearchTool()
        assert tools_with_providers([own], [self.provider("a", WebSearchTool())]) == [own]
