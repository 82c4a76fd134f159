"""Steps that compute: elementwise, comparison, reduction, matrix, random, casting."""

from __future__ import annotations

from tests.fuzz.growth import Growth, has_dims, is_floating, is_inexact, is_integer, is_numeric, is_real

SMOOTH = "neg exp sin cos tanh sigmoid square erf atan".split()
UNARY = "exp log log1p expm1 sqrt rsqrt reciprocal sin cos tan tanh asin acos atan sinh cosh sigmoid erf".split()
KINKED = "neg abs relu sign floor ceil round trunc square".split()


def unary(g: Growth) -> None:
    if g.smooth:
        x = g.value(is_floating)
        g.let(f"ns.{g.choose(SMOOTH)}({x})")
        return
    name = g.choose(UNARY + KINKED)
    x = g.value(is_floating if g.chance(85) else (is_real if name in KINKED else lambda t: True))
    if x:
        g.let(f"{x}.{name}()" if g.chance(30) else f"ns.{name}({x})")


def complex_unary(g: Growth) -> None:
    x = g.value(lambda t: t.dtype.is_complex)
    if x:
        g.let(
            g.choose([f"ns.{g.choose('exp sin cos square neg sqrt tanh log reciprocal conj abs'.split())}({x})", f"{x}.real", f"{x}.imag"])
        )


def binary(g: Growth) -> None:
    x = g.value(is_floating if g.smooth else is_numeric)
    if x is None:
        return
    y = g.constant(x) if g.chance(30) else g.like(x)
    if g.chance(40):
        x, y = y, x
    op = g.choose(["+", "-", "*", "*", "+"])
    g.let(f"{x} {op} {y}" if not g.chance(10) else f"ns.{g.choose(['add', 'sub'])}({g.value(is_numeric)}, {y}, alpha=2)")


def real_binary(g: Growth) -> None:
    x = g.value(is_real)
    if x:
        y = g.like(x)
        g.let(
            f"ns.{g.choose(['maximum', 'minimum', 'fmod', 'remainder'])}({x}, {y})"
            if g.chance(70)
            else f"{x} {g.choose(['%', '//'])} {g.constant(x)}"
        )


def divide(g: Growth) -> None:
    x = g.value(is_floating if g.smooth or g.chance(70) else is_numeric)
    if x is None:
        return
    y = g.like(x)
    if g.smooth:
        g.let(g.choose([f"{x} / (1 + {y} * {y})", f"({x} * {x} + 0.5) ** {g.choose(['2', '3', '0.5', '1.5'])}"]))
        return
    g.let(
        g.choose(
            [f"{x} / {y}", f"{x} / {y}", f"{g.constant()} / {x}", f"{x} // {y}", f"{x} ** {g.choose(['2', '3', '0.5', '0', '1', '-1'])}"]
            + [f"ns.pow({x}, {y})", f"ns.atan2({x}, {y})", f"{g.choose(['2', '0.5'])} ** {x}"]
        )
    )


def compare(g: Growth) -> None:
    x = g.value()
    if x:
        y = g.like(x) if g.chance(60) else g.constant(x)
        g.let(f"{x} {g.choose(['<', '<=', '>', '>=', '==', '!='])} {y}")


def logical(g: Growth) -> None:
    x = g.value(lambda t: str(t.dtype).endswith("bool")) if g.chance(60) else g.value()
    if x:
        y = g.like(x)
        name = g.choose(["logical_and", "logical_or", "logical_xor", "isnan", "isinf", "isfinite", "logical_not"])
        g.let(f"ns.{name}({x})" if name.startswith("is") or name.endswith("not") else f"ns.{name}({x}, {y})")


def bitwise(g: Growth) -> None:
    x = g.value(lambda t: not is_inexact(t))
    if x is None:
        return
    y = g.like(x)
    if is_integer(g.env[x]) and g.chance(30):
        g.let(f"{x} {g.choose(['<<', '>>'])} {g.number(0, 3)}")
    else:
        g.let(g.choose([f"~{x}", f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}"]))


def where(g: Growth) -> None:
    x = g.value(is_floating if g.smooth else lambda t: True)
    if x is None:
        return
    y = g.constant(x) if g.chance(20) else g.like(x)
    masks = g.tensors(lambda t: str(t.dtype).endswith("bool"))
    condition = g.choose(masks) if masks and g.chance(50) else f"{g.value(is_real) or x} > {g.choose(['0', '0.5', '1'])}"
    if g.smooth:
        condition = f"{x} > 100.0"
    g.let(f"ns.where({condition}, {x}, {y})")


def clamp(g: Growth) -> None:
    x = g.value(is_real)
    if x is None:
        return
    low, high = g.choose(["-1", "0", "-0.5", g.like(x)]), g.choose(["1", "0.5", "2", g.like(x)])
    if (low[0] in "vxw") != (high[0] in "vxw"):
        low = "-1" if low[0] in "vxw" else low
        high = "1" if high[0] in "vxw" else high
    g.let(g.choose([f"ns.clamp({x}, {low}, {high})", f"{x}.clamp(min={low})", f"{x}.clamp(max={high})"]))


def _dims(g: Growth, x: str) -> str:
    rank = g.env[x].dim()
    if not rank or g.chance(25):
        return ""
    if g.chance(60):
        return f"dim={g.dim(x)}"
    return f"dim=({', '.join(map(str, g.some(range(rank), 1)))},)"


def reduce(g: Growth) -> None:
    x = g.value(is_floating if g.smooth or g.chance(80) else lambda t: True)
    if x is None:
        return
    name = g.choose(["sum", "sum", "mean"] if g.smooth else "sum sum mean amax amin prod any all var std logsumexp".split())
    dims = _dims(g, x)
    if name in ("prod", "any", "all") and "(" in dims:
        dims = f"dim={g.dim(x)}"
    if name == "logsumexp" and not dims:
        dims = "dim=0"
    keep = ", keepdim=True" if dims and g.chance(40) else ""
    extra = f", correction={g.number(0, 1)}" if name in ("var", "std") and dims and g.chance(30) else ""
    g.let(f"{x}.{name}({dims}{keep}{extra})" if g.chance(50) or not dims else f"ns.{name}({x}, {dims}{keep}{extra})")


def along(g: Growth) -> None:
    """One dimension in, the same out."""
    x = g.value(lambda t: is_floating(t) and has_dims(t))
    if x:
        names = ["softmax", "log_softmax", "cumsum"] if g.smooth else ["softmax", "softmax", "log_softmax", "cumsum", "cumprod"]
        g.let(f"{x}.{g.choose(names)}(dim={g.dim(x)})")


def extreme(g: Growth) -> None:
    x = g.value(is_real)
    if x is None:
        return
    if not g.env[x].dim() or g.chance(30):
        g.let(f"{x}.{g.choose(['argmax', 'argmin', 'max', 'min'])}()")
        return
    kind, dim = g.choose(["arg", "both", "both", "sort", "topk"]), g.dim(x)
    if kind == "arg":
        g.let(f"{x}.{g.choose(['argmax', 'argmin'])}(dim={dim}, keepdim={g.choose([False, True])})")
    elif kind == "both":
        g.let(f"{x}.{g.choose(['max', 'min'])}(dim={dim}{g.choose(['', ', keepdim=True'])})", 2)
    elif kind == "sort":
        g.let(f"{x}.sort(dim={dim}, stable=True{g.choose(['', ', descending=True'])})", 2)
    else:
        g.let(f"{x}.topk({g.number(0, min(2, g.env[x].shape[dim]))}, dim={dim})[0]")


def matmul(g: Growth) -> None:
    x = g.value(lambda t: is_floating(t) and t.dim() >= 1)
    if x is None:
        return
    a = g.env[x]
    fitting = g.tensors(lambda t: t.dtype == a.dtype and t.dim() >= 1 and t.shape[max(-2, -t.dim())] == a.shape[-1])
    if fitting and g.chance(70):
        y = g.choose(fitting)
    elif a.dim() >= 2:
        y = f"{x}.{g.choose(['mT', 'mT', 'transpose(-1, -2)'])}"
    else:
        y = x
    kind = g.choose(["@", "@", "matmul", "outer", "einsum", "addmm"])
    if kind == "outer" and a.dim() == 1:
        g.let(f"ns.outer({x}, {x})")
    elif kind == "einsum" and a.dim() == 2:
        g.let(g.choose([f"ns.einsum('ij,kj->ik', {x}, {x})", f"ns.einsum('ij->ji', {x})", f"ns.einsum('ij,ij->', {x}, {x})"]))
    elif kind == "addmm" and a.dim() == 2:
        g.let(f"ns.addmm({g.like(x, True)}, {x}, {y})")
    else:
        g.let(f"{x} @ {y}" if kind != "matmul" else f"ns.matmul({x}, {y})")


def random_values(g: Growth) -> None:
    if g.smooth or not g.random:
        return
    shape = g.choose(["(2, 3)", "(3,)", "()", "(1, 3)", "(0, 3)"])
    x = g.value(is_floating)
    if g.chance(25):
        g.do(f"ns.manual_seed({g.number(0, 5)})")
    options = [f"ns.rand({shape})", f"ns.randn({shape}, dtype=ns.float64)", f"ns.randint(0, 4, {shape})", "ns.randperm(3)"]
    if x:
        options += [f"ns.rand_like({x})", f"ns.randn_like({x})", f"ns.bernoulli(ns.sigmoid({x}))"]
    g.let(g.choose(options))


CASTS = "float32 float32 float64 float16 int64 int32 uint8 bool complex64 complex128".split()


def cast(g: Growth) -> None:
    x = g.value()
    if x is None:
        return
    dtype = "float64" if g.smooth else g.choose(CASTS)
    if g.env[x].dtype.is_complex and not dtype.startswith("complex"):
        return
    if is_inexact(g.env[x]) and dtype in ("int64", "int32", "uint8"):
        g.let(f"{x}.nan_to_num(0, 0, 0).clamp(0, 9).to(ns.{dtype})")
        return
    g.let(g.choose([f"{x}.to(ns.{dtype})", f"{x}.to(ns.{dtype})", f"{x}.type_as({g.like(x)})" if is_real(g.env[x]) else f"{x}.clone()"]))


def factory(g: Growth) -> None:
    dtype = "float64" if g.smooth else g.choose(["float32", "float64", "int64", "bool"])
    x = g.value()
    options = [f"ns.ones({g.choose(['2, 3', '3', '1, 3'])}, dtype=ns.{dtype})", f"ns.full((2, 3), 2.0, dtype=ns.{dtype})"]
    options += [f"ns.arange({g.number(1, 3)})", "ns.linspace(0, 1, 3)", "ns.eye(3)", "ns.tensor([1.0, -2.0, 0.5])", "ns.zeros(())"]
    if x:
        options += [f"ns.zeros_like({x})", f"ns.ones_like({x})", f"{x}.new_full((3,), 1)", f"ns.full_like({x}, 2)"]
    g.let(g.choose(options))


def copy(g: Growth) -> None:
    x = g.value()
    if x:
        g.let(f"{x}.{g.choose(['clone()', 'contiguous()', 'detach()' if not g.smooth else 'clone()'])}")


VALUES = (unary, unary, unary, binary, binary, binary, binary, divide, reduce, reduce, along, matmul, matmul, cast, factory, copy, where)
"""Steps that smooth programs have too."""

MORE_VALUES = (*VALUES, complex_unary, real_binary, compare, logical, bitwise, clamp, extreme, random_values)
