# SPDX-License-Identifier: Apache-2.0
"""What the programs share: `@program` makes one of a function, `@program(a, b)` one for each case."""
import contextlib

import numpy as np
import tvm
from tvm import relay

PROGRAMS = []


def program(*cases):
    """Above a function without arguments; or with cases, each a value or a tuple of arguments."""
    if len(cases) == 1 and callable(cases[0]) and not isinstance(cases[0], tuple):
        PROGRAMS.append((cases[0].__name__, cases[0], ()))
        return cases[0]

    def each(function):
        for number, case in enumerate(cases):
            arguments = case if isinstance(case, tuple) else (case,)
            shown = next((a for a in arguments if isinstance(a, (str, int))), "")
            PROGRAMS.append((f"{function.__name__}[{number}:{shown}]", function, arguments))
        return function
    return each


def raises(kinds, function, *arguments):
    """The exception, which must be of these kinds."""
    try:
        function(*arguments)
    except kinds as error:
        return error
    raise AssertionError(f"nothing was raised, not {kinds}")


@contextlib.contextmanager
def refusing(kinds, match=""):
    """The block raises one of these exceptions, with the words in its message."""
    try:
        yield
    except kinds as error:
        assert match in str(error), f"'{match}' is not in: {error}"
    else:
        raise AssertionError(f"nothing was raised, not {kinds}")


def same(left, right):
    tvm.ir.assert_structural_equal(left, right, map_free_vars=True)


def numbers(*shape, dtype="float32", low=-1.0, high=1.0, seed=7):
    """Reproducible numbers of a dtype."""
    source = np.random.RandomState(seed + sum(shape))
    if np.dtype(dtype).kind == "b":
        return source.randint(0, 2, shape).astype("bool")
    if np.dtype(dtype).kind in "iu":
        return source.randint(0 if np.dtype(dtype).kind == "u" else -9, 9, shape).astype(dtype)
    return source.uniform(low, high, shape).astype(dtype)


def variables(*arrays):
    return [relay.var(name, shape=a.shape, dtype=str(a.dtype)) for name, a in zip("abcdefgh", arrays)]


def evaluate(function, *arrays, kind="graph"):
    """The results of a function as numpy: an array, or a list of them."""
    out = relay.create_executor(kind, mod=tvm.IRModule.from_expr(function), device=tvm.cpu(), target="llvm").evaluate()(*arrays)
    return out.numpy() if hasattr(out, "numpy") else [o.numpy() for o in out]
