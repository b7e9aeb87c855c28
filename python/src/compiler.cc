// SPDX-License-Identifier: Apache-2.0
// Modules of the graph IR, and import.
#include <cstring>

#include "compiler.h"
#include "frontend/onnx/import.h"
#include "relay/op.h"
#include "relay/text.h"

namespace tilewright::python {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;
using Arrays = std::map<std::string, ReadArray>;

DLDataType dlpack_of(DataType t) {
  switch (t.code) {
    case TypeCode::kInt: return {kDLInt, t.bits, 1};
    case TypeCode::kUInt: return {kDLUInt, t.bits, 1};
    case TypeCode::kFloat: return {kDLFloat, t.bits, 1};
    case TypeCode::kBFloat: return {kDLBfloat, t.bits, 1};
    case TypeCode::kBool: return {kDLBool, t.bits, 1};
    default: return {kDLUInt, static_cast<uint8_t>(std::max<int>(8, t.bits)), 1};
  }
}

}  // namespace

nb::object numpy_of(const Tensor& t) {
  std::vector<int64_t> shape = t.shape();
  DLTensor view{const_cast<std::byte*>(t.raw()), {kDLCPU, 0}, t.rank(), dlpack_of(t.dtype()), shape.data(), nullptr, 0};
  return copy_to_numpy(view);
}

Tensor tensor_of(const ReadArray& array) {
  DataType dtype{TypeCode::kFloat, array.dtype().bits, 1};
  switch (array.dtype().code) {
    case kDLInt: dtype.code = TypeCode::kInt; break;
    case kDLUInt: dtype.code = TypeCode::kUInt; break;
    case kDLFloat: dtype.code = TypeCode::kFloat; break;
    case kDLBfloat: dtype.code = TypeCode::kBFloat; break;
    case kDLBool: dtype.code = TypeCode::kBool; break;
    default: throw nb::type_error("a constant of this dtype is not supported");
  }
  TensorView view(array);
  Tensor out = Tensor::zeros(dtype, view.shape);
  size_t item = dtype.bytes(), count = static_cast<size_t>(out.size());
  std::vector<int64_t> index(view.shape.size());
  for (size_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * view.strides[d];
    std::memcpy(out.mutable_raw() + i * item, static_cast<const char*>(array.data()) + at * static_cast<int64_t>(item), item);
    for (size_t d = index.size(); d-- > 0;)
      if (++index[d] < view.shape[d]) break;
      else index[d] = 0;
  }
  return out;
}

namespace {

nb::tuple imported(relay::Module module, const std::map<std::string, Tensor>& params) {
  nb::dict arrays;
  for (const auto& [name, tensor] : params) arrays[name.c_str()] = numpy_of(tensor);
  return nb::make_tuple(std::move(module), arrays);
}

template <class Source>
nb::tuple import(const Source& source, const Shapes& shapes, bool freeze_params) {
  onnx::ImportOptions options;
  std::map<std::string, Tensor> params;
  options.shapes = shapes;
  options.freeze_params = freeze_params;
  options.params = &params;
  auto result = [&] {
    nb::gil_scoped_release release;
    return onnx::import_onnx(source, options);
  }();
  return imported(unwrap(std::move(result)), params);
}

// main with the parameters that have these names replaced by constants.
relay::Module bind_params(const relay::Module& module, const Arrays& params) {
  const relay::FunctionNode* main = module.main_function();
  if (!main) raise(Diagnostic(ErrorCode::kInvalidArgument, "the module has no function main"));
  std::map<const relay::VarNode*, relay::Expr> values;
  std::vector<relay::Expr> kept;
  for (const relay::Expr& p : main->params) {
    const auto* var = relay::as<relay::VarNode>(p);
    auto found = params.find(var->name);
    if (found == params.end()) {
      kept.push_back(p);
      continue;
    }
    values[var] = relay::make_constant(tensor_of(found->second));
  }
  if (values.empty()) return module;
  relay::Expr body = relay::substitute(main->body, values);
  relay::DictAttrs attrs = main->attrs;
  if (auto names = attrs.find("input_names"); names != attrs.end())
    if (auto* list = std::get_if<std::vector<std::string>>(&names->second))
      std::erase_if(*list, [&](const std::string& n) { return params.count(n) != 0; });
  return module.with_main(relay::make_function(kept, body, attrs, main->span));
}

}  // namespace

void bind_compiler(nb::module_& m) {
  nb::class_<relay::Module>(m, "IRModule", "A graph module: functions by name, entry main")
      .def("astext", [](const relay::Module& self, bool) { return relay::print_module(self).text; }, nb::arg("show_meta_data") = true,
           "The module as Relay text; constants are kept aside")
      .def("__str__", [](const relay::Module& self) { return relay::print_module(self).text; })
      .def("__contains__", [](const relay::Module& self, const std::string& name) { return self.functions.count(name) != 0; })
      .def("structural_equal", [](const relay::Module& a, const relay::Module& b) { return relay::structural_equal(a, b); })
      .def("__eq__", [](const relay::Module& a, nb::handle b) { return nb::isinstance<relay::Module>(b) && relay::structural_equal(a, nb::cast<const relay::Module&>(b)); })
      .def("__getitem__", [](const relay::Module& self, const std::string& name) {
        auto found = self.functions.find(name);
        if (found == self.functions.end()) throw nb::key_error(name.c_str());
        return relay::Expr(found->second);
      })
      .def("__setitem__", [](relay::Module& self, const std::string& name, const relay::Expr& function) {
        if (!relay::as<relay::FunctionNode>(function)) throw nb::type_error("an IRModule holds functions");
        self.functions[name] = function;
      })
      .def("update", [](relay::Module& self, const relay::Module& other) {
        for (const auto& [name, function] : other.functions) self.functions[name] = function;
      })
      .def("copy", [](const relay::Module& self) { return relay::Module(self); })
      .def_prop_ro("functions", [](const relay::Module& self) {
        nb::dict out;
        for (const auto& [name, function] : self.functions) out[name.c_str()] = relay::Expr(function);
        return out;
      })
      .def("bind_params", bind_params)
      .def_prop_ro("metadata", [](const relay::Module& self) { return self.metadata; })
      .def_static("from_function", [](const relay::Expr& function) {
        if (!relay::as<relay::FunctionNode>(function)) throw nb::type_error("from_expr takes a function");
        return relay::Module().with_main(function);
      });
  nb::class_<relay::Expr>(m, "Expr", "An expression of the graph IR")
      .def("astext", [](const relay::Expr& self) { return relay::print_expr(self); })
      .def("__str__", [](const relay::Expr& self) { return relay::print_expr(self); })
      .def("__eq__", [](const relay::Expr& a, nb::handle b) { return nb::isinstance<relay::Expr>(b) && relay::structural_equal(a, nb::cast<const relay::Expr&>(b)); })
      .def_prop_ro("checked_type", [](const relay::Expr& self) { return type_str(self->type); })
      .def_prop_ro("param_names", [](const relay::Expr& self) {
        std::vector<std::string> names;
        if (const auto* f = relay::as<relay::FunctionNode>(self))
          for (const relay::Expr& p : f->params) names.push_back(relay::as<relay::VarNode>(p)->name);
        return names;
      });

  m.def("import_onnx_file", [](const std::string& path, const Shapes& shapes, bool freeze_params) { return import(path, shapes, freeze_params); });
  m.def("import_onnx_bytes", [](nb::bytes data, const Shapes& shapes, bool freeze_params) {
    auto copy = std::make_shared<std::string>(data.c_str(), data.size());
    return import(onnx::SharedBytes{std::as_bytes(std::span(*copy)), copy}, shapes, freeze_params);
  });
  // Argument names (a tuple or any number of inputs: none) and attributes in order with the text of their defaults.
  m.def("op_info", [](const std::string& name) -> nb::object {
    const relay::OpDef* op = relay::find_op(name);
    if (!op) return nb::none();
    nb::list args;
    for (const auto& a : op->args) args.append(a.name);
    AttrsRef attrs = op->make_attrs ? op->make_attrs() : AttrsRef();
    return nb::make_tuple(op->num_inputs, args, attrs ? attr_texts(attrs) : std::vector<std::pair<std::string, std::string>>());
  });
  m.def("op_names", [] {
    std::vector<std::string> names;
    for (const relay::OpDef& op : relay::all_ops()) names.push_back(op.name);
    return names;
  });
  m.def("parse_module", [](const std::string& text, const std::vector<ReadArray>& constants) {
    std::vector<Tensor> tensors;
    for (const auto& c : constants) tensors.push_back(tensor_of(c));
    return unwrap(relay::parse_module(text, tensors));
  }, nb::arg("text"), nb::arg("constants") = std::vector<ReadArray>());
}

}  // namespace tilewright::python
