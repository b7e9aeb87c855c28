// SPDX-License-Identifier: Apache-2.0
// What tilewright/compiler.h offers without a compiler: regions are evaluated, errors told. No exception leaves it.
#include <algorithm>

#include "interpret/region.h"
#include "runtime/c_support.h"
#include "runtime/vm/text_view.h"
#include "tilewright/compiler.h"

namespace {

using namespace tilewright;
using runtime::guarded;

Status evaluate(const char* format, const onnx::SharedBytes& source, const char* const* names,
                const tw_text_tensor* arguments, uint64_t count, bool however_long, uint8_t* by_value,
                void (*give)(void* context, const tw_text_tensor* result), void* context) {
  std::map<std::string, Tensor> values;
  for (uint64_t i = 0; i < count; ++i) values[names[i]] = TW_TRY(runtime::vm::tensor_of(arguments[i]));
  std::vector<std::string> used;
  auto results = TW_TRY(interpret::evaluate_region(format, source, values, however_long, &used));
  for (uint64_t i = 0; i < count; ++i) by_value[i] = std::find(used.begin(), used.end(), names[i]) != used.end();
  for (const Tensor& t : results) {
    const runtime::vm::TextView view(t);
    give(context, &view.tensor());
  }
  return Ok{};
}

}  // namespace

extern "C" {

int32_t tw_compiler_evaluate(const char* format, const void* source, uint64_t source_bytes, const char* const* names,
                             const tw_text_tensor* arguments, uint64_t count, int32_t however_long, uint8_t* by_value,
                             void (*give)(void* context, const tw_text_tensor* result), void* context) {
  return guarded([&] {
    onnx::SharedBytes bytes{{static_cast<const std::byte*>(source), static_cast<size_t>(source_bytes)}, nullptr};
    return evaluate(format, bytes, names, arguments, count, however_long != 0, by_value, give, context);
  });
}

const char* tw_compiler_last_error_message(void) { return runtime::last_error_text(); }
int32_t tw_compiler_last_error(tw_error_info* out) {
  return guarded([&] { return runtime::last_error_parts(out); });
}

}  // extern "C"
