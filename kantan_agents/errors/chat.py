"""E193 to E196: ``kantan-agents chat``."""

from __future__ import annotations

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
