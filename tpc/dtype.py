"""Element types as users spell them, and PyTorch's promotion rules."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tpc.ir.types import NUMPY_DTYPES, category, complex_dtype, is_complex, is_floating


class dtype:  # noqa: N801 - PyTorch's spelling
    """An element type, such as `tpc.float32`; `ir` is its name in programs, `numpy` its NumPy twin."""

    __slots__ = ("ir", "is_complex", "is_floating_point", "itemsize", "name", "numpy")

    def __init__(self, name: str, ir: str) -> None:
        self.name = name
        self.ir = ir
        self.numpy = NUMPY_DTYPES[ir]
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = is_floating(ir)
        self.is_complex = is_complex(ir)

    def __repr__(self) -> str:
        return f"tpc.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_ir, (self.ir,)

    @property
    def is_signed(self) -> bool:
        return self.ir[0] in "ifc"

    def to_complex(self) -> dtype:
        return BY_IR[complex_dtype(self.ir)]


bool_ = dtype("bool", "bool")
uint8, uint16, uint32, uint64 = (dtype(f"uint{n}", f"u{n}") for n in (8, 16, 32, 64))
int8, int16, int32, int64 = (dtype(f"int{n}", f"i{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (dtype(f"float{n}", f"f{n}") for n in (16, 32, 64))
complex64, complex128 = (dtype(f"complex{n}", f"c{n}") for n in (64, 128))


class _Absent(dtype):
    """A dtype that NumPy has not: it can be named, compared and asked for its limits; a tensor of it cannot be made."""

    __slots__ = ("limits",)

    def __init__(self, name: str, itemsize: int, eps: float, max: float, tiny: float) -> None:
        self.name, self.itemsize, self.is_floating_point, self.is_complex = name, itemsize, True, False
        self.limits = (eps, max, tiny)

    def __reduce__(self) -> tuple[Any, ...]:
        return _absent, (self.name,)


ABSENT = {
    d.name: d
    for d in (
        _Absent("bfloat16", 2, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126),
        _Absent("float8_e4m3fn", 1, 2.0**-3, 448.0, 2.0**-6),
        _Absent("float8_e5m2", 1, 2.0**-2, 57344.0, 2.0**-14),
    )
}
bfloat16, float8_e4m3fn, float8_e5m2 = ABSENT.values()


def _absent(name: str) -> dtype:
    return ABSENT[name]


BY_IR: dict[str, dtype] = {
    d.ir: d for d in (bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, complex64, complex128)
}

SCALAR_NAMES = {
    "bool": "Bool", "u8": "Byte", "i8": "Char", "i16": "Short", "i32": "Int", "i64": "Long", "f16": "Half", "f32": "Float", "f64": "Double",
    "c64": "ComplexFloat", "c128": "ComplexDouble", "u16": "UInt16", "u32": "UInt32", "u64": "UInt64",
}  # fmt: skip
"""What PyTorch's messages call the dtypes."""

_ALIASES = {bool: bool_, int: int64, float: float32, complex: complex64}

_default = "f32"


def _from_ir(name: str) -> dtype:
    return BY_IR[name]


def default_dtype() -> str:
    """IR name of the dtype that Python floats get."""
    return _default


def get_default_dtype() -> dtype:
    """The dtype that Python floats get (float32 unless set)."""
    return BY_IR[_default]


def set_default_dtype(d: dtype) -> None:
    """Sets the dtype that Python floats get; `TypeError` unless it is floating."""
    global _default
    if not isinstance(d, dtype) or isinstance(d, _Absent) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    _default = d.ir
    from tpc.storage import REARRANGED

    REARRANGED.count += 1


def ir_dtype(d: object) -> str:
    """IR name of a `tpc.dtype`, a Python scalar type or a NumPy dtype."""
    if isinstance(d, _Absent):
        raise TypeError(f"tpc cannot compute in {d.name}, which NumPy has not: use float16 or float32")
    if isinstance(d, dtype):
        return d.ir
    if isinstance(d, type) and d in _ALIASES:
        return default_dtype() if d is float else _ALIASES[d].ir
    try:
        kind = np.dtype(d)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(f"dtype must be a tpc dtype, not {d!r}") from None
    for name, numpy_dtype in NUMPY_DTYPES.items():
        if numpy_dtype == kind:
            return name
    raise TypeError(f"tpc has no dtype {kind}")


def scalar_dtype(value: Any) -> str:
    """IR dtype of a Python (or NumPy) scalar standing alone."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "i64"
    if isinstance(value, (float, np.floating)):
        return _default
    return complex_dtype(_default)


@cache
def promote(a: str | None, b: str | None) -> str | None:
    """The common dtype of two tensors of equal rank class (PyTorch's `promote_types`); None is the neutral element."""
    if a is None or b is None or a == b:
        return a or b
    if category(a) < category(b):
        a, b = b, a
    if is_complex(a):
        return "c128" if "f64" in (a, b) or "c128" in (a, b) else a
    if is_floating(a):
        return a if not is_floating(b) else max(a, b, key=lambda d: NUMPY_DTYPES[d].itemsize)
    if b == "bool":
        return a
    common = np.promote_types(NUMPY_DTYPES[a], NUMPY_DTYPES[b])
    if common.kind == "f":
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {BY_IR[a]} and {BY_IR[b]}")
    return ("u" if common.kind == "u" else "i") + str(common.itemsize * 8)


@cache
def combine(higher: str | None, lower: str | None) -> str | None:
    """Dtype of operands of two priorities: the lower one counts only where its category is higher."""
    if higher is None or lower is None:
        return higher or lower
    if is_complex(higher):
        return higher
    if is_floating(higher):
        return complex_dtype(higher) if is_complex(lower) else higher
    if higher == "bool" or category(lower) > 1:
        return promote(higher, lower)
    return higher


def can_cast(source: str, target: str) -> bool:
    """Whether an in-place result of dtype `source` may be stored in `target` (categories never go down)."""
    return category(source) <= category(target)


class finfo:  # noqa: N801 - PyTorch's spelling
    """Limits of a floating dtype."""

    def __init__(self, d: dtype | None = None) -> None:
        if isinstance(d, _Absent):
            self.eps, self.max, self.tiny = d.limits
            self.min, self.smallest_normal, self.resolution, self.bits, self.dtype = -self.max, self.tiny, self.eps, 8 * d.itemsize, d.name
            return
        if d is not None and not d.is_floating_point and not d.is_complex:
            raise TypeError(f"tpc.finfo() requires a floating point input type. Use tpc.iinfo to handle '{d!r}'")
        info = np.finfo(get_default_dtype().numpy if d is None else d.numpy)
        self.eps, self.max, self.min, self.tiny = float(info.eps), float(info.max), float(info.min), float(info.tiny)
        self.smallest_normal, self.resolution, self.bits = self.tiny, 10.0**-info.precision, info.bits
        self.dtype = (d or get_default_dtype()).name

    def __repr__(self) -> str:
        return _written("finfo", self, "resolution min max eps smallest_normal tiny dtype")


def _written(name: str, limits: Any, fields: str) -> str:
    values = [(f, getattr(limits, f)) for f in fields.split()]
    return f"{name}({', '.join(f'{f}={v:g}' if isinstance(v, float) else f'{f}={v}' for f, v in values)})"


class iinfo:  # noqa: N801 - PyTorch's spelling
    """Limits of an integer dtype."""

    def __init__(self, d: dtype) -> None:
        if d.is_floating_point or d.is_complex or d is bool_:
            raise TypeError(f"tpc.iinfo() requires an integer input type. Use tpc.finfo to handle '{d!r}'")
        info = np.iinfo(d.numpy)
        self.max, self.min, self.bits, self.dtype = int(info.max), int(info.min), info.bits, d.name

    def __repr__(self) -> str:
        return _written("iinfo", self, "min max dtype")
