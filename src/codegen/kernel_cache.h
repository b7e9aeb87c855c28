// SPDX-License-Identifier: Apache-2.0
// Object files of kernels kept on disk under a hash of everything they depend on. Several processes may share
// a folder: files appear whole (temporary name, then rename), and one that vanishes or is damaged is a miss,
// never an error.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright::codegen {

struct CacheKey {
  uint64_t high = 0, low = 0;
  bool operator==(const CacheKey&) const = default;
};

class KernelCache {
 public:
  struct Counts {
    uint64_t hits = 0, misses = 0, damaged = 0, stored = 0;
  };

  // An empty folder makes a cache that finds and keeps nothing, and so does one that cannot be made, or that
  // belongs to or may be written by somebody else (what lies in it will be run). `max_bytes` bounds the
  // folder, see trim.
  explicit KernelCache(std::string folder, uint64_t max_bytes = kDefaultBytes);
  bool usable() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }

  // Both may be called by several threads. A damaged entry is removed and not found.
  std::optional<std::string> find(const CacheKey& key);
  void store(const CacheKey& key, std::string_view object);
  // Removes the entries that were used longest ago until nine tenths of the bound are kept, if it was
  // exceeded, and what interrupted writers left. Looks at the folder only when this object stored something.
  void trim();
  Counts counts() const { return {hits_, misses_, damaged_, stored_}; }

  // The hash of a kernel's text, its target and the identity of the code generator.
  static CacheKey key_of(std::string_view text);

  static constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;

 private:
  std::string path_of(const CacheKey& key) const;
  std::string folder_;
  uint64_t max_bytes_;
  std::atomic<uint64_t> hits_{0}, misses_{0}, damaged_{0}, stored_{0};
};

// cache_folder("kernels"); empty without a home.
std::string default_kernel_cache_folder();
// The file that holds this code, with its size and time of change: another build of the compiler is another
// key.
const std::string& code_identity();

}  // namespace tilewright::codegen
