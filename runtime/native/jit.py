"""Machine code for this processor from LLVM IR, kept in the process and, where a folder is given, on disk."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DIGEST = hashlib.sha256().digest_size
FORMAT = "1"
"""Part of every key: raised when the same description of a kernel comes to mean other code."""

_lock = threading.Lock()
_addresses: dict[str, int] = {}
_loaded: list[Any] = []
"""What owns the machine code: it lives as long as the process."""


@lru_cache(maxsize=1)
def is_available() -> bool:
    """Whether native code can be made and called here: llvmlite is installed, and objects are laid out as CPython does it."""
    return sys.implementation.name == "cpython" and sys.maxsize == 2**63 - 1 and find_spec("llvmlite") is not None


def vector_bytes() -> int:
    """The width of this processor's vectors."""
    features = _compiler().features
    return 64 if "+avx512f" in features else 32 if "+avx2" in features else 16


class _Compiler:
    """LLVM, set up for this processor with its full vector width."""

    def __init__(self) -> None:
        from llvmlite import binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self.binding = binding
        target = binding.Target.from_default_triple()
        self.triple = target.triple
        self.cpu = binding.get_host_cpu_name()
        features = binding.get_host_cpu_features().flatten()
        if "+avx512f" in features:
            features += ",-prefer-256-bit"
        self.features = features
        self.machine = target.create_target_machine(cpu=self.cpu, features=features, opt=3, reloc="pic", jit=True)
        self.jit = binding.create_lljit_compiler(target.create_target_machine(cpu=self.cpu, features=features, opt=3, jit=True))
        self.fingerprint = "\n".join(
            (FORMAT, self.triple, self.cpu, features, ".".join(map(str, binding.llvm_version_info)), find_version())
        )

    def object_code(self, text: str) -> bytes:
        """The object file of a module."""
        module = self.binding.parse_assembly(text)
        module.triple = self.triple
        module.verify()
        options = self.binding.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.slp_vectorization = False
        builder = self.binding.create_pass_builder(self.machine, options)
        builder.getModulePassManager().run(module, builder)
        return bytes(self.machine.emit_object(module))

    def load(self, code: bytes, name: str) -> int:
        """The address of function `k` of an object file."""
        library = self.binding.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol("k").link(self.jit, name)
        _loaded.append(library)
        return int(library["k"])


def find_version() -> str:
    """The version of llvmlite."""
    import llvmlite

    return str(llvmlite.__version__)


@lru_cache(maxsize=1)
def _compiler() -> _Compiler:
    return _Compiler()


def address(key: str, build: Callable[[], str], folder: Path | None = None) -> int:
    """The address of the function ``k`` of the module that `build()` writes.

    `key` describes the module completely: equal keys mean equal code, so a kernel is compiled once in a process, and once
    for all processes that share `folder`. What is found there is used only if it is whole.
    """
    with _lock:
        found = _addresses.get(key)
        if found is None:
            compiler = _compiler()
            name = hashlib.sha256(f"{compiler.fingerprint}\n{key}".encode()).hexdigest()
            path = folder / f"{name}.o" if folder is not None else None
            code = _read(path)
            if code is None:
                code = compiler.object_code(build())
                _write(path, code)
            found = _addresses[key] = compiler.load(code, name)
    return found


def _read(path: Path | None) -> bytes | None:
    """The object code of a cache file; None where there is none, or a damaged one."""
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:DIGEST], content[DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path | None, code: bytes) -> None:
    """Leaves object code for later processes: whole or not at all, since others may read at any time. A full disk is no error."""
    if path is None:
        return
    part = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part.write_bytes(hashlib.sha256(code).digest() + code)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
