// SPDX-License-Identifier: Apache-2.0
// Parses --input and produces the tensors for a model.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "inputs/npy.h"

namespace tilewright::inputs {

inline constexpr int64_t kFreeSize = -1;  // determined by the tensor in a file

struct InputInfo {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;  // kFreeSize where a VM program leaves the size open
};

// One tensor for each of the model's inputs, in its order. Each spec is [NAME=]VALUE with VALUE one of
//   @FILE.npy  @FILE.npz[:ENTRY]  @FILE.pb  @PICTURE  random  zeros  ones  NUMBER[,NUMBER...]
// followed by ,option=value pairs where it has options; inputs without a spec are random, drawn from `seed`.
// Errors: InvalidArgument, UnknownInput, ShapeMismatch, DtypeMismatch and those of the readers.
Result<std::vector<Tensor>> make_inputs(const std::vector<InputInfo>& inputs, const std::vector<std::string>& specs,
                                        uint64_t seed);

// Loads an image for an input, with the options that --input accepts after an image's name ("short=256,crop=224"; may
// be empty).
Result<Tensor> load_picture_as(const std::string& path, const std::string& options, const InputInfo& input);

// Reads a tensor file by extension (.npy, .npz, .pb), with names if the format has them.
Result<NamedTensors> read_tensor_file(const std::string& path);
// Further errors: InvalidArgument (several tensors for a format that holds one).
Status write_tensor_file(const std::string& path, const NamedTensors& tensors);

// Help text about inputs, for the verbs that take them.
extern const char* const kInputHelp;

}  // namespace tilewright::inputs
