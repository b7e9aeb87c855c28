# SPDX-License-Identifier: Apache-2.0
"""PlanDevices by texts: a module before, and the module that it becomes."""
import tvm
from tvm import relay
from tvm.script import tir as T

from harness import program

HOST_TARGET = tvm.target.Target("llvm")
CPU_TARGET = tvm.target.Target("llvm").with_host(HOST_TARGET)
GPU_TARGET = tvm.target.Target("cuda").with_host(HOST_TARGET)
HOST = tvm.target.VirtualDevice(tvm.device("cpu"), HOST_TARGET)
CPU = tvm.target.VirtualDevice(tvm.device("cpu"), CPU_TARGET)
GPU = tvm.target.VirtualDevice(tvm.device("cuda"), GPU_TARGET)
SCOPE_A = tvm.target.VirtualDevice(tvm.device("cpu"), CPU_TARGET, memory_scope="scopeA")
SCOPE_B = tvm.target.VirtualDevice(tvm.device("cpu"), CPU_TARGET, memory_scope="scopeB")
CONTEXT = tvm.transform.PassContext(config={"relay.fallback_device_type": GPU.device_type_int})


def read(text, devices=(CPU, GPU)):
    return tvm.parser.parse('#[version = "0.0.5"]\n' + text, "from_string", None, {"VirtualDevice": list(devices)})


def becomes(before, after, devices=(CPU, GPU)):
    config = tvm.target.make_compilation_config(CONTEXT, [CPU_TARGET, GPU_TARGET])
    got = relay.transform.InferType()(relay.transform.PlanDevices(config)(relay.transform.InferType()(read(before, devices))))
    tvm.ir.assert_structural_equal(got, relay.transform.InferType()(read(after, devices)), map_free_vars=True)


C, G = "virtual_device=meta[VirtualDevice][0]", "virtual_device=meta[VirtualDevice][1]"
T57 = "Tensor[(5, 7), float32]"


def to_gpu(name):
    return f"device_copy({name}, src_{C}, dst_{G})"


def to_cpu(name):
    return f"device_copy({name}, src_{G}, dst_{C})"


@program
def nothing_said():
    becomes(f"def @main(%a: {T57}, %b: {T57}) {{ add(%a, %b) }}", f"def @main(%a {{{G}}}: {T57}, %b {{{G}}}: {T57}, {G}) {{ add(%a, %b) }}")


@program
def left_sum_on_the_cpu():
    becomes(f"""def @main(%a: {T57}, %b: {T57}, %c: {T57}, %d: {T57}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}); %2 = add(%c, %d); subtract(%1, %2) }}""",
            f"""def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, %c {{{G}}}: {T57}, %d {{{G}}}: {T57}, {G}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}, constrain_result=True); %2 = {to_gpu("%1")}; %3 = add(%c, %d); subtract(%2, %3) }}""")


@program
def left_sum_by_a_copy():
    becomes(f"""def @main(%a: {T57}, %b: {T57}, %c: {T57}, %d: {T57}) {{
        %0 = add(%a, %b); %1 = {to_gpu("%0")}; %2 = add(%c, %d); subtract(%1, %2) }}""",
            f"""def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, %c {{{G}}}: {T57}, %d {{{G}}}: {T57}, {G}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}, constrain_result=True); %2 = {to_gpu("%1")}; %3 = add(%c, %d); subtract(%2, %3) }}""")


@program
def both_sums_on_the_cpu():
    becomes(f"""def @main(%a: {T57}, %b: {T57}, %c: {T57}, %d: {T57}) {{
        %0 = add(%a, %b); %1 = add(%c, %d); %2 = on_device(%0, {C}); %3 = on_device(%1, {C}); subtract(%2, %3) }}""",
            f"""def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, %c {{{C}}}: {T57}, %d {{{C}}}: {T57}, {G}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}, constrain_result=True); %2 = add(%c, %d); %3 = on_device(%2, {C}, constrain_result=True);
        %4 = {to_gpu("%1")}; %5 = {to_gpu("%3")}; subtract(%4, %5) }}""")


@program
def a_shared_sum():
    becomes(f"""def @main(%a: {T57}, %b: {T57}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}); %2 = on_device(%0, {C}); subtract(%1, %2) }}""",
            f"""def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, {G}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}, constrain_result=True); %2 = on_device(%0, {C}, constrain_result=True);
        %3 = {to_gpu("%1")}; %4 = {to_gpu("%2")}; subtract(%3, %4) }}""")


@program
def a_let_on_the_cpu():
    becomes(f"""def @main(%a: {T57}, %b: {T57}, %c: {T57}, %d: {T57}) {{
        let %l = add(%a, %b); let %r = add(%c, %d); %0 = on_device(%l, {C}); subtract(%0, %r) }}""",
            f"""def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, %c {{{G}}}: {T57}, %d {{{G}}}: {T57}, {G}) {{
        %0 = add(%a, %b); let %l = on_device(%0, {C}, constrain_result=True); let %r = on_device(add(%c, %d), {G}, constrain_result=True);
        %1 = {to_gpu("%l")}; subtract(%1, %r) }}""")


@program
def reshape_with_a_shape_on_the_host():
    becomes(f"def @main(%x: Tensor[(2, 8), float32]) {{ reshape(%x, newshape=[2, 4, 2]) }}",
            f"def @main(%x {{{G}}}: Tensor[(2, 8), float32], {G}) {{ reshape(%x, newshape=[2, 4, 2]) }}")


@program
def the_shape_of_something():
    becomes(f"""def @main(%x: Tensor[(?, ?), float32]) {{ %0 = on_device(%x, {G}, constrain_result=True); vm.shape_of(%0, dtype="int64") }}""",
            f"""def @main(%x {{{G}}}: Tensor[(?, ?), float32], virtual_device=meta[VirtualDevice][0]) {{ vm.shape_of(%x, dtype="int64") }}""", (HOST, GPU))


@program
def a_tensor_is_allocated():
    becomes(f"""def @main(%size: int64, %alignment: int64) {{ memory.alloc_storage(%size, %alignment, virtual_device=meta[VirtualDevice][1]) }}""",
            f"""def @main(%size {{{C}}}: int64, %alignment {{{C}}}: int64, {G}) {{ memory.alloc_storage(%size, %alignment, virtual_device=meta[VirtualDevice][1]) }}""", (HOST, GPU))


@program
def said_twice():
    becomes(f"""def @main(%a: {T57}, %b: {T57}, %c: {T57}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}); %2 = subtract(%1, %c); %3 = on_device(%0, {C}); add(%2, %3) }}""",
            f"""def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, %c {{{G}}}: {T57}, {G}) {{
        %0 = add(%a, %b); %1 = on_device(%0, {C}, constrain_result=True); %2 = {to_gpu("%1")}; %3 = on_device(%0, {C}, constrain_result=True);
        %4 = subtract(%2, %c); %5 = {to_gpu("%3")}; add(%4, %5) }}""")


@program
def the_whole_body_is_placed():
    becomes(f"def @main(%a: {T57}, %b: {T57}) {{ %0 = add(%a, %b); on_device(%0, {C}) }}",
            f"def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, {C}) {{ add(%a, %b) }}")


@program
def a_condition_decides_the_result():
    becomes(f"""def @main(%x: bool, %y: {T57}, %z: {T57}) {{
        let %f = fn (%a) {{ %0 = on_device(%y, {C}, constrain_result=True); add(%a, %0) }};
        let %g = fn (%a1) {{ subtract(%a1, %y) }};
        let %h = if (%x) {{ %f }} else {{ %g }};
        %h(%z) }}""",
            f"""def @main(%x {{{C}}}: bool, %y {{{C}}}: {T57}, %z {{{C}}}: {T57}, {C}) {{
        let %f = fn (%a {{{C}}}, {C}) {{ add(%a, %y) }};
        let %g = fn (%a1 {{{C}}}, {C}) {{ subtract(%a1, %y) }};
        let %h = on_device(if (%x) {{ %f }} else {{ %g }}, {C}, constrain_result=True);
        %h(%z) }}""")


@program
def a_global_function_is_placed_by_its_call():
    becomes(f"""def @f(%a: {T57}, %b: {T57}) -> {T57} {{ %0 = on_device(%b, {C}); add(%a, %0) }}
        def @main(%x: {T57}, %y: {T57}) -> {T57} {{ @f(%y, %x) }}""",
            f"""def @f(%a {{{G}}}: {T57}, %b {{{C}}}: {T57}, {G}) -> {T57} {{ %0 = {to_gpu("%b")}; add(%a, %0) }}
        def @main(%x {{{C}}}: {T57}, %y {{{G}}}: {T57}, {G}) -> {T57} {{ @f(%y, %x) }}""")


@program
def references_share_a_place():
    becomes(f"""def @main(%x: {T57}, %y: {T57}) {{
        let %r = ref(%x); %0 = on_device(%y, {C}); ref_write(%r, %0); %1 = ref_read(%r); add(%x, %1) }}""",
            f"""def @main(%x {{{G}}}: {T57}, %y {{{C}}}: {T57}, {G}) {{
        let %r = on_device(ref(%x), {G}, constrain_result=True);
        %0 = {to_gpu("%y")};
        on_device(ref_write(%r, %0), {G}, constrain_result=True);
        %1 = ref_read(%r); add(%x, %1) }}""")


@program
def lists_share_a_place():
    becomes(f"""type List[A] {{ Cons(A, List[A]), Nil, }}
        def @main(%x: {T57}, %y: {T57}) {{
        %0 = on_device(%y, {C}); %1 = Nil; %2 = Cons(%0, %1); let %l = Cons(%x, %2);
        match? (%l) {{ Cons(%z, _) => %z }} }}""",
            f"""type List[A] {{ Cons(A, List[A]), Nil, }}
        def @main(%x {{{G}}}: {T57}, %y {{{C}}}: {T57}, {G}) {{
        %0 = {to_gpu("%y")}; %1 = Nil; %2 = Cons(%0, %1); let %l = on_device(Cons(%x, %2), {G}, constrain_result=True);
        match? (%l) {{ Cons(%z, _) => %z }} }}""")


@program
def primitive_functions_are_one_place():
    becomes(f"""def @main(%a: {T57}, %b: {T57}, %c: {T57}) {{
        %0 = fn (%a: {T57}, %b: {T57}, Primitive=1) {{ add(%a, %b) }};
        %1 = fn (%c: {T57}, %d: {T57}, Primitive=1) {{ subtract(%c, %d) }};
        %2 = %0(%a, %b); %3 = on_device(%2, {C}); %1(%3, %c) }}""",
            f"""def @main(%a {{{C}}}: {T57}, %b {{{C}}}: {T57}, %c {{{G}}}: {T57}, {G}) {{
        %0 = fn (%a: {T57}, %b: {T57}, Primitive=1) {{ add(%a, %b) }};
        %1 = fn (%c: {T57}, %d: {T57}, Primitive=1) {{ subtract(%c, %d) }};
        %2 = %0(%a, %b); %3 = on_device(%2, {C}, constrain_result=True); %4 = {to_gpu("%3")}; %1(%4, %c) }}""")


@program
def already_placed_parameters_say_the_rest():
    becomes(f"def @main(%a {{{C}}}: {T57}, %b: {T57}, {G}) {{ %0 = {to_gpu('%a')}; add(%0, %b) }}",
            f"def @main(%a {{{C}}}: {T57}, %b {{{G}}}: {T57}, {G}) {{ %0 = {to_gpu('%a')}; add(%0, %b) }}")


@program
def placements_are_read_from_texts():
    mod = read(f"def @main(%a {{{C}}}: {T57}, %b {{{G}}}: {T57}, {G}) {{ %b }}")
    f = mod["main"]
    assert f.params[0].virtual_device_ == CPU and f.params[1].virtual_device_.device_type_int == 2 and f.virtual_device_.device_type_int == 2
    assert "virtual_device" in mod.astext()


@program
def memory_scopes_of_loop_functions():
    @T.prim_func
    def gem(a: T.handle, b: T.handle) -> None:
        T.func_attr({"global_symbol": "gem", "tir.noalias": True})
        A = T.match_buffer(a, (128, 128), "float32", scope="scopeA")
        B = T.match_buffer(b, (128, 128), "float32", scope="scopeB")
        for i, j in T.grid(128, 128):
            with T.block("x"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
    assert gem.buffer_map[gem.params[0]].scope() == "scopeA" and gem.buffer_map[gem.params[1]].scope() == "scopeB"
