"""Copies an exception and its chain, with redacted strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

Change = Callable[[Any], Any]

_TEXTS = "_redacted_texts"
_NOT_COPIED = frozenset({"args", "exceptions", "message", "add_note", "with_traceback"})
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class statement created the class
_CHANGED_TYPES = (str, bytes, bytearray, dict, list, tuple, set, frozenset)


def redacted_exception(error: BaseException, change: Change) -> BaseException:
    """Return ``error``, or a copy of it if ``change`` changes any of its strings.

    The class is a subclass with the same name, of the nearest base class that allows subclasses. ``change``
    returns the same object if there is nothing to redact.
    """
    copies: dict[int, BaseException] = {}
    reachable = [*_reachable(error)]
    for reached in reachable:
        _copied(reached, change, copies)
    for reached in reachable:
        _link(reached, copies)
    return copies[id(error)]


def message_of(error: BaseException) -> str:
    """Return ``str(error)``, or its class if that raises."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - __str__ is user code
        return f"<{type(error).__name__}>"


def _reachable(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set[int]()
    while waiting:
        reached = waiting.pop()
        if id(reached) not in seen:
            seen.add(id(reached))
            yield reached
            waiting += [
                *_members(reached),
                *(near for near in (reached.__cause__, reached.__context__) if near is not None),
            ]


def _members(error: BaseException) -> tuple[BaseException, ...]:
    return getattr(error, "exceptions", ()) if _is_group(error) else ()


def _is_group(error: BaseException) -> bool:
    return any(kind.__name__ == "BaseExceptionGroup" for kind in type(error).__mro__)


def _copied(error: BaseException, change: Change, copies: dict[int, BaseException]) -> BaseException:
    known = copies.get(id(error))
    if known is not None:
        return known
    members = tuple(_copied(member, change, copies) for member in _members(error))
    texts = (message_of(error), _repr(error))
    redacted = tuple(str(change(text)) for text in texts)
    attributes = {name: _attribute(value, change) for name, value in vars(error).items()}
    args = change(error.args) if not members else (str(change(error.args[0])), [*members])
    is_same = (
        redacted == texts
        and (bool(members) or args is error.args)
        and all(attributes[name] is value for name, value in vars(error).items())
        and all(map(_is, members, _members(error)))
    )
    copy = error if is_same else _copy(_kind(error), redacted, args, attributes, members)
    copies[id(error)] = copy
    if not is_same:
        _copy_fields(error, copy, change)
    return copy


def _is(one: object, other: object) -> bool:
    return one is other


def _repr(error: BaseException) -> str:
    try:
        return repr(error)
    except Exception:  # noqa: BLE001 - __repr__ is user code
        return f"<{type(error).__name__}>"


def _attribute(value: Any, change: Change) -> Any:
    # Other objects, such as a server's response, do not appear in the strings of the copy.
    return change(value) if isinstance(value, _CHANGED_TYPES) else value


def _kind(error: BaseException) -> type:
    """Return the class, for a copy the original one."""
    kind: type = vars(type(error)).get("_redacted_class", type(error))
    return kind


def _copy(
    kind: type,
    texts: tuple[str, ...],
    args: Any,
    attributes: dict[str, Any],
    members: tuple[BaseException, ...],
) -> BaseException:
    given = (args[0], members) if members else ()
    bases: tuple[Any, ...] = kind.__mro__
    for base in bases:
        if not issubclass(base, BaseException) or (members and not _has_members(base)):
            continue
        with suppress(Exception):  # final, or with a metaclass or custom __new__: try the next base
            made = _subclass(base, kind.__name__, kind.__qualname__, kind.__module__)
            native: Any = next(inner for inner in base.__mro__ if not inner.__flags__ & _HEAP_TYPE)
            copy: BaseException = native.__new__(made, *given)
            if not isinstance(copy, made):
                continue
            _set(copy, "args", args if isinstance(args, tuple) else (args,))
            copy.__dict__.update({**attributes, _TEXTS: texts})
            return copy
    raise AssertionError("BaseException can be subclassed")


def _has_members(base: type) -> bool:
    return any(kind.__name__ == "BaseExceptionGroup" for kind in base.__mro__)


def _set(error: BaseException, name: str, value: Any) -> None:
    BaseException.__setattr__(error, name, value)  # even if the class is frozen, as attrs classes may be


class _Unhooked:
    """Prevents calls of ``__init_subclass__`` for the class of a copy."""

    __slots__ = ()

    def __init_subclass__(cls) -> None: ...


@lru_cache(maxsize=512)
def _subclass(base: Any, name: str, qualname: str, module: str) -> type:
    body = {
        "__module__": module,
        "__qualname__": qualname,
        "__str__": lambda self: vars(self)[_TEXTS][0],
        "__repr__": lambda self: vars(self)[_TEXTS][1],
        "__reduce__": _reduced,
        "_redacted_class": base,
    }
    return type(name, (_Unhooked, base), body)


def _reduced(self: BaseException) -> Any:
    texts = vars(self)[_TEXTS]
    state = {name: value for name, value in vars(self).items() if name != _TEXTS}
    return _copy, (_kind(self), texts, self.args, state, _members(self))


def _copy_fields(error: BaseException, copy: BaseException, change: Change) -> None:
    """Copy slots, and fields of built-in classes such as ``errno``."""
    for kind in type(error).__mro__:
        for name, field in vars(kind).items():
            is_field = isinstance(field, (MemberDescriptorType, GetSetDescriptorType))
            if is_field and not name.startswith("__") and name not in _NOT_COPIED:
                with suppress(
                    AttributeError, TypeError
                ):  # not set, read-only, or of a class that is no longer a base
                    _set(copy, name, _attribute(getattr(error, name), change))


def _link(error: BaseException, copies: dict[int, BaseException]) -> None:
    copy, suppressed = copies[id(error)], error.__suppress_context__
    cause, context = error.__cause__, error.__context__
    if cause is not None and (copy is not error or copies[id(cause)] is not cause):
        _set(copy, "__cause__", copies[id(cause)])
    if context is not None and (copy is not error or copies[id(context)] is not context):
        _set(copy, "__context__", copies[id(context)])
    _set(copy, "__suppress_context__", suppressed)
    if copy is not error:
        _set(copy, "__traceback__", error.__traceback__)
