"""What certus does in the place of numba's compiler gives the same answers."""

import operator

from numba.core import ir
from numba.core.compiler import Flags

from certus.kernels.quick_typing import _Known, _variables


def test_flags_are_equal_as_their_values_are():
    plain, same, other = Flags(), Flags(), Flags()
    same.error_model = plain.error_model  # said, where the other has it by default
    other.error_model = "numpy"
    assert plain == same
    assert hash(plain) == hash(same)
    assert plain != other
    assert plain != "flags"


def test_nothing_is_known_under_other_flags():
    known, plain, other = _Known(), Flags(), Flags()
    other.error_model = "numpy"
    known.under(plain)["call"] = "signature"
    assert known.under(plain.copy()) == {"call": "signature"}
    assert known.under(other) == {}
    assert known.under(plain) == {}


def test_variables_are_found_in_order_and_in_depth():
    loc = ir.Loc("file", 1)
    a, b, c, d = (ir.Var(ir.Scope(None, loc), name, loc) for name in "abcd")
    added = ir.Expr.binop(operator.add, a, b, loc)
    built = ir.Expr.build_map([(c, d), (a, b)], 2, {}, {}, loc)
    assert ir.Assign(added, c, loc).list_vars() == [a, b, c]
    assert built.list_vars() == [c, d, a, b]
    assert _variables(added, [a, (b, {"k": added}), None, 3, loc]) == [a, b, a, b]
    assert _variables(added, "a") == []
