"""How commands end."""

from __future__ import annotations

OK = 0
NO = 1
"""The answer is no: programs differ, IR is wrong, a run fails."""
USAGE = 2
RAISED = 3
"""The user's program raised while it was traced."""
INTERNAL = 4
INTERRUPTED = 130


class Stop(Exception):
    """Ends a command with a message for stderr."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def usage(command: str, message: str) -> Stop:
    """The command was given something that it cannot take."""
    return Stop(USAGE, f"tpc {command}: error: {message}")


def failed(command: str, message: str) -> Stop:
    return Stop(NO, f"tpc {command}: error: {message}")
