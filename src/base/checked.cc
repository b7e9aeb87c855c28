// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include "base/format.h"

namespace tilewright {

Result<int64_t> checked_element_count(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d < 0) return Diagnostic(ErrorCode::kLimitExceeded, format("a dimension of {} is negative", d));
    if (!checked_mul(n, d, &n) || n > (int64_t{1} << 48))
      return Diagnostic(ErrorCode::kLimitExceeded, "a tensor has more than 2^48 elements");
  }
  return n;
}

std::span<const std::byte> ByteReader::take(uint64_t n) {
  if (!ok_ || n > remaining()) {
    ok_ = false;
    return {};
  }
  auto out = bytes_.subspan(position_, n);
  position_ += n;
  return out;
}

std::string ByteReader::read_string(uint64_t limit) {
  uint64_t n = read<uint64_t>();
  if (n > limit) ok_ = false;
  auto raw = take(ok_ ? n : 0);
  return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
}

uint64_t ByteReader::read_count(uint64_t item_bytes) {
  uint64_t n = read<uint64_t>();
  if (item_bytes == 0 || n > remaining() / item_bytes) {
    ok_ = false;
    return 0;
  }
  return n;
}

}  // namespace tilewright
