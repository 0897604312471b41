"""Signed texts of paused runs: JSON with the run's state, the agent's name and a signature of both.

The signature covers the exact characters, so nothing is parsed before it has been verified.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from typing import Any, Final

import attrs

from kantan_agents.errors import ApprovalStateError

_VERSION: Final = "kantan_agents_paused_run"
_HEADER: Final = re.compile(
    rf'\{{"{_VERSION}":1,"agent":("(?:[^"\\\x00-\x1f]|\\.)*"),"signature":"([0-9a-f]{{64}})","state":'
)
# Differs from every other use of the same key, and from later versions of this text.
_DOMAIN: Final = b"kantan_agents paused run 1\n"
_WHITE_SPACE: Final = " \t\r\n"


@attrs.frozen
class SignedText:
    """A text with a signature that has not been verified.

    Attributes:
        agent: The agent's name as JSON.
        state: The state of the run as JSON.
        signature: The signature.
    """

    agent: str
    state: str
    signature: str

    def verified(self, keys: Sequence[bytes]) -> tuple[str, dict[str, Any]]:
        """Return the name of the agent and the state of the run.

        Raises:
            ApprovalStateError: E85, none of the keys has made the signature, or the text has changed.
        """
        if not any(hmac.compare_digest(_sign(key, self.agent, self.state), self.signature) for key in keys):
            raise ApprovalStateError(
                reason="the stored run was changed, or it was signed with another key; nothing was run"
            )
        return json.loads(self.agent), json.loads(self.state)


def signed(agent: str, state: str, key: bytes) -> str:
    """Return the text for a paused run.

    Args:
        agent: Name of the agent that was run.
        state: The state of the run, as JSON in ASCII.
        key: The key that signs it.
    """
    name = json.dumps(agent)
    return f'{{"{_VERSION}":1,"agent":{name},"signature":"{_sign(key, name, state)}","state":{state}}}'


def read_signed(text: str) -> SignedText | None:
    """Return the parts of a signed text, ignoring white space around it; None if it is something else."""
    text = text.strip(_WHITE_SPACE)
    header = _HEADER.match(text)
    if header is None or not text.endswith("}") or not text.isascii():
        return None
    return SignedText(header[1], text[header.end() : -1], header[2])


def read_unsigned(text: str) -> dict[str, Any]:
    """Return the state in a text of an earlier version, which had no signature.

    Raises:
        ApprovalStateError: E85, the text is something else, such as a signed text that was changed.
    """
    try:
        state = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ApprovalStateError(reason=f"this is not a stored run: {error}") from error
    if not isinstance(state, dict) or "$schemaVersion" not in state or _VERSION in state:
        raise ApprovalStateError(reason="this is not a stored run, or it was changed; nothing was run")
    return state


def _sign(key: bytes, agent: str, state: str) -> str:
    content = f"{agent}\n{state}".encode("ascii")
    return hmac.new(key, _DOMAIN + content, hashlib.sha256).hexdigest()
