// SPDX-License-Identifier: Apache-2.0
// A fast non-cryptographic 64-bit hash of bytes, stable across machines and versions (it is stored in artifacts).
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewright {
uint64_t hash_bytes(const void* data, size_t n, uint64_t seed = 0);
}  // namespace tilewright
