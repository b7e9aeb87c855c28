// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_metadata.h"

#include <vector>

#include "base/format.h"
#include "codegen/source/c_external.h"
#include "codegen/source/c_types.h"

namespace tilewright::codegen {
namespace {

constexpr const char* kTypes = R"(#ifndef TW_METADATA_TYPES
#define TW_METADATA_TYPES
/* What a model takes and returns, version 1. */
struct TVMTensorInfo {
  const char *name;
  const int64_t *shape;
  int64_t num_shape;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
};
struct TVMConstantInfo {
  const char *name_hint;
  uint64_t byte_offset;
  int64_t data_len;
  const void *data_bytes;
};
struct TVMMetadata {
  int64_t version;
  const struct TVMTensorInfo *inputs;
  int64_t num_inputs;
  const struct TVMTensorInfo *outputs;
  int64_t num_outputs;
  const struct TVMTensorInfo *workspace_pools;
  int64_t num_workspace_pools;
  const struct TVMConstantInfo *constant_pools;
  int64_t num_constant_pools;
  const char *mod_name;
};
#endif

)";

// An array of the tensors, behind the arrays of their shapes; empty if there are none.
std::string tensors_of(const char* what, const std::vector<plan::TensorInfo>& tensors) {
  std::string shapes, out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const plan::TensorInfo& t = tensors[i];
    std::string sizes;
    for (const int64_t d : t.shape) sizes += format("{}{}", sizes.empty() ? "" : ", ", d);
    const std::string name = format("metadata_{}_shape{}", what, i);
    if (!sizes.empty()) shapes += format("static const int64_t {}[] = {{{}}};\n", name, sizes);
    out += format("  {{{}, {}, {}, {{{}, {}, {}}}}},\n", c_string(t.name), sizes.empty() ? "0" : name, t.shape.size(),
                  dlpack_code(t.dtype), static_cast<int>(t.dtype.bits), static_cast<int>(t.dtype.lanes));
  }
  if (out.empty()) return out;
  return shapes + format("static const struct TVMTensorInfo metadata_{}[] = {{\n{}}};\n", what, out);
}

}  // namespace

std::string c_metadata(const plan::Plan& plan, const CInterface& f) {
  auto list = [](const char* what, size_t count) {
    return count == 0 ? std::string("0, 0") : format("metadata_{}, {}", what, count);
  };
  std::vector<plan::TensorInfo> outputs = plan.outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].name == format("output_{}", i)) outputs[i].name = f.outputs[i];  // it has no name of its own
  return kTypes + tensors_of("inputs", plan.inputs) + tensors_of("outputs", outputs) +
         format(
             "static const struct TVMMetadata metadata = {{1, {}, {}, 0, 0, 0, 0, {}}};\n\n"
             "/* Returns the address of the description above, as a handle. */\n"
             "int32_t {}_get_c_metadata({});\nint32_t {}_get_c_metadata({}) {{\n  (void)args;\n  (void)type_codes;\n"
             "  (void)num_args;\n  (void)resource;\n  ((union tw_value *)out_value)->handle = &metadata;\n"
             "  *out_type_code = 3;\n  return 0;\n}}\n",
             list("inputs", plan.inputs.size()), list("outputs", outputs.size()), c_string(f.module), f.prefix,
             kCPackedParameters, f.prefix, kCPackedParameters);
}

}  // namespace tilewright::codegen
