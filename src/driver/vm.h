// SPDX-License-Identifier: Apache-2.0
// VM programs: models whose shapes are known only at run time.
#pragma once
#include <optional>

#include "driver/build.h"
#include "frontend/onnx/proto.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {

// Whether these options admit a program: it is always a shared library, and explicit constants are for ordinary
// libraries.
bool can_be_vm(const std::string& output, const BuildOptions& options);

// A compiled model: an ordinary library, or a program if it has sizes, control flow or values known only at run time.
// The model is read once.
struct Compiled {
  std::optional<Built> ordinary;
  std::optional<runtime::vm::Program> program;
};
// Errors: those of the import, the build and make_program. Without `may_be_program`, a model that needs a program is an
// error.
Result<Compiled> compile_model(const std::string& path, const BuildOptions& options, bool may_be_program);

// The same, but a model with usual_bounds becomes a library within them if possible. `taken` gets the bounds.
Result<Compiled> compile_within_usual_bounds(const std::string& path, const BuildOptions& options, bool may_be_program,
                                             std::vector<Bound>* taken);

// The program of a model that needs one; nothing for others. Errors: those of the import and of make_program.
Result<std::optional<runtime::vm::Program>> program_if_needed(const std::string& path, const BuildOptions& options);

// Any model as a program; sizes in options.shapes are fixed. Errors: those of the import and of make_program.
Result<runtime::vm::Program> vm_program(const std::string& path, const BuildOptions& options);
Result<runtime::vm::Program> vm_program(const onnx::Model& model, const BuildOptions& options);
Result<runtime::vm::Program> vm_program(const relay::Module& module, const BuildOptions& options);

// Rejects options that programs do not support. Error: UnsupportedModel.
Status check_program_options(const BuildOptions& options);

// Compiles the model and writes the artifact. Errors: those of compile_model and export_library.
Status compile_onnx(const std::string& path, const std::string& output, const BuildOptions& options);

// Compiles regions whose arguments have fixed shapes ahead of time, so that they run without a compiler. Errors: those
// of export_library.
Status make_ready(runtime::vm::Program* program, const BuildOptions& options);

// Writes the program as an artifact, atomically. Errors: CannotWrite, LinkFailed.
Status export_program(const runtime::vm::Program& program, const std::string& name, const std::string& path);

// Builds a region for arguments of these shapes. Inputs whose values determine shapes or control flow are compiled in;
// their indices go to `by_value`. Errors: those of build.
Result<Built> build_region(const std::string& format, const onnx::SharedBytes& source,
                           const std::map<std::string, Tensor>& arguments, const BuildOptions& options,
                           std::vector<std::string>* by_value);

}  // namespace tilewright::driver
