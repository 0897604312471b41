"""The tools of one agent among which its models' tools are chosen, and what each run has of them in view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import attrs
from agents import FunctionTool, RunState, Tool
from agents.tool_context import ToolContext

from kantan_agents.errors import RetrievalError
from kantan_agents.pipeline import current_run
from kantan_agents.retrieval.conversation import earlier_items, earlier_text
from kantan_agents.retrieval.in_turns import first_that
from kantan_agents.retrieval.names import known_names
from kantan_agents.retrieval.options import ToolRetrieval
from kantan_agents.retrieval.query import arguments_of, calls_in, newest_text, with_calls
from kantan_agents.retrieval.retrievers.retriever import ToolMatch, document_of
from kantan_agents.retrieval.search import Searching
from kantan_agents.retrieval.view import View
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools import facts_of, is_switched_on
from kantan_agents.tools.listing import changes_each_turn
from kantan_agents.tools.unshown import in_view

_log = get_logger("kantan_agents.retrieval")
_LOOKS = 8
"""How many times further down the ranking is looked when too many of its tools may not be used."""


class ToolShelf:
    """Holds the plain function tools of one agent and chooses from them, turn by turn.

    Nothing here is done for each tool in each turn: an agent with 10,000 tools runs as fast as one with 8.

    Args:
        options: How it chooses.
        tools: The guarded tools, in the order they were given.
        owner: The agent they belong to.

    Raises:
        UnknownRetrievedToolError: E58, ``always`` names a tool that is not there.
    """

    def __init__(self, options: ToolRetrieval, tools: Sequence[FunctionTool], owner: Any) -> None:
        self.options = options
        self.owner = owner
        self.tools = tools
        self._by_name = {tool.qualified_name: tool for tool in tools}
        self._places = {name: place for place, name in enumerate(self._by_name)}
        asked_for = known_names(options.always, list(self._by_name))
        changing = [name for name, tool in self._by_name.items() if changes_each_turn(tool)]
        self._always = {name: self._by_name[name] for name in (*asked_for, *changing)}
        # In their order, and quick to look names up in.
        self._chosen_from = {name: None for name in self._by_name if name not in self._always}
        names = frozenset(self._chosen_from)
        self.finder: FunctionTool | None = None
        self.is_needed = len(names) > options.top_n
        self.searching = Searching(
            options,
            lambda: [document_of(self._by_name[name]) for name in self._chosen_from],
            names,
        )
        # By the SDK's context of a run, nested runs having their own.
        self._views: WeakKeyDictionary[Any, View] = WeakKeyDictionary()
        self._few: WeakKeyDictionary[RuleLayers, list[str] | None] = WeakKeyDictionary()
        self._dropped: set[str] = set()

    def without_namesakes(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return tools of MCP servers without those that have the name of a tool here, in view or not."""
        names = self._by_name.keys() | ({self.finder.name} if self.finder is not None else frozenset())
        kept = [tool for tool in tools if tool.name not in names]
        if len(kept) < len(tools):
            dropped = {tool.name for tool in tools if tool.name in names} - self._dropped
            self._dropped |= dropped
            for name in sorted(dropped):
                _log.warning("mcp_tool_left_out", tool=name, reason="the agent has a tool of this name")
        return kept

    async def tools_now(
        self, wrapper: Any, layers: RuleLayers, tool_choice: Any = None
    ) -> list[FunctionTool]:
        """Return the tools for this turn: those that always are, then those in view, oldest first.

        Args:
            wrapper: The SDK's context of the run.
            layers: The rules in force.
            tool_choice: The setting of this name; a tool that it names is shown.
        """
        if not self.is_needed:
            return [tool for tool in self.tools if is_switched_on(tool)]
        view = self._view(wrapper)
        await self._look(view, wrapper, layers)
        if view.shows_all:
            return [tool for tool in self.tools if is_switched_on(tool)]
        if isinstance(tool_choice, str) and tool_choice in self._chosen_from:
            view.asked_for.append(tool_choice)
        view.bring_in()
        few = await self._all_usable(layers) if _may_be_few(view, layers) else None
        view.has_more = few is None
        shown = [
            *self._always.values(),
            *(self._by_name[name] for name in (view.names if few is None else few)),
        ]
        return [tool for tool in shown if is_switched_on(tool)]

    async def _all_usable(self, layers: RuleLayers) -> list[str] | None:
        """Return all that the rules permit, if those are no more than are found for an input; else None."""
        if layers not in self._few:

            def is_permitted(name: str) -> bool:
                return layers.decide_tool(facts_of_guarded(self._by_name[name])).allowed

            usable = await first_that(is_permitted, self._chosen_from, self.options.top_n + 1)
            self._few[layers] = usable if len(usable) <= self.options.top_n else None
        return self._few[layers]

    async def best(
        self, text: str, layers: RuleLayers, count: int, besides: Iterable[str] = ()
    ) -> list[ToolMatch]:
        """Return the best matches for a text that may be used, at most ``count`` and none of ``besides``.

        Raises:
            RetrievalError: E57, the retriever failed.
        """
        known, limit = set(besides), 2 * count
        while True:
            asked = min(limit + len(known), len(self._by_name))
            matches = await self.searching.search(text, asked)
            new = (match for match in matches if match.name not in known)
            found = await first_that(
                lambda match: self.may_use(self._by_name[match.name], layers), new, count
            )
            if len(found) == count or asked == len(self._by_name) or len(matches) < asked:
                return found
            # An index that is asked over a network is asked once more and no oftener.
            limit = limit * _LOOKS if self.searching.is_quick else len(self._by_name)

    def asking(self, wrapper: Any, layers: RuleLayers) -> list[FunctionTool]:
        """Return the tool that asks for more, if there may be more, and note what is called from now on."""
        view = self._views.get(wrapper)
        if view is None or view.shows_all:
            return []
        in_view.set(RunView(self, view))
        # It runs nothing and names no tool the rules hide, so no list of allowed tools need have it.
        if self.finder is None or not view.has_more:
            return []
        may_ask = layers.permits_all or layers.decide_tool(facts_of(self.finder)).key != "deny"
        return [self.finder] if may_ask else []

    def is_always_shown(self, name: str) -> bool:
        """Whether a tool is shown whatever the input."""
        return name in self._always

    def is_chosen_from(self, name: str) -> bool:
        """Whether a tool is one of those that are chosen from."""
        return name in self._chosen_from

    def tool_named(self, name: str) -> FunctionTool | None:
        """Return the tool of this name."""
        return self._by_name.get(name)

    def in_view_with(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names of what is shown when these are found, in the order the model sees them."""
        yield from self._always
        yield from self._in_order(names)

    def _view(self, wrapper: Any) -> View:
        view = self._views.get(wrapper)
        run = current_run.get()
        resumed = run.input if run is not None and run.agent is self.owner else None
        if isinstance(resumed, RunState) and (view is None or view.shows_all):
            view = self._views[wrapper] = self._view_of_state(resumed)
        elif view is None:
            view = self._views[wrapper] = View(self.options.most_shown)
            # The SDK reads a stored run, whose calls may be of any tool. What it was about is not known here.
            view.shows_all = run is None and not wrapper.turn_input and wrapper.usage.requests > 0
        return view

    def _seed(self, view: View, conversation: Sequence[Any]) -> None:
        called = (name for name in reversed(calls_in(conversation)) if name in self._chosen_from)
        view.add(self._in_order(islice(dict.fromkeys(called), self.options.top_n)))

    def _view_of_state(self, state: RunState[Any]) -> View:
        view = View(self.options.most_shown)
        waiting = [getattr(item, "tool_name", None) for item in state.get_interruptions()]
        called = [*calls_in(state._generated_items), *(name for name in waiting if name)]
        view.calls = [name for name in called if name in self._by_name]
        view.add(view.calls)
        return view

    async def _look(self, view: View, wrapper: Any, layers: RuleLayers) -> None:
        if view.shows_all:
            return
        text = with_calls(self._about(wrapper), view.calls)
        if text == view.searched:
            return
        conversation: Sequence[Any] = ()
        if not view.is_seeded:
            view.is_seeded = True
            conversation = await earlier_items(wrapper)
            self._seed(view, conversation)
        top_n = self.options.top_n
        # Later looks, after calls, are second thoughts: they add less, and leave room for what is asked for.
        count = top_n if view.searched is None else min(max(top_n // 2, 1), 2 * top_n - len(view.names))
        is_first = view.searched is None
        view.searched = text
        if is_first and self._few.get(layers) is not None:  # known to be few: they are shown, whatever fits
            view.looked_under, view.is_short = layers, True
            return
        try:
            matches = await self._found(text, layers, count, view)
            if not matches and is_first:  # "yes, please": what was said before tells what it is about
                matches = await self._found(earlier_text(conversation, text), layers, count, view)
        except RetrievalError:
            view.shows_all = True
            return
        if is_first:
            view.looked_under, view.is_short = layers, len(matches) < count
        view.add(self._in_order(match.name for match in matches))

    async def _found(self, text: str, layers: RuleLayers, count: int, view: View) -> list[ToolMatch]:
        return await self.best(text, layers, count, view.names) if count > 0 and text.strip() else []

    def _in_order(self, names: Iterable[str]) -> list[str]:
        # As registered, whatever the scores: the same choice is the same request, byte for byte.
        return sorted(names, key=self._places.__getitem__)

    def _about(self, wrapper: Any) -> str:
        run = current_run.get()
        if isinstance(wrapper, ToolContext):  # an agent as a tool: what it was called with
            return newest_text(wrapper.tool_input or arguments_of(wrapper.tool_arguments))
        given = run.input if run is not None and run.agent is self.owner else None
        if isinstance(given, RunState):
            given = given._original_input
        if given is not None:
            return newest_text(given)
        # The SDK's own runner tells it after the first turn only.
        return newest_text(wrapper.turn_input or (run.input if run is not None else ""))

    def may_use(self, tool: FunctionTool, layers: RuleLayers) -> bool:
        """Whether a tool is switched on and permitted."""
        if not is_switched_on(tool):
            return False
        return layers.permits_all or layers.decide_tool(facts_of_guarded(tool)).allowed

    def __repr__(self) -> str:
        return f"<ToolShelf of {getattr(self.owner, 'name', None)!r}, {len(self.tools)} tools>"


def _may_be_few(view: View, layers: RuleLayers) -> bool:
    # Only then is it worth a look at every tool; and that look ends at the first that are too many.
    if layers.permits_all:
        return False
    before = view.looked_under
    return view.is_short or before is None or before.rule_sets != layers.rule_sets


def facts_of_guarded(tool: FunctionTool) -> Any:
    """Return what the rules need to know of a guarded tool, which knows it already."""
    return getattr(tool.on_invoke_tool, "facts", None) or facts_of(tool)


@attrs.frozen(eq=False)
class RunView:
    """What is asked about one run's view while its model and its tools are at work."""

    shelf: ToolShelf
    view: View

    def record_call(self, name: str) -> None:
        """Take note that a tool is called."""
        if self.shelf.tool_named(name) is not None:
            self.view.calls.append(name)

    def unshown_tool(self, name: str) -> FunctionTool | None:
        """Return the tool of this name if it is not in view."""
        if self.view.shows_all or name in self.view.names or self.shelf.is_always_shown(name):
            return None
        return self.shelf.tool_named(name)

    def show(self, name: str) -> bool:
        """Bring a tool into view with the next turn; False if too many come already."""
        return self.shelf.is_always_shown(name) or self.view.promise(name)
