"""JSON-like data that cannot be changed, because all users of a loader share one definition.

Subclasses of dict and list, so that ``json.dumps``, comparisons and ``isinstance`` work.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

from kantan_agents.subagent_files.json_like import copy_data


def freeze_data(value: Any) -> Any:
    """Return an unchangeable copy of JSON-like data, with tuples as lists.

    `find_invalid_value` reports other values, which are not copied.
    """
    return copy_data(value, as_dict=FrozenDict, as_list=FrozenList)


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    del self, args, kwargs
    raise TypeError("the data of an agent definition cannot be changed; change a copy.deepcopy of it")


class FrozenDict(dict[str, Any]):
    """``copy.deepcopy`` returns a plain dict."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze_data, (copy_data(self),)


class FrozenList(list[Any]):
    """``copy.deepcopy`` returns a plain list."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze_data, (copy_data(self),)
