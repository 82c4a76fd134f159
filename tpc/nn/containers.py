"""Modules that hold others: in order, by name, or called one after the other."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from tpc.nn.module import Module
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor


def _position(index: Any, count: int) -> int:
    i = operator.index(index)
    if not -count <= i < count:
        raise IndexError(f"index {i} is out of range")
    return i % count


class _Row(Module):
    """Modules named by their positions."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _renumber(self, modules: Iterable[Module | None]) -> None:
        kept = list(modules)
        self._changes("_modules")
        self.__dict__["_modules"] = {str(i): m for i, m in enumerate(kept)}

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return self._modules[self._name_at(index)]
        part = type(self)()
        for name in list(self._modules)[index]:
            part.add_module(name, self._modules[name])
        return part

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: Any) -> None:
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._renumber(self._modules.values())

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds several at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Adds a module before the one at `index`."""
        kept = list(self._modules.values())
        kept.insert(index, module)
        self._renumber(kept)
        return self

    def pop(self, index: int = -1) -> Any:
        """Removes a module and gives it."""
        found = self[index]
        del self[index]
        return found

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)


class Sequential(_Row):
    """Modules called one after the other, each with what the one before gave."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0] if len(args) == 1 and isinstance(args[0], OrderedDict) else {str(i): m for i, m in enumerate(args)}
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)


class ModuleList(_Row):
    """A list of modules whose parameters are its own. It has no forward."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules if modules is not None else ())

    def __getitem__(self, index: Any) -> Any:
        return type(self)(list(self)[index]) if isinstance(index, slice) else super().__getitem__(index)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        lines, first = [], 0
        for text, equal in itertools.groupby([repr(module) for module in self]):
            count = len(list(equal))
            label = f"({first})" if count == 1 else f"({first}-{first + count - 1}): {count} x"
            lines.append((label + (": " if count == 1 else " ") + text).replace("\n", "\n  "))
            first += count
        return f"{self._get_name()}(" + "".join(f"\n  {line}" for line in lines) + ("\n)" if lines else ")")


class ModuleDict(Module):
    """Modules by name. It has no forward."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules if modules is not None else {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """Names with their modules."""
        return self._modules.items()

    def clear(self) -> None:
        """Removes all."""
        for key in list(self._modules):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes a module and gives it."""
        found = self[key]
        del self[key]
        return found

    def update(self, modules: Any) -> None:
        """Adds modules from a mapping or from pairs."""
        for key, module in dict(modules).items():
            self[key] = module


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        return f"{kind} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"
    return f"Object of type: {type(value).__name__}"


def _trained(value: Any) -> Any:
    """Tensors become parameters; other values stay."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values if values is not None else ())

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(len(self))[index]])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, str(_position(index, len(self))), _trained(value))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def append(self, value: Any) -> Self:
        """Adds one at the end."""
        setattr(self, str(self._size), _trained(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds several at the end."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_described(value)}" for i, value in enumerate(self))


class ParameterDict(Module):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._names: dict[str, None] = {}
        self.update(parameters if parameters is not None else {})

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._known(key))

    def _known(self, key: str) -> str:
        if key not in self._names:
            raise KeyError(key)
        return key

    def __setitem__(self, key: str, value: Any) -> None:
        self._names[key] = None
        setattr(self, key, _trained(value))

    def __delitem__(self, key: str) -> None:
        delattr(self, self._known(key))
        del self._names[key]

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def keys(self) -> Any:
        """The names."""
        return self._names.keys()

    def values(self) -> Any:
        """The parameters."""
        return [self[key] for key in self._names]

    def items(self) -> Any:
        """Names with their parameters."""
        return [(key, self[key]) for key in self._names]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of that name, or `default`."""
        return getattr(self, key) if key in self._names else default

    def pop(self, key: str) -> Any:
        """Removes a parameter and gives it."""
        found = self[key]
        del self[key]
        return found

    def update(self, parameters: Any) -> None:
        """Adds parameters from a mapping or from pairs."""
        for key, value in dict(parameters).items():
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_described(value)}" for key, value in self.items())
