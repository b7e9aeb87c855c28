// SPDX-License-Identifier: Apache-2.0
// fuzz-room: rpc
// A sequence of values that is accepted is written to the same bytes, or to bytes that read alike; errors keep to
// theirs.
#include <string>
#include <vector>

#include "rpc/wire.h"

using namespace tilewright;
using namespace tilewright::rpc;

namespace {

std::string written(const std::vector<WireValue>& values) {
  ByteWriter out;
  write_values(out, values);
  return out.take();
}

}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  WireValue list;
  list.kind = TW_ARRAY;
  list.items = {WireValue::of(1), WireValue::of_text("name"), WireValue::of_device({kDLCPU, 0})};
  seeds->push_back(written({}));
  seeds->push_back(written({WireValue::of(-5), WireValue::of_text("set_input"), WireValue()}));
  seeds->push_back(written({WireValue::of_handle(3, TW_MODULE), WireValue::of_handle(kOfOtherSide, TW_FUNCTION)}));
  seeds->push_back(written({WireValue::of_tensor({7, {kDLCPU, 0}, {kDLFloat, 32, 1}, {2, 3, 4}, 16}), list}));
  seeds->push_back("error[E505 ShapeMismatch]: x: y\n  hint: z");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ByteReader in(std::as_bytes(std::span(data, size)));
  auto values = read_values(in);
  if (values.ok()) {
    const std::string first = written(*values);
    ByteReader again(std::as_bytes(std::span(first)));
    auto second = read_values(again);
    if (!second.ok() || written(*second) != first) __builtin_trap();
    for (const WireValue& v : *values) {
      if (!v.text.empty() && (v.text.data() < bytes.data() || v.text.size() > size)) __builtin_trap();
      if (v.kind == TW_TENSOR && byte_size(v.tensor).ok() && *byte_size(v.tensor) > (uint64_t{1} << 58))
        __builtin_trap();
    }
  } else if (values.error().code != ErrorCode::kProtocolError) {
    __builtin_trap();
  }
  if (error_from(error_text(error_from(bytes))).code != error_from(bytes).code) __builtin_trap();
  return 0;
}
