"""Products by MKL: the same values as NumPy's whatever the order of the operands, and NumPy's own where MKL is not there."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tpc
from tpc.ir.parser import parse_program
from tpc.runtime import blas
from tpc.runtime.executable import Executable
from tpc.runtime.interpreter import interpret

needs_mkl = pytest.mark.skipif(not blas.available(), reason="needs the package mkl")


def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def ordered(x: np.ndarray, order: str) -> np.ndarray:
    """The same elements in rows, in columns, or with gaps between rows or between columns."""
    if order in ("columns", "wide columns"):
        return ordered(x.swapaxes(-1, -2), "rows" if order == "columns" else "wide rows").swapaxes(-1, -2)
    if order == "rows":
        return np.ascontiguousarray(x)
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
    wide[..., : x.shape[-1]] = x
    return wide[..., : x.shape[-1]]


ORDERS = ("rows", "columns", "wide rows", "wide columns")


@needs_mkl
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("of_a", ORDERS)
@pytest.mark.parametrize("of_b", ORDERS)
def test_every_order(dtype, batch, of_a, of_b):
    for m, k, n in ((5, 7, 4), (1, 7, 4), (5, 1, 4), (5, 7, 1), (1, 1, 1)):
        a, b, old = numbers(*batch, m, k, dtype=dtype), numbers(*batch, k, n, dtype=dtype), numbers(*batch, m, n, dtype=dtype)
        for order in ORDERS:
            out = ordered(old.copy(), order)
            blas.gemm(ordered(a, of_a), ordered(b, of_b), out, 2.0, 0.5)
            np.testing.assert_allclose(out, 2 * (a @ b) + 0.5 * old, rtol=1e-5, atol=1e-5)


@needs_mkl
def test_one_matrix_serves_a_stack():
    a, b = numbers(3, 5, 7), numbers(7, 4)
    out = np.empty((3, 5, 4), np.float32)
    blas.gemm(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)
    out = np.empty((3, 7, 4), np.float32)
    blas.gemm(a[0].T, numbers(3, 5, 4), out)
    np.testing.assert_allclose(out, a[0].T @ numbers(3, 5, 4), rtol=1e-5, atol=1e-5)


@needs_mkl
def test_what_is_not_read_is_not_used():
    out = np.full((2, 2), np.nan, np.float32)
    blas.gemm(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), out)
    assert out.tolist() == [[1, 0], [0, 1]]


@needs_mkl
def test_empty_products():
    out = np.ones((2, 3), np.float32)
    blas.gemm(np.ones((2, 0), np.float32), np.ones((0, 3), np.float32), out, beta=2.0)
    assert out.tolist() == [[2, 2, 2], [2, 2, 2]]
    blas.gemm(np.ones((2, 0), np.float32), np.ones((0, 3), np.float32), out)
    assert out.tolist() == [[0, 0, 0], [0, 0, 0]]
    blas.gemm(np.ones((0, 2), np.float32), np.ones((2, 3), np.float32), np.empty((0, 3), np.float32))


@needs_mkl
def test_refused():
    a = np.ones((4, 4), np.float32)
    with pytest.raises(ValueError, match="consecutive"):
        blas.gemm(a[::2, ::2], a[:2, :2], a[2:, 2:])
    with pytest.raises(ValueError, match="shapes"):
        blas.gemm(a, a[:3], a.copy())
    with pytest.raises(ValueError, match="f32"):
        blas.gemm(a, a.astype(np.float64), a.copy())
    with pytest.raises(RuntimeError, match="cblas_nothing"):
        blas.address("cblas_nothing")


@needs_mkl
@pytest.mark.parametrize("choice", ["mkl", "auto"])
def test_few_rows_times_a_transposed_matrix(choice):
    x, w = tpc.tensor(numbers(16, 130)), tpc.tensor(numbers(140, 130))
    before = blas.threads()
    blas.set_threads(1)
    try:
        with tpc.config.using(blas=choice):
            got = tpc.compile(lambda x, w: x @ w.T)(x, w).numpy()
    finally:
        blas.set_threads(before)
    np.testing.assert_allclose(got, numbers(16, 130) @ numbers(140, 130).T, rtol=1e-4, atol=1e-4)


@needs_mkl
def test_addresses():
    names = ("cblas_sgemm", "cblas_dgemm", "cblas_sgemm_batch_strided", "cblas_dgemm_batch_strided")
    assert len({blas.address(name) for name in names} - {0}) == len(names)


@needs_mkl
def test_several_threads_at_once():
    a, b = numbers(70, 80), numbers(80, 90)
    results = [np.empty((70, 90), np.float32) for _ in range(4)]
    threads = [threading.Thread(target=lambda out=out: [blas.gemm(a, b, out) for _ in range(50)]) for out in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in results:
        np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-4)


PRODUCT = """
program @p (%x: f32[{a}], %y: f32[{b}]) -> (f32[{out}], f32[{out}]) {{
  %0 = matmul %x, %y : f32[{out}]
  %1 = permute %x {{dims=[{turn}]}} : f32[{turned}]
  %2 = permute %1 {{dims=[{turn}]}} : f32[{a}]
  %3 = matmul %2, %y : f32[{out}]
  return %0, %3
}}"""


@pytest.mark.parametrize("choice", [pytest.param("mkl", marks=needs_mkl), "auto", "numpy"])
@pytest.mark.parametrize(
    ("a", "b", "out"), [("70,90", "90,80", "70,80"), ("2,3,70,90", "2,3,90,80", "2,3,70,80"), ("3,70,90", "90,80", "3,70,80")]
)
def test_the_operator(choice, a, b, out):
    shape = a.split(",")
    turn = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    text = PRODUCT.format(a=a, b=b, out=out, turn=",".join(map(str, turn)), turned=",".join(shape[i] for i in turn))
    x, y = numbers(*map(int, shape)), numbers(*map(int, b.split(",")))
    with tpc.config.using(blas=choice):
        program = parse_program(text)
        for got in (*interpret(program, [x, y]), *Executable(program).run([x, y])):
            np.testing.assert_allclose(got, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-4)


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(blas, "library", lambda: None)
    a = tpc.tensor(numbers(70, 90))
    assert not blas.available()
    with pytest.raises(RuntimeError, match="needs the package mkl"):
        blas.address("cblas_sgemm")
    np.testing.assert_allclose((a @ a.T).numpy(), numbers(70, 90) @ numbers(70, 90).T, rtol=1e-5, atol=1e-5)
    with tpc.config.using(blas="mkl"), pytest.raises(RuntimeError, match=r"pip install 'tpc\[mkl\]'"):
        (a @ a.T).numpy()
    with tpc.config.using(blas="cuda"), pytest.raises(ValueError, match="no blas 'cuda'"):
        blas.choice()


def test_a_package_that_is_not_installed_has_no_files():
    assert blas._installed("no-such-package-of-tpc", ".*") is None
