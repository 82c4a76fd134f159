"""Files that are either written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def write_file(path: str | Path, content: str | bytes) -> None:
    """Writes to a temporary name beside `path` and renames, so that a failure leaves what was there. Devices are written directly."""
    data = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as file:
            file.write(data)
        return
    if not target.parent.is_dir():  # named after the file that was asked for, not after a temporary one
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
