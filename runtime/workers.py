"""Helper threads that share the blocks of large fusions with the thread that runs a program."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import numpy as np


class Job:
    """Work that several threads take part in. Each calls `work` with its own number; the caller's is 0.

    The caller never waits for a helper to start, only for those that have: when all helpers are busy it does everything itself.
    """

    def __init__(self, work: Callable[[int], None], helpers: int) -> None:
        self.work = work
        self.helpers = helpers
        self.lock = threading.Condition()
        self.joined = 0
        self.running = 0
        self.closed = False
        self.error: BaseException | None = None

    def help(self) -> None:
        """What a helper thread does with the job."""
        with self.lock:
            if self.closed or self.joined == self.helpers:
                return
            self.joined += 1
            self.running += 1
            number = self.joined
        try:
            self.work(number)
        except BaseException as error:  # handed to the calling thread
            self.error = error
        finally:
            with self.lock:
                self.running -= 1
                self.lock.notify_all()

    def run(self) -> None:
        """What the calling thread does: its share, then wait for the helpers that joined."""
        try:
            self.work(0)
        finally:
            with self.lock:
                self.closed = True
                while self.running:
                    self.lock.wait()
        if self.error is not None:
            raise self.error


class Workers:
    """Daemon threads, started when first needed and shared by all executables of the process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self.started = 0

    def run(self, work: Callable[[int], None], threads: int) -> None:
        """Runs `work(0)` here and, as far as helpers are free, `work(1)` ... `work(threads - 1)` beside it."""
        if self.started < threads - 1:
            self._start(threads - 1)
        job = Job(work, threads - 1)
        for _ in range(threads - 1):
            self.jobs.put(job)
        job.run()

    def _start(self, count: int) -> None:
        with self.lock:
            while self.started < count:
                threading.Thread(target=self._serve, args=(self.jobs,), name=f"tpc-worker-{self.started}", daemon=True).start()
                self.started += 1

    @staticmethod
    def _serve(jobs: SimpleQueue[Job]) -> None:
        with np.errstate(all="ignore"):
            while True:
                jobs.get().help()


WORKERS = Workers()


def _after_fork() -> None:
    """Threads do not survive a fork: the child starts its own."""
    global WORKERS
    WORKERS = Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run_shared(work: Callable[[Iterator[int], int], None], count: int, threads: int) -> None:
    """Calls `work(numbers, thread)` in up to `threads` threads that draw 0 ... count - 1 from one iterator."""
    numbers = iter(range(count))
    if threads == 1:
        work(numbers, 0)
    else:
        WORKERS.run(lambda thread: work(numbers, thread), threads)


def available_threads() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
