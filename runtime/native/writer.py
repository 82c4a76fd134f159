"""One kernel being written: the function `i64 k(ptr operands, i64 start, i64 stop)`, and loops in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

I64 = ir.IntType(64)
POINTER = ir.PointerType()


class _Node(ir.values.MDValue):  # type: ignore[misc]
    """A metadata node of its own, also where another looks the same; as a loop's it names itself first."""

    def __init__(self, module: ir.Module, operands: Sequence[Any], names_itself: bool) -> None:
        self.names_itself = names_itself
        super().__init__(module, operands, str(len(module.metadata)))

    def descr(self, buf: list[str]) -> None:
        own = [self.get_reference()] if self.names_itself else []
        buf += ("distinct !{ ", ", ".join([*own, *(o.get_reference() for o in self.operands)]), " }\n")


class Writer:
    """A module with the kernel's function, whose `operands` lie at `pointers()`; `b` adds instructions to it."""

    def __init__(self) -> None:
        self.module = ir.Module("kernel")
        function = ir.Function(self.module, ir.FunctionType(I64, [POINTER, I64, I64]), "k")
        function.attributes.add("nounwind")
        self.operands, self.start, self.stop = function.args
        self.entry = function.append_basic_block("entry")
        self.b = ir.IRBuilder(self.entry)
        self.group = _Node(self.module, [], False)
        """The memory accesses of elementwise loops: no iteration touches what another one does."""

    def pointers(self, count: int) -> list[ir.Value]:
        return [self.b.load(self.b.gep(self.operands, [I64(k)], source_etype=POINTER), typ=POINTER) for k in range(count)]

    def finish(self) -> str:
        """The text of the module."""
        self.b.ret(I64(0))
        return str(self.module)

    @contextmanager
    def loop(
        self, start: ir.Value, stop: ir.Value, parallel: bool = False, step: int = 1, empty: bool = True, rolled: bool = False
    ) -> Iterator[ir.Value]:
        """A loop whose body is written in the block. What the body makes may be used after it where no range is `empty`.
        A `rolled` loop stays one: its body is work enough, and unrolled it takes long to compile."""
        b = self.b
        body, end = b.append_basic_block("loop"), b.append_basic_block("end")
        before = b.block
        if empty:
            b.cbranch(b.icmp_signed("<", start, stop), body, end)
        else:
            b.branch(body)
        b.position_at_end(body)
        index = b.phi(I64, "i")
        index.add_incoming(start, before)
        yield index
        following = b.add(index, I64(step), flags=("nsw", "nuw"))
        index.add_incoming(following, b.block)
        branch = b.cbranch(b.icmp_signed("<", following, stop), body, end)
        if parallel:
            branch.set_metadata("llvm.loop", self._loop_metadata())
        elif rolled:
            disabled = self.module.add_metadata([ir.MetaDataString(self.module, "llvm.loop.unroll.disable")])
            branch.set_metadata("llvm.loop", _Node(self.module, [disabled], True))
        b.position_at_end(end)

    def _loop_metadata(self) -> _Node:
        accesses = self.module.add_metadata([ir.MetaDataString(self.module, "llvm.loop.parallel_accesses"), self.group])
        enabled = self.module.add_metadata([ir.MetaDataString(self.module, "llvm.loop.vectorize.enable"), ir.Constant(ir.IntType(1), 1)])
        return _Node(self.module, [accesses, enabled], True)

    def at(self, pointer: ir.Value, index: ir.Value, stride: int, type: ir.Type) -> ir.Value:
        """The address of an element: `stride` elements of `type` further for each step of `index`."""
        if stride == 0:
            return pointer
        return self.b.gep(pointer, [self.b.mul(index, I64(stride))], inbounds=True, source_etype=type)
