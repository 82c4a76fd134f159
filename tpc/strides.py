"""Where the elements of a view lie: the strides that PyTorch would give it, over a storage in row-major order.

Strides decide what is a view and what a copy: `view` needs the new shape to be expressible by strides, `reshape` copies where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tpc.batching.batched import Batched
from tpc.ir.opdef import OpDef
from tpc.ir.ops import elementwise, pairs
from tpc.ir.ops import shape as ops
from tpc.storage import Alias, Storage
from tpc.tensor import Tensor


class Layout(NamedTuple):
    """Shape, steps in elements per dimension, and the element that index 0 is."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def is_contiguous(self) -> bool:
        """Whether elements follow each other in row-major order (dimensions of size 1 do not matter)."""
        if 0 in self.shape:
            return True
        expected = 1
        for n, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1:
                if step != expected:
                    return False
                expected *= n
        return True


def row_major(shape: tuple[int, ...]) -> Layout:
    """The layout of fresh memory."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return Layout(shape, tuple(reversed(strides)))


def layout_of(x: Tensor) -> Layout:
    """How a tensor lies in its storage (one sample of it, for a batched tensor)."""
    if isinstance(x, Batched):
        whole = layout_of(x._physical)
        return Layout(whole.shape[1:], whole.strides[1:], whole.offset)
    layout = row_major(whole_storage(x).value.type.shape if x._views else x._type.shape)
    for step in x._views:
        layout = _STEPS[step.defn](layout, step.attrs)
    return layout


def is_contiguous(x: Tensor) -> bool:
    """Whether a tensor's elements follow each other in row-major order."""
    return _is_reshaped(x) or layout_of(x).is_contiguous


def is_viewable(x: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether strides can show the memory of `x` in another shape (of as many elements)."""
    return _is_reshaped(x) or restrided(layout_of(x), shape) is not None


def whole_storage(x: Tensor) -> Storage:
    """The memory that a tensor is in, also where it is reached through `.data`."""
    storage = x._storage
    while isinstance(storage, Alias):
        storage = storage.target
    return storage


def _is_reshaped(x: Tensor) -> bool:
    """Whether a tensor's views only reshape memory in row-major order, which stays so."""
    return not isinstance(x, Batched) and all([step.defn is ops.reshape for step in x._views])


def restrided(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that show a layout in another shape; None where there are none.

    Dimensions that follow each other seamlessly form a chunk; each chunk must be a product of new dimensions.
    """
    if 0 in layout.shape:
        return layout.strides if shape == layout.shape else row_major(shape).strides
    if not layout.shape:
        return (1,) * len(shape)
    strides = [0] * len(shape)
    at = len(shape) - 1
    step = layout.strides[-1]
    old = new = 1
    for d in range(len(layout.shape) - 1, -1, -1):
        old *= layout.shape[d]
        if d > 0 and (layout.shape[d - 1] == 1 or layout.strides[d - 1] == old * step):
            continue
        while at >= 0 and (new < old or shape[at] == 1):
            strides[at] = new * step
            new *= shape[at]
            at -= 1
        if new != old:
            return None
        if d > 0:
            step = layout.strides[d - 1]
            old = new = 1
    return tuple(strides) if at < 0 else None


# --- one view step each -------------------------------------------------------------------------

Attrs = Mapping[str, Any]


def _reshape(layout: Layout, attrs: Attrs) -> Layout:
    shape = attrs["shape"]
    strides = restrided(layout, shape)
    assert strides is not None, "a view was recorded that strides cannot express"
    return Layout(shape, strides, layout.offset)


def _permute(layout: Layout, attrs: Attrs) -> Layout:
    dims = attrs["dims"]
    return Layout(tuple([layout.shape[d] for d in dims]), tuple([layout.strides[d] for d in dims]), layout.offset)


def _broadcast_to(layout: Layout, attrs: Attrs) -> Layout:
    shape = attrs["shape"]
    extra = len(shape) - len(layout.shape)
    kept = [step if n == m else 0 for n, m, step in zip(layout.shape, shape[extra:], layout.strides, strict=True)]
    return Layout(shape, (0,) * extra + tuple(kept), layout.offset)


def _slice(layout: Layout, attrs: Attrs) -> Layout:
    bounds = list(zip(attrs["starts"], attrs["limits"], attrs["steps"], strict=True))
    shape = tuple([max(0, -(-(limit - start) // step)) for start, limit, step in bounds])
    offset = layout.offset + sum(start * stride for (start, _, _), stride in zip(bounds, layout.strides, strict=True))
    return Layout(shape, tuple([step * stride for (_, _, step), stride in zip(bounds, layout.strides, strict=True)]), offset)


def _diagonal(layout: Layout, attrs: Attrs) -> Layout:
    offset, a, b = attrs["offset"], attrs["dim1"], attrs["dim2"]
    rows, columns = layout.shape[a] - max(-offset, 0), layout.shape[b] - max(offset, 0)
    length = max(0, min(rows, columns))
    rest = [d for d in range(len(layout.shape)) if d not in (a, b)]
    start = (layout.strides[b] * offset if offset > 0 else -layout.strides[a] * offset) if length else 0
    return Layout(
        (*[layout.shape[d] for d in rest], length),
        (*[layout.strides[d] for d in rest], layout.strides[a] + layout.strides[b]),
        layout.offset + start,
    )


def _real(layout: Layout, attrs: Attrs) -> Layout:
    return Layout(layout.shape, tuple([2 * step for step in layout.strides]), 2 * layout.offset)


def _imag(layout: Layout, attrs: Attrs) -> Layout:
    real = _real(layout, attrs)
    return real._replace(offset=real.offset + 1)


def _as_real(layout: Layout, attrs: Attrs) -> Layout:
    real = _real(layout, attrs)
    return Layout((*real.shape, 2), (*real.strides, 1), real.offset)


def _as_complex(layout: Layout, attrs: Attrs) -> Layout:
    return Layout(layout.shape[:-1], tuple([step // 2 for step in layout.strides[:-1]]), layout.offset // 2)


_STEPS: dict[OpDef, Callable[[Layout, Attrs], Layout]] = {
    ops.reshape: _reshape,
    ops.permute: _permute,
    ops.broadcast_to: _broadcast_to,
    ops.slice_: _slice,
    ops.diagonal: _diagonal,
    elementwise.real: _real,
    elementwise.imag: _imag,
    pairs.as_real: _as_real,
    pairs.as_complex: _as_complex,
}
