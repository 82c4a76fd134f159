"""`vmap`: a function of one sample applied to a batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tpc.batching.batched import Batched, VmapLevel, entered, is_batched, lowered, physical
from tpc.functions.joining import cat
from tpc.functions.shape import movedim
from tpc.state import STATE
from tpc.tensor import Tensor
from tpc.tree import LEAF, flatten, unflatten

RANDOMNESS = ("error", "same", "different")


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """`func` mapped over dimension `in_dims` of its arguments; results get the batch as dimension `out_dims`.

    `in_dims` is an int or None for all, or mirrors the arguments. `randomness` says what random functions inside do. With
    `chunk_size`, the batch
    runs in pieces. Raises `ValueError` for arguments that cannot be mapped, `RuntimeError` where `func` does something that has no
    meaning for a batch.
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(args)
        dims = _spread(in_dims, args, len(leaves))
        named, named_structure = flatten(kwargs)
        leaves, dims = [*leaves, *named], [*dims, *[0 if isinstance(x, Tensor) else None for x in named]]
        size = _batch_size(leaves, dims)

        def run(leaves: Sequence[Any], size: int) -> Any:
            count = len(leaves) - len(named)
            return _run(
                func,
                leaves,
                dims,
                size,
                randomness,
                out_dims,
                lambda b: (unflatten(structure, b[:count]), unflatten(named_structure, b[count:])),
            )

        if chunk_size is None or chunk_size >= size:
            return run(leaves, size)
        return _joined([run(_piece(leaves, dims, i, chunk_size), min(chunk_size, size - i)) for i in range(0, size, chunk_size)], out_dims)

    return mapped


def _run(func: Any, leaves: Sequence[Any], dims: Sequence[Any], size: int, randomness: str, out_dims: Any, rebuild: Any) -> Any:
    level = VmapLevel(size, randomness, len(STATE.vmaps) + 1)
    with entered(level):
        batched = [_batch(x, d, level) for x, d in zip(leaves, dims, strict=True)]
        args, kwargs = rebuild(batched)
        result = func(*args, **kwargs)
        return _unbatched(result, out_dims, level)


def _batch(x: Any, dim: int | None, level: VmapLevel) -> Any:
    if dim is None:
        return x
    with lowered(level):
        dim %= x._type.rank
        return Batched(movedim(x, dim, 0) if dim else x, level, (x, dim))


def _spread(in_dims: Any, args: tuple[Any, ...], count: int) -> list[int | None]:
    """One dimension (or None) for each leaf of the arguments."""
    if in_dims is None or isinstance(in_dims, int):
        return [in_dims if isinstance(x, Tensor) else None for x in flatten(args)[0]] if in_dims is not None else [None] * count
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if not isinstance(in_dims, tuple):
        raise ValueError(
            f"vmap: expected in_dims to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}"
        )
    if len(in_dims) != len(args):
        raise ValueError(f"vmap: in_dims is not compatible with the structure of inputs: {len(in_dims)} in_dims for {len(args)} arguments")
    return [d for spec, arg in zip(in_dims, args, strict=True) for d in _spread_one(spec, arg)]


def _spread_one(spec: Any, arg: Any) -> list[int | None]:
    inside, structure = flatten(arg)
    if spec is None:
        return [None] * len(inside)
    if isinstance(spec, int):
        if structure == LEAF and not isinstance(arg, Tensor):
            raise ValueError(
                f"vmap: Got in_dim={spec} for an input but the input is of type {type(arg)}. We cannot vmap over non-Tensor "
                "arguments, please use "
                "None as the respective in_dim"
            )
        return [spec if isinstance(x, Tensor) else None for x in inside]
    dims, given = flatten(spec)
    if given != structure:
        raise ValueError(f"vmap: in_dims {spec} is not compatible with the structure of its argument")
    return dims


def _batch_size(leaves: Sequence[Any], dims: Sequence[int | None]) -> int:
    sizes = []
    for x, d in zip(leaves, dims, strict=True):
        if d is None:
            continue
        rank = x._type.rank
        if not -rank <= d < rank:
            raise ValueError(
                f"vmap: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {rank} so expected in_dim to "
                f"satisfy -{rank} <= in_dim < {rank}."
            )
        sizes.append(x._type.shape[d])
    if not sizes:
        raise ValueError(
            "vmap: at least one input must be a Tensor with an in_dim that is not None: vmap called with no inputs to map over"
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return int(sizes[0])


def _unbatched(result: Any, out_dims: Any, level: VmapLevel) -> Any:
    found, structure = flatten(result)
    for x in found:
        if not isinstance(x, Tensor):
            raise ValueError(f"vmap: the function must only return Tensors, got type {type(x)} as a return")
    if out_dims is None or isinstance(out_dims, int):
        dims = [out_dims] * len(found)
    else:
        dims = flatten(out_dims)[0]
        if len(dims) != len(found):
            raise ValueError(
                f"vmap: out_dims is not compatible with the structure of outputs: {len(dims)} out_dims for {len(found)} outputs"
            )
    with lowered(level):
        return unflatten(structure, [_one_out(x, d, level) for x, d in zip(found, dims, strict=True)])


def _one_out(x: Tensor, dim: int | None, level: VmapLevel) -> Tensor:
    if dim is None:
        if is_batched(x, level):
            raise ValueError("vmap: the function returned a batched Tensor where out_dims is None")
        return x
    whole = physical(x, level)
    return movedim(whole, 0, dim) if dim % whole._type.rank else whole


def _piece(leaves: Sequence[Any], dims: Sequence[int | None], start: int, size: int) -> list[Any]:
    return [x if d is None else x.narrow(d, start, min(size, x._type.shape[d] - start)) for x, d in zip(leaves, dims, strict=True)]


def _joined(parts: Sequence[Any], out_dims: Any) -> Any:
    rows = [flatten(p)[0] for p in parts]
    dims = [out_dims] * len(rows[0]) if isinstance(out_dims, int) else flatten(out_dims)[0]
    return unflatten(flatten(parts[0])[1], [cat(column, d) for column, d in zip(zip(*rows, strict=True), dims, strict=True)])
