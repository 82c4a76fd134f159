"""The three ways in which a contract item has to hold; see `modes.py`."""

from __future__ import annotations

import pytest

from tests.contract.modes import MODES, Mode


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> Mode:
    """Each test that takes `mode` runs deferred, compiled, and joint (gradients taken inside the compiled function)."""
    return MODES[request.param]
