// SPDX-License-Identifier: Apache-2.0
#include "runtime/measure_functions.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <random>

#include "base/tensor.h"
#include "runtime/dltensor.h"

namespace tilewright::runtime {
namespace {

Status check_compact(const DLTensor& tensor) {
  if (tensor.ndim >= 0 && tensor.data && is_compact(tensor)) return Ok{};
  return Diagnostic(ErrorCode::kInvalidArgument,
                    "a tensor's elements do not lie one after another: " + describe(tensor));
}

[[maybe_unused]] void sweep() {
  static std::vector<int64_t> swept(size_t{64} << 17, 1);  // 64 MiB, larger than a core's caches
  for (int64_t& word : swept) ++word;
}

}  // namespace

Result<Value> random_fill(const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 1));
  const DLTensor* tensor = TW_TRY(args.tensor(0));
  const DataType dtype = TW_TRY(from_dlpack(tensor->dtype));
  TW_TRY_STATUS(check_compact(*tensor));
  Tensor values(dtype, {tensor->shape, tensor->shape + tensor->ndim});
  std::mt19937 engine(1);
  for (int64_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<int64_t>(engine());
    if (dtype.is_float())
      values.set_double(i, static_cast<double>(bits) * 0x1p-31 - 1.0);
    else
      values.set_int(i, dtype.is_bool() ? bits & 1 : bits & 7);
  }
  TW_TRY_STATUS(copy_to(*tensor, dtype, values.raw()));
  return Value();
}

Result<Value> flush_cache(const Arguments& args) {
  for (size_t i = 1; i < args.size(); ++i) {
    const DLTensor* tensor = TW_TRY(args.tensor(i));
    TW_TRY_STATUS(check_compact(*tensor));
#if defined(__x86_64__)
    uint64_t bytes = (uint64_t{tensor->dtype.bits} * tensor->dtype.lanes + 7) / 8;
    for (int d = 0; d < tensor->ndim; ++d) bytes *= static_cast<uint64_t>(tensor->shape[d]);
    const char* data = static_cast<const char*>(data_of(*tensor));
    constexpr uint64_t kLine = 64;
    for (uint64_t at = 0; at < bytes; at += kLine) _mm_clflush(data + at);
#endif
  }
#if defined(__x86_64__)
  _mm_mfence();
#else
  sweep();
#endif
  return Value();
}

}  // namespace tilewright::runtime
