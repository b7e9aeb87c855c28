# SPDX-License-Identifier: Apache-2.0
"""Inference of types with sizes by name, programs with lets, references and recursion, and what walks over them."""
import numpy as np
import tvm
import tvm.testing
from harness import program, raises
from tvm import relay, te
from tvm.relay import transform
from tvm.relay.testing import create_workload, run_infer_type, run_opt_pass


@program
def sym_conv():
    n, c, h, w = (te.size_var('n'), 10, 224, 224)
    x = relay.var('x', relay.ty.TensorType((n, c, h, w), 'float32'))
    k = relay.var('w')
    y = relay.nn.conv2d(x, k, kernel_size=(3, 3), padding=(1, 1), channels=2)
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, 2, 224, 224), 'float32')
    assert yy.args[1].checked_type == relay.TensorType((2, 10, 3, 3), 'float32')


@program
def sym_dense():
    n, c, h, w = [te.size_var(v) for v in 'nchw']
    x = relay.var('x', relay.TensorType((n, c, h, w), 'float32'))
    k = relay.var('w', relay.TensorType((2, w), 'float32'))
    y = relay.nn.dense(x, k, units=2)
    assert 'units=2' in y.astext()
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, c, h, 2), 'float32')


@program
def sym_binary():
    n = te.size_var('n')
    t1 = relay.TensorType((5, n, 5))
    t2 = relay.TensorType((n, 1))
    x = relay.var('x', t1)
    y = relay.var('y', t2)
    z = relay.add(x, y)
    assert 'add(%x, %y)' in z.astext()
    assert run_infer_type(z).checked_type == t1


@program
def batchnorm_types():
    x = relay.var('data', relay.TensorType((3, 2, 1)))
    b, g, mm, mv = [relay.var(n, relay.TensorType((2,))) for n in ('beta', 'gamma', 'moving_mean', 'moving_var')]
    y = relay.nn.batch_norm(x, g, b, mm, mv, center=False, scale=False)
    yy = run_infer_type(y.astuple())
    assert 'center=False' in yy.astext()
    assert yy.checked_type == relay.TupleType([relay.TensorType((3, 2, 1)), relay.TensorType((2,)), relay.TensorType((2,))])


@program
def log_softmax():
    n, d = (te.size_var('n'), te.size_var('d'))
    x = relay.var('x', shape=(n, d))
    y = relay.nn.log_softmax(x, axis=1)
    assert 'nn.log_softmax(%x, axis=1)' in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, d))


@program
def split_type():
    x = relay.var('x', relay.TensorType((5, 5, 2, 2), 'float32'))
    y = relay.split(x, indices_or_sections=5, axis=1)
    yy = run_infer_type(y.astuple())
    assert yy.checked_type == relay.TupleType([relay.TensorType((5, 1, 2, 2))] * 5)
    d1 = te.var('d1')
    x = relay.var('x', relay.TensorType((d1, 4)))
    yy = run_infer_type(relay.split(x, (1, 2), 1).astuple())
    assert len(yy.checked_type.fields) == 3


@program
def reshape_sym():
    a, b = (te.var('a'), te.var('b'))
    x = relay.var('x', shape=(a, b, 4))
    yy = run_infer_type(relay.reshape(x, (0, 0, -1)))
    assert yy.checked_type == relay.TensorType((a, b, 4))


@program
def arange_types():
    y = relay.arange(relay.const(0, 'int32'), relay.const(5, 'int32'), relay.const(2, 'int32'), dtype='int32')
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((3,), 'int32')


@program
def concat_sym():
    n, t, d = (te.size_var('n'), te.size_var('t'), 100)
    x = relay.var('x', shape=(n, t, d))
    y = relay.var('y', shape=(n, t, d))
    zz = run_infer_type(relay.concatenate((x, y), axis=-1))
    assert zz.checked_type == relay.TensorType((n, t, 200))
    x = relay.exp(x)
    zz = run_infer_type(relay.concatenate((x, y), axis=2))
    assert zz.checked_type == relay.TensorType((n, t, 200))
    zz = run_infer_type(relay.concatenate((x, y), axis=1))
    assert zz.checked_type == relay.TensorType((n, t + t, 100))


@program
def take_sym():
    d1, d2, d3 = (te.var('d1'), te.var('d2'), te.var('d3'))
    x = relay.var('x', relay.TensorType((d1, d2)))
    i = relay.var('i', relay.TensorType((d3,), 'int32'))
    assert run_infer_type(relay.take(x, i, axis=1)).checked_type == relay.TensorType((d1, d3))


@program
def expand_sym():
    n, t, d = (te.size_var('n'), te.size_var('t'), 100)
    x = relay.var('x', shape=(n, t, d))
    y = relay.expand_dims(x, axis=2)
    assert 'axis=2' in y.astext()
    assert run_infer_type(y).checked_type == relay.TensorType((n, t, 1, 100))


@program
def flatten_sym():
    d1, d2, d3, d4 = [te.size_var(f'd{i}') for i in range(4)]
    x = relay.var('x', relay.TensorType((d1, d2, d3, d4)))
    yy = run_infer_type(relay.nn.batch_flatten(x))
    assert yy.checked_type == relay.TensorType((d1, d2 * d3 * d4))


@program
def pad_sym():
    n, c, h, w = [te.size_var(v) for v in 'nchw']
    t = relay.var('t', relay.TensorType((n, c, h, w)))
    y = relay.nn.pad(t, ((1, 1), (2, 2), (3, 3), (4, 4)))
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n + 2, c + 4, h + 6, w + 8))


@program
def upsampling_text():
    x = relay.var('x', shape=(1, 2, 4, 4))
    y = relay.nn.upsampling(x, scale_h=2, scale_w=2, layout='NCHW', method='bilinear')
    assert 'method="BINLINEAR"' in y.astext() or 'method="bilinear"' in y.astext()


@program
def conv_out_dtype():
    n, h, w, c = (te.var('n'), 32, 32, 19)
    x = relay.var('x', relay.TensorType((n, h, w, c), 'int8'))
    k = relay.var('w')
    y = relay.nn.conv2d(x, k, kernel_size=(3, 3), padding=(1, 1), channels=16, data_layout='NHWC', out_dtype='int32')
    yy = run_infer_type(y)
    assert yy.checked_type == relay.TensorType((n, h, w, 16), 'int32')


@program
def workload():
    x = relay.var('x', shape=(1, 4))
    w = relay.var('w', shape=(3, 4))
    mod, params = create_workload(relay.Function([x, w], relay.nn.dense(x, w)))
    assert 'w' in params


@program
def dense_units_error():
    x = relay.var('x', shape=(1, 4))
    w = relay.var('w', shape=(3, 5))
    raises(tvm.error.TVMError, lambda: run_infer_type(relay.nn.dense(x, w)))


@program
def simplify_text():
    x = relay.var('x', shape=(1, 4))
    f = relay.Function([x], relay.nn.relu(x))
    s = f.astext()
    assert 'nn.relu' in s
    str(relay.transform.FoldConstant())
    relay.transform.FoldConstant().info


@program
def let_checked():
    sb = relay.ScopeBuilder()
    x = relay.var('x', dtype='float64', shape=())
    t1 = sb.let('t1', relay.log(x))
    t2 = sb.let('t2', relay.add(t1, x))
    sb.ret(t2)
    body = sb.get()
    body = run_infer_type(body)
    assert body.checked_type == relay.scalar_type('float64')


@program
def recursion():
    sb = relay.ScopeBuilder()
    f = relay.GlobalVar('f')
    n = relay.var('n', shape=(), dtype='int32')
    data = relay.var('data', shape=(), dtype='float32')
    with sb.if_scope(relay.equal(n, relay.const(0))):
        sb.ret(data)
    with sb.else_scope():
        sb.ret(f(relay.subtract(n, relay.const(1)), relay.log(data)))
    mod = tvm.IRModule()
    mod[f] = relay.Function([n, data], sb.get())
    assert '@f(%1, %2)' in mod.astext()
    mod = relay.transform.InferType()(mod)
    assert mod['f'].checked_type == relay.FuncType([relay.TensorType((), 'int32'), relay.TensorType((), 'float32')], relay.TensorType((), 'float32'))


@program
def incomplete_call():
    tt = relay.scalar_type('int32')
    x = relay.var('x', tt)
    fv = relay.var('f')
    func = relay.Function([x, fv], relay.Call(fv, [x]), tt)
    ft = run_infer_type(func)
    assert ft.checked_type == relay.FuncType([tt, relay.FuncType([tt], tt)], tt)


@program
def poly():
    a = relay.TypeVar('a')
    x = relay.var('x', a)
    id_ = relay.Function([x], x, a, [a])
    t = run_infer_type(id_).checked_type
    assert tvm.ir.structural_equal(t, relay.FuncType([a], a, [a]))


@program
def tuple_type():
    tp = relay.TensorType((10,))
    x = relay.var('x', tp)
    res = relay.Tuple([x, x])
    assert run_infer_type(res).checked_type == relay.TupleType([tp, tp])


@program
def ref_types():
    x = relay.var('x', 'float32')
    y = relay.var('y', 'float32')
    r = relay.RefCreate(x)
    st = relay.scalar_type('float32')
    assert run_infer_type(r).checked_type == relay.RefType(st)
    assert run_infer_type(relay.RefRead(r)).checked_type == st
    assert run_infer_type(relay.RefWrite(r, y)).checked_type == relay.TupleType([])


@program
def type_errors():
    x = relay.var('x', shape=(2,))
    f = relay.Function([x], x)
    raises(tvm.TVMError, lambda: run_infer_type(relay.Call(f, [x, x])))
    raises(tvm.error.DiagnosticError, lambda: run_infer_type(relay.Tuple([relay.add(x, relay.var('y', shape=(3,)))])))


@program
def free_vars_order():
    x, y = (relay.Var('x'), relay.Var('y'))
    assert relay.analysis.free_vars(relay.Let(x, relay.const(1), y)) == [y]
    e = relay.Tuple([x, y])
    assert list(relay.analysis.free_vars(e)) == [x, y]
    assert len(relay.analysis.all_vars(relay.Let(x, y, x))) == 2
    assert relay.analysis.bound_vars(relay.Let(x, relay.const(1), x)) == [x]


@program
def feature():
    from tvm.relay.analysis import Feature, detect_feature
    x = relay.var('x', shape=(2,))
    assert detect_feature(relay.const(1)) == {Feature.fConstant}
    assert Feature.fVar in detect_feature(x)


@program
def callgraph():
    mod = tvm.IRModule()
    x = relay.var('x', shape=(2,))
    mod['g'] = relay.Function([x], x)
    y = relay.var('y', shape=(2,))
    mod['main'] = relay.Function([y], mod.get_global_var('g')(y))
    cg = relay.analysis.CallGraph(mod)
    assert 'main' in str(cg)
    assert cg.global_call_count('main') == 1
    assert cg.is_recursive('main') is False


@program
def functors():

    class V(relay.ExprVisitor):

        def __init__(self):
            super().__init__()
            self.n = 0

        def visit_call(self, c):
            self.n += 1
            super().visit_call(c)
    x = relay.var('x', shape=(2,))
    v = V()
    v.visit(relay.exp(relay.exp(x)))
    assert v.n == 2

    class M(relay.ExprMutator):

        def visit_var(self, v):
            return relay.const(1.0)
    assert isinstance(M().visit(x + x).args[0], relay.Constant)

    class TF(relay.TypeMutator):

        def visit_tensor_type(self, t):
            return relay.TensorType(t.shape, 'int8')
    assert TF().visit(relay.TupleType([relay.TensorType((1,))])).fields[0].dtype == 'int8'


@program
def tempopattr():
    from tvm.relay.testing.temp_op_attr import TempOpAttr

    def alter(attrs, inputs, tinfos, out_type):
        return relay.multiply(inputs[0], relay.const(9.0))
    x = relay.var('x', shape=(2,))
    with TempOpAttr('nn.relu', 'FTVMAlterOpLayout', alter):
        a = run_opt_pass(relay.Function([x], relay.nn.relu(x)), transform.AlterOpLayout())
    assert a.body.op.name == 'multiply'


@program
def legal():
    from tvm.relay import op as reg
    x = relay.var('x', shape=(2,))

    @reg.register_legalize('nn.leaky_relu', level=101)
    def l(attrs, inputs, types):
        return relay.multiply(inputs[0], relay.const(2.0))
    a = run_opt_pass(relay.Function([x], relay.nn.leaky_relu(x)), transform.Legalize())
    assert a.body.op.name == 'multiply'
    relay.op.get('nn.leaky_relu').reset_attr('FTVMLegalize')


@program
def vm_tuple():
    x = relay.var('x', shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([x, x + x])))
    r = relay.create_executor('vm', mod=mod).evaluate()(np.ones(2, 'float32'))
    assert isinstance(r, tvm.runtime.container.ADT) and r[1].numpy()[0] == 2


@program
def names_conflict():
    x1 = relay.var('x', shape=(2,))
    x2 = relay.var('x', shape=(2,))
    f = relay.Function([x1, x2], x1 - x2)
    t = f.astext()
    assert '%x1' in t or '%x_1' in t
    r = relay.create_executor('graph', mod=tvm.IRModule.from_expr(f)).evaluate()(np.ones(2, 'float32'), np.zeros(2, 'float32'))
    assert (r.numpy() == 1).all()


@program
def text_conflict():
    x1 = relay.var('x', shape=(2,))
    x2 = relay.var('x', shape=(2,))
    f = relay.Function([x1, x2], x1 - x2)
    g = tvm.parser.parse_expr(f.astext())
    assert tvm.ir.structural_equal(f, g)


@program
def const_show():
    c = relay.const(np.zeros((2, 2), 'float32'))
    assert 'meta[relay.Constant][0]' in c.astext() and '#[metadata]' in c.astext()
    assert 'metadata' not in c.astext(show_meta_data=False)


@program
def quant():
    x = relay.var('x', shape=(1, 3, 8, 8))
    w = relay.var('w', shape=(4, 3, 3, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3))))
    with relay.quantize.qconfig(skip_conv_layers=[], global_scale=4.0):
        q = relay.quantize.quantize(mod, {'w': tvm.nd.array(np.ones((4, 3, 3, 3), 'float32'))})
        assert 'int8' in q.astext()


@program
def bind():
    x, y = (relay.var('x', shape=(2,)), relay.var('y', shape=(2,)))
    f = relay.Function([x, y], x + y)
    g = relay.bind(f, {y: relay.const(np.ones(2, 'float32'))}) if hasattr(relay, 'bind') else None
    assert len(g.params) == 1
    e = relay.expr.bind(x + y, {x: y})
    assert tvm.ir.structural_equal(e, y + y)
    h = relay.build_module.bind_params_by_name(f, {'y': tvm.nd.array(np.ones(2, 'float32'))})
    assert len(h.params) == 1


@program
def target_cfg():
    t = tvm.target.Target('cuda')
    assert t.attrs['max_num_threads'] == 1024
    assert t.attrs['max_num_threads'].value == 1024


@program
def runtime_mod():
    x = relay.var('x', shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], x + x)), 'llvm')
    m = lib.get_lib()
    assert m.type_key
    m.imported_modules
    raises(AttributeError, lambda: m['nope'])
    f = lib.module if hasattr(lib, 'module') else lib
    m.get_source() if hasattr(m, 'get_source') else 0
    g = lib['default'](tvm.cpu())
    g['set_input']('x', tvm.nd.array(np.ones(2, 'float32')))
    g['run']()
    assert g['get_output'](0).numpy()[0] == 2
    assert g['get_num_outputs']() == 1
    tf = g.time_evaluator('run', tvm.cpu(), number=2, repeat=2)
    r = tf()
    assert len(r.results) == 2 and r.mean > 0


@program
def kinds_of_types():
    kind, shape = relay.TypeKind, relay.TypeVar('s', relay.TypeKind.ShapeVar)
    tensor = relay.TensorType((2,))
    for good in (tensor, relay.TupleType([tensor]), relay.FuncType([tensor], tensor), relay.RefType(tensor), relay.TypeVar('t')):
        assert relay.analysis.check_kind(good) == kind.Type
    assert relay.analysis.check_kind(shape) == kind.ShapeVar and relay.analysis.check_kind(relay.GlobalTypeVar('L')) == kind.AdtHandle
    for bad in (relay.TupleType([shape]), relay.FuncType([shape], tensor), relay.FuncType([tensor], shape), relay.RefType(shape)):
        raises(tvm.TVMError, relay.analysis.check_kind, bad)
