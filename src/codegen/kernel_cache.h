// SPDX-License-Identifier: Apache-2.0
// An on-disk cache of kernels' object files, keyed by a hash of everything
// they depend on. Processes may share a folder: files appear atomically (by
// rename), and one that vanishes or is damaged is a miss, never an error.
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

  // Without a folder the cache is disabled; so it is if the folder
  // cannot be created, or is owned or writable by someone else (its
  // content will be executed). `max_bytes` bounds its size, see trim.
  explicit KernelCache(std::string folder, uint64_t max_bytes = kDefaultBytes);
  bool usable() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }

  // Both are thread-safe. A damaged entry is removed and counts as missing.
  std::optional<std::string> find(const CacheKey& key);
  void store(const CacheKey& key, std::string_view object);
  // If the bound was exceeded, removes least recently used entries down to nine tenths of it, and what interrupted
  // writers left. Looks at the entries once for each sixteenth of the bound that processes have stored.
  void trim();
  Counts counts() const { return {hits_, misses_, damaged_, stored_}; }

  // The key of a kernel's text, its target and the code generator's identity.
  static CacheKey key_of(std::string_view text);

  static constexpr uint64_t kDefaultBytes = uint64_t{256} << 20;

 private:
  std::string path_of(const CacheKey& key) const;
  bool log_is_full();
  std::string folder_;
  uint64_t max_bytes_;
  std::atomic<uint64_t> hits_{0}, misses_{0}, damaged_{0}, stored_{0}, stored_bytes_{0};
};

// cache_folder("kernels"); empty without a home folder.
std::string default_kernel_cache_folder();
// Path, size and modification time of the file that contains
// this code: another build of the compiler gives other keys.
const std::string& code_identity();

}  // namespace tilewright::codegen
