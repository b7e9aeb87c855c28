# SPDX-License-Identifier: Apache-2.0
"""Main functions whose memory is planned: what is live with what, places by each algorithm, and the functions with their memory in pools."""
import numpy as np
import tvm
from tvm import tir
from tvm.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from tvm.script import tir as T
from tvm.target import Target
from tvm.tir import stmt_functor
from tvm.tir.usmp import utils as usmp_utils

from harness import numbers, program, refusing, same


@tvm.script.ir_module
class Chain:
    @T.prim_func
    def scale(a_handle: T.handle, b_handle: T.handle) -> None:
        T.func_attr({"global_symbol": "scale", "tir.noalias": True})
        a = T.match_buffer(a_handle, [24], dtype="float32", elem_offset=0, align=64, offset_factor=1)
        b = T.match_buffer(b_handle, [24], dtype="float32", elem_offset=0, align=64, offset_factor=1)
        padded = T.allocate([26], "float32", "global")
        for i in T.serial(0, 26):
            padded[i] = T.if_then_else(1 <= i and i < 25, a[i - 1], T.float32(0), dtype="float32")
        for i in T.serial(0, 24):
            total = T.allocate([1], "int16", "global")
            total[0] = T.int16(0)
            for k in T.serial(0, 3):
                total[0] = total[0] + T.cast(padded[i + k], "int16")
            b[i] = T.cast(total[0], "float32")

    @T.prim_func
    def add(a_handle: T.handle, b_handle: T.handle, c_handle: T.handle) -> None:
        T.func_attr({"global_symbol": "add", "tir.noalias": True})
        a = T.match_buffer(a_handle, [24], dtype="float32")
        b = T.match_buffer(b_handle, [24], dtype="float32")
        c = T.match_buffer(c_handle, [24], dtype="float32")
        twice_data = T.allocate([24], "float64", "global")
        twice = T.buffer_decl(shape=[24], dtype="float64", data=twice_data)
        for i in T.serial(0, 24):
            twice[i] = T.cast(b[i], "float64") * T.float64(2)
        for i in T.serial(0, 24):
            c[i] = a[i] + T.cast(twice[i], "float32")

    @T.prim_func
    def __tvm_main__(input: T.handle, output: T.handle) -> None:
        T.func_attr({"global_symbol": "__tvm_main__", "runner_function": True})
        T.attr("default", "device_id", 0)
        T.attr("default", "device_type", 1)
        first = T.allocate([96], "int8", "global")
        second = T.allocate([96], "int8", "global")
        unused = T.allocate([8], "int8", "global")
        T.evaluate(T.call_extern("scale", input, first, dtype="int32"))
        T.evaluate(T.call_extern("scale", first, second, dtype="int32"))
        T.evaluate(T.call_extern("add", first, second, output, T.lookup_param("p0", dtype="handle"), dtype="int32"))


def with_targets(mod, target):
    out = tvm.IRModule()
    for name, function in mod.functions.items():
        if isinstance(function, tvm.tir.PrimFunc):
            out[name] = function.with_attr("target", target)
    return out


def with_pools(mod, pools):
    def give(stmt):
        if isinstance(stmt, tvm.tir.Allocate):
            return tvm.tir.Allocate(buffer_var=stmt.buffer_var, dtype=stmt.dtype, extents=stmt.extents, condition=stmt.condition, body=stmt.body,
                                    annotations={tvm.tir.usmp.utils.CANDIDATE_MEMORY_POOL_ATTR: pools})
        return None
    out = tvm.IRModule()
    for name, function in mod.functions.items():
        out[name] = function.with_body(stmt_functor.ir_transform(function.body, None, give))
    return out


def analysed(mod=Chain, pools=None):
    target = Target("c")
    pools = pools or [WorkspacePoolInfo("global_workspace", [target])]
    mod = with_pools(with_targets(mod, target), pools)
    return mod, tvm.tir.usmp.analysis.extract_buffer_info(mod["__tvm_main__"], mod)


def by_name(analysis):
    return {info.name_hint: info for info in tvm.get_global_func("tir.usmp.CreateArrayBufferInfo")(analysis.buffer_info_stmts)}


@program
def what_is_live_with_what():
    mod, analysis = analysed()
    infos = by_name(analysis)
    assert {n: (int(i.size_bytes), i.alignment, i.kind) for n, i in infos.items()} == {
        "first": (96, 16, 0), "second": (96, 16, 0), "unused": (8, 16, 0), "padded": (104, 16, 0), "total": (2, 16, 0), "twice_data": (192, 16, 0)}
    conflicts = {n: sorted(c.name_hint for c in i.conflicts) for n, i in infos.items()}
    assert conflicts == {"first": ["padded", "second", "total", "twice_data"], "second": ["first", "padded", "total", "twice_data"], "unused": [],
                         "padded": ["first", "second", "total"], "total": ["first", "padded", "second"], "twice_data": ["first", "second"]}, conflicts
    assert analysis.memory_pressure == 96 + 96 + 192
    assert all(isinstance(s, tir.Allocate) and [p.pool_name for p in i.pool_candidates] == ["global_workspace"] for i, s in analysis.buffer_info_stmts.items())


@program("greedy_by_size", "greedy_by_conflicts", "hill_climb")
def places_by(algorithm):
    target = Target("c")
    fast, slow = WorkspacePoolInfo("fast", [target], PoolInfoProperties(size_hint_bytes=200)), WorkspacePoolInfo("slow", [target])
    _, analysis = analysed(pools=[fast, slow])
    places = tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(list(by_name(analysis).values()), analysis.memory_pressure)
    used = {"fast": 0, "slow": 0}
    for info, place in places.items():
        assert place.pool_info in (fast, slow) and place.byte_offset % 16 == 0
        end = place.byte_offset + info.size_bytes
        used[place.pool_info.pool_name] = max(used[place.pool_info.pool_name], int(end))
        for other in info.conflicts:
            where = places[other]
            assert where.pool_info != place.pool_info or end <= where.byte_offset or where.byte_offset + other.size_bytes <= place.byte_offset
    assert used["fast"] <= 200 and sum(used.values()) <= 450, used


@program
def memory_in_loops():
    source = """
@tvm.script.ir_module
class Loops:
    @T.prim_func
    def work(a: T.Buffer[(32,), "float32"], b: T.Buffer[(32,), "float32"]) -> None:
        padded = T.allocate([34], "float32", "global")
        for i in T.serial(0, 34):
            padded[i] = T.float32(1)
        for i in T.KIND(0, 4):
            idle = T.allocate([1], "int32", "global")
            for j in T.serial(0, 8):
                part = T.allocate([2], "float32", "global")
                part[0] = padded[i * 8 + j] + a[i * 8 + j]
                b[i * 8 + j] = part[0]
            if i < 0:
                idle[0] = 3

    @T.prim_func
    def __tvm_main__(input: T.handle, output: T.handle) -> None:
        T.evaluate(T.call_extern("work", input, output, dtype="int32"))
"""
    found = {kind: by_name(analysed(tvm.script.from_source(source.replace("KIND", kind)))[1]) for kind in ("serial", "parallel")}
    assert sorted(found["serial"]) == ["idle", "padded", "part"] and sorted(found["parallel"]) == ["padded", "part"]
    assert [c.name_hint for c in found["parallel"]["part"].conflicts] == ["padded"]


@program
def functions_with_their_memory_in_pools():
    target = Target("c")
    fast, slow = WorkspacePoolInfo("fast", [target], PoolInfoProperties(size_hint_bytes=128)), WorkspacePoolInfo("slow", [target])
    mod, analysis = analysed(pools=[fast, slow])
    places = tvm.get_global_func("tir.usmp.algo.greedy_by_size")(list(by_name(analysis).values()), analysis.memory_pressure)
    of_stmts = tvm.get_global_func("tir.usmp.AssignStmtPoolAllocations")(analysis.buffer_info_stmts, places)
    made = tvm.tir.usmp.transform.convert_pool_allocations_to_offsets(of_stmts, emit_tvmscript_printable=True)(mod)
    for name, count in (("scale", 4), ("add", 5), ("__tvm_main__", 4)):
        text = made[name].script()
        assert len(made[name].params) == count and "alloc_buffer" not in text and "T.allocate" not in text, text
        same(tvm.script.from_source(text), made[name].with_attr("tir.noalias", True))
    main = [str(p.name) for p in made["__tvm_main__"].params]
    assert main[0] == "input" and main[1].startswith("fast") and main[2].startswith("slow") and main[3] == "output", main
    assert "T.address_of(" in made["__tvm_main__"].script() and 'T.lookup_param("p0", dtype="handle")' in made["__tvm_main__"].script()
    # The functions do with their pools what they did with memory of their own.
    x, y = np.arange(24, dtype="float32"), np.linspace(-3, 5, 24).astype("float32")
    for name, inputs in (("scale", [x]), ("add", [x, y])):
        wanted, out = tvm.nd.empty((24,)), tvm.nd.empty((24,))
        tvm.build(Chain[name], target="llvm")(*map(tvm.nd.array, inputs), wanted)
        pools = [tvm.nd.array(np.full(tuple(map(int, made[name].buffer_map[p].shape)), 77, "uint8")) for p in made[name].params[len(inputs) + 1:]]
        for kind in ("llvm", "c", "stackvm"):
            out = tvm.nd.empty((24,))
            tvm.build(made[name], target=kind)(*map(tvm.nd.array, inputs), out, *pools)
            np.testing.assert_array_equal(out.numpy(), wanted.numpy())
        assert any((p.numpy() != 77).any() for p in pools)
    kept = tvm.get_global_func("tir.usmp.transform.ConvertPoolAllocationsToOffsets")(of_stmts)(mod)
    assert [(p.pool_info.pool_name, p.pool_var_idx) for p in kept["scale"].attrs["pool_args"]] == [("fast", 2), ("slow", 3)]
    assert [(p.pool_info.pool_name, p.pool_var_idx) for p in kept["__tvm_main__"].attrs["pool_args"]] == [("fast", 1), ("slow", 2)]


@program
def pools_of_a_target():
    c, host = Target("c"), Target("llvm")
    mod = with_targets(Chain, c)
    mod["add"] = mod["add"].with_attr("target", host)
    assign = tvm.get_global_func("tir.usmp.transform.AssignPoolInfo")()

    def candidates(module, name):
        found = []
        stmt_functor.post_order_visit(module[name].body, lambda s: found.append([p.pool_name for p in s.annotations["candidate_memory_pools"]]) if isinstance(s, tir.Allocate) else None)
        return found
    assert candidates(assign(mod), "scale") == [["global_workspace"]] * 2
    pools = WorkspaceMemoryPools([WorkspacePoolInfo("sram", [c]), WorkspacePoolInfo("dram", [c, host])])
    given = tvm.IRModule(dict(mod.functions.items()), attrs={"workspace_memory_pools": pools})
    assert candidates(assign(given), "scale") == [["sram", "dram"]] * 2 and candidates(assign(given), "add") == [["dram"]]
    narrow = tvm.IRModule(dict(mod.functions.items()), attrs={"workspace_memory_pools": WorkspaceMemoryPools([WorkspacePoolInfo("sram", [c])])})
    with refusing(ValueError, "the target of 'add'"):
        assign(narrow)
    with refusing(ValueError, "has no candidate_memory_pools"):
        tvm.tir.usmp.analysis.extract_buffer_info(Chain["__tvm_main__"], Chain)


@tvm.script.ir_module
class Two:
    @T.prim_func
    def less(a_handle: T.handle, b_handle: T.handle, c_handle: T.handle) -> None:
        a = T.match_buffer(a_handle, [15], dtype="uint8")
        b = T.match_buffer(b_handle, [1], dtype="int16")
        c = T.match_buffer(c_handle, [15], dtype="int16")
        for i in T.serial(0, 15):
            c[i] = T.cast(a[i], "int16") - b[0]

    @T.prim_func
    def __tvm_main__(input1: T.handle, input2: T.handle, output1: T.handle, output2: T.handle) -> None:
        T.func_attr({"global_symbol": "__tvm_main__", "runner_function": True})
        one = T.match_buffer(input1, [15], dtype="uint8", elem_offset=0, align=64, offset_factor=1)
        two = T.match_buffer(input2, [1], dtype="int16", elem_offset=0, align=64, offset_factor=1)
        three = T.match_buffer(output1, [15], dtype="int16", elem_offset=0, align=64, offset_factor=1)
        four = T.match_buffer(output2, [15], dtype="int16", elem_offset=0, align=64, offset_factor=1)
        T.evaluate(T.call_extern("less", one.data, two.data, three.data, dtype="int32"))
        T.evaluate(T.call_extern("less", one.data, T.lookup_param("p0", dtype="handle"), four.data, dtype="int32"))


@program
def inputs_and_outputs_are_memory():
    made = tvm.get_global_func("tir.usmp.transform.CreateAllocatesForIO")()(Two)
    found = {}

    def visit(stmt):
        if isinstance(stmt, tvm.tir.Allocate):
            for key in ("input_tensor", "output_tensor"):
                if dict(stmt.annotations).get(key):
                    found[str(stmt.annotations[key])] = (key, list(stmt.extents), str(stmt.dtype))
    stmt_functor.ir_transform(made["__tvm_main__"].body, visit, None, ["tir.Allocate", "tir.Block"])
    assert found == {"input1": ("input_tensor", [15], "uint8"), "input2": ("input_tensor", [1], "int16"), "output1": ("output_tensor", [15], "int16"), "output2": ("output_tensor", [15], "int16")}
    assert not made["__tvm_main__"].params and made["less"].structurally_equals(Two["less"])
    made = tvm.tir.usmp.transform.assign_pool_info()(with_targets(made, Target("c")))
    analysis = tvm.tir.usmp.analysis.extract_buffer_info(made["__tvm_main__"], made)
    infos = {i.name_hint: i for i in analysis.buffer_info_stmts}
    assert {n: i.kind for n, i in infos.items()} == {"one": 1, "two": 1, "three": 2, "four": 2}
    with refusing(ValueError, "neither read nor written"):
        tvm.tir.usmp.transform.create_allocates_for_io()(tvm.IRModule({"__tvm_main__": Two["less"].with_body(tir.Evaluate(0))}))


@tvm.script.ir_module
class Twice:
    """A main function that calls a function twice, and one through another."""

    @T.prim_func
    def sums(a_handle: T.handle, b_handle: T.handle) -> None:
        T.func_attr({"global_symbol": "sums", "tir.noalias": True})
        a = T.match_buffer(a_handle, [24], dtype="float32", elem_offset=0, align=64, offset_factor=1)
        b = T.match_buffer(b_handle, [24], dtype="float32", elem_offset=0, align=64, offset_factor=1)
        padded = T.allocate([26], "float32", "global")
        for i in T.serial(0, 26):
            padded[i] = T.if_then_else(1 <= i and i < 25, a[i - 1], T.float32(0), dtype="float32")
        for i in T.serial(0, 24):
            total = T.allocate([1], "float32", "global")
            total[0] = T.float32(0)
            for k in T.serial(0, 3):
                total[0] = total[0] + padded[i + k]
            b[i] = total[0]

    @T.prim_func
    def sums_of_half(a_handle: T.handle, b_handle: T.handle, factor: T.float32) -> None:
        T.func_attr({"global_symbol": "sums_of_half", "tir.noalias": True})
        a = T.match_buffer(a_handle, [24], dtype="float32")
        b = T.match_buffer(b_handle, [24], dtype="float32")
        padded = T.allocate([24], "float32", "global")
        for i in T.serial(0, 24):
            padded[i] = a[i] * factor
        T.evaluate(T.call_extern("sums", padded, b, dtype="int32"))

    @T.prim_func
    def __tvm_main__(input: T.handle, output: T.handle) -> None:
        T.func_attr({"global_symbol": "__tvm_main__", "runner_function": True})
        first = T.allocate([96], "int8", "global")
        second = T.allocate([96], "uint8", "global")
        T.evaluate(T.call_extern("sums", input, first, dtype="int32"))
        T.evaluate(T.call_extern("sums_of_half", first, second, T.float32(0.5), dtype="int32"))
        T.evaluate(T.call_extern("sums", second, output, dtype="int32"))


def run_main(mod, target, x, pools=()):
    out = tvm.nd.empty((24,))
    pools = [tvm.nd.array(p) for p in pools]
    tvm.build(mod, target=target)["__tvm_main__"](tvm.nd.array(x), *pools, out)
    return out.numpy(), [p.numpy() for p in pools]


@program(*[(a, t) for a in ("greedy_by_size", "greedy_by_conflicts", "hill_climb") for t in ("llvm", "c", "stackvm")])
def main_functions_run(algorithm, target):
    """As they were written, with pools assigned, and with their memory in the pools: all give the same."""
    host = Target("c")
    mod, analysis = analysed(Twice, [WorkspacePoolInfo("fast", [host], PoolInfoProperties(size_hint_bytes=224)), WorkspacePoolInfo("slow", [host])])
    places = tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(list(by_name(analysis).values()), analysis.memory_pressure)
    of_stmts = tvm.get_global_func("tir.usmp.AssignStmtPoolAllocations")(analysis.buffer_info_stmts, places)
    x = numbers(24)
    wanted = x.astype("float64")
    for factor in (1, 0.5, 1):
        around = np.pad(wanted * factor, 1)
        wanted = around[:-2] + around[1:-1] + around[2:]
    for unconverted in (Twice, mod):
        np.testing.assert_allclose(run_main(unconverted, target, x)[0], wanted, rtol=1e-5)
    for printable in (True, False):
        made = tvm.tir.usmp.transform.convert_pool_allocations_to_offsets(of_stmts, emit_tvmscript_printable=printable)(mod)
        main = made["__tvm_main__"]
        given = [np.full(tuple(map(int, main.buffer_map[p].shape)), 77, "uint8") for p in main.params[1:-1]]
        out, pools = run_main(made, target, x, given)
        np.testing.assert_array_equal(out, run_main(Twice, target, x)[0])
        assert len(pools) == 2 and all((p != 77).any() for p in pools)
        np.testing.assert_array_equal(run_main(tvm.script.from_source(made.script()), target, x, given)[0], out)


@program
def main_functions_that_cannot_run():
    with refusing(ValueError, "4 values to 'add', which has 3 parameters"):
        tvm.build(Chain, target="c")
    text = Twice.script()
    with refusing(ValueError, "the weight 'p0', which 'sums' gets"):
        tvm.build(tvm.script.from_source(text.replace('T.call_extern("sums", input,', 'T.call_extern("sums", T.lookup_param("p0", dtype="handle"),')), target="c")
    with refusing(ValueError, "calls itself: sums_of_half -> sums_of_half"):
        tvm.build(tvm.script.from_source(text.replace('T.call_extern("sums", T.address_of(padded[0])', 'T.call_extern("sums_of_half", T.address_of(padded[0])')), target="c")
    with refusing(ValueError, "the number 3 for the buffer 'b'"):
        tvm.build(tvm.script.from_source(text.replace("T.address_of(padded[0]), b_handle", "T.address_of(padded[0]), 3").replace("T.address_of(padded[0]), T.address_of(b[0])", "T.address_of(padded[0]), 3")), target="c")
