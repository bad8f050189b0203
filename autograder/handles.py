# SPDX-License-Identifier: MIT
"""Stand-ins for what stays in the student's process: objects and names.

They refuse truth, comparison, length, numbers and torch's functions, as a failed assertion:
otherwise `assert student.verify(x)` would pass with any object whose class defines `__eq__`.
"""

from collections.abc import Iterator
from typing import Any, NoReturn, Protocol

from autograder.errors import OpaqueValueError

__all__ = ["RemoteName", "RemoteObject"]

REFUSED = (
    "bool eq ne lt le gt ge len contains int float complex index round abs neg pos invert "
    "add sub mul truediv floordiv mod pow matmul and or xor radd rsub rmul rtruediv rpow rmatmul"
).split()


class Requests(Protocol):
    """What handles need of a connection."""

    def request(self, operation: str, **fields: Any) -> Any: ...


class _Refusing:
    """Refuses to be used as a value."""

    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> NoReturn:
        raise OpaqueValueError("expected a tensor; got an object of the student's")


def _refuse(name: str) -> Any:
    def refuse(self: Any, *_: Any) -> NoReturn:
        raise OpaqueValueError(f"{self!r} has no __{name}__ here; compare what it holds")

    return refuse


for _name in REFUSED:
    setattr(_Refusing, f"__{_name}__", _refuse(_name))


class RemoteObject(_Refusing):
    """An object of the student's. Calls, attributes and items cross; nothing else does."""

    def __init__(self, connection: Requests, number: int, class_name: str, is_module: bool) -> None:
        self.__dict__.update(
            _connection=connection, _number=number, _class_name=class_name, _is_module=is_module
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._request("call", args=args, kwargs=kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._request("get", name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._request("setattr", name=name, value=value)

    def __getitem__(self, index: Any) -> Any:
        return self._request("item", index=index)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._request("iter")
        if not isinstance(iterator, RemoteObject):
            raise OpaqueValueError(f"{self!r} gave no iterator")
        while items := iterator.take(1):
            yield items[0]

    def take(self, count: int) -> list[Any]:
        """Return up to `count` next items of a remote iterator."""
        items = self._request("next", count=count)
        if type(items) is not list or len(items) > count:
            raise OpaqueValueError(f"{self!r} gave no list of at most {count} items")
        return items

    def __repr__(self) -> str:
        return f"<{self._class_name} of the student's>"

    def _request(self, operation: str, **fields: Any) -> Any:
        return self._connection.request(operation, target=self._number, **fields)


class RemoteName(_Refusing):
    """A dotted name of the notebook, looked up when it is called."""

    def __init__(self, process: Any, name: str) -> None:
        self._process, self._name = process, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._process.call(self._name, *args, **kwargs)

    def __getattr__(self, name: str) -> "RemoteName":
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteName(self._process, f"{self._name}.{name}")

    def __repr__(self) -> str:
        return f"<name {self._name} of the student's>"
