"""``python -m tpc``"""

from __future__ import annotations

import sys

from tpc.cli import main

if __name__ == "__main__":
    sys.exit(main())
