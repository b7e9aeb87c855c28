// SPDX-License-Identifier: Apache-2.0
// Import of models, and queries about operators.
#include <cstring>

#include "codegen/codegen.h"
#include "compiler.h"
#include "frontend/onnx/import.h"
#include "relay.h"
#include "relay/op.h"

namespace tilewright::python {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

DLDataType dlpack_of(DataType t) {
  switch (t.code) {
    case TypeCode::kInt:
      return {kDLInt, t.bits, 1};
    case TypeCode::kUInt:
      return {kDLUInt, t.bits, 1};
    case TypeCode::kFloat:
      return {kDLFloat, t.bits, 1};
    case TypeCode::kBFloat:
      return {kDLBfloat, t.bits, 1};
    case TypeCode::kBool:
      return {kDLBool, t.bits, 1};
    default:
      return {kDLUInt, static_cast<uint8_t>(std::max<int>(8, t.bits)), 1};
  }
}

}  // namespace

nb::object numpy_of(const Tensor& t) {
  std::vector<int64_t> shape = t.shape();
  DLTensor view{const_cast<std::byte*>(t.raw()), {kDLCPU, 0}, t.rank(), dlpack_of(t.dtype()), shape.data(), nullptr, 0};
  return copy_to_numpy(view);
}

DataType dtype_of(const ReadArray& array) {
  DataType dtype{TypeCode::kFloat, array.dtype().bits, 1};
  switch (array.dtype().code) {
    case kDLInt:
      dtype.code = TypeCode::kInt;
      break;
    case kDLUInt:
      dtype.code = TypeCode::kUInt;
      break;
    case kDLFloat:
      dtype.code = TypeCode::kFloat;
      break;
    case kDLBfloat:
      dtype.code = TypeCode::kBFloat;
      break;
    case kDLBool:
      dtype.code = TypeCode::kBool;
      break;
    default:
      throw nb::type_error("a constant of this dtype is not supported");
  }
  return dtype;
}

Tensor tensor_of(const ReadArray& array) {
  const DataType dtype = dtype_of(array);
  TensorView view(array);
  Tensor out = Tensor::zeros(dtype, view.shape);
  size_t item = dtype.bytes(), count = static_cast<size_t>(out.size());
  bool dense = true;
  int64_t step = 1;
  for (size_t d = view.shape.size(); d-- > 0; step *= view.shape[d])
    dense &= view.shape[d] == 1 || view.strides[d] == step;
  if (dense || count == 0) {
    if (count) std::memcpy(out.mutable_raw(), array.data(), count * item);
    return out;
  }
  std::vector<int64_t> index(view.shape.size());
  for (size_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * view.strides[d];
    std::memcpy(out.mutable_raw() + i * item, static_cast<const char*>(array.data()) + at * static_cast<int64_t>(item),
                item);
    for (size_t d = index.size(); d-- > 0;)
      if (++index[d] < view.shape[d])
        break;
      else
        index[d] = 0;
  }
  return out;
}

namespace {

nb::tuple imported(relay::Module module, const std::map<std::string, Tensor>& params) {
  nb::dict arrays;
  for (const auto& [name, tensor] : params) arrays[name.c_str()] = numpy_of(tensor);
  return nb::make_tuple(std::move(module), arrays);
}

// An ONNX attribute as a Python number, string, list or array; None for graphs.
nb::object attribute_of(const onnx::Attribute& a) {
  switch (a.kind) {
    case onnx::AttributeKind::kFloat:
      return nb::cast(a.f);
    case onnx::AttributeKind::kInt:
      return nb::cast(a.i);
    case onnx::AttributeKind::kString:
      return nb::cast(a.s);
    case onnx::AttributeKind::kFloats:
      return nb::cast(a.floats);
    case onnx::AttributeKind::kInts:
      return nb::cast(a.ints);
    case onnx::AttributeKind::kStrings:
      return nb::cast(a.strings);
    case onnx::AttributeKind::kTensor:
      return a.tensors.empty() ? nb::none() : numpy_of(a.tensors[0]);
    default:
      return nb::none();
  }
}

// Custom converters: {(domain, operator): callable(inputs, attributes, version, name)} returning an expression, or a
// list of them.
void add_converters(onnx::ImportOptions* options, nb::dict converters) {
  for (auto [key, callable] : converters) {
    auto shared = std::make_shared<nb::object>(nb::borrow(callable));
    options->converters[nb::cast<std::pair<std::string, std::string>>(key)] =
        [shared](const onnx::Node& node, int64_t version,
                 const std::vector<relay::Expr>& inputs) -> Result<std::vector<relay::Expr>> {
      nb::gil_scoped_acquire gil;
      nb::dict attributes;
      for (const onnx::Attribute& a : node.attributes) attributes[a.name.c_str()] = attribute_of(a);
      return exprs_of((*shared)(wrap_all(inputs), attributes, version, node.name));
    };
  }
}

template <class Source>
nb::tuple import(const Source& source, const Shapes& shapes, bool freeze_params, nb::dict converters) {
  onnx::ImportOptions options;
  std::map<std::string, Tensor> params;
  options.shapes = shapes;
  options.freeze_params = freeze_params;
  options.params = &params;
  options.programs = onnx::Programs::kWhereNeeded;  // keeps control flow, as Relay's
  add_converters(&options, converters);
  auto result = [&] {
    nb::gil_scoped_release release;
    return onnx::import_onnx(source, options);
  }();
  return imported(unwrap(std::move(result)), params);
}

}  // namespace

void bind_compiler(nb::module_& m) {
  m.def(
      "import_onnx_file",
      [](const std::string& path, const Shapes& shapes, bool freeze_params, nb::dict converters) {
        return import(path, shapes, freeze_params, converters);
      },
      nb::arg("path"), nb::arg("shapes"), nb::arg("freeze_params"), nb::arg("converters") = nb::dict());
  m.def(
      "import_onnx_bytes",
      [](nb::bytes data, const Shapes& shapes, bool freeze_params, nb::dict converters) {
        auto copy = std::make_shared<std::string>(data.c_str(), data.size());
        return import(onnx::SharedBytes{std::as_bytes(std::span(*copy)), copy}, shapes, freeze_params, converters);
      },
      nb::arg("data"), nb::arg("shapes"), nb::arg("freeze_params"), nb::arg("converters") = nb::dict());
  // Argument names (none if it takes a tuple or any number of inputs), and attributes in order with their defaults as
  // text.
  m.def("op_info", [](const std::string& name) -> nb::object {
    const relay::OpDef* op = relay::find_op(name);
    if (!op) return nb::none();
    nb::list args;
    for (const auto& a : op->args) args.append(a.name);
    AttrsRef attrs = op->make_attrs ? op->make_attrs() : AttrsRef();
    return nb::make_tuple(op->num_inputs, args,
                          attrs ? attr_texts(attrs) : std::vector<std::pair<std::string, std::string>>());
  });
  m.def("op_traits", [](const std::string& name) -> nb::object {  // fusion class, stateful
    const relay::OpDef* op = relay::find_op(name);
    return op ? nb::object(nb::make_tuple(static_cast<int>(op->pattern), op->stateful)) : nb::none();
  });
  m.def("llvm_version", codegen::llvm_version);
  m.def("op_names", [] {
    std::vector<std::string> names;
    for (const relay::OpDef& op : relay::all_ops()) names.push_back(op.name);
    return names;
  });
}

}  // namespace tilewright::python
