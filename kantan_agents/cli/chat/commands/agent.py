"""``/model`` and ``/reload``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.errors import ChatCommandError

if TYPE_CHECKING:
    from kantan_agents.agent import Agent


async def _model(chat: Chat, name: str) -> None:
    if name:
        chat.talk.change_agent(await anyio.to_thread.run_sync(chat.source.agent_with, name))
    chat.screen.line(f"model: {model_of(chat.talk.agent)}")


async def _reload(chat: Chat, words: str) -> None:
    del words
    if chat.changes is None:
        raise ChatCommandError(command="/reload", reason="this agent is not from a file")
    if await chat.changes.take():
        chat.talk.forget_approvals()
        chat.talk.change_agent(await anyio.to_thread.run_sync(chat.source.agent))


MODEL: Final = ChatCommand("/model [NAME]", "Show the model, or go on with another one.", _model)
RELOAD: Final = ChatCommand(
    "/reload", "Use the agents and skills as their files are now, after a change that was shown.", _reload
)


def model_of(agent: Agent[Any]) -> str:
    """Return the name of an agent's model, if it has one."""
    model = agent.given.model
    if model is None or isinstance(model, str):
        return model or "the default of the SDK"
    return str(getattr(model, "model", None) or type(model).__name__)
