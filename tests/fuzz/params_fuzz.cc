// SPDX-License-Identifier: Apache-2.0
// fuzz-room: runtime
// A .params file that the reader accepts is written to bytes that read alike; everything else is a diagnostic.
#include <span>
#include <string>
#include <vector>

#include "runtime/params_file.h"

using namespace tilewright;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  const std::string bytes(24, '\1');
  const auto data = std::as_bytes(std::span(bytes));
  seeds->push_back(runtime::write_params_file({}));
  const runtime::NamedTensor tensors[] = {{"weight", kFloat32, {2, 3}, data},
                                          {"bias", kInt8, {24}, data},
                                          {"flag", kBool, {}, data.first(1)},
                                          {"half", kFloat16, {1, 3, 4}, data},
                                          {"none", kInt64, {0, 5}, {}}};
  seeds->push_back(runtime::write_params_file(tensors));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto tensors = runtime::read_params_file(std::as_bytes(std::span(data, size)));
  if (!tensors.ok()) return 0;
  for (const runtime::NamedTensor& t : *tensors)  // the data lies within the input
    if (!t.data.empty() &&
        (reinterpret_cast<const uint8_t*>(t.data.data()) < data || t.data.size() > size ||
         reinterpret_cast<const uint8_t*>(t.data.data()) - data > static_cast<ptrdiff_t>(size - t.data.size())))
      __builtin_trap();
  const std::string written = runtime::write_params_file(*tensors);
  auto again = runtime::read_params_file(std::as_bytes(std::span(written)));
  if (!again.ok() || runtime::write_params_file(*again) != written) __builtin_trap();
  return 0;
}
