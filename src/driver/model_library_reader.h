// SPDX-License-Identifier: Apache-2.0
// Reads a Model Library Format (docs/aot.md). The content is untrusted: it may come from other machines.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "driver/tar_reader.h"

namespace tilewright::driver {

struct LibraryTensor {
  std::string name;    // the model's name for it
  std::string member;  // member of the C struct; empty with a packed function
  DataType dtype;
  std::vector<int64_t> shape;
  uint64_t bytes() const;
};
struct LibraryPool {
  std::string name, member;
  uint64_t bytes = 0;
  bool constant = false;
};
// How a C program calls an ahead-of-time model.
struct LibraryInterface {
  bool packed = false;
  bool tensors_in_pools = false;
  std::string prefix, header;      // "tvmgen_net", "tvmgen_net.h"
  uint64_t alignment = 16;         // alignment of pools
  std::vector<LibraryPool> pools;  // provided by the program
  std::vector<LibraryTensor> inputs, outputs;
};
struct LibraryModel {
  std::string name;
  std::vector<std::string> targets, executors;
  uint64_t workspace = 0, constants = 0, io = 0;  // bytes
  bool has_interface = false;                     // libraries of other tools do not contain it
  LibraryInterface interface;
};
struct ModelLibrary {
  int64_t version = 0;
  std::vector<LibraryModel> models;
  std::string functions_of;  // of the operator style: the library's name; it has functions of tensors instead of models
  bool has_system_lib() const;                    // packed functions for the C runtime: of graphs, or of tensors
  std::map<std::string, std::string_view> files;  // by path, without "./"; views into the archive
};

bool is_model_library(const std::vector<TarMember>& members);
// Errors: BadArtifact (damaged, or paths that lead outside), VersionMismatch.
Result<ModelLibrary> read_model_library(const std::vector<TarMember>& members);

}  // namespace tilewright::driver
