"""The tool index of one agent, and the views of its runs."""

from __future__ import annotations

import copy
from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import attrs
from agents import FunctionTool, RunState
from agents.tool_context import ToolContext

from kantan_agents.core.items import parsed
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import RetrievalError
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools.facts import facts_of, facts_of_listed
from kantan_agents.tools.guards.functions import is_switched_on
from kantan_agents.tools.listing import changes_each_turn
from kantan_agents.tools.retrieval.options import ToolRetrieval
from kantan_agents.tools.retrieval.query import (
    calls_in,
    earlier_items,
    earlier_text,
    newest_text,
    with_calls,
)
from kantan_agents.tools.retrieval.retrievers.retriever import ToolMatch, document_of
from kantan_agents.tools.retrieval.search import ToolSearch, first_matching
from kantan_agents.tools.unshown_tools import in_view

_GROWTH = 8
"""Growth of the search limit while too many matches may not be used."""


class AgentToolIndex:
    """The plain function tools of one agent, and the choice among them.

    No turn does work for each tool, so 10,000 tools are as fast as 8. An index with tools of MCP servers
    shares the views and ``find_tools`` of its ``base``, the agent's own tools.
    """

    def __init__(
        self,
        options: ToolRetrieval,
        tools: Sequence[FunctionTool],
        owner: Any,
        always: Iterable[str],
        base: AgentToolIndex | None = None,
    ) -> None:
        self.options = options
        self.owner = owner
        self.tools = tools
        self._by_name: MutableMapping[str, FunctionTool] = {tool.qualified_name: tool for tool in tools}
        self._places = {name: place for place, name in enumerate(self._by_name)}
        changing = [name for name, tool in self._by_name.items() if changes_each_turn(tool)]
        self._always = dict.fromkeys((*always, *changing))
        self._chosen_from = {name: None for name in self._by_name if name not in self._always}
        names = frozenset(self._chosen_from)
        self.finder: FunctionTool | None = base.finder if base is not None else None
        self.is_needed = len(names) > options.top_n
        self.search_tools = ToolSearch(
            options,
            lambda: [document_of(self._by_name[name]) for name in self._chosen_from],
            names,
        )
        # By the SDK's context of a run; nested runs have their own.
        self._views: WeakKeyDictionary[Any, ToolView] = (
            base._views if base is not None else WeakKeyDictionary()
        )
        self._few: WeakKeyDictionary[RuleLayers, list[str] | None] = WeakKeyDictionary()

    def in_this_turn(self, tools: Sequence[FunctionTool], served: Iterable[FunctionTool]) -> AgentToolIndex:
        """Use this turn's objects: the SDK recreates tools of MCP servers."""
        turn = copy.copy(self)
        turn.tools = tools
        turn._by_name = ChainMap({tool.qualified_name: tool for tool in served}, self._by_name)
        return turn

    async def tools_now(
        self, wrapper: Any, layers: RuleLayers, tool_choice: Any = None
    ) -> list[FunctionTool]:
        """Return tools always shown or in ``tool_choice``, then those in view."""
        if not self.is_needed:
            return [tool for tool in self.tools if is_switched_on(tool)]
        view = self._view(wrapper)
        await self._search_for_turn(view, wrapper, layers)
        if view.shows_all:
            return [tool for tool in self.tools if is_switched_on(tool)]
        if isinstance(tool_choice, str) and tool_choice in self._chosen_from:
            view.requested.append(tool_choice)
        view.show_requested()
        few = await self._all_usable(layers) if _may_be_few(view, layers) else None
        view.has_more = few is None
        shown = map(self._by_name.get, (*self._always, *(view.names if few is None else few)))
        # A server may have withdrawn a tool found earlier.
        return [tool for tool in shown if tool is not None and is_switched_on(tool)]

    async def _all_usable(self, layers: RuleLayers) -> list[str] | None:
        if layers not in self._few:

            def is_permitted(name: str) -> bool:
                return layers.decide_tool(facts_of_listed(self._by_name[name])).allowed

            usable = await first_matching(is_permitted, self._chosen_from, self.options.top_n + 1)
            self._few[layers] = usable if len(usable) <= self.options.top_n else None
        return self._few[layers]

    async def best(
        self, text: str, layers: RuleLayers, count: int, excluded: Iterable[str] = ()
    ) -> list[ToolMatch]:
        """Return usable matches, best first; E57 if the retriever fails."""
        known, limit = set(excluded), 2 * count
        while True:
            requested = min(limit + len(known), len(self.tools))
            matches = await self.search_tools.search(text, requested)
            new = (match for match in matches if match.name not in known)
            found = await first_matching(
                lambda match: self.may_use(self._by_name[match.name], layers), new, count
            )
            if len(found) == count or requested == len(self.tools) or len(matches) < requested:
                return found
            # An index that may use a network is searched only once more.
            limit = limit * _GROWTH if self.search_tools.is_quick else len(self.tools)

    def finder_now(self, wrapper: Any, layers: RuleLayers) -> list[FunctionTool]:
        """Set the current view; return ``find_tools`` if more tools may exist."""
        view = self._views.get(wrapper)
        if view is None or view.shows_all:
            return []
        in_view.set(RunView(self, view))
        # It runs nothing and names no hidden tool, so allow need not list it.
        if self.finder is None or not view.has_more:
            return []
        may_ask = layers.permits_all or layers.decide_tool(facts_of(self.finder)).key != "deny"
        return [self.finder] if may_ask else []

    def is_always_shown(self, name: str) -> bool:
        """Whether any input shows it."""
        return name in self._always

    def is_chosen_from(self, name: str) -> bool:
        """Whether it may be chosen."""
        return name in self._chosen_from

    def tool_named(self, name: str) -> FunctionTool | None:
        """Return the tool."""
        return self._by_name.get(name)

    def in_view_with(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names shown if these are found, in the order the model sees them."""
        yield from self._always
        yield from self._in_order(names)

    def _view(self, wrapper: Any) -> ToolView:
        view = self._views.get(wrapper)
        run = current_run.get()
        resumed = run.input if run is not None and run.agent is self.owner else None
        if isinstance(resumed, RunState) and (view is None or view.shows_all):
            view = self._views[wrapper] = self._view_of_state(resumed)
        elif view is None:
            view = self._views[wrapper] = ToolView(self.options.most_shown)
            # A resumed run may have called any tool; its input is unknown.
            view.shows_all = run is None and not wrapper.turn_input and wrapper.usage.requests > 0
        return view

    def _seed(self, view: ToolView, conversation: Sequence[Any]) -> None:
        called = (name for name in reversed(calls_in(conversation)) if name in self._chosen_from)
        view.add(self._in_order(islice(dict.fromkeys(called), self.options.top_n)))

    def _view_of_state(self, state: RunState[Any]) -> ToolView:
        view = ToolView(self.options.most_shown)
        waiting = [getattr(item, "tool_name", None) for item in state.get_interruptions()]
        called = [*calls_in(state._generated_items), *(name for name in waiting if name)]
        view.calls = [name for name in called if name in self._by_name]
        view.add(view.calls)
        return view

    async def _search_for_turn(self, view: ToolView, wrapper: Any, layers: RuleLayers) -> None:
        if view.shows_all:
            return
        text = with_calls(self._about(wrapper), view.calls)
        if text == view.last_query:
            return
        conversation: Sequence[Any] = ()
        if not view.is_seeded:
            view.is_seeded = True
            conversation = await earlier_items(wrapper)
            self._seed(view, conversation)
        top_n = self.options.top_n
        # Later searches add fewer tools and leave space for requested ones.
        count = top_n if view.last_query is None else min(max(top_n // 2, 1), 2 * top_n - len(view.names))
        is_first = view.last_query is None
        view.last_query = text
        if (
            is_first and self._few.get(layers) is not None
        ):  # few tools are permitted, so all of them are shown
            view.searched_under, view.is_short = layers, True
            return
        try:
            matches = await self._found(text, layers, count, view)
            if not matches and is_first:  # "yes, please": the message before it names the subject
                matches = await self._found(earlier_text(conversation, text), layers, count, view)
        except RetrievalError:
            view.shows_all = True
            return
        if is_first:
            view.searched_under, view.is_short = layers, len(matches) < count
        view.add(self._in_order(match.name for match in matches))

    async def _found(self, text: str, layers: RuleLayers, count: int, view: ToolView) -> list[ToolMatch]:
        return await self.best(text, layers, count, view.names) if count > 0 and text.strip() else []

    def _in_order(self, names: Iterable[str]) -> list[str]:
        # In registration order, whatever the scores: the same choice gives the same request bytes.
        return sorted(names, key=self._places.__getitem__)

    def _about(self, wrapper: Any) -> str:
        run = current_run.get()
        if isinstance(wrapper, ToolContext):  # an agent as a tool: the arguments of its call
            return newest_text(wrapper.tool_input or parsed(wrapper.tool_arguments))
        given = run.input if run is not None and run.agent is self.owner else None
        if isinstance(given, RunState):
            given = given._original_input
        if given is not None:
            return newest_text(given)
        # The SDK's own runner sets it only after the first turn.
        return newest_text(wrapper.turn_input or (run.input if run is not None else ""))

    def may_use(self, tool: FunctionTool, layers: RuleLayers) -> bool:
        """Whether it is enabled and permitted."""
        if not is_switched_on(tool):
            return False
        return layers.permits_all or layers.decide_tool(facts_of_listed(tool)).allowed

    def __repr__(self) -> str:
        return f"<AgentToolIndex of {getattr(self.owner, 'name', None)!r}, {len(self.tools)} tools>"


def _may_be_few(view: ToolView, layers: RuleLayers) -> bool:
    # Only then is it worth checking every tool; it stops as soon as there are too many.
    if layers.permits_all:
        return False
    before = view.searched_under
    return view.is_short or before is None or before.rule_sets != layers.rule_sets


@attrs.frozen(eq=False)
class RunView:
    """One run's ``RetrievalView``."""

    tool_index: AgentToolIndex
    view: ToolView

    def record_call(self, name: str) -> None:
        """Record a call."""
        if self.tool_index.tool_named(name) is not None:
            self.view.calls.append(name)

    def unshown_tool(self, name: str) -> FunctionTool | None:
        """Return a tool not in view."""
        if self.view.shows_all or name in self.view.names or self.tool_index.is_always_shown(name):
            return None
        return self.tool_index.tool_named(name)

    def show(self, name: str) -> bool:
        """Return False if too many are added."""
        return self.tool_index.is_always_shown(name) or self.view.request(name)


@attrs.define(eq=False)
class ToolView:
    """The tools retrieved in one run of one agent, oldest first.

    New tools are appended, so that the provider's cached prefix stays valid. Beyond ``most`` tools, the
    oldest that were never called are removed. ``shows_all`` is set after a failed search, for example.
    """

    most: int
    names: dict[str, None] = attrs.field(factory=dict)
    requested: list[str] = attrs.field(factory=list)
    calls: list[str] = attrs.field(factory=list)
    last_query: str | None = None
    shows_all: bool = False
    is_seeded: bool = False
    searched_under: RuleLayers | None = None
    is_short: bool = False
    has_more: bool = True

    def add(self, names: Iterable[str]) -> None:
        """Append new tools."""
        wanted = dict.fromkeys(names)
        self.names.update(dict.fromkeys(name for name in wanted if name not in self.names))
        excess = len(self.names) - self.most
        if excess > 0:
            others = [name for name in self.names if name not in wanted]
            idle = [name for name in others if name not in self.calls]
            called = [name for name in others if name in self.calls]
            for name in (idle + called + list(wanted))[:excess]:
                del self.names[name]

    def request(self, name: str) -> bool:
        """Return False if too many are requested."""
        # One slot is reserved for a tool that `tool_choice` names.
        if name not in self.requested and len(self.requested) >= self.most - 1:
            return False
        if name not in self.requested:
            self.requested.append(name)
        return True

    def show_requested(self) -> None:
        """Add requested tools."""
        requested, self.requested = self.requested, []
        self.add(requested)
