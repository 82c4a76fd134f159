"""Errors of the IR; each is also the Python class that such a fault has elsewhere."""

from __future__ import annotations


class TpcError(Exception):
    """Root of every error that tpc raises on purpose."""


class TypeRuleError(TpcError, RuntimeError):
    """An operator was given operands or attributes that its type rule refuses."""


class DtypeError(TypeRuleError, NotImplementedError):
    """An operator is not there for that dtype."""


class LinAlgError(TpcError, RuntimeError):
    """A matrix has not what an algorithm needs: it is singular, not positive-definite, or the iteration does not converge."""


class VerifyError(TpcError, ValueError):
    """A program breaks a rule of the IR."""


class UnknownOpError(TpcError, ValueError):
    """No operator of that name is defined."""


class ParseError(TpcError, ValueError):
    """IR text or JSON that does not parse; `str()` holds position, line and caret."""
