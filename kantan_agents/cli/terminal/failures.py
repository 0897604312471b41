"""Turns exceptions into exit codes."""

from __future__ import annotations

import re
from traceback import walk_tb
from typing import Any

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import KantanAgentsError, ModelNotConfiguredError, ModelNotFoundError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_NO_SUCH_PATH = (404, 405)
_CODED = re.compile(r"\[[\w.-]+\]\[\w+\] ")


def exit_code(error: BaseException) -> int:
    """Return 2 for invalid arguments, otherwise 1."""
    if getattr(error, "is_bad_input", False) or _is_usage_error(error):
        return EXIT_USAGE
    return EXIT_FAILED


def describe(error: BaseException) -> str:
    """Return ``error`` as one line that starts with ``[package][code]``.

    Other packages' codes are the HTTP status, or the class name, as in ``[agents][MaxTurnsExceeded] ...``.
    """
    return one_line(_coded_message(error))


def _coded_message(error: BaseException) -> str:
    if _is_usage_error(error):
        return f"[kantan-agents][usage] {_usage_message(error)}"
    message = _message(error)
    if isinstance(error, KantanAgentsError) or _CODED.match(message):
        return message
    package = type(error).__module__.partition(".")[0]
    code = getattr(error, "status_code", None) or type(error).__name__
    return f"[{'python' if package == 'builtins' else package}][{code}] {message}"


def _message(error: BaseException) -> str:
    if isinstance(error, ModelNotFoundError):
        return ". ".join((_with_reason(error), *getattr(error, "__notes__", ())))
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("message"), str) and body["message"]:
        # The message of the API; str() would return the whole JSON.
        return f"{body['message']}{_missing_path(error)}"
    message = f"{error}{_missing_path(error)}" or "no further details"
    if _is_about_a_reply(error):
        return f"the server's reply cannot be read: {message}"
    server = _unreachable_server(error)
    return f"{message.rstrip('.')}: {server}" if server and server not in message else message


def _with_reason(error: ModelNotFoundError) -> str:
    """Add kantan-llm's reason, such as a missing key."""
    from kantan_llm.errors import ProviderInferenceError

    cause = error.__cause__
    has_reason = isinstance(error, ModelNotConfiguredError)
    if has_reason or cause is None or isinstance(cause, ProviderInferenceError):
        return str(error)
    return f"{error} ({cause})"


def _is_about_a_reply(error: BaseException) -> bool:
    """Return whether the SDK's model could not parse a reply, for which it raises a Python error."""
    if not isinstance(error, (AttributeError, TypeError, ValueError)) or isinstance(error, UnicodeError):
        return False
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(module.startswith("agents.models.") for module in modules)


def _missing_path(error: BaseException) -> str:
    """Return a request's unknown URL: the usual mistake in a base URL."""
    url = getattr(getattr(error, "request", None), "url", None)
    if url is None or getattr(error, "status_code", None) not in _NO_SUCH_PATH:
        return ""
    from kantan_agents.support.secrets import shown_url

    return f" ({shown_url(url)})"


def _unreachable_server(error: BaseException) -> str | None:
    if hasattr(error, "status_code"):
        return None
    url: Any = getattr(getattr(error, "request", None), "url", None)
    host = getattr(url, "host", None)
    return f"{url.scheme}://{url.netloc.decode()}" if host else None


def _is_usage_error(error: BaseException) -> bool:
    # Typer's errors are click's classes in some versions and private copies in others.
    return hasattr(error, "format_message")


def _usage_message(error: Any) -> str:
    context = getattr(error, "ctx", None)
    hint = f"; see {context.command_path} --help" if context is not None else ""
    return f"{error.format_message().rstrip('.')}{hint}"
