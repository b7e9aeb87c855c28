# SPDX-License-Identifier: Apache-2.0
"""Virtual devices: what PlanDevices makes of programs, and how texts say where values live."""
import tvm
from harness import program, raises, same
from tvm import relay
from tvm.relay import transform
from tvm.target import Target, VirtualDevice, make_compilation_config

HOST = Target("llvm")
CPU_TARGET, GPU_TARGET = Target("llvm").with_host(HOST), Target("cuda").with_host(HOST)
CPU, GPU, SCOPED = VirtualDevice(tvm.cpu(), CPU_TARGET), VirtualDevice(tvm.cuda(), GPU_TARGET), VirtualDevice(tvm.cpu(), CPU_TARGET, "local")
TYPE = "Tensor[(5, 7), float32]"


def parsed(text):
    """A module in whose text C, G and S stand for devices, T for the type of all tensors."""
    for short, index in (("<C>", 0), ("<G>", 1), ("<S>", 2)):
        text = text.replace(short, f"meta[VirtualDevice][{index}]")
    return tvm.parser.parse('#[version = "0.0.5"]\n' + text.replace("<T>", TYPE), "devices", None, {"VirtualDevice": [CPU, GPU, SCOPED]})


def on(device, value):
    return f"on_device({value}, virtual_device=<{device}>, constrain_result=True)"


def copied(before, after, value):
    return f"device_copy({value}, src_virtual_device=<{before}>, dst_virtual_device=<{after}>)"


def planned(mod):
    context = tvm.transform.PassContext(config={"relay.fallback_device_type": GPU.device_type_int})
    return transform.InferType()(transform.PlanDevices(make_compilation_config(context, [CPU_TARGET, GPU_TARGET]))(transform.InferType()(mod)))


def at(**devices):
    """Parameters with their devices."""
    return ", ".join(f"%{name} {{virtual_device=<{device}>}}: <T>" for name, device in devices.items())


PLANS = {
    "nothing said": ("def @main(%a: <T>, %b: <T>) { add(%a, %b) }", f"def @main({at(a='G', b='G')}, virtual_device=<G>) {{ add(%a, %b) }}"),
    "an operand elsewhere": (
        "def @main(%a: <T>, %b: <T>, %c: <T>) { subtract(on_device(add(%a, %b), virtual_device=<C>), negative(%c)) }",
        f"def @main({at(a='C', b='C', c='G')}, virtual_device=<G>) {{ subtract({copied('C', 'G', on('C', 'add(%a, %b)'))}, negative(%c)) }}"),
    "both operands elsewhere": (
        "def @main(%a: <T>, %b: <T>) { %0 = on_device(exp(%a), virtual_device=<C>); %1 = on_device(exp(%b), virtual_device=<C>); add(%0, %1) }",
        f"def @main({at(a='C', b='C')}, virtual_device=<G>) {{ %0 = {copied('C', 'G', on('C', 'exp(%a)'))}; %1 = {copied('C', 'G', on('C', 'exp(%b)'))}; add(%0, %1) }}"),
    "a binding": (
        "def @main(%a: <T>, %b: <T>) { let %l = exp(%a); add(on_device(%l, virtual_device=<C>), %b) }",
        f"def @main({at(a='C', b='G')}, virtual_device=<G>) {{ let %l = {on('C', 'exp(%a)')}; add({copied('C', 'G', '%l')}, %b) }}"),
    "the result": ("def @main(%a: <T>) { on_device(exp(%a), virtual_device=<C>) }", f"def @main({at(a='C')}, virtual_device=<C>) {{ exp(%a) }}"),
    "another function": (
        "def @f(%y: <T>, %z: <T>) -> <T> { add(%y, on_device(%z, virtual_device=<C>)) } def @main(%a: <T>, %b: <T>) { @f(%a, exp(%b)) }",
        f"def @f({at(y='G', z='C')}, virtual_device=<G>) -> <T> {{ add(%y, {copied('C', 'G', '%z')}) }} "
        f"def @main({at(a='G', b='C')}, virtual_device=<G>) {{ @f(%a, {on('C', 'exp(%b)')}) }}"),
    "a field": ("def @main(%a: <T>, %b: <T>) { %0 = on_device((%a, %b), virtual_device=<C>); %0.0 }", f"def @main({at(a='C', b='C')}, virtual_device=<C>) {{ %0 = (%a, %b); %0.0 }}"),
    "branches": (
        "def @main(%p: bool, %x: <T>, %y: <T>) { if (%p) { %x } else { negative(on_device(exp(%y), virtual_device=<C>)) } }",
        f"def @main(%p {{virtual_device=<G>}}: bool, {at(x='G', y='C')}, virtual_device=<G>) {{ if (%p) {{ %x }} else {{ negative({copied('C', 'G', on('C', 'exp(%y)'))}) }} }}"),
    "a closure": (
        "def @main(%a: <T>) { let %f = fn (%x: <T>) { on_device(exp(%x), virtual_device=<C>) }; %f(%a) }",
        f"def @main({at(a='C')}, virtual_device=<C>) {{ let %f = fn ({at(x='C')}, virtual_device=<C>) {{ exp(%x) }}; %f(%a) }}"),
    "a copy that is none": (f"def @main(%a: <T>) {{ {copied('C', 'C', 'exp(%a)')} }}", f"def @main({at(a='C')}, virtual_device=<C>) {{ exp(%a) }}"),
    "a copy that is one": (f"def @main(%a: <T>) {{ {copied('C', 'G', 'exp(%a)')} }}", f"def @main({at(a='C')}, virtual_device=<G>) {{ {copied('C', 'G', on('C', 'exp(%a)'))} }}"),
    "a kind of memory": (
        "def @main(%a: <T>) { negative(on_device(exp(%a), virtual_device=<S>)) }",
        f"def @main({at(a='S')}, virtual_device=<G>) {{ negative({copied('S', 'G', on('S', 'exp(%a)'))}) }}"),
}


@program(*PLANS)
def plans(name):
    given, wanted = (parsed(text) for text in PLANS[name])
    once = planned(given)
    same(once, transform.InferType()(wanted))
    same(planned(once), once)  # nothing is left to say


@program
def shapes_are_on_the_host():
    mod = planned(parsed("def @main(%x: Tensor[(?, ?), float32]) { vm.shape_of(on_device(%x, virtual_device=<G>, constrain_result=True), dtype=\"int64\") }"))
    assert mod["main"].virtual_device_ == VirtualDevice(target=HOST) and mod["main"].params[0].virtual_device_ == GPU


@program
def two_devices_for_one_value():
    text = (f"def @f(%x: <T>) {{ {on('C', 'exp(%x)')} }} def @main({at(a='G')}, virtual_device=<G>) {{ " + on("G", "@f(%a)") + " }")
    assert "two devices" in str(raises(tvm.TVMError, planned, parsed(text)))


@program("param", "result", "operand", "copy", "scope")
def texts(place):
    text = {"param": f"def @main({at(a='C')}) {{ %a }}", "result": "def @main(%a: <T>, virtual_device=<G>) { %a }", "operand": f"def @main(%a: <T>) {{ {on('G', '%a')} }}",
            "copy": f"def @main(%a: <T>) {{ {copied('C', 'G', '%a')} }}", "scope": f"def @main({at(a='S')}) {{ %a }}"}[place]
    mod = parsed(text)
    again = tvm.parser.parse(mod.astext())
    same(again, mod)
    main = again["main"]
    found = {"param": lambda: main.params[0].virtual_device_ == CPU, "result": lambda: main.virtual_device_ == GPU,
             "operand": lambda: main.body.attrs.virtual_device == GPU and main.body.attrs.constrain_result,
             "copy": lambda: (main.body.attrs.src_virtual_device, main.body.attrs.dst_virtual_device) == (CPU, GPU),
             "scope": lambda: main.params[0].virtual_device_.memory_scope == "local"}
    assert found[place]()


@program
def devices_are_part_of_equality():
    assert not tvm.ir.structural_equal(parsed(f"def @main({at(a='C')}) {{ %a }}"), parsed(f"def @main({at(a='G')}) {{ %a }}"))


@program
def a_device_that_is_not_there():
    assert "metadata" in str(raises(tvm.TVMError, tvm.parser.parse, '#[version = "0.0.5"]\ndef @main(%a: int32, virtual_device=meta[VirtualDevice][0]) { %a }'))


@program
def fields_of_functions():
    x = relay.VarWithFields(relay.var("x", shape=(5, 7)), virtual_device=CPU)
    function = relay.FunctionWithFields(relay.Function([x], relay.exp(x)), virtual_device=GPU)
    assert function.params[0].virtual_device_ == CPU and function.virtual_device_ == GPU and not function.attrs
    assert function.with_attr("a", 1).virtual_device_ == GPU and "a" in function.with_attr("a", 1).attrs
    same(tvm.parser.parse(tvm.IRModule.from_expr(function).astext())["main"], transform.InferType()(tvm.IRModule.from_expr(function))["main"])


@program
def dead_code_keeps_devices():
    mod = parsed(f"def @main({at(a='C', b='G')}, virtual_device=<G>) {{ let %dead = {on('C', 'exp(%b)')}; let %l = {on('C', 'exp(%a)')}; {copied('C', 'G', '%l')} }}")
    out = transform.DeadCodeElimination(inline_once=True)(transform.InferType()(mod))
    same(transform.InferType()(out), transform.InferType()(parsed(f"def @main({at(a='C', b='G')}, virtual_device=<G>) {{ {copied('C', 'G', on('C', 'exp(%a)'))} }}")))


@program
def targets_as_the_classic_printer_writes_them():
    target = "Target(kind='llvm', keys={'cpu'}, attrs={'link-params': (bool)0}, host=Target(kind='llvm', keys={'cpu'}))"
    text = f"def @main(%a {{virtual_device=VirtualDevice(device_type=2, virtual_device_id=1, target={target})}}: int32) {{ %a }}"
    place = parsed(text)["main"].params[0].virtual_device_
    assert place.device_type_int == 2 and place.virtual_device_id == 1
