// SPDX-License-Identifier: Apache-2.0
// Generates a device program from a Model Library Format: the models, the C runtime, and a template for the device.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "driver/model_library_reader.h"

namespace tilewright::driver {

inline constexpr const char* kProjectTemplates[] = {"crt", "mps2-an386", "zephyr", "arduino"};

struct ProjectOptions {
  std::string template_name;
  std::map<std::string, std::string> values;  // by option name (project_options)
};
struct ProjectOption {
  const char *name, *fallback, *help;
};
// All options; their values are sizes in bytes.
std::vector<ProjectOption> project_options();

struct ProjectFile {
  std::string path;  // relative to the project's folder
  std::string bytes;
  bool is_program = false;
};
// Errors: InvalidArgument (no such template or option; a model without C interface or for another processor),
// BadArtifact (two models share a file).
Result<std::vector<ProjectFile>> project_files(const ModelLibrary& library, const ProjectOptions& options);

// Writes them to a folder, which must not exist unless it is a project and `force` is set. Further errors:
// FileNotFound, CannotWrite.
Status create_project(const std::string& library_path, const std::string& folder, const ProjectOptions& options,
                      bool force);
// Runs the project's build.sh, with its output on standard output and error. Errors: InvalidArgument (no project, or
// one that its own tools build), LinkFailed.
Status build_project(const std::string& folder);

// The project's table of models (tvm/runtime/crt/aot_executor.h), with memory for their tensors and pools.
Result<std::string> models_source(const ModelLibrary& library);

}  // namespace tilewright::driver
