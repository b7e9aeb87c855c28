// SPDX-License-Identifier: Apache-2.0
// VM programs: models whose shapes are known only when they run.
#pragma once
#include <optional>

#include "driver/build.h"
#include "frontend/onnx/proto.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {

// Programs are shared libraries, and what is made constant by hand is meant for an ordinary one.
bool can_be_vm(const std::string& output, const BuildOptions& options);

// What a model becomes: an ordinary library, or a program where sizes, control flow or values that only a run has ask
// for one. The model is read once.
struct Compiled {
  std::optional<Built> ordinary;
  std::optional<runtime::vm::Program> program;
};
// Errors: those of the import, of the build and of make_program. Without `may_be_program`, what asks for one is an
// error, too.
Result<Compiled> compile_model(const std::string& path, const BuildOptions& options, bool may_be_program);

// The same; but a model that leaves its batch free, and of which options say no bounds, is a library for the batches of
// usual_bounds where that can be. What was taken is in the options that the library was built by, and in `taken`.
Result<Compiled> compile_within_usual_bounds(const std::string& path, const BuildOptions& options, bool may_be_program,
                                             std::vector<Bound>* taken);

// The program of a model that must become one; nothing for others. Errors: those of the import and of make_program.
Result<std::optional<runtime::vm::Program>> program_if_needed(const std::string& path, const BuildOptions& options);

// Any model as a program; sizes in options.shapes are fixed. Errors: those of the import and of make_program.
Result<runtime::vm::Program> vm_program(const std::string& path, const BuildOptions& options);
Result<runtime::vm::Program> vm_program(const onnx::Model& model, const BuildOptions& options);
Result<runtime::vm::Program> vm_program(const relay::Module& module, const BuildOptions& options);

// Options that a program cannot have. Error: UnsupportedModel.
Status check_program_options(const BuildOptions& options);

// Compiles the model and writes the artifact. Errors: those of compile_model and of export_library.
Status compile_onnx(const std::string& path, const std::string& output, const BuildOptions& options);

// Compiles the regions that will only ever meet one shape of each argument: they come with their kernels, and run where
// no compiler is. Errors: those of export_library.
Status make_ready(runtime::vm::Program* program, const BuildOptions& options);
// Whether the program needs the compiler where it runs.
bool needs_compiler(const runtime::vm::Program& program);

// Writes the program as an artifact. The file appears whole or not at all. Errors: CannotWrite, LinkFailed.
Status export_program(const runtime::vm::Program& program, const std::string& name, const std::string& path);

// Builds a region for arguments of these shapes. Inputs on whose values shapes or control flow depend are compiled in;
// `by_value` receives which. Errors: those of build.
Result<Built> build_region(const std::string& format, const onnx::SharedBytes& source,
                           const std::map<std::string, Tensor>& arguments, const BuildOptions& options,
                           std::vector<std::string>* by_value);

// The graph that a region is for arguments of these shapes. Errors: those of the import.
Result<relay::Module> region_module(const std::string& format, const onnx::SharedBytes& source,
                                    const std::map<std::string, Tensor>& arguments);

// A region's results on these arguments by the reference interpreter; nothing is compiled. `by_value` receives the
// arguments whose values were needed to import it. Errors: those of the import and of evaluation; LimitExceeded when a
// region that can be compiled is more than some milliseconds of work this way.
Result<std::vector<Tensor>> evaluate_region(const std::string& format, const onnx::SharedBytes& source,
                                            const std::map<std::string, Tensor>& arguments,
                                            std::vector<std::string>* by_value);

}  // namespace tilewright::driver
