// SPDX-License-Identifier: Apache-2.0
// Weights separate from libraries: any number of artifacts refer to one file, each to its own tensors. A header of 64
// bytes gives the position of the list of tensors. Tensors begin at kWeightsStart, 64-byte aligned, and never move:
// additions are appended with a new list, and the header is written last.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "base/result.h"

namespace tilewright {

inline constexpr char kWeightsMagic[8] = {'T', 'W', 'W', 'E', 'I', 'G', 'H', '1'};
inline constexpr uint64_t kWeightsHeadBytes = 64;
inline constexpr uint64_t kWeightsStart = 4096;
inline constexpr uint64_t kWeightsAlignment = 64;

// A tensor's bytes, with their hash (base/hash.h), seeded with the element width.
struct StoredWeight {
  uint64_t offset = 0, bytes = 0, hash = 0, bits = 0;
};

struct WeightsList {
  std::vector<StoredWeight> weights;  // by ascending offset
  uint64_t data_end = kWeightsStart;  // behind the last tensor
  const StoredWeight* at(uint64_t offset) const;
};

bool is_weights_file(std::span<const std::byte> file);
// Checks header and list with their hashes, and that every tensor lies within the file. Errors: BadArtifact.
Result<WeightsList> read_weights_list(std::span<const std::byte> file);
// The bytes of a list, and of the header of a file with the list at `offset`.
std::string write_weights_list(const WeightsList& list);
std::string write_weights_head(uint64_t offset, const std::string& list);
// Verifies all tensors' hashes. Errors: BadArtifact.
Status check_weights_content(std::span<const std::byte> file, const WeightsList& list);
// Checks that the plan's tensors are in the file at the plan's offsets. Errors: BadArtifact.
Status check_weights_of_plan(const plan::Plan& plan, const WeightsList& list);

}  // namespace tilewright
