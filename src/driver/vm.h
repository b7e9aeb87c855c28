// SPDX-License-Identifier: Apache-2.0
// VM programs: models whose shapes are known only when they run.
#pragma once
#include "driver/build.h"
#include "frontend/onnx/proto.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {

// Programs are shared libraries, and what is made constant by hand is meant for an ordinary one.
bool can_be_vm(const std::string& output, const BuildOptions& options);

// Whether the model must become a VM program: an input's size is free, or shapes depend on the values of inputs.
// Errors: those of reading the model; what the importer cannot do at all is left to the build.
Result<bool> needs_vm(const std::string& path, const BuildOptions& options);

// The model as a program; sizes in options.shapes are fixed. Errors: those of reading the model, UnsupportedModel
// (weights in further files), UnsupportedOp.
Result<runtime::vm::Program> vm_program(const std::string& path, const BuildOptions& options);
Result<runtime::vm::Program> vm_program(const onnx::Model& model, const onnx::SharedBytes& bytes,
                                        const BuildOptions& options);

// A Relay module: functions, closures, recursion, data types and branches become bytecode, and what lies between them
// regions. Errors: UnsupportedModel (references, parameters of main that are no tensors).
Result<runtime::vm::Program> vm_program(const relay::Module& module, const BuildOptions& options);

// Reads the model, builds it and writes the artifact: an ordinary one, or a VM program where needs_vm says so. Errors:
// those of build_onnx, of vm_program and of export_library.
Status compile_onnx(const std::string& path, const std::string& output, const BuildOptions& options);

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
