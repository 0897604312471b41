"""E193 to E196, E199, E200: ``kantan-agents chat``, and hooks."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.errors.root import KantanAgentsError


class FileMentionError(KantanAgentsError):
    """A file that a message names with ``@`` cannot be sent.

    Attributes:
        name: The name as it was typed.
        reason: Why not, and what to do.
    """

    code = "E193"
    template = "Cannot send @{name}: {reason}"
    name: str
    reason: str


class ConversationNotFoundError(KantanAgentsError):
    """No kept conversation has this id, or more than one begins with it.

    Attributes:
        id: The id as it was given.
        reason: What there is instead.
    """

    code = "E194"
    is_bad_input = True
    template = "Conversation not found: {id} ({reason})"
    id: str
    reason: str


class ConversationsFileError(KantanAgentsError):
    """The file of conversations cannot be used.

    Attributes:
        path: The file.
        reason: Why not, and what to do.
    """

    code = "E195"
    is_bad_input = True
    template = "Cannot keep conversations in {path}: {reason}"
    path: str
    reason: str


class ChatCommandError(KantanAgentsError):
    """A command of the chat cannot be carried out now.

    Attributes:
        command: The command, such as ``/compact``.
        reason: Why not, and what to do.
    """

    code = "E196"
    template = "Cannot run {command}: {reason}"
    command: str
    reason: str


class HooksFileError(KantanAgentsError):
    """The user's file of hooks cannot be used.

    Attributes:
        path: The file.
        problems: Every mistake; each begins with its place in the file, unless it is about the file itself.
    """

    code = "E199"
    is_bad_input = True
    template = "Hooks cannot be used: {path}: {listed}. Correct this, or pass --no-hooks to run without hooks"
    path: str
    problems: Sequence[str]

    def __init__(self, *, path: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(path=path, problems=tuple(problems), listed=listed or "; ".join(problems))


class PlanModeError(KantanAgentsError):
    """A call was refused, because the user has agreed to no plan yet.

    Attributes:
        tool_name: The tool.
        hint: What the model can do.
    """

    code = "E200"
    template = (
        "{tool_name} cannot be used in plan mode: only reading is, until the user agrees to a plan. {hint}"
    )
    tool_name: str
    hint: str
