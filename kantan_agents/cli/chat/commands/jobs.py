"""``/jobs``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.errors import ChatCommandError

_USAGE: Final = "/jobs [ID | stop ID]"


async def _jobs(chat: Chat, words: str) -> None:
    match words.split():
        case []:
            chat.jobs.show_all()
        case ["stop", shell_id]:
            await chat.jobs.stop(shell_id)
        case [shell_id] if shell_id != "stop":
            chat.jobs.show(shell_id)
        case _:
            raise ChatCommandError(command="/jobs", reason=f"type {_USAGE}")


def _choices(chat: Chat) -> Mapping[str, str]:
    return {**chat.jobs.choices(), "stop": "End a command."}


JOBS: Final = ChatCommand(
    _USAGE, "List the commands in the background, show the output of one, or end it.", _jobs, _choices
)
