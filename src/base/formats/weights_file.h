// SPDX-License-Identifier: Apache-2.0
// Weights apart from the libraries that use them: one file that any number of artifacts name, each for its own tensors.
// A head of 64 bytes says where the list of tensors is; tensors begin at kWeightsStart, on multiples of 64, and never
// move: what is added comes behind, with a new list, and the head is written last.
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

// Bytes of the file and their hash (base/hash.h) with the width of the elements as its seed.
struct StoredWeight {
  uint64_t offset = 0, bytes = 0, hash = 0, bits = 0;
};

struct WeightsList {
  std::vector<StoredWeight> weights;  // by rising offset
  uint64_t data_end = kWeightsStart;  // behind the last tensor
  const StoredWeight* at(uint64_t offset) const;
};

bool is_weights_file(std::span<const std::byte> file);
// Head and list, their hashes, and that every tensor lies within the file. Errors: BadArtifact.
Result<WeightsList> read_weights_list(std::span<const std::byte> file);
// The bytes of a list, and the head of a file that has it at `offset`.
std::string write_weights_list(const WeightsList& list);
std::string write_weights_head(uint64_t offset, const std::string& list);
// Every tensor's bytes are what they were. Errors: BadArtifact.
Status check_weights_content(std::span<const std::byte> file, const WeightsList& list);
// The tensors of a plan are in the file, where the plan has them. Errors: BadArtifact.
Status check_weights_of_plan(const plan::Plan& plan, const WeightsList& list);

}  // namespace tilewright
