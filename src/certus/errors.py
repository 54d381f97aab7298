"""The errors certus raises: each says what was found, where, what is allowed and what to do."""


class CertusError(Exception):
    """Base of every error raised on purpose by certus; the command line turns it into one line and exit code 2."""


class InvalidInput(CertusError, ValueError):
    """What the caller passed cannot be used: a NaN, a wrong shape, an unknown name."""


class FormatError(InvalidInput):
    """A file is not what its format says; the message starts with ``file:line:``."""

    def __init__(self, path: object, line: int | None, message: str) -> None:
        where = f"{path}:{line}" if line is not None else f"{path}"
        if len(message) > 800:  # it quotes what was found, and files may hold lines of any length
            message = f"{message[:600]} ... {message[-150:]}"
        super().__init__(f"{where}: {message}")


class Infeasible(CertusError):
    """No structure satisfies the problem, so there is nothing to return."""


class NotSupported(CertusError):
    """The question has no tractable answer for this problem; the message says what to ask instead."""


class VerificationError(CertusError):
    """A result does not hold what its certificate claims."""


class LimitReached(CertusError):
    """The limits of a search ended it before any structure was found, and before it was proved that there is none."""
