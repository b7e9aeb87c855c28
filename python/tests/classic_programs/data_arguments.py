# SPDX-License-Identifier: Apache-2.0
"""Data types, references and tuples as arguments of programs."""
import numpy as np
import tvm
from harness import numbers, program
from tvm import nd, relay
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.prelude import Prelude
from tvm.runtime import container


@program("debug", "vm")
def data_as_arguments(kind):
    mod = tvm.parser.parse("""#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @length[A](%l: List[A]) -> int32 { match (%l) { Cons(_, %r) => 1 + @length(%r), Nil => 0, } }
def @main(%l: List[float32], %x: int32) -> int32 { @length(%l) + %x }""")
    _, cons, nil = mod.get_type("List")
    empty = ConstructorValue(nil.tag, [], nil)
    two = ConstructorValue(cons.tag, [nd.array(np.float32(1)), ConstructorValue(cons.tag, [nd.array(np.float32(2)), empty], cons)], cons)
    run = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()
    assert int(run(two, np.int32(5)).numpy()) == 7 and int(run(empty, np.int32(5)).numpy()) == 5


@program
def data_given_back():
    mod = tvm.IRModule()
    prelude = Prelude(mod)
    _, cons, nil = prelude.mod.get_type("List")
    data = nd.array(numbers(1, 10))
    one = ConstructorValue(cons.tag, [data, ConstructorValue(nil.tag, [], nil)], cons)
    run = relay.create_executor("debug", mod=prelude.mod).evaluate(prelude.id)
    got = run(one)
    assert got.tag == cons.tag and len(got.fields) == 2 and got.fields[1].tag == nil.tag and len(got.fields[1].fields) == 0
    np.testing.assert_array_equal(got.fields[0].numpy(), data.numpy())
    got = run(RefValue(data))
    np.testing.assert_array_equal(got.value.numpy(), data.numpy())
    got = run(container.tuple_object([data, nd.array(np.array(2))]))
    assert len(got) == 2 and got[1].numpy() == 2
    np.testing.assert_array_equal(run(data).numpy(), data.numpy())
    got = run(ConstructorValue(nil.tag, [], nil))
    assert got.tag == nil.tag and len(got.fields) == 0
