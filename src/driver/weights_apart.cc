// SPDX-License-Identifier: Apache-2.0
#include "driver/weights_apart.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/formats/weights_file.h"
#include "base/hash.h"
#include "base/work_folder.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

uint64_t aligned(uint64_t at) { return (at + kWeightsAlignment - 1) / kWeightsAlignment * kWeightsAlignment; }

// A weights file being written. A new file is made in a folder beside its place and renamed; an existing one grows at
// its end, and its header, which alone defines its extent, is written last: concurrent readers and interruptions leave
// the old state valid.
class WeightsStore {
 public:
  static Result<WeightsStore> open(const std::string& path);
  WeightsStore(WeightsStore&& other) noexcept
      : path_(std::move(other.path_)),
        made_in_(std::move(other.made_in_)),
        file_(std::exchange(other.file_, -1)),
        end_(other.end_),
        list_(std::move(other.list_)),
        known_(std::move(other.known_)),
        changed_(other.changed_) {}
  WeightsStore& operator=(WeightsStore&&) = delete;
  ~WeightsStore() {
    if (file_ < 0) return;
    if (!made_in_ && changed_ && ::ftruncate(file_, static_cast<off_t>(end_)) != 0) {
    }  // bytes behind the end are unused; the next writer overwrites them
    ::close(file_);
  }

  // Returns the offset of the bytes in the file.
  Result<uint64_t> add(const Tensor& tensor, uint64_t bits);
  // Kernels may load a vector past the last element.
  uint64_t list_at() const { return aligned(list_.data_end) + kWeightsAlignment; }
  Status finish();

 private:
  explicit WeightsStore(std::string path) : path_(std::move(path)) {}
  uint64_t list_end() const { return list_at() + std::max<uint64_t>(1, list_.weights.size() * sizeof(StoredWeight)); }
  Status start_new();
  Status read_old();
  bool holds(const StoredWeight& at, const Tensor& tensor) const;
  Status write(uint64_t at, const void* data, uint64_t bytes);

  std::string path_;
  std::optional<WorkFolder> made_in_;
  int file_ = -1;
  uint64_t end_ = 0;  // end of the file with its list, before additions
  WeightsList list_;
  std::multimap<uint64_t, size_t> known_;  // by hash: index in the list
  bool changed_ = false;
};

Result<WeightsStore> WeightsStore::open(const std::string& path) {
  std::error_code error;
  if (path.empty() || fs::path(path).filename().empty() || fs::is_directory(path, error))
    return cannot_write(path, "this is not a file name");
  WeightsStore store(path);
  TW_TRY_STATUS(fs::exists(path, error) ? store.read_old() : store.start_new());
  return store;
}

Status WeightsStore::start_new() {
  made_in_.emplace(TW_TRY(WorkFolder::beside(path_)));
  file_ = ::open((made_in_->path() + "/weights").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  changed_ = true;
  return file_ >= 0 ? Status(Ok{}) : cannot_write(path_, std::strerror(errno));
}

Status WeightsStore::read_old() {
  file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info {};
  if (file_ < 0 || ::flock(file_, LOCK_EX) != 0 || ::fstat(file_, &info) != 0)
    return cannot_write(path_, std::strerror(errno));
  end_ = static_cast<uint64_t>(info.st_size);
  void* data = end_ > 0 ? ::mmap(nullptr, end_, PROT_READ, MAP_SHARED, file_, 0) : MAP_FAILED;
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(data), data == MAP_FAILED ? 0 : end_);
  auto list = is_weights_file(bytes)
                  ? read_weights_list(bytes)
                  : Result<WeightsList>(Diagnostic(ErrorCode::kInvalidArgument,
                                                   "the file is no file of weights, and would be overwritten", {},
                                                   "name another file for the weights, or remove this one"));
  if (data != MAP_FAILED) ::munmap(data, end_);
  if (!list.ok()) {
    Diagnostic error = std::move(list).error().at(path_);
    if (error.code != ErrorCode::kInvalidArgument)
      error.hint = "remove the file and compile the models that use it again";
    return error;
  }
  list_ = std::move(*list);
  end_ = list_end();  // drops what an interrupted compilation left behind
  for (size_t i = 0; i < list_.weights.size(); ++i) known_.emplace(list_.weights[i].hash, i);
  return Ok{};
}

Status WeightsStore::write(uint64_t at, const void* data, uint64_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    constexpr uint64_t kMost = 1 << 30;
    const ssize_t n = ::pwrite(file_, from, std::min(bytes, kMost), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return cannot_write(path_, n < 0 ? std::strerror(errno) : "no space for the weights");
    from += n, at += static_cast<uint64_t>(n), bytes -= static_cast<uint64_t>(n);
  }
  return Ok{};
}

bool WeightsStore::holds(const StoredWeight& at, const Tensor& tensor) const {
  std::vector<char> part(1 << 20);
  for (uint64_t done = 0; done < at.bytes;) {
    const auto want = std::min<uint64_t>(part.size(), at.bytes - done);
    const ssize_t n = ::pread(file_, part.data(), want, static_cast<off_t>(at.offset + done));
    if (n <= 0 || std::memcmp(part.data(), tensor.raw() + done, static_cast<size_t>(n)) != 0) return false;
    done += static_cast<uint64_t>(n);
  }
  return true;
}

Result<uint64_t> WeightsStore::add(const Tensor& tensor, uint64_t bits) {
  const auto bytes = static_cast<uint64_t>(tensor.bytes());
  const StoredWeight wanted{0, bytes, hash_bytes(tensor.raw(), bytes, bits), bits};
  const auto [first, last] = known_.equal_range(wanted.hash);
  for (auto it = first; it != last; ++it) {
    const StoredWeight& w = list_.weights[it->second];
    if (w.bytes == bytes && w.bits == bits && holds(w, tensor)) return w.offset;
  }
  // Behind all existing content including the list, which stays valid until the header is rewritten.
  const uint64_t at = aligned(changed_ ? list_.data_end : std::max(end_, kWeightsStart));
  changed_ = true;
  TW_TRY_STATUS(write(at, tensor.raw(), bytes));
  known_.emplace(wanted.hash, list_.weights.size());
  list_.weights.push_back(wanted);
  list_.weights.back().offset = at;
  list_.data_end = at + bytes;
  return at;
}

Status WeightsStore::finish() {
  if (!changed_) return Ok{};
  const uint64_t at = list_at();
  const std::string list = write_weights_list(list_), head = write_weights_head(at, list);
  TW_TRY_STATUS(write(at, list.data(), list.size()));
  if (list.empty()) TW_TRY_STATUS(write(at, head.data(), 1));
  TW_TRY_STATUS(write(0, head.data(), head.size()));
  end_ = list_end();
  changed_ = false;
  if (!made_in_) return Ok{};
  std::error_code error;
  if (fs::exists(path_, error))
    return cannot_write(path_, "another compilation made the file meanwhile; compile again to share it");
  fs::rename(made_in_->path() + "/weights", path_, error);
  return error ? cannot_write(path_, error.message()) : Status(Ok{});
}

// Adjusts offsets in the params space to the file's. A buffer lies within one parameter.
void move_buffers(const std::vector<plan::Param>& before, const std::vector<plan::Param>& after, plan::Plan* plan) {
  std::map<uint64_t, size_t> starts;
  for (size_t i = 0; i < before.size(); ++i)
    if (before[i].bytes > 0 || !starts.count(before[i].offset)) starts[before[i].offset] = i;
  for (plan::Buffer& b : plan->buffers) {
    if (b.space != plan::Space::kParams) continue;
    auto it = starts.upper_bound(b.offset);
    TW_ICHECK(it != starts.begin(), "a buffer before all weights");
    const size_t i = std::prev(it)->second;
    TW_ICHECK(b.offset - before[i].offset <= before[i].bytes, "a buffer between two weights");
    b.offset = after[i].offset + (b.offset - before[i].offset);
  }
}

// The path of `file` relative to the folder of `artifact`.
std::string seen_from(const std::string& file, const std::string& artifact) {
  std::error_code error;
  const fs::path to = fs::weakly_canonical(fs::absolute(file, error), error);
  const fs::path from = fs::weakly_canonical(fs::absolute(artifact, error).parent_path(), error);
  const fs::path relative = to.lexically_relative(from);
  return relative.empty() ? to.string() : relative.string();
}

}  // namespace

Status put_weights_apart(std::span<plan::Plan> plans, std::span<const lower::Weight> weights, const std::string& file,
                         const std::string& artifact, const std::function<void(uint64_t bytes)>& written) {
  WeightsStore store = TW_TRY(WeightsStore::open(file));
  const std::vector<plan::Param> before = plans[0].params;
  std::vector<plan::Param> after = before;
  uint64_t done = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    plan::Param& p = after[i];
    p.offset = kWeightsStart;
    if (p.bytes == 0) continue;
    const Tensor tensor = weights[i].tensor();
    TW_ICHECK(static_cast<uint64_t>(tensor.bytes()) == p.bytes, "a weight of another size than the plan has");
    p.offset = TW_TRY(store.add(tensor, p.dtype.bits));
    p.hash = hash_bytes(tensor.raw(), p.bytes, p.dtype.bits);
    done += p.bytes;
    if (written) written(done);
  }
  TW_TRY_STATUS(store.finish());
  for (plan::Plan& plan : plans) {
    plan.params = after;
    plan.weights_file = seen_from(file, artifact);
    plan.params_bytes = store.list_at();
    move_buffers(before, after, &plan);
    for (plan::Plan& variant : plan.variants) move_buffers(before, after, &variant), variant.params = after;
  }
  return Ok{};
}

}  // namespace tilewright::driver
