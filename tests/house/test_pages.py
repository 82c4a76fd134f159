"""Generated pages are current."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_operators_is_current():
    done = subprocess.run([sys.executable, "tools/operators", "--check"], cwd=ROOT)
    assert done.returncode == 0, "run tools/operators"


def test_the_page_of_the_contract_is_current():
    done = subprocess.run([sys.executable, "tools/contract", "--check"], cwd=ROOT)
    assert done.returncode == 0, "run tools/contract"
