// SPDX-License-Identifier: Apache-2.0
// What --input says, and the tensors it means for a model.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "inputs/npy.h"

namespace tilewright::inputs {

inline constexpr int64_t kFreeSize = -1;  // taken from the tensor in a file

struct InputInfo {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;  // kFreeSize where a VM program leaves it open
};

// One tensor for each of the model's inputs, in its order. Each spec is [NAME=]VALUE with VALUE one of
//   @FILE.npy  @FILE.npz[:ENTRY]  @FILE.pb  @PICTURE  random  zeros  ones  NUMBER[,NUMBER...]
// followed by ,option=value pairs where it has options; inputs without a spec are random, drawn from `seed`.
// Errors: InvalidArgument, UnknownInput, ShapeMismatch, DtypeMismatch and those of the readers.
Result<std::vector<Tensor>> make_inputs(const std::vector<InputInfo>& inputs, const std::vector<std::string>& specs,
                                        uint64_t seed);

// A picture for an input, by the options that --input takes after a picture's name ("short=256,crop=224"; may be
// empty).
Result<Tensor> load_picture_as(const std::string& path, const std::string& options, const InputInfo& input);

// A tensor file by its suffix (.npy, .npz, .pb), names included where the format has them.
Result<NamedTensors> read_tensor_file(const std::string& path);
// Errors also: InvalidArgument (a suffix that holds one tensor, several tensors).
Status write_tensor_file(const std::string& path, const NamedTensors& tensors);

// The help text about inputs, for the verbs that take them.
extern const char* const kInputHelp;

}  // namespace tilewright::inputs
