// SPDX-License-Identifier: Apache-2.0
// Functions over arrays: printing as script, and schedule steps on their blocks and loops.
#include "loops.h"
#include "te/block_schedule.h"
#include "te/script.h"
#include "tir/block.h"

namespace tilewright::python {
namespace {

using te::BlockSchedule;
using tir::PrimExpr;

}  // namespace

void bind_block_schedules(nb::module_& m) {
  m.def("block_script", [](const tir::BlockFunction& f, const std::string& def_name, bool canonical) {
    return te::to_script(f, def_name, canonical);
  });
  m.def("block_function", [](nb::object args, const std::string& name) {
    std::vector<te::Tensor> tensors;
    std::vector<PrimExpr> scalars;
    std::vector<bool> is_scalar;
    for (nb::handle a : args) {
      is_scalar.push_back(!nb::isinstance<te::Tensor>(a));
      if (is_scalar.back())
        scalars.push_back(prim_expr_of(a));
      else
        tensors.push_back(nb::cast<te::Tensor>(a));
    }
    return unwrap(te::block_function(tensors, scalars, is_scalar, name));
  });
  nb::class_<BlockSchedule>(m, "BlockSchedule", "Steps on the blocks and loops of a function")
      .def("__init__", [](BlockSchedule* self, const tir::BlockFunction& f) { new (self) BlockSchedule(f); })
      .def_prop_ro("function", [](const BlockSchedule& self) { return self.function(); })
      .def("copy", [](const BlockSchedule& self) { return self; })
      .def("find_block", [](const BlockSchedule& self, const std::string& name) { unwrap(self.find_block(name)); })
      .def("loops", [](const BlockSchedule& self, const std::string& b) { return wrap_all(unwrap(self.loops(b))); })
      .def("split",
           [](BlockSchedule& self, nb::object loop, const std::vector<int64_t>& factors) {
             return wrap_all(unwrap(self.split(prim_expr_of(loop), factors)));
           })
      .def("fuse", [](BlockSchedule& self, nb::object loops) { return wrap(unwrap(self.fuse(prim_exprs_of(loops)))); })
      .def("reorder", [](BlockSchedule& self, nb::object loops) { unwrap(self.reorder(prim_exprs_of(loops))); })
      .def("set_kind", [](BlockSchedule& self, nb::object loop,
                          int kind) { unwrap(self.set_kind(prim_expr_of(loop), static_cast<tir::ForKind>(kind))); })
      .def("bind", [](BlockSchedule& self, nb::object loop,
                      const std::string& thread) { unwrap(self.bind(prim_expr_of(loop), thread)); })
      .def("annotate_loop", [](BlockSchedule& self, nb::object loop, const std::string& key,
                               const std::string& value) { unwrap(self.annotate(prim_expr_of(loop), key, value)); })
      .def("annotate_block", [](BlockSchedule& self, const std::string& block, const std::string& key,
                                const std::string& value) { unwrap(self.annotate(block, key, value)); })
      .def("unannotate_loop", [](BlockSchedule& self, nb::object loop,
                                 const std::string& key) { unwrap(self.unannotate(prim_expr_of(loop), key)); })
      .def("unannotate_block", [](BlockSchedule& self, const std::string& block,
                                  const std::string& key) { unwrap(self.unannotate(block, key)); })
      .def("set_scope", [](BlockSchedule& self, const std::string& block, size_t index,
                           const std::string& scope) { unwrap(self.set_scope(block, index, scope)); })
      .def("producers", [](const BlockSchedule& self, const std::string& b) { return unwrap(self.producers(b)); })
      .def("consumers", [](const BlockSchedule& self, const std::string& b) { return unwrap(self.consumers(b)); })
      .def("rfactor", [](BlockSchedule& self, const std::string& b, nb::object loop,
                         int64_t axis) { return unwrap(self.rfactor(b, prim_expr_of(loop), axis)); })
      .def("blockize", [](BlockSchedule& self, nb::object loop) { return unwrap(self.blockize(prim_expr_of(loop))); })
      .def("tensorize_loop",
           [](BlockSchedule& self, nb::object loop, const std::string& name, const tir::BlockFunction& description,
              const tir::BlockFunction& code) {
             unwrap(self.tensorize(prim_expr_of(loop), te::TensorCode{name, description, code}));
           })
      .def("tensorize_block",
           [](BlockSchedule& self, const std::string& block, const std::string& name,
              const tir::BlockFunction& description, const tir::BlockFunction& code) {
             unwrap(self.tensorize(block, te::TensorCode{name, description, code}));
           })
      .def("compute_inline", [](BlockSchedule& self, const std::string& b) { unwrap(self.compute_inline(b)); })
      .def("reverse_compute_inline",
           [](BlockSchedule& self, const std::string& b) { unwrap(self.reverse_compute_inline(b)); })
      .def("compute_at", [](BlockSchedule& self, const std::string& b,
                            nb::object loop) { unwrap(self.compute_at(b, prim_expr_of(loop))); })
      .def("reverse_compute_at", [](BlockSchedule& self, const std::string& b,
                                    nb::object loop) { unwrap(self.reverse_compute_at(b, prim_expr_of(loop))); })
      .def("cache_read", [](BlockSchedule& self, const std::string& b, size_t i,
                            const std::string& scope) { return unwrap(self.cache_read(b, i, scope)); })
      .def("cache_write", [](BlockSchedule& self, const std::string& b, size_t i,
                             const std::string& scope) { return unwrap(self.cache_write(b, i, scope)); })
      .def("decompose_reduction", [](BlockSchedule& self, const std::string& b, nb::object loop) {
        const auto parts = unwrap(self.decompose_reduction(b, prim_expr_of(loop)));
        return nb::make_tuple(parts.start, parts.update);
      });
}

}  // namespace tilewright::python
