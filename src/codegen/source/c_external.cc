// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_external.h"

#include "base/format.h"
#include "codegen/source/c_types.h"
#include "codegen/source/c_weights.h"

namespace tilewright::codegen {
namespace {

// Calls a function; kTVMDLTensorHandle is 7, kTVMNullptr 4.
std::string call_helper() {
  return std::string("\nstatic int32_t tw_call(int32_t (*function)(") + kCPackedParameters + R"(),
                       const struct tw_tensor *tensors, union tw_value *values, int32_t *codes, int32_t count) {
  union tw_value result;
  int32_t i, result_code = 4;
  result.integer = 0;
  for (i = 0; i < count; ++i) values[i].tensor = tensors + i, codes[i] = 7;
  return function(values, codes, count, &result, &result_code, 0);
}

)";
}

struct Described {
  std::string address, note;
  DataType dtype;
  std::vector<int64_t> shape;
};

// A block that calls `function`; `then` follows a call without an error.
std::string call_block(const std::string& function, const std::vector<Described>& tensors, const std::string& then) {
  std::string shapes, list;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Described& t = tensors[i];
    std::string dims;
    for (const int64_t d : t.shape) dims += format("{}{}", dims.empty() ? "" : ", ", d);
    shapes += format("    static int64_t shape{}[] = {{{}}};\n", i, dims.empty() ? "1" : dims);
    list += format("        {{(void *){}, 1, 0, {}, {}, {}, 1, shape{}, 0, 0}}{} /* {} */\n", t.address, t.shape.size(),
                   dlpack_code(t.dtype), t.dtype.bits, i, i + 1 < tensors.size() ? "," : "", t.note);
  }
  return format(
      "{0}    struct tw_tensor tensors[] = {{\n{1}    }};\n    union tw_value values[{2}];\n    int32_t codes[{2}];\n"
      "    if (tw_call({3}, tensors, values, codes, {2})) return -1;\n{4}",
      shapes, list, tensors.size(), function, then);
}

std::string constant_name(const std::string& symbol, size_t i) { return format("{}_const_{}", symbol, i); }

}  // namespace

const char* const kCPackedParameters =
    "void *args, int32_t *type_codes, int32_t num_args, void *out_value, int32_t *out_type_code, void *resource";

const char* const kCPackedTypes = R"(#ifndef TW_PACKED_TYPES
#define TW_PACKED_TYPES
/* A tensor as DLPack has it, and a value of a packed call. */
struct tw_tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
union tw_value {
  int64_t integer;
  double number;
  const struct tw_tensor *tensor;
  const void *handle;
};
#endif

)";

int dlpack_code(DataType dtype) {
  switch (dtype.code) {
    case TypeCode::kInt:
      return 0;
    case TypeCode::kUInt:
      return 1;
    case TypeCode::kFloat:
      return 2;
    case TypeCode::kBFloat:
      return 4;
    case TypeCode::kBool:
      return 6;
    default:
      return 3;
  }
}

std::string c_external_declarations(const std::vector<CExternal>& externals) {
  std::string out = kCPackedTypes;
  for (const CExternal& e : externals) {
    out += format("int32_t {}({});\n", e.symbol, kCPackedParameters);
    if (e.constants.empty()) continue;
    out += format("int32_t __init_{}({});\n", e.symbol, kCPackedParameters);
    for (size_t i = 0; i < e.constants.size(); ++i) {
      const Tensor& t = e.constants[i];
      plan::Param described{constant_name(e.symbol, i), t.dtype(), t.shape(), {}};
      out += c_weight(described, described.name, t);
    }
  }
  return out + call_helper();
}

std::string c_external_constants(const CExternal& external) {
  if (external.constants.empty()) return {};
  std::vector<Described> constants;
  for (size_t i = 0; i < external.constants.size(); ++i) {
    const Tensor& t = external.constants[i];
    const std::string name = constant_name(external.symbol, i);
    constants.push_back({name, format("{} {}", t.dtype().str(), shape_str(t.shape())), t.dtype(), t.shape()});
  }
  return "  {\n    static int32_t has_constants = 0;\n    if (!has_constants) {\n" +
         call_block("__init_" + external.symbol, constants, "    has_constants = 1;\n") + "    }\n  }\n";
}

std::string c_external_call(const CExternal& external, const CTensors& arguments) {
  std::vector<Described> tensors;
  for (const auto& [address, b] : arguments)
    tensors.push_back(
        {address, format("{}: {} {}", c_comment(b->name), b->dtype.str(), shape_str(b->shape)), b->dtype, b->shape});
  return c_external_constants(external) + "  {\n" + call_block(external.symbol, tensors, "") + "  }\n";
}

}  // namespace tilewright::codegen
