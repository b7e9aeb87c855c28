// SPDX-License-Identifier: Apache-2.0
// Modules: groups of functions with imported modules. Compiled libraries and executors are modules, and users can
// define further kinds, which libraries store by type key.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/artifact.h"
#include "runtime/function.h"
#include "runtime/library_functions.h"

namespace tilewright::runtime {

class Module : public std::enable_shared_from_this<Module> {
 public:
  virtual ~Module() = default;
  virtual const std::string& type_key() const = 0;
  // The module's own function, or empty. The function keeps alive what it needs.
  virtual Result<FunctionRef> get_function(const std::string& name) = 0;
  // The bytes for runtime.module.loadbinary_<type_key>. Error: InvalidArgument if the kind has none.
  virtual Result<std::string> save() const;

  // Searches this module and, if requested, its imports, depth first.
  Result<FunctionRef> find_function(const std::string& name, bool query_imports);
  // Errors: InvalidArgument (a cycle).
  Status import_module(std::shared_ptr<Module> module);
  std::vector<std::shared_ptr<Module>> imports() const;

 private:
  bool reaches(const Module* other) const;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Module>> imports_;
};

// A compiled model: "default" and the model's name make executors (graph_executor_module.h). Functions that take their
// tensors as arguments are found by name (library_functions.h).
class LibraryModule : public Module {
 public:
  explicit LibraryModule(std::shared_ptr<const Artifact> artifact);
  static Result<std::shared_ptr<LibraryModule>> load(const std::string& path, const LoadOptions& options = {});
  const std::string& type_key() const override;
  Result<FunctionRef> get_function(const std::string& name) override;
  const std::shared_ptr<const Artifact>& artifact() const { return artifact_; }
  // The functions that the model's steps call, from the library or its imports, for an executor. Error:
  // UnknownFunction.
  Result<std::vector<FunctionRef>> externals() const;
  const std::vector<std::string>& input_dtypes() const { return input_dtypes_; }
  const std::vector<std::string>& output_dtypes() const { return output_dtypes_; }

 private:
  Result<std::shared_ptr<const LibraryFunctions>> functions() const;
  std::shared_ptr<const Artifact> artifact_;
  mutable std::mutex functions_mutex_;
  mutable std::shared_ptr<const LibraryFunctions> functions_;  // created on first use
  std::vector<std::string> input_dtypes_, output_dtypes_;      // names, for tw_tensor_info
};

// Loads by format (empty: the file extension). Errors: those of the loaders; UnknownFunction (no loader).
Result<std::shared_ptr<Module>> load_module_file(const std::string& path, std::string format);
Result<std::shared_ptr<Module>> load_module_binary(const std::string& type_key, std::string_view bytes);

// A library's import tree in the classic layout: u64 count, then records (type key, u64 length, bytes; "_lib" for the
// library itself), the last being "_import_tree" (two vectors of u64: row pointers and children). Empty without
// imports.
Result<std::string> save_import_tree(const std::shared_ptr<Module>& root);
// The same for saved modules. `importer`: 0 is the library, 1 the first module; importers precede their imports.
struct ImportRecord {
  std::string type_key, bytes;
  uint64_t importer = 0;
};
std::string save_import_tree(std::span<const ImportRecord> modules);
// Creates the modules and attaches them below `library`, which stands for "_lib". Errors: BadArtifact, UnknownFunction.
Result<std::shared_ptr<Module>> load_import_tree(std::string_view bytes, const std::shared_ptr<Module>& library);

}  // namespace tilewright::runtime
