"""Where tensors live: on the CPU. The class is there so that device-aware code runs unchanged."""

from __future__ import annotations

from typing import Any


class device:  # noqa: N801 - PyTorch's spelling
    """`device("cpu")`; any other kind is a `RuntimeError`."""

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | device = "cpu", index: int | None = None) -> None:
        name = type if isinstance(type, str) else str(type)
        kind, _, number = name.partition(":")
        if kind != "cpu":
            raise RuntimeError(f"tpc runs on the CPU; there is no device {name!r}")
        self.type = kind
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        return "device(type='cpu')" if self.index is None else f"device(type='cpu', index={self.index})"

    def __str__(self) -> str:
        return "cpu" if self.index is None else f"cpu:{self.index}"

    def __eq__(self, other: object) -> bool:
        """Equal to another CPU device, also when one of them has a number, and to its name."""
        if isinstance(other, str):
            return other.partition(":")[0] == "cpu"
        return isinstance(other, device)

    def __hash__(self) -> int:
        return hash("cpu")

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


CPU = device("cpu")


def is_device(x: object) -> bool:
    """Whether `x` names a device rather than a dtype."""
    return isinstance(x, (device, str))


def checked_device(x: object) -> device:
    """The CPU for None, "cpu", `device("cpu")`; `RuntimeError` for anything else."""
    if x is None or isinstance(x, device):
        return CPU
    if isinstance(x, str):
        return device(x)
    if isinstance(x, int) and not isinstance(x, bool):
        raise RuntimeError(f"tpc runs on the CPU; there is no device {x}")
    raise TypeError(f"a device is a string or tpc.device, not {type(x).__name__}")
