"""`einsum`: labels are resolved, then operands are contracted from left to right, each pair by one batched product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tpc.functions import elementwise as e
from tpc.functions.reduction import sum
from tpc.functions.shape import broadcast_to, diagonal, permute, reshape
from tpc.ir.ops import linalg as ops
from tpc.record import record
from tpc.tensor import Tensor

ELLIPSIS = "."
"""Labels of the dimensions behind an ellipsis are `.0`, `.1`, ... counted from the last."""

Labels = list[str]


def contract(equation: Any, operands: Sequence[Any]) -> Tensor:
    """The value of an einsum call."""
    if isinstance(equation, Tensor):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        more = "fewer" if len(terms) > len(operands) else "more"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    labels = [_labels(term, x._type.rank, i) for i, (term, x) in enumerate(zip(terms, operands, strict=True))]
    output = _output(right, labels) if arrow else _implied(labels)
    for i, label in enumerate(output):
        if label in output[:i]:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if not any(label in term for term in labels):
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand")
    sizes = _sizes(labels, operands)
    parts = [_simple(x, term, sizes) for x, term in zip(operands, labels, strict=True)]
    return _contracted(parts, output, sizes)


def _from_lists(args: Sequence[Any]) -> tuple[str, list[Tensor]]:
    """The equation that operands with lists of label numbers stand for."""

    def spelled(numbers: Sequence[Any]) -> str:
        return "".join("..." if n is Ellipsis else chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26) for n in numbers)

    operands = list(args[0 : len(args) - len(args) % 2 : 2])
    terms = [spelled(numbers) for numbers in args[1 : len(args) - len(args) % 2 : 2]]
    equation = ",".join(terms)
    return (equation + "->" + spelled(args[-1]) if len(args) % 2 else equation), operands


def _labels(term: str, rank: int, i: int) -> Labels:
    """One label per dimension of an operand."""
    before, dots, after = term.partition("...")
    for c in before + after:
        if not (c.isalpha() and c.isascii()):
            raise RuntimeError(f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in [a-zA-Z]")
    named = len(before) + len(after)
    if named > rank or (not dots and named != rank):
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({rank}) for operand {i}"
            + ("" if dots else " and no ellipsis was given")
        )
    return [*before, *_hidden(rank - named if dots else 0), *after]


def _hidden(count: int) -> Labels:
    return [f"{ELLIPSIS}{n}" for n in range(count - 1, -1, -1)]


def _ellipsis_rank(labels: Sequence[Labels]) -> int:
    return max(len([c for c in term if c[0] == ELLIPSIS]) for term in labels)


def _output(term: str, labels: Sequence[Labels]) -> Labels:
    before, dots, after = term.partition("...")
    return [*before, *_hidden(_ellipsis_rank(labels) if dots else 0), *after]


def _implied(labels: Sequence[Labels]) -> Labels:
    """Without an arrow: the ellipsis, then every label that occurs once, in alphabetical order (capitals first)."""
    found = [c for term in labels for c in term if c[0] != ELLIPSIS]
    return [*_hidden(_ellipsis_rank(labels)), *sorted(c for c in set(found) if found.count(c) == 1)]


def _sizes(labels: Sequence[Labels], operands: Sequence[Tensor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for i, (term, x) in enumerate(zip(labels, operands, strict=True)):
        own: dict[str, int] = {}
        for label, n in zip(term, x._type.shape, strict=True):
            if own.setdefault(label, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {n} != {own[label]}"
                )
            known = sizes.get(label, 1)
            if n != known and 1 not in (n, known):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with previously seen size {known}"
                )
            sizes[label] = known if n == 1 else n
    return sizes


def _simple(x: Tensor, labels: Labels, sizes: dict[str, int]) -> tuple[Tensor, Labels]:
    """An operand whose labels are all different (repeated ones become a diagonal) and whose sizes are the full ones."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = diagonal(x, 0, first, second)
            labels = [c for i, c in enumerate(labels) if i not in (first, second)] + [label]
    full = tuple([sizes[c] for c in labels])
    return (x if x._type.shape == full else broadcast_to(x, full)), labels


def _contracted(parts: list[tuple[Tensor, Labels]], output: Labels, sizes: dict[str, int]) -> Tensor:
    x, have = parts[0]
    for i, (other, wanted) in enumerate(parts[1:], 1):
        later = {c for _, term in parts[i + 1 :] for c in term}.union(output)
        x, have = _without(x, have, later.union(wanted))
        other, wanted = _without(other, wanted, later.union(have))
        x, have = _pair(x, have, other, wanted, later, sizes)
    x, have = _without(x, have, set(output))
    order = tuple([have.index(c) for c in output])
    return x if order == tuple(range(len(order))) and len(parts) > 1 else permute(x, order)


def _without(x: Tensor, labels: Labels, needed: set[str]) -> tuple[Tensor, Labels]:
    """Summed over the labels that nobody else needs."""
    gone = tuple([i for i, c in enumerate(labels) if c not in needed])
    return (sum(x, gone), [c for c in labels if c in needed]) if gone else (x, labels)


def _pair(a: Tensor, left: Labels, b: Tensor, right: Labels, later: set[str], sizes: dict[str, int]) -> tuple[Tensor, Labels]:
    """The product of two operands, summed over the labels both have and nobody needs later."""
    shared = [c for c in left if c in right]
    batch = [c for c in shared if c in later]
    summed = [c for c in shared if c not in later]
    rows = [c for c in left if c not in shared]
    columns = [c for c in right if c not in shared]
    made = batch + rows + columns

    def count(labels: Labels) -> int:
        return math.prod(sizes[c] for c in labels)

    def arranged(x: Tensor, labels: Labels, wanted: Labels, shape: tuple[int, ...]) -> Tensor:
        return reshape(permute(x, tuple([labels.index(c) for c in wanted])), shape)

    full = tuple([sizes[c] for c in made])
    if not summed:
        ones = (1,) * len(rows)
        a = arranged(a, left, batch + rows, tuple([sizes[c] for c in batch + rows]) + (1,) * len(columns))
        b = arranged(b, right, batch + columns, tuple([sizes[c] for c in batch]) + ones + tuple([sizes[c] for c in columns]))
        return e.mul(a, b), made
    stack = (count(batch),) if batch else ()
    a = arranged(a, left, batch + rows + summed, (*stack, count(rows), count(summed)))
    b = arranged(b, right, batch + summed + columns, (*stack, count(summed), count(columns)))
    return reshape(record(ops.matmul, (a, b)), full), made
