"""Small matrix products, and sums down columns, which are products with ones.

A tile of the result, some rows by some vectors of columns, stays in registers while the loop runs over the inner dimension. Columns
that do not lie side by side are first copied to the stack, so that they do. Every element is summed in order, so neither the tile that it
falls into nor the number of threads changes a bit of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from tpc.runtime.native.intrinsics import intrinsic
from tpc.runtime.native.jit import vector_bytes
from tpc.runtime.native.scalars import REGISTERS, constant
from tpc.runtime.native.writer import I64, Writer

SIZES = {"f32": 4, "f64": 8}
PACKED_BYTES = 1 << 16
"""What the copy of one block of columns may take of the stack."""


class Matrix(NamedTuple):
    """Strides, in elements, of a batch of matrices."""

    batch: int
    row: int
    column: int


class Product(NamedTuple):
    """`out[i] = left[i] @ right[i] / divisor` for matrices of [m, k] and [k, n]; without `left` it is all ones."""

    dtype: str
    batches: int
    m: int
    n: int
    k: int
    left: Matrix | None
    right: Matrix
    out: Matrix
    divisor: float = 1.0

    @property
    def lanes(self) -> int:
        return vector_bytes() // SIZES[self.dtype]

    @property
    def columns(self) -> int:
        """Columns of a full tile. The sum of one row has room for more: it has to hide the latency of additions."""
        return self.lanes * (8 if self.m == 1 else 2)

    @property
    def rows(self) -> int:
        """Rows of a full tile: what registers hold."""
        return min(self.m, 8 if vector_bytes() == 64 else 4)

    @property
    def range(self) -> int:
        """What a kernel's calls may share: batches, or else blocks of columns."""
        return self.batches if self.batches > 1 else -(-self.n // self.columns)

    @property
    def packs(self) -> bool:
        """Whether columns are copied."""
        return self.right.column != 1 and self.n > 1

    @property
    def fits(self) -> bool:
        return not self.packs or self.k * self.columns * SIZES[self.dtype] <= PACKED_BYTES


class ProductWriter(Writer):
    """Writes one product."""

    def __init__(self, product: Product) -> None:
        super().__init__()
        self.product = product
        self.number = REGISTERS[product.dtype]
        self.packed = self.b.alloca(self.number, I64(product.k * product.columns)) if product.packs else None
        if self.packed is not None:
            self.packed.align = 64

    def text(self) -> str:
        """The module."""
        p = self.product
        names = self.pointers(3 if p.left is not None else 2)
        left, right, out = names if p.left is not None else (None, *names)
        if p.batches > 1:
            with self.loop(self.start, self.stop) as batch:
                moved = None if left is None or p.left is None else self.at(left, batch, p.left.batch, self.number)
                here = self.at(right, batch, p.right.batch, self.number), self.at(out, batch, p.out.batch, self.number)
                self._blocks(I64(0), I64(-(-p.n // p.columns)), moved, *here)
        else:
            self._blocks(self.start, self.stop, left, right, out)
        return self.finish()

    def _blocks(self, start: ir.Value, stop: ir.Value, left: ir.Value | None, right: ir.Value, out: ir.Value) -> None:
        """Blocks of columns from `start` to `stop`; the last one of all may be narrower."""
        p, b = self.product, self.b
        full, rest = divmod(p.n, p.columns)
        end = b.select(b.icmp_signed("<", stop, I64(full)), stop, I64(full))
        if full:
            with self.loop(start, end) as block:
                self._block(b.mul(block, I64(p.columns)), p.columns, left, right, out)
        if rest:
            with b.if_then(b.icmp_signed(">", stop, I64(full))):
                self._block(I64(full * p.columns), rest, left, right, out)

    def _block(self, column: ir.Value, width: int, left: ir.Value | None, right: ir.Value, out: ir.Value) -> None:
        p = self.product
        right, out = self.at(right, column, p.right.column, self.number), self.at(out, column, p.out.column, self.number)
        stride = p.right.row
        if self.packed is not None:
            self._pack(right, width)
            right, stride = self.packed, width
        full, rest = divmod(p.m, p.rows)
        with self.loop(I64(0), I64(full)) as tile:
            row = self.b.mul(tile, I64(p.rows))
            self._tile(row, p.rows, width, left, right, stride, out)
        if rest:
            self._tile(I64(full * p.rows), rest, width, left, right, stride, out)

    def _pack(self, right: ir.Value, width: int) -> None:
        p = self.product
        with self.loop(I64(0), I64(width), rolled=True) as j:
            column = self.at(right, j, p.right.column, self.number)
            with self.loop(I64(0), I64(p.k), rolled=True) as k:
                number = self.b.load(self.at(column, k, p.right.row, self.number), typ=self.number)
                place = self.b.add(self.b.mul(k, I64(width)), j)
                self.b.store(number, self.at(self.packed, place, 1, self.number))

    def _tile(self, row: ir.Value, rows: int, width: int, left: ir.Value | None, right: ir.Value, stride: int, out: ir.Value) -> None:
        """Rows from `row` by `width` columns: one loop over the inner dimension."""
        p, b = self.product, self.b
        pieces = _pieces(width, p.lanes)
        zero = [ir.Constant(self._vector(size), None) for _, size in pieces]
        totals: list[list[ir.Value]] = [list(zero) for _ in range(rows)]
        starts = [] if left is None or p.left is None else [self.at(left, b.add(row, I64(i)), p.left.row, self.number) for i in range(rows)]
        before = b.block
        with self.loop(I64(0), I64(p.k), empty=False, rolled=True) as k:
            sums = [[self._phi(v, before) for v in line] for line in totals]
            source = self.at(right, k, stride, self.number)
            vectors = [self._load(source, first, size) for first, size in pieces]
            for i in range(rows):
                factor = None
                if p.left is not None:
                    factor = b.load(self.at(starts[i], k, p.left.column, self.number), typ=self.number)
                totals[i] = [self._added(total, v, factor, size) for total, v, (_, size) in zip(sums[i], vectors, pieces, strict=True)]
            for line, made in zip(sums, totals, strict=True):
                for phi, value in zip(line, made, strict=True):
                    phi.add_incoming(value, b.block)
        for i in range(rows):
            target = self.at(out, b.add(row, I64(i)), p.out.row, self.number)
            for total, (first, size) in zip(totals[i], pieces, strict=True):
                self._store(total, target, first, size)

    def _phi(self, start: ir.Value, before: ir.Block) -> ir.Value:
        phi = self.b.phi(start.type)
        phi.add_incoming(start, before)
        return phi

    def _vector(self, size: int) -> ir.Type:
        return ir.VectorType(self.number, size)

    def _load(self, source: ir.Value, first: int, size: int) -> ir.Value:
        return self.b.load(self.at(source, I64(first), 1, self.number), typ=self._vector(size), align=SIZES[self.product.dtype])

    def _added(self, total: ir.Value, vector: ir.Value, factor: ir.Value | None, size: int) -> ir.Value:
        if factor is None:
            return self.b.fadd(total, vector)
        one = self.b.insert_element(ir.Constant(self._vector(size), ir.Undefined), factor, ir.IntType(32)(0))
        spread = self.b.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), size), None))
        return intrinsic(self.b, "llvm.fma", [spread, vector, total])

    def _store(self, total: ir.Value, target: ir.Value, first: int, size: int) -> None:
        p, b = self.product, self.b
        if p.divisor != 1.0:
            total = b.fdiv(total, ir.Constant(total.type, [constant(p.dtype, p.divisor)] * size))
        if p.out.column == 1 or p.n == 1:
            b.store(total, self.at(target, I64(first), 1, self.number), align=SIZES[p.dtype])
            return
        for j in range(size):
            b.store(b.extract_element(total, ir.IntType(32)(j)), self.at(target, I64(first + j), p.out.column, self.number))


def _pieces(width: int, lanes: int) -> Sequence[tuple[int, int]]:
    """Where vectors begin that make up `width` columns, and how long they are: full ones, then powers of two."""
    found, first = [], 0
    while first < width:
        size = min(lanes, 1 << (width - first).bit_length() - 1)
        found.append((first, size))
        first += size
    return found
