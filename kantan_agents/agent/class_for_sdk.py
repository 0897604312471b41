"""What ``__class__`` of an Agent is: its own class and that of an SDK agent in one."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent.bridge import SDKAgent

_KEPT = "_class_for_sdk"
_ABOUT_ITSELF = frozenset({"_own", "__class__", "__dict__", "__mro__", "mro"})


def class_for_sdk(own: type[Any]) -> type[Any]:
    """Return a class that is a subclass of ``own`` and of the SDK's, for ``isinstance`` only.

    No object is created of it: a call creates one of ``own``. Its name and its attributes are those of
    ``own``, also when they are assigned, because methods of a subclass use ``self.__class__`` like
    ``type(self)``.

    Args:
        own: ``Agent`` or a subclass.
    """
    known: type[Any] | None = vars(own).get(_KEPT)
    if known is None:
        try:
            known = _ClassForSDK(own.__name__, (SDKAgent,), {"_own": own})
        except TypeError:  # the instances of `own` have another layout: it has `__slots__`
            known = SDKAgent
        setattr(own, _KEPT, known)
    return known


class _Unregistered:
    """Keeps ``__init_subclass__`` of the own class from seeing a class that nobody has written."""

    def __init_subclass__(cls, **_: Any) -> None:
        pass


class _ClassForSDK(type):
    _own: type[Any]

    def mro(cls) -> list[type]:
        # Not as bases: the own class would list this one in its `__subclasses__()`.
        own = cls.__dict__["_own"].__mro__
        both = [*own, *(kind for kind in SDKAgent.__mro__ if kind not in own)]
        return [cls, _Unregistered, *(kind for kind in both if kind is not object), object]

    def __getattribute__(cls, name: str) -> Any:
        # Not only by the order of classes: Python would keep what it has found there when it has changed.
        read = type.__getattribute__
        if name in _ABOUT_ITSELF:
            return read(cls, name)
        own = read(cls, "_own")
        return (own, SDKAgent) if name == "__bases__" else getattr(own, name)

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        return cls._own(*arguments, **options)

    def __setattr__(cls, name: str, value: object) -> None:
        setattr(cls._own, name, value)

    def __delattr__(cls, name: str) -> None:
        delattr(cls._own, name)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls._own is other

    def __hash__(cls) -> int:
        return hash(cls._own)

    def __repr__(cls) -> str:
        return repr(cls._own)
