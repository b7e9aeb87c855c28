// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/cache_folder.h"
#include "base/format.h"
#include "base/hash.h"

namespace tilewright::codegen {
namespace {

namespace fs = std::filesystem;

// The header of an entry. It repeats the key, so that a misnamed file is not a hit.
struct Header {
  char magic[8];
  uint64_t key_high, key_low, bytes, hash;
};
constexpr char kMagic[8] = {'T', 'W', 'K', 'E', 'R', 'N', '1', '\n'};
constexpr const char* kTemporary = ".part.";
// Grows by one byte for each KiB that processes store, until one of them looks at all entries: appending is atomic, and
// a folder of tens of thousands of files takes longer to list than a small model to compile.
constexpr const char* kStoredLog = "stored";
constexpr uint64_t kBytesPerLetter = 1024;
// Part of the bound that may be stored before entries are counted again.
constexpr uint64_t kSlack = 16;

uint64_t content_hash(std::string_view object, const CacheKey& key) {
  return hash_bytes(object.data(), object.size(), key.high ^ key.low);
}

// Creates the folder, private to this user, unless it exists.
// False if others can write to it, or it is no folder.
bool make_private_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  ::mkdir(folder.c_str(), 0700);
  struct stat info {};
  return ::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 022) == 0;
}

}  // namespace

KernelCache::KernelCache(std::string folder, uint64_t max_bytes) : max_bytes_(max_bytes) {
  if (!folder.empty() && max_bytes > 0 && make_private_folder(folder)) folder_ = std::move(folder);
}

std::string KernelCache::path_of(const CacheKey& key) const {
  return format("{}/{:016x}{:016x}.o", folder_, key.high, key.low);
}

CacheKey KernelCache::key_of(std::string_view text) {
  return {hash_bytes(text.data(), text.size(), 0x6b65726e656c), hash_bytes(text.data(), text.size(), 0x6361636865)};
}

std::optional<std::string> KernelCache::find(const CacheKey& key) {
  if (!usable()) return std::nullopt;
  const std::string path = path_of(key);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    ++misses_;
    return std::nullopt;
  }
  auto refuse = [&]() -> std::optional<std::string> {
    ++damaged_, ++misses_;
    ::unlink(path.c_str());
    return std::nullopt;
  };
  // The size of the open file: another process may replace or remove the name meanwhile.
  file.seekg(0, std::ios::end);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(0, file.tellg()));
  file.seekg(0);
  Header header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      CacheKey{header.key_high, header.key_low} != key || size < sizeof header || header.bytes != size - sizeof header)
    return refuse();
  std::string object(header.bytes, '\0');
  file.read(object.data(), static_cast<std::streamsize>(object.size()));
  if (!file || content_hash(object, key) != header.hash) return refuse();
  // The modification time records the last use; updating it hourly is precise enough.
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && info.st_mtime + 3600 < ::time(nullptr))
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  ++hits_;
  return object;
}

void KernelCache::store(const CacheKey& key, std::string_view object) {
  if (!usable()) return;
  std::string temporary = format("{}/{}XXXXXX", folder_, kTemporary);
  const int file = ::mkstemp(temporary.data());
  if (file < 0) return;
  Header header{{}, key.high, key.low, object.size(), content_hash(object, key)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  auto write_all = [&](const void* data, size_t n) {
    const char* at = static_cast<const char*>(data);
    while (n > 0) {
      const ssize_t written = ::write(file, at, n);
      if (written <= 0) return false;
      at += written, n -= static_cast<size_t>(written);
    }
    return true;
  };
  bool ok = write_all(&header, sizeof header) && write_all(object.data(), object.size());
  ok = ::close(file) == 0 && ok;
  if (ok && ::rename(temporary.c_str(), path_of(key).c_str()) == 0)
    ++stored_, stored_bytes_ += object.size();
  else
    ::unlink(temporary.c_str());  // on a full disk only the entry is lost
}

// Logs what was stored since the last time. True if the entries have to be counted: there is no log yet, or it is full.
bool KernelCache::log_is_full() {
  const std::string path = format("{}/{}", folder_, kStoredLog);
  const bool is_new = ::access(path.c_str(), F_OK) != 0;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return true;
  const std::string letters(stored_bytes_.exchange(0) / kBytesPerLetter + 1, '.');
  struct stat info {};
  const bool known = ::write(file, letters.data(), letters.size()) >= 0 && ::fstat(file, &info) == 0;
  const bool full = !known || static_cast<uint64_t>(info.st_size) * kBytesPerLetter > max_bytes_ / kSlack;
  if (full && ::ftruncate(file, 0) != 0) ::unlink(path.c_str());
  ::close(file);
  return is_new || full;
}

void KernelCache::trim() {
  if (!usable() || stored_bytes_ == 0 || !log_is_full()) return;
  struct Entry {
    fs::path path;
    time_t used;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  const time_t now = ::time(nullptr);
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    struct stat info {};
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const std::string name = it->path().filename().string();
    if (name.rfind(kTemporary, 0) == 0) {
      if (info.st_mtime + 3600 < now) ::unlink(it->path().c_str());
      continue;
    }
    if (!name.ends_with(".o")) continue;  // not ours
    entries.push_back({it->path(), info.st_mtime, static_cast<uint64_t>(info.st_size)});
    total += entries.back().bytes;
  }
  if (total <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used != b.used ? a.used < b.used : a.path < b.path; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_ / 10 * 9) break;
    ::unlink(entry.path.c_str());  // open descriptors stay valid; the next process compiles again
    total -= entry.bytes;
  }
}

std::string default_kernel_cache_folder() { return cache_folder("kernels"); }

const std::string& code_identity() {
  static const std::string identity = [] {
    Dl_info info{};
    struct stat file {};
    if (dladdr(reinterpret_cast<const void*>(&default_kernel_cache_folder), &info) == 0 || !info.dli_fname ||
        ::stat(info.dli_fname, &file) != 0)
      return format("process {}", ::getpid());  // unknown identity: entries of other processes are not used
    return format("{} {}.{}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  }();
  return identity;
}

}  // namespace tilewright::codegen
