"""Parameter rules concern the values that a function receives, however they reach it."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import inspect
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import agents
import pytest
from agents.tool_context import ToolContext
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    RootModel,
    Secret,
    SecretStr,
)
from pydantic_core import core_schema, to_jsonable_python
from typing_extensions import TypedDict

from kantan_agents import Agent, explain
from kantan_agents.errors import ToolInputError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.guards.functions import guard_function
from kantan_agents.tools.server_names import hosted_mcp_facts


class Pair(NamedTuple):
    limit: int
    name: str = ""


class Filter(TypedDict, total=False):
    limit: int


@dataclasses.dataclass
class Page:
    limit: int = 100


class Query(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="allow")
    limit: int = Field(default=100, alias="lim")


class Crossed(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    first: int = Field(default=1, alias="limit")
    limit: int = Field(default=1, alias="other")


class Level(enum.Enum):
    LOW = 1
    HIGH = 600


class Lenient(enum.Enum):
    """Text of any other kind is its highest value."""

    LOW = "low"
    HIGH = "high"
    HIGHEST = 600

    @classmethod
    def _missing_(cls, value: object) -> Lenient:
        return cls.HIGHEST if str(value).isupper() else cls.HIGH


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Opaque:
    """An object that no text stands for."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(lambda _: cls(), core_schema.str_schema())


class Numbers(BaseModel):
    text: Annotated[str, AfterValidator(int)] = ""
    number: Annotated[int, AfterValidator(str)] = 0


TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "Decimal": Decimal,
    "int | str": int | str,
    "int | None": int | None,
    "tuple[int, int]": tuple[int, int],
    "tuple[int, str]": tuple[int, str],
    "tuple[int, ...]": tuple[int, ...],
    "list[int]": list[int],
    "list[Page]": list[Page],
    "set[int]": set[int],
    "dict[str, int]": dict[str, int],
    "dict[int, int]": dict[int, int],
    "dict[Annotated[str, Field(pattern='^l')], int]": dict[Annotated[str, Field(pattern="^l")], int],
    "dict[str, tuple[int, int]]": dict[str, tuple[int, int]],
    "Pair": Pair,
    "Filter": Filter,
    "Page": Page,
    "Query": Query,
    "Crossed": Crossed,
    "Query | Page": Query | Page,
    "Level": Level,
    "Lenient": Lenient,
    "Access": Access,
    "date": dt.date,
    "timedelta": dt.timedelta,
    "HttpUrl": HttpUrl,
    "list[HttpUrl]": list[HttpUrl],
    "SecretStr": SecretStr,
    "Any": Any,
}
DEFAULTS = ("", " = None", " = 600", " = 'long text'")
KINDS = ("plain", "positional only", "keyword only", "list", "mapping")


class Made(NamedTuple):
    """A tool made from a generated function, and the arguments that the function has received."""

    tool: agents.FunctionTool
    received: list[dict[str, Any]]


def made(parameters: list[tuple[str, str, str, str]]) -> Made:
    """Return a tool for a function with parameters ``(name, kind, type, default)``."""
    parts: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, kind, annotation, default in parameters:
        parts[kind].append(f"{name}: {annotation}{'' if kind in ('list', 'mapping') else default}")
    before = [*parts["positional only"], "/"] if parts["positional only"] else []
    star = ["*" + one for one in parts["list"]] or (["*"] if parts["keyword only"] else [])
    more = ["**" + one for one in parts["mapping"]]
    signature = ", ".join([*before, *parts["plain"], *star, *parts["keyword only"], *more])
    received: list[dict[str, Any]] = []
    names = {**globals(), "date": dt.date, "timedelta": dt.timedelta, "received": received}
    exec(f"def tool({signature}) -> str:\n    received.append(locals())\n    return 'ok'\n", names)
    return Made(agents.function_tool(names["tool"], strict_mode=False), received)


@st.composite
def tools(draw: st.DrawFn) -> Made:
    count = draw(st.integers(1, 3))
    names = ["limit", "v", "kw"][:count] if draw(st.booleans()) else ["v", "limit", "kw"][:count]
    order = sorted(draw(st.sampled_from(KINDS[:3])) for _ in names)
    order.sort(key=KINDS.index)
    if draw(st.booleans()):
        order[-1] = draw(st.sampled_from(KINDS[3:]))
    default = draw(st.sampled_from(DEFAULTS))
    # Newer versions of the SDK refuse `*args: tuple[int, int]`.
    chosen = [
        draw(st.sampled_from([one for one in sorted(TYPES) if kind != "list" or "tuple" not in one]))
        for kind in order
    ]
    return made([(name, kind, one, default) for name, kind, one in zip(names, order, chosen, strict=True)])


scalars = st.sampled_from(
    [
        *(1, 600, 600.0, 0.5, "600", "1", "1e3", "06", True, False, None),
        *("long text", "a", "A", "low", "2024-01-01", "PT1S", "https://a.b\\c"),
    ]
)
keys = st.sampled_from(["limit", "lim", "other", "first", "5", "05", "l", "name", "kw"])
written = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=4,
)
arguments_of_calls = st.dictionaries(st.sampled_from(["limit", "v", "kw"]), written, max_size=3)
paths = st.sampled_from(
    [
        "limit",
        "v",
        "v[]",
        "limit[]",
        "v.limit",
        "v.lim",
        "v.5",
        "limit.limit",
        "v[].limit",
        "v.limit[]",
        "kw.limit",
    ]
)
keywords = st.sampled_from(
    [
        {"maximum": 50},
        {"minimum": 100},
        {"maxLength": 3},
        {"pattern": "^[a-c]*$"},
        {"enum": [1, "a"]},
        {"type": "integer"},
        {"type": ["integer", "string"], "maximum": 50},
    ]
)


def values_at(steps: list[str], value: Any) -> list[Any]:
    """Return the values at a path of what a function has received: a second, naive implementation."""
    if not steps:
        return [value]
    step, rest = steps[0], steps[1:]
    if step == "[]":
        is_list = isinstance(value, (list, tuple, set, frozenset))
        inner = list(value) if is_list else []
    elif isinstance(value, Mapping):
        inner = [one for key, one in value.items() if str(key) == step]
    else:
        inner = (
            [getattr(value, step)] if hasattr(type(value), "__annotations__") and hasattr(value, step) else []
        )
    return [found for one in inner for found in values_at(rest, one)]


def steps_of(path: str) -> list[str]:
    return [step for part in path.replace("[]", ".[]").split(".") for step in [part]]


def obeys(value: Any, rule: Mapping[str, Any]) -> bool:
    """Return whether a received value obeys a rule, if a rule can concern values of its type."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, (dt.date, dt.timedelta, HttpUrl)):
        value = to_jsonable_python(value)
    if value is None:
        return True
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if is_number and not rule.get("minimum", value) <= value <= rule.get("maximum", value):
        return False
    if isinstance(value, str) and len(value) > rule.get("maxLength", len(value)):
        return False
    if isinstance(value, str) and "pattern" in rule and set(value) - set("abc"):
        return False
    if "enum" in rule and not any(type(value) is not bool and value == one for one in rule["enum"]):
        return False
    kinds = rule.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = {"integer": is_number and value == int(value), "string": isinstance(value, str)}
    return not kinds or any(fits[kind] for kind in kinds)


async def call(tool: agents.FunctionTool, rules: Any, arguments: Any) -> str:
    text = json.dumps(arguments)
    context: Any = ToolContext(
        {"tool_rules": rules}, tool_name=tool.name, tool_call_id="c1", tool_arguments=text
    )
    return str(await guard_function(tool).on_invoke_tool(context, text))


NESTED = [("v", "plain", "tuple[int, int]", "")]
MORE = [("limit", "keyword only", "int", " = 1"), ("kw", "mapping", "Any", "")]


@given(tools(), paths, keywords, arguments_of_calls)
@example(made(NESTED), "v[]", {"maximum": 50}, {"v": ["600", 1]})
@example(made(MORE), "limit", {"maximum": 50}, {"limit": 1, "kw": {"limit": 600}})
@example(made([("v", "plain", "Query", "")]), "v.lim", {"maximum": 50}, {"v": {"limit": 600}})
@example(made([("limit", "plain", "int", " = 600")]), "limit", {"maximum": 50}, {})
def test_a_function_receives_no_value_that_breaks_a_rule(
    tool: Made, path: str, rule: dict[str, Any], arguments: dict[str, Any]
) -> None:
    tool.received.clear()
    asyncio.run(call(tool.tool, {"params": {"tool": {path: rule}}}, arguments))
    for received in tool.received:
        # The entries of **kwargs are parameters of their own.
        own = received.get("kw") if isinstance(received.get("kw"), dict) else {}
        for place in (received, own):
            assert all(obeys(value, rule) for value in values_at(steps_of(path), place))


@given(tools(), arguments_of_calls)
def test_a_rule_about_another_parameter_refuses_no_call(tool: Made, arguments: dict[str, Any]) -> None:
    tool.received.clear()
    asyncio.run(call(tool.tool, {}, arguments))
    assume(tool.received)
    asyncio.run(call(tool.tool, {"params": {"tool": {"unrelated": {"maximum": 50}}}}, arguments))
    assert len(tool.received) == 2


def is_allowed(function: Any, path: str, rule: Any, arguments: Any) -> bool:
    tool = agents.function_tool(function, strict_mode=False)
    rules = {"params": {tool.name: {path: rule}}}
    return explain(tool, arguments, tool_rules=rules, tool_providers=None).allowed


def pair(v: Pair) -> None: ...
def query(v: Query) -> None: ...
def crossed(v: Crossed) -> None: ...
def page(v: Page) -> None: ...
def amount(v: Decimal) -> None: ...
def by_number(v: dict[int, int]) -> None: ...
def optional(limit: int | None = None) -> None: ...
def many(limit: int = 100) -> None: ...
def positional(limit: int, /, **kw: Any) -> None: ...
def keyword(*, limit: int = 1, **kw: Any) -> None: ...
def several(*limit: int) -> None: ...
def day(v: dt.datetime) -> None: ...
def renamed(v: Annotated[int, Field(validation_alias=AliasChoices("limit", "most"))]) -> None: ...
def untyped(limit) -> None: ...  # type: ignore[no-untyped-def]


class Converted(BaseModel):
    limit: Annotated[int, BeforeValidator(lambda value: value * 100)]


def converted(v: Converted) -> None: ...


class Rows(RootModel[list[Query]]):
    pass


def rows(v: Rows) -> None: ...
def priced(v: Decimal, note: str = "") -> None: ...


AT_MOST_50 = {"maximum": 50}
ANY_AT_MOST_50 = {"type": ["string", "number"], **AT_MOST_50}


@pytest.mark.parametrize(
    ("function", "path", "rule", "refused", "allowed"),
    [
        (pair, "v[]", AT_MOST_50, {"v": [600, "a"]}, None),
        (pair, "v.limit", AT_MOST_50, {"v": [600, "a"]}, None),
        (query, "v.lim", AT_MOST_50, {"v": {"limit": 600}}, {"v": {"limit": 5}}),
        (query, "v.limit", AT_MOST_50, {"v": {"lim": 600}}, {"v": {"lim": 5}}),
        (query, "v.limit", AT_MOST_50, {"v": {}}, {"v": {"limit": 5}}),
        (query, "v.more", AT_MOST_50, {"v": {"lim": 1, "more": 600}}, {"v": {"lim": 1, "more": 5}}),
        (crossed, "v.limit", AT_MOST_50, {"v": {"other": 600}}, {"v": {"other": 5}}),
        (crossed, "v.limit", AT_MOST_50, {"v": {"first": 600}}, {"v": {"first": 5}}),
        (page, "v.limit", AT_MOST_50, {"v": {}}, {"v": {"limit": 5}}),
        (amount, "v", AT_MOST_50, {"v": "600"}, {"v": 5}),
        (amount, "v", {"pattern": "^[0-9]{1,2}$"}, {"v": 600}, {"v": "60"}),
        (by_number, "v.5", AT_MOST_50, {"v": {"05": 600}}, {"v": {"05": 5}}),
        (optional, "limit", {"type": "integer", **AT_MOST_50}, {"limit": 600}, {}),
        (many, "limit", AT_MOST_50, {}, {"limit": 5}),
        (
            positional,
            "limit",
            AT_MOST_50,
            {"limit": 1, "kw": {"limit": 600}},
            {"limit": 1, "kw": {"limit": 5}},
        ),
        (keyword, "limit", AT_MOST_50, {"kw": {"limit": 600}}, {"kw": {"limit": 5}}),
        (several, "limit[]", AT_MOST_50, {"limit": [1, 600]}, {"limit": [1, 5]}),
        (several, "limit[]", AT_MOST_50, {"limit": ["600"]}, {}),
        (renamed, "limit", AT_MOST_50, {"most": 600}, {"most": 5}),
        (renamed, "v", AT_MOST_50, {"limit": 600}, {"limit": 5}),
        (converted, "v.limit", AT_MOST_50, {"v": {"limit": 5}}, {"v": {"limit": 0}}),
        (day, "v", {"pattern": "Z$"}, {"v": "2024-01-01T00:00:00"}, {"v": "2024-01-01T00:00:00Z"}),
        (untyped, "limit", AT_MOST_50, {"limit": 600}, {"limit": 5}),
        (rows, "v[].limit", AT_MOST_50, {"v": [{"lim": 600}]}, {"v": [{"lim": 5}]}),
        # As an int, it would take hours.
        (priced, "v", ANY_AT_MOST_50, {"v": "1e999999999999"}, {"v": "-1e999999999999"}),
        (priced, "note", {"maxLength": 5}, {"v": "1e999999999999", "note": "long text"}, {"v": "1e99999999"}),
    ],
)
def test_a_rule_holds_for_what_the_function_receives(
    function: Any, path: str, rule: Any, refused: Any, allowed: Any
) -> None:
    assert not is_allowed(function, path, rule, refused)
    assert allowed is None or is_allowed(function, path, rule, allowed)


class Site(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, HttpUrl]
    url: HttpUrl


OPAQUE = Opaque()


def fetch(url: HttpUrl) -> None: ...
def fetch_any(url: AnyUrl | None = None) -> None: ...
def fetch_all(urls: list[HttpUrl]) -> None: ...
def fetch_set(urls: set[AnyUrl]) -> None: ...
def fetch_each(urls: Iterable[HttpUrl]) -> None: ...
def fetch_named(urls: dict[str, HttpUrl]) -> None: ...
def fetch_page(page: Site) -> None: ...
def fetch_secret(url: Secret[HttpUrl]) -> None: ...
def level(v: Lenient) -> None: ...
def flags(v: Access) -> None: ...
def wait(v: dt.timedelta) -> None: ...
def secret(v: SecretStr) -> None: ...
def data(v: bytes) -> None: ...
def opaque(v: Opaque, note: str = "") -> None: ...
def opaque_default(note: str, v: Any = OPAQUE) -> None: ...
def text_default(v: int | str = "auto") -> None: ...
def renamed_any(v: Annotated[Any, Field(alias="most")]) -> None: ...
def numbers(v: Numbers) -> None: ...


GOOD = {"pattern": r"^https://[^/]+\.good\.example(/|$)"}
EVIL = (
    "\\.good.example/x",
    "#.good.example/x",
    "?.good.example/x",
    "\\@a.good.example/x",
    "/\t.good.example/x",
)
FINE = "https://a.good.example/x"


@pytest.mark.parametrize("evil", [f"https://evil.test{rest}" for rest in EVIL])
@pytest.mark.parametrize(
    ("function", "path", "arguments"),
    [
        (fetch, "url", lambda url: {"url": url}),
        (fetch_any, "url", lambda url: {"url": url}),
        (fetch_all, "urls[]", lambda url: {"urls": [FINE, url]}),
        (fetch_set, "urls[]", lambda url: {"urls": [url]}),
        (fetch_each, "urls[]", lambda url: {"urls": [FINE, url]}),
        (fetch_named, "urls.a", lambda url: {"urls": {"a": url}}),
        (fetch_page, "page.url", lambda url: {"page": {"url": url}}),
        (fetch_page, "page.more", lambda url: {"page": {"url": FINE, "more": url}}),
        (fetch_secret, "url", lambda url: {"url": url}),
    ],
)
def test_a_pattern_holds_for_the_url_that_the_function_receives(
    function: Any, path: str, arguments: Any, evil: str
) -> None:
    assert not is_allowed(function, path, GOOD, arguments(evil))
    assert is_allowed(function, path, GOOD, arguments(FINE))


@pytest.mark.parametrize(
    ("function", "rule", "value", "allowed"),
    [
        (
            fetch,
            {"enum": ["https://a.good.example"]},
            "https://a.good.example",
            True,
        ),  # received with a slash
        (fetch, {"pattern": "^https://a[.]good[.]example$"}, "https://a.good.example", True),
        (fetch, {"pattern": "^https://a[.]good[.]example$"}, "https://a.good.example/", False),
        (level, {"pattern": "^l"}, "low", True),
        (level, {"pattern": "^l"}, "lower", False),
        (level, {"pattern": "^L"}, "LOWER", False),  # receives a number
        (level, {"enum": ["low", "lower"]}, "lower", False),
        (flags, AT_MOST_50, 3, True),
        (flags, {"maximum": 2}, 3, False),
        (wait, {"pattern": "^PT[0-9]+S$"}, "PT59S", True),
        (wait, {"pattern": "^PT[0-9]+S$"}, "PT9999S", False),  # receives PT2H46M39S
        (wait, {"pattern": "^PT[0-9]+H$"}, "PT1H", True),
        (wait, {"pattern": "^PT[0-9]+H$"}, "PT24H", False),  # receives P1D
        (wait, {"type": "number", "maximum": 60}, 30, True),
        (wait, {"type": "number", "maximum": 60}, 90, False),
        (wait, {"type": "number", "maximum": 60}, "PT90S", False),
        (secret, {"pattern": "^k-"}, "k-1", True),
        (secret, {"pattern": "^k-"}, "x-1", False),
        (data, {"pattern": "^k-"}, "k-1", True),
        (opaque, {"pattern": "^a"}, "a", False),
        (opaque, {"enum": ["a"]}, "a", False),
        (opaque, {"type": "string"}, "a", False),
    ],
)
def test_an_object_is_checked_as_written_and_as_its_text(
    function: Any, rule: Any, value: Any, allowed: bool
) -> None:
    name = next(iter(inspect.signature(function).parameters))
    assert is_allowed(function, name, rule, {name: value}) is allowed


def test_a_value_that_cannot_be_read_is_refused_with_its_reason() -> None:
    tool = agents.function_tool(opaque, strict_mode=False)
    rules = {"params": {"opaque": {"v": {"type": "string"}}}}
    error = explain(tool, {"v": "a"}, tool_rules=rules, tool_providers=None).error
    assert isinstance(error, ToolInputError)
    assert error.reason == "v: it receives a value of type Opaque, which rules cannot read"


@pytest.mark.parametrize(
    ("path", "rule", "written"),
    [("v.text", {"pattern": "^[0-9]+$"}, {"text": "012"}), ("v.number", AT_MOST_50, {"number": 12})],
)
def test_a_number_counts_as_it_was_written(path: str, rule: Any, written: Any) -> None:
    assert is_allowed(numbers, path, rule, {"v": written})
    assert not is_allowed(numbers, path, {"enum": ["x"]}, {"v": written})


@pytest.mark.filterwarnings("ignore:.*is not JSON serializable")
def test_an_object_that_no_rule_is_about_and_a_default_refuse_nothing() -> None:
    assert is_allowed(opaque, "note", {"maxLength": 5}, {"v": "a", "note": "b"})
    assert is_allowed(opaque_default, "v", AT_MOST_50, {"note": "a"})
    assert is_allowed(text_default, "v", AT_MOST_50, {})
    assert not is_allowed(text_default, "v", AT_MOST_50, {"v": "600"})


async def unused(*_: Any) -> str:
    return ""


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (facts_of(agents.FunctionTool("t", "", {}, unused, strict_json_schema=False)), "v"),
        (facts_of(agents.FunctionTool("t", "", {"type": "object"}, unused, strict_json_schema=False)), "v"),
        (facts_of(agents.LocalShellTool(executor=unused)), "command"),
        (facts_of(agents.CustomTool("t", "", on_invoke_tool=unused)), "input"),
        (hosted_mcp_facts("files", "read"), "v"),
    ],
)
def test_a_limit_holds_for_any_type_of_a_tool_that_declares_none(facts: ToolFacts, name: str) -> None:
    rules = ToolRules.parse({"params": {facts.name: {name: {"pattern": "^ok$"}}}})
    assert decide_call(rules, facts, {name: "ok"}).allowed
    for value in (["rm -rf"], {"a": "rm"}, 5, True):
        assert not decide_call(rules, facts, {name: value}).allowed


@pytest.mark.parametrize("path", ["v", "most"])
def test_a_limit_holds_for_any_type_under_each_name(path: str) -> None:
    assert is_allowed(renamed_any, path, AT_MOST_50, {"most": 5})
    for value in ("600", [600], {"a": 600}, True):
        assert not is_allowed(renamed_any, path, AT_MOST_50, {"most": value})
    assert not is_allowed(renamed_any, f"{path}.limit", AT_MOST_50, {"most": '{"limit": 600}'})


async def test_what_is_received_is_checked_in_another_process_as_well() -> None:
    rule = {"pattern": "^https://([^/]+[.])+good[.]example/(a|b)*$"}
    rules = {"params": {"fetch": {"url": rule}}}
    tool = agents.function_tool(fetch, strict_mode=False)
    for host, passes in (("evil.test\\.good.example", False), ("a.good.example", True)):
        answer = await call(tool, rules, {"url": f"https://{host}/{'ab' * 900}"})
        assert ("[E15]" in answer) is not passes


class Checked(BaseModel):
    name: Annotated[str, BeforeValidator(lambda value: {"a": "b"}[value])]


async def test_a_validator_that_fails_in_its_own_way_fails_the_call_and_not_the_run() -> None:
    @agents.function_tool
    def checked(v: Checked, limit: int) -> str:
        return "done"

    rules = {"params": {"checked": {"limit": AT_MOST_50}}}
    arguments = {"v": {"name": "c"}, "limit": 5}
    model = ScriptedModel([[function_call("checked", arguments, call_id="c1")], [assistant_message("Done.")]])
    context = await Agent("a", "x", tools=[checked], model=model).run_async("Go.", {"tool_rules": rules})
    assert context["result"].final_output == "Done."
    assert model.last_call is not None
    assert "An error occurred while running the tool" in str(model.last_call.input)
