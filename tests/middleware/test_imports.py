"""A first run imports nothing on the event loop that construction could have imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, json, sys
from kantan_agents import Agent, Middleware, middleware, set_trace_processors
from kantan_agents.testing import ScriptedModel, function_call

def tool() -> str:
    "Tool."
    return "x"

def model():
    return ScriptedModel([[function_call("tool", {}, call_id="c")], "done"])

arguments = {
    "Approve": lambda: (lambda call: True,),
    "Budget": lambda: {"max_model_calls": 9},
    "Cache": lambda: {"per": None},
    "CompactHistory": lambda: (1000,),
    "Deadline": lambda: (60,),
    "Fallback": lambda: (model(),),
    "Hedge": lambda: {"after": 60.0},
    "LimitConcurrency": lambda: (2,),
    "SlashCommands": lambda: ({},),
}
set_trace_processors([])
imported = {}
for name in sorted(middleware.__all__):
    kind = getattr(middleware, name)
    if not (isinstance(kind, type) and issubclass(kind, Middleware)):
        continue
    given = arguments.get(name, tuple)()
    made = kind(**given) if isinstance(given, dict) else kind(*given)
    agent = Agent("a", "b", model=model(), tools=[tool], middleware=[made])

    async def run():
        before = set(sys.modules)
        await agent.run_async("hi")
        imported[name] = sorted(set(sys.modules) - before)

    asyncio.run(run())
print(json.dumps(imported))
"""

BY_NAME = """
import asyncio, os, sys, threading
from kantan_agents import Agent, set_trace_processors
from kantan_agents.testing import OfflineServer

set_trace_processors([])
on_loop = []

class Finder:
    def find_spec(self, name, path=None, target=None):
        if is_running and threading.current_thread() is threading.main_thread():
            on_loop.append(name)

is_running = False
with OfflineServer(["done"]) as server:
    os.environ.update(OPENAI_API_KEY="k", OPENAI_BASE_URL=server.base_url)
    agent = Agent("a", "b", model="gpt-5-mini")
    assert "openai.resources.responses" not in sys.modules
    sys.meta_path.insert(0, Finder())

    async def run():
        global is_running
        is_running = True
        await agent.run_async("hi")
        is_running = False

    asyncio.run(run())
assert "openai.resources.responses" in sys.modules
print(*on_loop)
"""


@pytest.mark.slow
def test_a_first_run_of_a_middleware_imports_nothing_but_the_event_loop_of_anyio() -> None:
    # A new interpreter: what it has imported is what is tested.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    imported = json.loads(done.stdout)
    assert {"Budget", "Retry", "SlashCommands"} < set(imported)
    heavy = {
        name: [module for module in modules if not module.startswith("anyio.")]
        for name, modules in imported.items()
    }
    assert not any(heavy.values()), heavy


@pytest.mark.slow
def test_a_first_run_of_a_model_by_name_imports_the_client_in_a_thread() -> None:
    # A new interpreter, as above.
    done = subprocess.run([sys.executable, "-c", BY_NAME], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert [name for name in done.stdout.split() if not name.startswith("anyio.")] == []
