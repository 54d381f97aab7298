"""Three functions of numba's compiler again, with the same answers in less time: most of a first use is typing.

``certus.kernels`` imports this with the first module of kernels. Versions of numba that kernels are not compiled as
parts with are left alone: it was not measured there.
"""

from typing import Any

from numba.core import ir, targetconfig
from numba.core.types import BaseFunction

from certus.kernels.compiling import PARTS

Flags = targetconfig.TargetConfig
PLAIN = {ir.Loc, str, int, float, bool, type(None)}  # what holds no variables
_typed_afresh = BaseFunction.get_call_type


class _Known:
    """What calls of numba's own functions were typed as, under one set of flags.

    numba tries all implementations of ``+`` or ``[]`` in turn, each time that it meets one. Flags change what they are
    compiled to, so nothing is known any more once these change. Compilation holds a lock: one thread at a time.
    """

    def __init__(self) -> None:
        self.flags: Any = None
        self.signatures: dict[Any, Any] = {}

    def under(self, flags: Any) -> dict[Any, Any]:
        if flags is not self.flags:
            if flags != self.flags:
                self.signatures.clear()
            self.flags = flags
        return self.signatures


_known = _Known()


def _call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    key = self, context, tuple(args), tuple(kws.items())
    found = _known.under(targetconfig.ConfigStack.top_or_none()).get(key)
    if found is None or found.args not in self._impl_keys:  # where numba looks up what to call
        found = _typed_afresh(self, context, args, kws)  # may compile something, under other flags
        _known.under(targetconfig.ConfigStack.top_or_none())[key] = found
    return found


def _same_flags(self: Any, other: object) -> Any:
    if not isinstance(other, Flags):
        return NotImplemented
    return self is other or self._values == other._values or self.values() == other.values()


def _flags_hash(self: Any) -> int:
    return hash(Flags)  # numba hashes the names of all options, which are the same for all


def _variables(self: Any, value: Any) -> list[Any]:
    """The variables in a value of an instruction, nested ones too, in order."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return value.list_vars() if isinstance(value, ir.Inst) else []
    found: list[Any] = []
    for part in value:
        kind = type(part)
        if kind is ir.Var:
            found.append(part)
        elif kind not in PLAIN:
            found += _variables(self, part)
    return found


if PARTS:
    BaseFunction.get_call_type = _call_type
    Flags.__hash__, Flags.__eq__ = _flags_hash, _same_flags
    ir.Inst._rec_list_vars = _variables
