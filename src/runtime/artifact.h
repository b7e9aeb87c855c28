// SPDX-License-Identifier: Apache-2.0
// A compiled model, loaded: its plan, its mapped weights, its kernels. Immutable, shared by executors.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/formats/artifact.h"
#include "base/formats/plan.h"
#include "base/result.h"
#include "runtime/kernel.h"
#include "runtime/mapped_file.h"
#include "runtime/shared_weights.h"

namespace tilewright::runtime {

struct LoadOptions {
  bool verify_params = false;  // reads all weights and compares their checksum
  std::string weights;         // path of a separate weights file; empty: as the artifact says
  std::string home;            // file relative to which that is resolved; empty: the artifact
};

class Artifact {
 public:
  // A library, or a file of byte code. Checks the file before the dynamic linker sees it. Errors: FileNotFound,
  // BadArtifact, ArtifactVersion, CpuMismatch.
  static Result<std::shared_ptr<const Artifact>> load(const std::string& path, const LoadOptions& options = {});
  // A model linked into the program (system_lib.h), relative to whose folder a weights file is found; `entry`, its
  // generated function, may be null. Errors: those of load.
  static Result<std::shared_ptr<const Artifact>> linked(const std::string& name, const ArtifactTable* table,
                                                        void* entry);
  ~Artifact();
  Artifact(const Artifact&) = delete;
  Artifact& operator=(const Artifact&) = delete;

  const plan::Plan& plan() const { return plan_; }
  std::span<const Kernel> kernels() const { return kernels_; }
  const std::byte* params() const { return params_; }
  // The generated function that runs the whole plan on one
  // thread; missing if a user's own linking dropped it.
  bool has_entry() const { return entry_ != nullptr; }
  // Returns 0 or an error number.
  int run_entry(void* const* inputs, void* const* outputs, void* arena) const;
  std::string_view imports() const { return plan_.imports; }
  // The address of a function or variable that the library itself defines; null if it does not, or is linked into the
  // program.
  void* function(const std::string& name) const { return symbol(name, true); }
  void* variable(const std::string& name) const { return symbol(name, false); }
  const std::string& path() const { return path_; }

 private:
  Artifact() = default;
  static Result<std::shared_ptr<const Artifact>> load_byte_code(MappedFile file, const std::string& path,
                                                                const LoadOptions& options);
  Status check_byte_code(const plan::Plan& plan) const;
  // Sets the table's kernels, plan and entry to those of the best instruction set for this machine.
  Status choose(ArtifactTable* table, const ElfImage* image, uint64_t base);
  Status take(const ArtifactTable& table, const LoadOptions& options);
  Status open_weights(const LoadOptions& options);
  void* symbol(const std::string& name, bool code) const;
  std::string path_;
  int file_ = -1;  // stays open while the library is loaded, see load()
  void* library_ = nullptr;
  plan::Plan plan_;
  std::vector<Kernel> kernels_;
  std::optional<MappedFile> bytes_;                         // of byte code
  std::vector<std::unique_ptr<const stackvm::Code>> code_;  // one for each kernel of it
  const std::byte* params_ = nullptr;
  std::shared_ptr<const SharedWeights> weights_;  // weights in a separate file
  void* entry_ = nullptr;                         // an EntryFunction; with weights_ an EntryWithWeights
};

}  // namespace tilewright::runtime
