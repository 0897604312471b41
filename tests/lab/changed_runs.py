"""Middleware that changes what a run begins with, and inputs for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from agents import SessionSettings
from agents.run import CallModelData, ModelInputData

from kantan_agents import CommandLoader, Middleware, ModelCall, ModelNext, Next, Run, SlashCommands
from kantan_agents.middleware import Budget, CompactHistory, Deadline, LimitConcurrency, Redact, Retry

INSTRUCTIONS: Final = "Help. It is visit {{ $ctx.visits }} of {{ $ctx.user.name }}."
COMMANDS: Final = {
    "review": "---\ndescription: Review\nallowed-tools: look\n---\nReview $1.\n",
    "plain": "---\ndescription: Ask\nmodel: fast\n---\nAsk about $1.\n",
}
INPUTS: Final[tuple[Any, ...]] = (
    "hi",
    "//wipe notes",
    "/review 12",
    "/plain 12",
    "/wipe notes",
    "/unknown",
    "I am aiko@example.com and not [email_1].",
    [{"role": "user", "content": "hi"}, {"role": "user", "content": "/wipe notes"}],
)


async def please(run: Run, call_next: Next) -> None:
    """Change a text."""
    if isinstance(run.input, str):
        run.input = f"Please: {run.input}"
    await call_next(run)


async def note(run: Run, call_next: Next) -> None:
    """Add an item to the caller's own list, or to the text."""
    item = {"role": "user", "content": "Note: it is urgent."}
    if isinstance(run.input, list):
        run.input.append(item)
    elif isinstance(run.input, str) and not run.input.startswith("/"):
        run.input = [{"role": "user", "content": run.input}, item]
    await call_next(run)


async def count(run: Run, call_next: Next) -> None:
    """Count in the context, of which the template reads."""
    run.context["visits"] = run.context.get("visits", 0) + 1
    run.context.setdefault("user", {"name": "Aiko"})["name"] += "!"
    await call_next(run)


def says(text: str) -> dict[str, Any]:
    """Return a message of a user."""
    return {"role": "user", "content": text}


class Around(Middleware):
    """Adds items to each request, before and after those that it has."""

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> Any:
        items = [says(call.input)] if isinstance(call.input, str) else call.input
        call.input = [says("Be short."), *items, says("Now answer.")]
        return await call_next(call)


class LongAnswers(Middleware):
    """Adds to an option."""

    async def run(self, run: Run, call_next: Next) -> None:
        run.options["max_turns"] = run.options.get("max_turns", 5) + 1
        await call_next(run)


def write_commands(folder: Path) -> CommandLoader:
    """Write the files of the commands."""
    for name, text in COMMANDS.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return CommandLoader(folder)


def commands(loader: CommandLoader) -> SlashCommands:
    """Return the commands; one names a model that files may not name, and so has no effect."""
    return SlashCommands({"allow": ["wipe", "review", "plain"]}, files=loader)


def new_first(earlier: list[Any], new: list[Any]) -> list[Any]:
    """Put the input before what is in the session, and an item before both."""
    return [says("Read on."), *new, *earlier]


def asked_once_more(data: CallModelData[Any]) -> ModelInputData:
    """Add an item to what is sent."""
    added: Any = says("Please.")
    return ModelInputData([*data.model_data.input, added], data.model_data.instructions)


CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "callback": {"session_input_callback": new_first},
    "filter": {"call_model_input_filter": asked_once_more},
    "limit": {"session_settings": SessionSettings(limit=1)},
}

MIDDLEWARE: Final[dict[str, Callable[[CommandLoader], Any]]] = {
    "commands": commands,
    "please": lambda _: please,
    "note": lambda _: note,
    "count": lambda _: count,
    "around": lambda _: Around(),
    "long": lambda _: LongAnswers(),
    "redact": lambda _: Redact(),
    "restore": lambda _: ("restore", Redact(restore=True, keep_in="originals")),
    "compact": lambda _: CompactHistory(max_tokens=100_000),
    "retry": lambda _: Retry(),
    "budget": lambda _: Budget(max_model_calls=20),
    "deadline": lambda _: Deadline(60),
    "limit": lambda _: LimitConcurrency(2),
}
