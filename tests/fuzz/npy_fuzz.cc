// SPDX-License-Identifier: Apache-2.0
// fuzz-room: inputs
// numpy's files: what is read is written to bytes that read alike; everything else is a diagnostic.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "inputs/npy.h"

using namespace tilewright;
using namespace tilewright::inputs;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  NamedTensors named;
  for (DataType dtype : {kFloat32, kFloat16, kInt64, kUInt8, kBool})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 0}, {2, 3}}) {
      Tensor t = Tensor::zeros(dtype, shape);
      seeds->push_back(*write_npy(t));
      named.emplace_back("t" + std::to_string(named.size()), std::move(t));
    }
  seeds->push_back(*write_npz({}));
  seeds->push_back(*write_npz({named.begin(), named.begin() + 3}));
  std::string swapped = seeds->front(), columns = seeds->at(3);
  if (size_t at = swapped.find("<f4"); at != std::string::npos) swapped[at] = '>';
  if (size_t at = columns.find("False"); at != std::string::npos) columns.replace(at, 5, "True ");
  seeds->push_back(swapped);
  seeds->push_back(columns);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (auto tensor = read_npy(bytes); tensor.ok()) {
    auto written = write_npy(*tensor);
    if (written.ok()) {  // elements of other sizes than bytes have no form there
      auto again = read_npy(bytes_of(*written));
      if (!again.ok() || !same(*tensor, *again)) __builtin_trap();
    }
  }
  if (auto named = read_npz(bytes); named.ok()) {
    auto written = write_npz(*named);
    if (written.ok() && !read_npz(bytes_of(*written)).ok()) __builtin_trap();
  }
  return 0;
}
