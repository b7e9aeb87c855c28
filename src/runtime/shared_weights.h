// SPDX-License-Identifier: Apache-2.0
// A weights file (base/formats/weights_file.h), mapped once for all artifacts of the process that use it.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "base/formats/weights_file.h"
#include "runtime/mapped_file.h"

namespace tilewright::runtime {

class SharedWeights {
 public:
  // With `verify`, reads every tensor and compares its checksum.
  // Errors: FileNotFound, BadArtifact, ArtifactVersion.
  static Result<std::shared_ptr<const SharedWeights>> open(const std::string& path, bool verify);
  SharedWeights(MappedFile file, WeightsList list) : file_(std::move(file)), list_(std::move(list)) {}
  const std::byte* data() const { return file_.bytes().data(); }
  const WeightsList& list() const { return list_; }

 private:
  MappedFile file_;
  WeightsList list_;
};

}  // namespace tilewright::runtime
