// SPDX-License-Identifier: Apache-2.0
// A Model Library Format as a program for a device: the models, the C runtime, and what a template has of the device.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "driver/model_library_reader.h"

namespace tilewright::driver {

inline constexpr const char* kProjectTemplates[] = {"crt", "mps2-an386", "zephyr", "arduino"};

struct ProjectOptions {
  std::string template_name;
  std::map<std::string, std::string> values;  // project_option_names
};
struct ProjectOption {
  const char *name, *fallback, *help;
};
// Numbers of bytes all of them.
std::vector<ProjectOption> project_options();

struct ProjectFile {
  std::string path;  // below the project's folder
  std::string bytes;
  bool is_program = false;
};
// Errors: InvalidArgument (no such template or option; a model without a C interface, for another processor),
// BadArtifact (two models share a file).
Result<std::vector<ProjectFile>> project_files(const ModelLibrary& library, const ProjectOptions& options);

// The same as a folder, which must not be there yet unless it is a project and `force` says so. Errors also:
// FileNotFound, CannotWrite.
Status create_project(const std::string& library_path, const std::string& folder, const ProjectOptions& options,
                      bool force);
// Runs the project's script build.sh; what it prints goes to standard output and error. Errors: InvalidArgument (no
// project; one that its own tools build), LinkFailed.
Status build_project(const std::string& folder);

// The table of models of a project (tvm/runtime/crt/aot_executor.h), with the memory of their tensors and pools.
Result<std::string> models_source(const ModelLibrary& library);

}  // namespace tilewright::driver
