"""Steps about memory: views, joining, indexing, and writing in place."""

from __future__ import annotations

from tests.fuzz.growth import Growth, has_dims, is_floating, is_integer, is_numeric, is_real


def view(g: Growth) -> None:
    x = g.value()
    if x:
        g.let(_viewed(g, x))


def _viewed(g: Growth, x: str) -> str:
    t = g.env[x]
    rank, numel = t.dim(), t.numel()
    options = [f"{x}.reshape(-1)" if numel else f"{x}.unsqueeze(0)", f"{x}.unsqueeze({g.number(-rank - 1, rank)})", f"{x}.squeeze()"]
    options += [f"{x}.view({', '.join(map(str, _factored(g, numel)))})", f"{x}[...]", f"{x}.view_as({x})"]
    if rank:
        order = list(range(rank))
        for i in range(rank - 1):
            j = g.number(i, rank - 1)
            order[i], order[j] = order[j], order[i]
        options += [f"{x}.permute({', '.join(map(str, order))})", f"{x}.transpose({g.dim(x)}, {g.dim(x)})", f"{x}.flatten()"]
        options += [f"{x}[{basic_index(g, x)}]"] * 3
        wide = ", ".join(str(g.number(1, 3) if n == 1 else n) for n in t.shape)
        options += [f"{x}.expand({g.number(1, 2)}, {wide})", f"{x}.broadcast_to(({wide},))", f"{x}.squeeze({g.dim(x)})"]
    if rank <= 2:
        options.append(f"{x}.t()")
    if rank >= 2:
        options += [f"{x}.mT", f"{x}.diagonal({g.number(-1, 1)})", f"{x}.flatten({g.number(0, rank - 2)}, -1)"]
    return g.choose(options)


def _factored(g: Growth, numel: int) -> tuple[int, ...]:
    return g.choose([(numel,), (1, numel), (numel, 1), *[(n, numel // n) for n in (2, 3) if numel % n == 0]])


def basic_index(g: Growth, x: str) -> str:
    """Ints, slices, None and Ellipsis."""
    parts = []
    for n in g.env[x].shape[: g.number(1, g.env[x].dim())]:
        kind = g.choose(["int", "slice", "slice", ":", "None"])
        if kind == "int" and n:
            parts.append(str(g.number(-n, n - 1)))
        elif kind == "slice":
            start = g.number(0, n)
            parts.append(g.choose([f"{start}:", f":{start}", f"{start}:{g.number(0, n)}", f"::{g.number(1, 2)}", f"-{start}:"]))
        elif kind == "None":
            parts += ["None", ":"]
        else:
            parts.append(":")
    if g.chance(10):
        parts.insert(0, "...")
    return ", ".join(parts)


def parts_of(g: Growth) -> None:
    """Several views at once."""
    x = g.value(has_dims)
    if x is None:
        return
    dim = g.dim(x)
    n = g.env[x].shape[dim]
    if n >= 2 and g.chance(60):
        first = g.number(1, n - 1)
        g.let(f"{x}.split([{first}, {n - first}], dim={dim})" if g.chance(60) else f"{x}.chunk(2, dim={dim})", 2)
    elif n:
        g.let(f"{x}.unbind({dim})[{g.number(0, n - 1)}]")


def join(g: Growth) -> None:
    x = g.value(has_dims if g.chance(70) else lambda t: True)
    if x is None:
        return
    t = g.env[x]
    others = g.tensors(lambda u: u.shape == t.shape)
    if not t.dim() or g.chance(40):
        g.let(f"ns.stack([{x}, {g.choose(others)}], {g.number(0, t.dim())})")
    else:
        g.let(f"ns.cat([{x}, {', '.join(g.choose(others) for _ in range(g.number(1, 2)))}], dim={g.dim(x)})")


def arrange(g: Growth) -> None:
    x = g.value(has_dims)
    if x is None:
        return
    options = [f"{x}.flip({g.dim(x)})", f"{x}.repeat({', '.join(['2'] * g.env[x].dim())})", f"ns.roll({x}, 1, {g.dim(x)})"]
    if g.env[x].dim() >= 2:
        options += [f"ns.tril({x}, {g.number(-1, 1)})", f"ns.triu({x})"]
    g.let(g.choose(options))


# --- indices ------------------------------------------------------------------------------------


def _places(g: Growth, n: int, count: int | None = None, distinct: bool = False) -> str:
    """An index tensor into a dimension of size n, as an expression."""
    count = g.number(1, 3) if count is None else count
    if distinct or g.smooth:
        count = min(count, n)
        return f"ns.tensor({[(i * 2 + g.number(0, 1)) % n if n > 2 * count else i for i in range(count)]})"
    if not g.smooth and g.chance(3):
        return f"ns.tensor({[n] * count})"
    return f"ns.tensor({[g.number(-n, n - 1) if g.chance(20) else g.number(0, n - 1) for _ in range(count)]})"


def advanced_index(g: Growth, x: str, mask: bool = True) -> str | None:
    """Index tensors, lists and masks, with slices between."""
    shape = g.env[x].shape
    if not shape or 0 in shape:
        return None
    if mask and not g.smooth and g.chance(35):
        return g.choose([f"{x} > {g.choose(['0', '1'])}", f"{x} == {x}"]) if is_real(g.env[x]) else None
    count = g.number(1, 3)
    kinds = [g.choose(["places", "places", ":", "int", "::2"]) for _ in shape[: g.number(1, len(shape))]]
    parts = []
    for n, kind in zip(shape, kinds, strict=False):
        parts.append(_places(g, n, count) if kind == "places" else str(g.number(0, n - 1)) if kind == "int" else kind)
    return ", ".join(parts) if "places" in kinds else None


def pick(g: Growth) -> None:
    x = g.value(has_dims)
    index = x and advanced_index(g, x)
    if index:
        g.let(f"{x}[{index}]")


def gather(g: Growth) -> None:
    x = g.value(lambda t: has_dims(t) and 0 not in t.shape)
    if x is None:
        return
    dim = g.dim(x)
    shape = list(g.env[x].shape)
    n = shape[dim]
    index = f"ns.{g.choose(['zeros', 'ones'] if n > 1 else ['zeros'])}({shape}, dtype=ns.int64)"
    if g.chance(50):
        index = f"(ns.arange({g.env[x].numel()}) % {n}).reshape({shape})"
    src = g.choose(g.tensors(lambda t: t.shape == g.env[x].shape and t.dtype == g.env[x].dtype))
    options = [f"ns.gather({x}, {dim}, {index})", f"{x}.index_select({dim}, {_places(g, n)})", f"ns.take_along_dim({x}, {index}, {dim})"]
    options.append(f"{x}.scatter_add({dim}, {index}, {src})")
    options.append(f"{x}.index_add({dim}, {_places(g, n, n)}, {src})")
    if is_real(g.env[x]) and not g.smooth:
        options.append(f"{x}.scatter({dim}, ns.zeros({[1] * len(shape)}, dtype=ns.int64), {g.constant(x)})")
        options.append(f"{x}.scatter_reduce({dim}, {index}, {src}, reduce='{g.choose(['amax', 'amin', 'sum', 'mean'])}')")
    g.let(g.choose(options))


def masked(g: Growth) -> None:
    x = g.value()
    if x is None:
        return
    if is_integer(g.env[x]) and g.chance(20):
        g.let(f"ns.one_hot({x}.clamp(0, 3).to(ns.int64), 4)" if hasattr(g.env["ns"], "one_hot") else f"{x}.clone()")
    elif is_real(g.env[x]):
        g.let(f"{x}.masked_fill({g.like(x)} > 0, {g.constant(x)})" if not g.smooth else f"{x}.masked_fill({x} > 100.0, 2.0)")


# --- writing ------------------------------------------------------------------------------------


def _target(g: Growth) -> str | None:
    """A tensor to be written; leaves that require grad are errors, which are rarely wanted."""
    unsafe = not g.smooth and g.chance(8)
    return g.value(lambda t: (unsafe or not (t.is_leaf and t.requires_grad)) and (is_floating(t) or not g.smooth))


def _place(g: Growth, x: str) -> str:
    """The tensor or a view of it made on the spot."""
    return f"{_viewed(g, x)}" if g.chance(35) else x


def write(g: Growth) -> None:
    """An in-place method."""
    x = _target(g)
    if x is None or x in g.protected:
        return
    y = g.constant(x) if g.chance(40) else g.like(x)
    place = _place(g, x)
    if g.smooth:
        options = [
            f"{place}.mul_({g.constant(x)})",
            f"{place}.add_({g.constant(x)})",
            f"{place}.sin_()",
            f"{x}.mul_({y})",
            f"{x}.add_({y})",
        ]
    else:
        options = [f"{place}.{name}({y})" for name in ("add_", "mul_", "sub_", "add_", "mul_", "copy_")]
        options += [f"{place}.{name}()" for name in ("relu_", "neg_", "zero_", "sigmoid_", "exp_", "square_", "tanh_", "sqrt_")]
        options += [
            f"{place}.clamp_(min={g.choose(['-1', '0.5'])})",
            f"{place}.fill_({g.constant(x)})",
            f"{x} {g.choose(['+=', '*=', '-='])} {y}",
        ]
        options += [f"{x}.masked_fill_({x} == {x}, {g.constant(x)})", f"{place}.div_({y})", f"{place}.add_({y}, alpha=2)"]
        options += [f"{x}.unsqueeze_(0)", f"{x}.copy_({g.like(x)})", f"{x}.cumsum_(0)"]
    code = g.choose(options)
    if g.chance(15) and not g.smooth:
        code = f"with ns.no_grad():\n    {code}"
    g.do(code)


def assign(g: Growth) -> None:
    """`x[...] = value`."""
    x = _target(g)
    if x is None or x in g.protected or not g.env[x].dim():
        return
    index = advanced_index(g, x) if g.chance(40) else basic_index(g, x)
    if not index:
        return
    try:
        part = eval(f"{x}[{index}].detach()", dict(g.env))
    except Exception:
        return
    pairs = g.tensors(
        lambda t: t.dim() <= part.dim() and all(m in (1, n) for m, n in zip(reversed(t.shape), reversed(part.shape), strict=False))
    )
    pairs = [n for n in pairs if g.env[n].dtype == part.dtype]
    value = g.constant(x) if not pairs or g.chance(40) else g.choose(pairs)
    g.do(f"{x}[{index}] {g.choose(['=', '=', '=', '+=', '*='])} {value}")


def scatter_in_place(g: Growth) -> None:
    x = _target(g)
    if x is None or x in g.protected or not g.env[x].dim() or 0 in g.env[x].shape or not is_numeric(g.env[x]):
        return
    dim = g.dim(x)
    shape = list(g.env[x].shape)
    n = shape[dim]
    src = g.choose(g.tensors(lambda t: t.shape == g.env[x].shape and t.dtype == g.env[x].dtype))
    options = [f"{x}.index_add_({dim}, {_places(g, n, n)}, {src})", f"{x}.scatter_add_({dim}, ns.zeros({shape}, dtype=ns.int64), {src})"]
    options += [
        f"{x}.index_put_(({_places(g, shape[0])},), {src}[0], accumulate={g.choose([True, False])})",
        f"{x}.index_fill_({dim}, {_places(g, n)}, 2)",
    ]
    g.do(g.choose(options))


MEMORY = (view, view, view, join, arrange, pick, gather, write, write, assign)
"""Steps that smooth programs have too."""

MORE_MEMORY = (*MEMORY, parts_of, masked, write, write, assign, scatter_in_place)
