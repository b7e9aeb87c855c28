// SPDX-License-Identifier: Apache-2.0
// Tensor expressions and their schedules, down to library functions.
#include "base/format.h"
#include "compiler.h"
#include "driver/functions_text.h"
#include "loops.h"
#include "relay.h"
#include "te/flops.h"
#include "te/loop_features.h"
#include "te/lower.h"
#include "te/schedule.h"
#include "tir/passes/lower_kernel.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"

namespace tilewright::python {
namespace {

using te::IterVar;
using te::Operation;
using te::Tensor;
using tir::PrimExpr;

// Keeps a Python object in an operation.
class KeptObject : public Node {
 public:
  explicit KeptObject(nb::object o) : object(std::move(o)) {}
  ~KeptObject() override {
    if (!Py_IsInitialized()) {
      object.release();
      return;
    }
    nb::gil_scoped_acquire gil;
    object.reset();
  }
  KeptObject(const KeptObject&) = delete;
  KeptObject& operator=(const KeptObject&) = delete;
  nb::object object;
};

std::vector<std::shared_ptr<const driver::LoweredFunction>> function_list(nb::handle functions) {
  std::vector<std::shared_ptr<const driver::LoweredFunction>> out;
  for (nb::handle f : functions)
    out.push_back(std::make_shared<const driver::LoweredFunction>(nb::cast<const driver::LoweredFunction&>(f)));
  return out;
}

struct ScheduleHandle {
  std::shared_ptr<te::Schedule> schedule;
};
struct IntrinsicHandle {
  std::shared_ptr<const te::TensorIntrinsic> intrinsic;
};
struct StageHandle {
  std::shared_ptr<te::Schedule> schedule;
  te::Stage* stage;
};

nb::object wrap_iter(const IterVar& v) { return loop_instance("IterVar", v); }
nb::object wrap_tensor(const Tensor& t) { return loop_instance("Tensor", t); }
nb::object wrap_operation(const Operation& op) {
  const char* kind = op->external ? op->external->is_script ? "HybridOp" : "ExternOp"
                     : op->scan   ? "ScanOp"
                                  : "ComputeOp";
  return loop_instance(op->is_placeholder() ? "PlaceholderOp" : kind, op);
}
nb::list wrap_iters(const std::vector<IterVar>& list) {
  nb::list out;
  for (const IterVar& v : list) out.append(wrap_iter(v));
  return out;
}
nb::object wrap_stage(const std::shared_ptr<te::Schedule>& schedule, te::Stage* stage) {
  return loop_instance("Stage", StageHandle{schedule, stage});
}

template <class T>
std::vector<T> all_of(nb::handle sequence) {
  std::vector<T> out;
  for (nb::handle item : sequence) out.push_back(nb::cast<T>(item));
  return out;
}

std::vector<PrimExpr> sizes_of(nb::handle sequence) {
  std::vector<PrimExpr> out = prim_exprs_of(sequence);
  for (const PrimExpr& e : out)
    if (!e->dtype.is_int() || e->dtype.bits < 32 || e->dtype.lanes != 1)
      raise(Diagnostic(ErrorCode::kInvalidArgument, format("a dimension is of {}", e->dtype.str()), {},
                       "give sizes as int32 or int64"));
  return out;
}

void bind_tensors(nb::module_& m) {
  nb::class_<te::Combiner>(m, "Combiner", "How two partial results become one")
      .def("__init__",
           [](te::Combiner* self, nb::object lhs, nb::object rhs, nb::object result, nb::object identity) {
             new (self)
                 te::Combiner{prim_exprs_of(lhs), prim_exprs_of(rhs), prim_exprs_of(result), prim_exprs_of(identity)};
           })
      .def("with_identity",
           [](const te::Combiner& self, nb::object identity) {
             te::Combiner out = self;
             out.identity = prim_exprs_of(identity);
             return out;
           })
      .def_prop_ro("lhs", [](const te::Combiner& self) { return wrap_all(self.lhs); })
      .def_prop_ro("rhs", [](const te::Combiner& self) { return wrap_all(self.rhs); })
      .def_prop_ro("result", [](const te::Combiner& self) { return wrap_all(self.result); })
      .def_prop_ro("identity_element", [](const te::Combiner& self) { return wrap_all(self.identity); });
  m.def("te_combiner", [](const std::string& name, const std::string& dtype) {
    const te::Reduction kind = name == "sum"    ? te::Reduction::kSum
                               : name == "prod" ? te::Reduction::kProd
                               : name == "min"  ? te::Reduction::kMin
                                                : te::Reduction::kMax;
    return unwrap(te::make_combiner(kind, unwrap(parse_dtype(dtype))));
  });
  nb::class_<IterVar>(m, "IterVar", "A variable of a computation and what it runs over")
      .def(nb::init<const IterVar&>())
      .def_prop_ro("var", [](const IterVar& self) { return wrap(self->var); })
      .def_prop_ro("_min", [](const IterVar& self) { return wrap(self->min); })
      .def_prop_ro("_extent", [](const IterVar& self) { return wrap(self->extent); })
      .def_prop_ro("is_reduce", [](const IterVar& self) { return self->kind == te::IterKind::kReduce; })
      .def(
          "same_as",
          [](const IterVar& self, nb::handle o) { return nb::isinstance<IterVar>(o) && nb::cast<IterVar>(o) == self; },
          any)
      .def("__hash__", [](const IterVar& self) { return reinterpret_cast<intptr_t>(self.get()); });
  m.def("te_axis", [](nb::object extent, const std::string& name) {
    return wrap_iter(te::data_axis(sizes_of(nb::make_tuple(extent))[0], name));
  });
  m.def("te_reduce_axis", [](nb::object first, nb::object extent, const std::string& name) {
    const std::vector<PrimExpr> dom = sizes_of(nb::make_tuple(first, extent));
    return wrap_iter(te::reduce_axis(dom[0], dom[1], name));
  });
  nb::class_<Tensor>(m, "Tensor", "Elements that a placeholder stands for or a computation gives")
      .def(nb::init<const Tensor&>())
      .def_prop_ro("op", [](const Tensor& self) { return wrap_operation(self->op); })
      .def_prop_ro("value_index", [](const Tensor& self) { return self->index; })
      .def_prop_ro("shape", [](const Tensor& self) { return wrap_all(self->shape()); })
      .def_prop_ro("ndim", [](const Tensor& self) { return self->shape().size(); })
      .def_prop_ro("dtype", [](const Tensor& self) { return self->dtype().str(); })
      .def("_element", [](const Tensor& self,
                          nb::object indices) { return wrap(unwrap(te::element(self, prim_exprs_of(indices)))); })
      .def(
          "_same",
          [](const Tensor& self, nb::handle o) {
            return nb::isinstance<Tensor>(o) && te::same_tensor(*nb::cast<Tensor>(o), *self);
          },
          any)
      .def("__hash__", [](const Tensor& self) {
        return reinterpret_cast<intptr_t>(self->op.get()) ^ static_cast<intptr_t>(self->index);
      });
  nb::class_<Operation>(m, "Operation", "What makes tensors")
      .def(nb::init<const Operation&>())
      .def_prop_ro("name", [](const Operation& self) { return self->name; })
      .def_prop_ro("tag", [](const Operation& self) { return self->tag; })
      .def_prop_ro("_attributes",
                   [](const Operation& self) -> nb::object {
                     const auto* kept = dynamic_cast<const KeptObject*>(self->attributes.get());
                     return kept ? kept->object : nb::none();
                   })
      .def_prop_ro("axis",
                   [](const Operation& self) {
                     if (!self->external) return wrap_iters(self->axis);
                     nb::list out;
                     for (const te::ScriptLoop& loop : self->external->loops) out.append(wrap_iter(loop.axis));
                     return out;
                   })
      .def_prop_ro("reduce_axis", [](const Operation& self) { return wrap_iters(self->reduce_axis); })
      .def_prop_ro("_values", [](const Operation& self) { return wrap_all(self->values); })
      .def_prop_ro("_combiner",
                   [](const Operation& self) { return self->combiner ? nb::cast(*self->combiner) : nb::none(); })
      .def_prop_ro("_condition", [](const Operation& self) { return wrap(self->condition); })
      .def_prop_ro("_scan_axis",
                   [](const Operation& self) { return self->scan ? wrap_iter(self->scan->axis) : nb::none(); })
      .def_prop_ro("_body",
                   [](const Operation& self) { return self->external ? wrap_stmt(self->external->body) : nb::none(); })
      .def_prop_ro("_buffers",  // of statements: those that stand for the inputs, and for the outputs
                   [](const Operation& self) {
                     nb::list ins, outs;
                     if (self->external) {
                       for (const tir::Array& a : self->external->input_arrays) ins.append(loop_instance("Array", a));
                       for (const tir::Array& a : self->external->output_arrays) outs.append(loop_instance("Array", a));
                     }
                     return nb::make_tuple(ins, outs);
                   })
      .def_prop_ro("_recurrence",  // of a scan: init, update and state
                   [](const Operation& self) {
                     nb::list out;
                     if (!self->scan) return out;
                     for (const auto* part : {&self->scan->init, &self->scan->update, &self->scan->state}) {
                       nb::list tensors;
                       for (const Tensor& t : *part) tensors.append(wrap_tensor(t));
                       out.append(tensors);
                     }
                     return out;
                   })
      .def_prop_ro("num_outputs", [](const Operation& self) { return self->dtypes.size(); })
      .def("output",
           [](const Operation& self, size_t index) {
             if (index >= self->dtypes.size()) throw nb::index_error("the operation has no such output");
             return wrap_tensor(te::output(self, static_cast<int>(index)));
           })
      .def_prop_ro("input_tensors",
                   [](const Operation& self) {
                     nb::list out;
                     for (const Tensor& t : self->inputs()) out.append(wrap_tensor(t));
                     return out;
                   })
      .def(
          "__eq__",
          [](const Operation& a, nb::handle b) { return nb::isinstance<Operation>(b) && nb::cast<Operation>(b) == a; },
          any)
      .def("__hash__", [](const Operation& self) { return reinterpret_cast<intptr_t>(self.get()); });
  m.def("te_placeholder", [](nb::object shape, const std::string& dtype, const std::string& name) {
    return wrap_tensor(te::placeholder(sizes_of(shape), unwrap(parse_dtype(dtype)), name));
  });
  m.def(
      "te_extern",
      [](const std::string& name, nb::object inputs, nb::object in_arrays, nb::object out_arrays, const tir::Stmt& body,
         bool is_script) {
        return wrap_operation(unwrap(te::define_extern(name, all_of<Tensor>(inputs), all_of<tir::Array>(in_arrays),
                                                       all_of<tir::Array>(out_arrays), body, is_script)));
      },
      any, any, any, any, any, any);
  m.def("te_scan", [](const std::string& name, nb::object init, nb::object update, nb::object state) {
    return wrap_operation(
        unwrap(te::define_scan(name, all_of<Tensor>(init), all_of<Tensor>(update), all_of<Tensor>(state))));
  });
  using Intrinsic = IntrinsicHandle;
  nb::class_<Intrinsic>(m, "TensorIntrinsic", nb::dynamic_attr(), "Code that computes a piece of a stage")
      .def(nb::init<const Intrinsic&>())
      .def_prop_ro("name", [](const Intrinsic& self) { return self.intrinsic->name; })
      .def_prop_ro("op", [](const Intrinsic& self) { return wrap_operation(self.intrinsic->operation); });
  m.def(
      "te_intrinsic",
      [](const std::string& name, const Operation& op, nb::object inputs, nb::object outputs, nb::object body,
         nb::object reset, nb::object update) {
        auto part = [](nb::handle s) { return s.is_none() ? tir::Stmt() : nb::cast<tir::Stmt>(s); };
        return Intrinsic{std::make_shared<te::TensorIntrinsic>(te::TensorIntrinsic{
            name, op, all_of<tir::Array>(inputs), all_of<tir::Array>(outputs), part(body), part(reset), part(update)})};
      },
      any, any, any, any, any, any, any);
  m.def(
      "te_compute",
      [](const std::string& name, nb::object axes, nb::object reduce_axes, nb::object values, nb::object combiner,
         nb::object condition, const std::string& tag, nb::object attributes) {
        te::Definition d;
        d.name = name;
        d.axis = all_of<IterVar>(axes);
        d.reduce_axis = all_of<IterVar>(reduce_axes);
        d.values = prim_exprs_of(values);
        if (!combiner.is_none()) d.combiner = nb::cast<te::Combiner>(combiner);
        if (!condition.is_none()) d.condition = prim_expr_of(condition);
        d.tag = tag;
        if (!attributes.is_none()) d.attributes = make_node<KeptObject>(attributes);
        return wrap_operation(unwrap(te::define(std::move(d))));
      },
      any, any, any, any, any, any, any, any);
}

void bind_stages(nb::module_& m) {
  nb::class_<StageHandle>(m, "Stage", "A stage of a schedule: an operation and its loops")
      .def(nb::init<const StageHandle&>())
      .def_prop_ro("op", [](const StageHandle& self) { return wrap_operation(self.stage->op()); })
      .def_prop_ro("leaf_iter_vars", [](const StageHandle& self) { return wrap_iters(self.stage->leaves()); })
      .def_prop_ro("is_output", [](const StageHandle& self) { return self.stage->is_output(); })
      .def("_split",
           [](const StageHandle& self, const IterVar& parent, int64_t factor, int64_t parts) {
             const auto made = unwrap(self.stage->split(parent, factor, parts));
             return nb::make_tuple(wrap_iter(made.outer), wrap_iter(made.inner));
           })
      .def("_fuse", [](const StageHandle& self, const IterVar& a,
                       const IterVar& b) { return wrap_iter(unwrap(self.stage->fuse(a, b))); })
      .def("_reorder",
           [](const StageHandle& self, nb::object order) { unwrap(self.stage->reorder(all_of<IterVar>(order))); })
      .def("_vectorize", [](const StageHandle& self, const IterVar& v) { unwrap(self.stage->vectorize(v)); })
      .def("_unroll", [](const StageHandle& self, const IterVar& v) { unwrap(self.stage->unroll(v)); })
      .def("_parallel", [](const StageHandle& self, const IterVar& v) { unwrap(self.stage->parallel(v)); })
      .def("_bind", [](const StageHandle& self, const IterVar& v,
                       const std::string& thread) { unwrap(self.stage->bind(v, thread)); })
      .def("_tensorize", [](const StageHandle& self, const IterVar& v,
                            const IntrinsicHandle& by) { unwrap(self.stage->tensorize(v, by.intrinsic)); })
      .def(
          "_set_store_predicate",
          [](const StageHandle& self, nb::object condition) {
            unwrap(self.stage->set_store_predicate(prim_expr_of(condition)));
          },
          any)
      .def("_import_llvm", [](const StageHandle& self, const std::string& text) { self.stage->import_llvm(text); })
      .def_prop_ro("_has_code",
                   [](const StageHandle& self) {
                     return self.stage->tensorized_by() || self.stage->store_predicate() ||
                            !self.stage->imports().empty();
                   })
      .def("_singleton", [](const StageHandle& self) { return wrap_iter(unwrap(self.stage->singleton())); })
      .def_prop_ro("_single_loop",
                   [](const StageHandle& self) {
                     return self.stage->single_loop() ? wrap_iter(self.stage->single_loop()) : nb::none();
                   })
      .def_prop_ro("_relations",  // (fuses, parent, outer, inner, factor, parts)
                   [](const StageHandle& self) {
                     nb::list out;
                     for (const te::Relation& r : self.stage->relations())
                       out.append(nb::make_tuple(r.fuses, wrap_iter(r.parent), wrap_iter(r.outer), wrap_iter(r.inner),
                                                 r.factor, r.parts));
                     return out;
                   })
      .def("_annotations",  // kind, thread or None, [(pragma, value)]
           [](const StageHandle& self, const IterVar& v) {
             nb::list pragmas;
             for (const te::Stage::Pragma& p : self.stage->pragmas(v)) {
               const auto* kept = dynamic_cast<const KeptObject*>(p.value.get());
               pragmas.append(nb::make_tuple(p.name, kept ? kept->object : nb::none()));
             }
             const std::string* thread = self.stage->bound_to(v);
             return nb::make_tuple(static_cast<int>(self.stage->kind_of(v)), thread ? nb::cast(*thread) : nb::none(),
                                   pragmas);
           })
      .def(
          "_add_pragma",
          [](const StageHandle& self, const IterVar& v, const std::string& name, nb::object value) {
            unwrap(self.stage->add_pragma(v, {name, make_node<KeptObject>(std::move(value))}));
          },
          any, any, any)
      .def_prop_ro("scope", [](const StageHandle& self) { return self.stage->scope(); })
      .def("_set_scope", [](const StageHandle& self, const std::string& scope) { self.stage->set_scope(scope); })
      .def_prop_ro("is_inline", [](const StageHandle& self) { return self.stage->is_inline(); })
      .def_prop_ro("_attached",  // (stage, loop), or None
                   [](const StageHandle& self) -> nb::object {
                     const te::Stage* by = self.stage->attached_to();
                     if (!by) return nb::none();
                     return nb::make_tuple(wrap_stage(self.schedule, const_cast<te::Stage*>(by)),
                                           wrap_iter(self.stage->attached_at()));
                   })
      .def("_check_loop", [](const StageHandle& self, const IterVar& v) { unwrap(self.stage->check_loop(v)); })
      .def("_compute_at", [](const StageHandle& self, const StageHandle& consumer,
                             const IterVar& v) { unwrap(self.stage->compute_at(*consumer.stage, v)); })
      .def("_compute_inline", [](const StageHandle& self) { unwrap(self.stage->compute_inline()); })
      .def("_compute_root", [](const StageHandle& self) { unwrap(self.stage->compute_root()); })
      .def(
          "__eq__",
          [](const StageHandle& a, nb::handle b) {
            return nb::isinstance<StageHandle>(b) && nb::cast<const StageHandle&>(b).stage == a.stage;
          },
          any)
      .def("__hash__", [](const StageHandle& self) { return reinterpret_cast<intptr_t>(self.stage); });
  nb::class_<ScheduleHandle>(m, "Schedule", "How and when tensors are computed")
      .def(nb::init<const ScheduleHandle&>())
      .def("_stage", [](const ScheduleHandle& self,
                        const Operation& op) { return wrap_stage(self.schedule, unwrap(self.schedule->stage(op))); })
      .def_prop_ro("stages",
                   [](const ScheduleHandle& self) {
                     nb::list out;
                     for (const auto& s : self.schedule->stages()) out.append(wrap_stage(self.schedule, s.get()));
                     return out;
                   })
      .def("_cache_read",
           [](const ScheduleHandle& self, const Tensor& t, nb::object readers, const std::string& suffix) {
             return wrap_tensor(unwrap(self.schedule->cache_read(t, all_of<Operation>(readers), suffix)));
           })
      .def("_rfactor",
           [](const ScheduleHandle& self, const Tensor& t, const IterVar& leaf, int factor_axis) {
             nb::list out;
             for (const Tensor& made : unwrap(self.schedule->rfactor(t, leaf, factor_axis)))
               out.append(wrap_tensor(made));
             return out;
           })
      .def("_cache_write", [](const ScheduleHandle& self, const Tensor& t, const std::string& suffix) {
        return wrap_tensor(unwrap(self.schedule->cache_write(t, suffix)));
      });
  m.def("te_bounds", [](const ScheduleHandle& self) {
    nb::list out;
    for (const te::Bound& b : unwrap(te::bounds_of(*self.schedule)))
      out.append(nb::make_tuple(wrap_iter(b.variable), wrap(b.first), wrap(b.extent)));
    return out;
  });
  m.def("te_create_schedule", [](nb::object ops) {
    return loop_instance("Schedule", ScheduleHandle{std::make_shared<te::Schedule>(all_of<Operation>(ops))});
  });
}

}  // namespace

void bind_schedules(nb::module_& m) {
  bind_tensors(m);
  bind_stages(m);
  using Function = driver::LoweredFunction;
  nb::class_<Function> function(m, "LoweredFunction", "A schedule as loops");
  function.def_prop_ro("name", [](const Function& self) { return self.name; })
      .def("renamed",
           [](const Function& self, const std::string& name) {
             Function out = self;
             out.name = name;
             return out;
           })
      .def_prop_ro("arguments",  // (name, dtype, shape), or a variable
                   [](const Function& self) {
                     nb::list out;
                     size_t tensors = 0, scalars = 0;
                     tir::Substitution names;
                     for (size_t i = 0; i < self.lowered.sizes.size(); ++i)
                       names[self.lowered.size_values[i].get()] = tir::cast(kInt64, self.lowered.sizes[i]);
                     for (const bool scalar : self.scalar) {
                       if (scalar) {
                         out.append(wrap(self.lowered.sizes[scalars++]));
                         continue;
                       }
                       const auto& a = self.lowered.arguments[tensors++];
                       std::vector<PrimExpr> shape;
                       for (const PrimExpr& d : a.shape) shape.push_back(tir::substitute(d, names));
                       out.append(nb::make_tuple(a.name, a.dtype.str(), wrap_all(shape)));
                     }
                     return out;
                   })
      .def_prop_ro("parameters",  // for each kernel the memory of the sizes (if any), the tensors, the workspaces
                   [](const Function& self) {
                     nb::list out;
                     for (const tir::PrimFunc& k : self.lowered.kernels) out.append(nb::cast(k.params));
                     return out;
                   })
      .def_prop_ro("workspaces",  // (name, dtype, elements) of intermediate tensors
                   [](const Function& self) {
                     nb::list out;
                     tir::Substitution names;
                     for (size_t i = 0; i < self.lowered.sizes.size(); ++i)
                       names[self.lowered.size_values[i].get()] = tir::cast(kInt64, self.lowered.sizes[i]);
                     for (const auto& w : self.lowered.workspaces)
                       out.append(nb::make_tuple(w.buffer->name, w.buffer->dtype.str(),
                                                 wrap(tir::substitute(w.elements, names))));
                     return out;
                   })
      .def_prop_ro("calls",  // names of the runtime's functions that are called between the kernels
                   [](const Function& self) {
                     nb::list out;
                     for (const auto& c : self.lowered.calls) out.append(c.name);
                     return out;
                   })
      .def_prop_ro("bodies",  // the kernels' statements
                   [](const Function& self) {
                     nb::list out;
                     for (const tir::PrimFunc& k : self.lowered.kernels) out.append(wrap_stmt(k.body));
                     return out;
                   })
      .def("with_body",
           [](const Function& self, const tir::Stmt& body) { return unwrap(driver::with_body(self, body)); })
      .def("with_intrinsics",  // replaces named functions and intrinsics by the results of f
           [](const Function& self, const nb::object& f) {
             Function out = self;
             for (tir::PrimFunc& k : out.lowered.kernels)
               k.body = tir::mutate(k.body, [&](PrimExpr e) -> PrimExpr {
                 if (e->kind != tir::ExprKind::kExtern && e->kind != tir::ExprKind::kCall) return e;
                 nb::object made = f(wrap(e));
                 return made.is_none() ? e : prim_expr_of(made);
               });
             return out;
           })
      .def("with_pass",  // of tir::kKernelPasses, by name
           [](const Function& self, const std::string& name) {
             Function out = self;
             for (const tir::KernelPass& pass : std::span(tir::kKernelPasses, tir::kKernelPassCount)) {
               if (name != pass.name) continue;
               for (tir::PrimFunc& k : out.lowered.kernels) {
                 k = pass.run(std::move(k));
                 unwrap(tir::verify(k));
               }
             }
             return out;
           })
      .def("text",  // as scheduled, or as passed to code generation
           [](const Function& self, bool finished) {
             std::string out;
             const auto kernels = finished ? unwrap(driver::finished_kernels(self)) : self.lowered.kernels;
             for (const tir::PrimFunc& k : kernels) out += (out.empty() ? "" : "\n") + tir::to_text(k);
             return out;
           });
  // Serialised for a process that builds it.
  function.def("to_json", [](const Function& self) { return unwrap(driver::to_text(self)); });
  function.def("loop_features", [](const Function& self) {  // one row of numbers per loop
    nb::list out;
    for (const te::LoopFeatures& f : te::loop_features(self.lowered)) {
      nb::list row;
      for (const double value : f.row()) row.append(value);
      out.append(row);
    }
    return out;
  });
  m.def("parse_lowered_function", [](const std::string& text) { return unwrap(driver::parse_function(text)); });
  m.def("te_count_flops", [](const ScheduleHandle& s) { return unwrap(te::count_flops(*s.schedule)); });
  m.def("te_lower", [](const ScheduleHandle& schedule, nb::object args, const std::string& name) {
    Function out{name, {}, {}};
    std::vector<Tensor> tensors;
    std::vector<PrimExpr> scalars;
    for (nb::handle a : args) {
      out.scalar.push_back(!nb::isinstance<Tensor>(a));
      if (out.scalar.back())
        scalars.push_back(prim_expr_of(a));
      else
        tensors.push_back(nb::cast<Tensor>(a));
    }
    out.lowered = unwrap(te::lower(*schedule.schedule, tensors, name, scalars));
    return out;
  });
  m.def("te_lower_function", [](const tir::BlockFunction& function) {
    Function out{function.name, {}, {}};
    for (const auto& p : function.params) out.scalar.push_back(!p.array);
    out.lowered = unwrap(te::lower(function));
    return out;
  });
  // Adds functions to the model that is built with the options.
  m.def("add_functions", [](driver::BuildOptions& options, const nb::object& functions) {
    for (auto& f : function_list(functions)) options.functions.push_back(std::move(f));
  });
  m.def("build_functions", [](nb::object functions, const driver::BuildOptions& options) {
    const auto list = function_list(functions);
    auto made = [&] {
      nb::gil_scoped_release release;
      return driver::build_functions(list, options);
    }();
    return unwrap(std::move(made));
  });
}

}  // namespace tilewright::python
