// SPDX-License-Identifier: Apache-2.0
// Imports graphs of PyTorch, as written by tilewright/torch_program.py.
#include "compiler.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/import.h"
#include "frontend/torch/read_json.h"
#include "relay.h"

namespace tilewright::python {
namespace {

using Arrays = std::map<std::string, ReadArray>;

// A tensor that shares the array's memory if that is compact.
Tensor shared_tensor(const ReadArray& array) {
  int64_t step = 1;
  bool compact = array.size() != 0;
  for (size_t d = array.ndim(); d-- > 0; step *= static_cast<int64_t>(array.shape(d)))
    compact &= array.shape(d) == 1 || array.stride(d) == step;
  if (!compact) return tensor_of(array);
  std::shared_ptr<const ReadArray> owner(new ReadArray(array), [](const ReadArray* a) {
    nb::gil_scoped_acquire gil;
    delete a;
  });
  return Tensor::view(dtype_of(array), {array.shape_ptr(), array.shape_ptr() + array.ndim()}, array.data(), owner);
}

// An argument as a Python value: an expression, number, string, list of them, or None.
nb::object python_value(const torch::Value& v) {
  switch (v.kind) {
    case torch::Value::kTensor:
      return wrap(v.expr);
    case torch::Value::kNumber: {
      const Tensor* known = torch::NodeContext::known(v.expr);
      if (!known) return wrap(v.expr);
      if (known->dtype() == kBool) return nb::cast(known->at_int(0) != 0);
      return known->dtype().is_integral() ? nb::cast(known->at_int(0)) : nb::cast(known->at_double(0));
    }
    case torch::Value::kText:
      return nb::cast(v.text);
    case torch::Value::kDtype:
      return nb::cast(v.dtype.str());
    case torch::Value::kOption:
      return v.text.empty() ? nb::cast(v.option) : nb::cast(v.text);
    case torch::Value::kList: {
      nb::list items;
      for (const torch::Value& item : *v.list) items.append(python_value(item));
      return items;
    }
    case torch::Value::kNothing:
    case torch::Value::kGrown:
    case torch::Value::kGraph:
      return nb::none();
  }
  return nb::none();
}

// The name that classic converters use for an argument's type.
std::string type_name(const torch::Value& v) {
  switch (v.kind) {
    case torch::Value::kTensor: {
      const TensorTypeNode* type = as_tensor(v.expr->type);
      return type ? type->dtype.str() : "";
    }
    case torch::Value::kNumber: {
      const TensorTypeNode* type = as_tensor(v.expr->type);
      return !type ? "" : type->dtype == kBool ? "bool" : type->dtype.is_integral() ? "int" : "float";
    }
    case torch::Value::kText:
      return "str";
    case torch::Value::kList:
      return "ListType";
    case torch::Value::kNothing:
      return "NoneType";
    case torch::Value::kDtype:
    case torch::Value::kOption:
      return "int";
    case torch::Value::kGrown:
    case torch::Value::kGraph:
      return "";
  }
  return "";
}

// Custom converters: {"aten.op": callable(arguments, names of their types)} returning a list of expressions.
void add_converters(torch::ImportOptions* options, nb::dict converters) {
  for (auto [key, callable] : converters) {
    auto shared = std::make_shared<nb::object>(nb::borrow(callable));
    options->converters[nb::cast<std::string>(key)] =
        [shared](const torch::Node&, const torch::NamedValues& arguments) -> Result<std::vector<relay::Expr>> {
      nb::gil_scoped_acquire gil;
      nb::list values, types;
      for (const auto& [name, value] : arguments) {
        values.append(python_value(value));
        types.append(type_name(value));
      }
      return exprs_of((*shared)(values, types));
    };
  }
}

}  // namespace

void bind_torch(nb::module_& m) {
  // `share`: constants share the arrays' memory, which must not change while the module is in use.
  m.def("import_torch",
        [](nb::bytes program, const Arrays& arrays, const std::map<std::string, std::vector<int64_t>>& shapes,
           bool freeze_params, nb::dict converters, bool share) {
          std::map<std::string, Tensor> weights, params;
          for (const auto& [name, array] : arrays) weights[name] = share ? shared_tensor(array) : tensor_of(array);
          torch::ImportOptions options;
          options.shapes = shapes;
          options.freeze_params = freeze_params;
          options.params = &params;
          options.programs = torch::Programs::kWhereNeeded;
          add_converters(&options, std::move(converters));
          const std::string_view json(program.c_str(), program.size());
          auto result = [&]() -> Result<relay::Module> {
            nb::gil_scoped_release release;
            return torch::import_torch(TW_TRY(torch::read_program(json, std::move(weights))), options);
          }();
          nb::dict values;
          relay::Module module = unwrap(std::move(result));
          for (const auto& [name, tensor] : params) values[name.c_str()] = numpy_of(tensor);
          return nb::make_tuple(std::move(module), values);
        });
  m.def("torch_operators", [] { return torch::supported_ops(); });
}

}  // namespace tilewright::python
