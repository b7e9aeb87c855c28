// SPDX-License-Identifier: Apache-2.0
#include "runtime/shared_weights.h"

#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace tilewright::runtime {
namespace {

// Identifies a file at the time it was mapped: one that changed since counts as another.
struct Known {
  dev_t device;
  ino_t number;
  off_t bytes;
  timespec changed;
  std::weak_ptr<const SharedWeights> weights;
  bool is(const struct stat& s) const {
    return device == s.st_dev && number == s.st_ino && bytes == s.st_size && changed.tv_sec == s.st_mtim.tv_sec &&
           changed.tv_nsec == s.st_mtim.tv_nsec;
  }
};

}  // namespace

Result<std::shared_ptr<const SharedWeights>> SharedWeights::open(const std::string& path, bool verify) {
  static std::mutex mutex;
  static std::vector<Known>* known = new std::vector<Known>;  // never destroyed, for loads during process exit
  std::lock_guard lock(mutex);
  struct stat info {};
  const bool found = stat(path.c_str(), &info) == 0;
  std::shared_ptr<const SharedWeights> weights;
  std::erase_if(*known, [&](const Known& k) {
    auto alive = k.weights.lock();
    if (alive && found && k.is(info)) weights = alive;
    return !alive;
  });
  if (!weights) {
    MappedFile file = TW_TRY(MappedFile::open(path, "a file of weights"));
    auto list = read_weights_list(file.bytes());
    if (!list.ok()) return std::move(list).error().at(path);
    weights = std::make_shared<const SharedWeights>(std::move(file), std::move(*list));
    if (found) known->push_back({info.st_dev, info.st_ino, info.st_size, info.st_mtim, weights});
  }
  if (verify)
    if (Status same = check_weights_content(weights->file_.bytes(), weights->list()); !same.ok())
      return std::move(same).error().at(path);
  return weights;
}

}  // namespace tilewright::runtime
