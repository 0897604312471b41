"""E193 to E196, E199, E200: ``kantan-agents chat``, and hooks."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.errors.root import KantanAgentsError


class FileMentionError(KantanAgentsError):
    """A file that a message names with ``@`` is outside of the folder, a link, binary or too large.

    The message was not sent.

    Attributes:
        name: The typed name.
        reason: Why not, and what to do.
    """

    code = "E193"
    template = "Cannot send @{name}: {reason}"
    name: str
    reason: str


class ConversationNotFoundError(KantanAgentsError):
    """No stored conversation has this id, or the ids of several start with it.

    Fix: ``/resume`` lists the conversations. Give more of the id.

    Attributes:
        id: The given id.
        reason: What there is instead.
    """

    code = "E194"
    is_bad_input = True
    template = "Conversation not found: {id} ({reason})"
    id: str
    reason: str


class ConversationsFileError(KantanAgentsError):
    """The file of conversations cannot be read or written, is damaged, or is another kind of database.

    Fix: Name another file with ``--conversations``, or pass ``--no-save``.

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
    """A chat command cannot run now: ``/compact`` before the first message, for example.

    Attributes:
        command: The command, such as ``/compact``.
        reason: Why not, and what to do.
    """

    code = "E196"
    template = "Cannot run {command}: {reason}"
    command: str
    reason: str


class HooksFileError(KantanAgentsError):
    """The file of hooks has mistakes, or other users can change it or a file that it names.

    The reason is its mode, its owner, or a location in the working folder.

    Attributes:
        path: The file.
        problems: Every mistake; each starts with its position, unless it is about the whole file.
    """

    code = "E199"
    is_bad_input = True
    template = "Hooks cannot be used: {path}: {listed}. Correct this, or pass --no-hooks to run without hooks"
    path: str
    problems: Sequence[str]

    def __init__(self, *, path: str, problems: Sequence[str], listed: str | None = None) -> None:
        super().__init__(path=path, problems=tuple(problems), listed=listed or "; ".join(problems))


class PlanModeError(KantanAgentsError):
    """In plan mode, a model called a tool that may change something. The model gets this message.

    Fix: Agree to a plan, type ``/plan off``, or start the chat with ``--plan-tool``.

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
