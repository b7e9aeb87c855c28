// SPDX-License-Identifier: Apache-2.0
// A Model Library Format read back (docs/aot.md). Nothing in it is trusted: it comes from other machines.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "driver/tar_reader.h"

namespace tilewright::driver {

struct LibraryTensor {
  std::string name;    // the model's
  std::string member;  // of the struct in C; empty with a packed function
  DataType dtype;
  std::vector<int64_t> shape;
  uint64_t bytes() const;
};
struct LibraryPool {
  std::string name, member;
  uint64_t bytes = 0;
  bool constant = false;
};
// How a program in C calls a model that was compiled ahead of time.
struct LibraryInterface {
  bool packed = false;
  bool tensors_in_pools = false;
  std::string prefix, header;      // "tvmgen_net", "tvmgen_net.h"
  uint64_t alignment = 16;         // of pools
  std::vector<LibraryPool> pools;  // that the program brings
  std::vector<LibraryTensor> inputs, outputs;
};
struct LibraryModel {
  std::string name;
  std::vector<std::string> targets, executors;
  uint64_t workspace = 0, constants = 0, io = 0;  // bytes
  bool has_interface = false;                     // other writers' libraries do not say it
  LibraryInterface interface;
};
struct ModelLibrary {
  int64_t version = 0;
  std::vector<LibraryModel> models;
  std::map<std::string, std::string_view> files;  // by their paths, without "./"; the bytes point into the archive
};

bool is_model_library(const std::vector<TarMember>& members);
// Errors: BadArtifact (damaged, paths that lead out of it), VersionMismatch (another version).
Result<ModelLibrary> read_model_library(const std::vector<TarMember>& members);

}  // namespace tilewright::driver
