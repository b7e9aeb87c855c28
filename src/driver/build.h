// SPDX-License-Identifier: Apache-2.0
// Compiles a module (or model file) to a library: passes, lowering, code generation.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "codegen/codegen.h"
#include "driver/ahead_of_time.h"
#include "driver/bounds.h"
#include "driver/external.h"
#include "driver/graph_in_c.h"
#include "frontend/onnx/proto.h"
#include "ir/pass.h"
#include "lower/lower.h"
#include "relay/expr.h"

namespace tilewright::driver {

struct LoweredFunction;  // driver/functions.h

// Reports progress: the stage and the completed fraction of it (0..1).
using Progress = std::function<void(const char* stage, double fraction)>;

struct BuildOptions {
  std::string target = "llvm";  // or a list of processors (driver/target_list.h)
  int opt_level = 3;
  std::vector<std::string> required_passes, disabled_passes;
  std::map<std::string, ConfigValue> config;
  std::vector<std::shared_ptr<PassInstrument>> instruments;
  std::vector<Pass<relay::Module>> user_passes;        // replace the pipeline's passes of the same names
  std::string name;                                    // the model's name in the library; empty: the file's
  std::string dump_ir;                                 // folder for numbered text files after each pass; empty: none
  int jobs = 0;                                        // code generation threads; 0: one per core
  int64_t stop_after = -1;                             // bisection: runs only this many optional passes
  std::map<std::string, std::vector<int64_t>> shapes;  // of ONNX inputs
  // Shapes of further variants in the same library (plan::Plan::variants).
  std::vector<std::map<std::string, std::vector<int64_t>>> more_shapes;
  // Bounds of an ONNX model's free sizes: the library supports every size within them.
  std::vector<Bound> bounds;
  // ONNX inputs that become constants: name to its values, "1,3,640,640" or "@tensor.pb" (a serialised TensorProto).
  std::map<std::string, std::string> constants;
  std::map<std::string, Tensor> constant_tensors;  // the same, as tensors of the inputs' dtypes
  std::string params;  // a Relay module's weights: a .params file, bound to main's parameters of the same names
  // Targets of other devices, by device type (on_device assigns operators); default: `target`. Their memory must be
  // accessible by the CPU.
  std::map<int32_t, std::string> device_targets;
  std::vector<ExternalCodegen> external;  // external code generators for parts of the model
  // Loop functions compiled into the library; the model calls
  // them by name, as functions with the attribute Extern.
  std::vector<std::shared_ptr<const LoweredFunction>> functions;
  Progress progress;
  std::string form;  // output form (output_form); empty: from the file name
  // Objects are for a program that links them with the runtime library and finds the model by name
  // (runtime/system_lib.h).
  bool system_lib = false;
  // Name of a separate weights file, which several artifacts can share (base/formats/weights_file.h); the runtime finds
  // it, and a program without the runtime passes its address. Empty: weights are in the artifact.
  std::string weights_file;
  bool aot = false;  // the library's executor calls the generated entry (one thread, one set of shapes) instead of
                     // interpreting the plan
                     // For programs without the runtime: the library has the classic stack's interface, and its memory
                     // is planned for one thread.
  std::optional<AheadOfTime> ahead_of_time;
  std::optional<RuntimePools> runtime_pools;
  std::optional<GraphInC> graph_in_c;
  bool classic_names = false;  // kernels are named as the classic stack does (name_packed_functions)
  std::string kernel_cache;    // folder of compiled kernels (codegen/kernel_cache.h); empty: none
  // Keep the modules and unpacked weights in Built, for verification. With large models that takes several times the
  // memory.
  bool keep_modules = true;
  std::shared_ptr<const lower::KernelChooser> chooser;  // chooses kernels; null: the cost model
};

struct Built {
  relay::Module imported;   // before any pass
  relay::Module optimized;  // the module that was lowered
  lower::Lowered lowered;
  std::vector<std::string> objects;
  ExternalCode external;  // results of external code generators; their modules are also in plan.imports
  Target target;
  std::map<int32_t, Target> device_targets;
  std::vector<PassRecord> passes;  // those of the Relay module, then the steps of lowering
  int dumped = 0;                  // number of texts written to BuildOptions::dump_ir
  bool system_lib = false;
  std::string weights_file;
  std::optional<AheadOfTime> ahead_of_time;
  std::optional<RuntimePools> runtime_pools;
  std::optional<GraphInC> graph_in_c;
  // Builds for the further processors of a list, best first, with their own plans, kernels and objects. Their weights
  // are in `lowered`.
  std::vector<Built> others;
};

// Errors: UnknownTarget, UnknownPass, FreeDimension, UnsupportedOp, CodegenFailed; Internal for our own defects.
Result<Built> build(const relay::Module& module, const BuildOptions& options);
// Stops at the fused module in its final layout; generates no code.
Result<Built> optimize(const relay::Module& module, const BuildOptions& options);
// Continues from a fused module in its final layout.
Result<Built> build_fused(const relay::Module& fused, const BuildOptions& options);
// Checks that need no model. Errors: UnknownTarget, UnknownPass, InvalidArgument (config).
Status check_options(const BuildOptions& options);
// Reads a model (ONNX, a .pt2 file of PyTorch, or a Relay module: driver/relay_file.h) and builds it. Further errors:
// FileNotFound, MalformedModel and the importer's.
Result<Built> build_onnx(const std::string& path, const BuildOptions& options);
// The same from memory, with weights inside the bytes.
Result<Built> build_onnx(const onnx::SharedBytes& bytes, const BuildOptions& options);

// Output forms, by file extension.
enum class OutputForm {
  kLibrary,       // any other: a shared library, which the runtime loads
  kObject,        // .o: one relocatable object, for the user's linker
  kArchive,       // .a: a static library, for the user's linker
  kPackage,       // .tar: mod.so, mod.json (the classic graph), mod.params (the weights by the graph's names)
  kIr,            // .ll: LLVM IR of everything, including weights
  kBitcode,       // .bc: the same as bitcode
  kAssembly,      // .s: the same as assembly
  kSource,        // .c: one C file, by a target that produces source
  kByteCode,      // .stackvm: byte code, which the runtime loads and runs, by target stackvm
  kObjects,       // only by name: a tar of lib0.o and, for imported modules, devc.o
  kObjectsC,      // only by name: the same with devc.c
  kModelLibrary,  // only by name: a Model Library Format (driver/model_library.h)
};
OutputForm output_form(const std::string& path);
// "library", "object", "archive", "package", "ir", "bitcode", "assembly", "source", "stackvm", "objects", "objects-c",
// "mlf";
// empty: the file name's. Error: InvalidArgument.
Result<OutputForm> output_form(const std::string& path, const std::string& name);

// What the runtime loads: a shared library, or byte code.
OutputForm loadable_form(const Target& target);

// Writes the file atomically. Errors: CannotWrite, LinkFailed.
Status export_library(const Built& built, const std::string& path);
Status export_library(const Built& built, const std::string& path, OutputForm form);
// The same, and frees the weights once they are written. `progress` counts their bytes.
Status export_library_and_release(Built* built, const std::string& path, OutputForm form,
                                  const Progress& progress = {});
// Writes lib0.o and, if the library imports modules, devc.o (or devc.c with `in_c`) into a folder; returns their names.
Result<std::vector<std::string>> export_objects(const Built& built, const std::string& folder, bool in_c);

// The weights as laid out in the file, with zeros in between and at the end. They are read from `weights` while being
// written.
std::vector<codegen::WeightPiece> weight_pieces(const plan::Plan& plan, const std::vector<lower::Weight>& weights,
                                                const Progress& progress = {});
// The same as a .params file; empty if weights are a separate file.
std::string params_file(const plan::Plan& plan, const std::vector<lower::Weight>& weights);

// The C file of a build with the target c. Errors: InvalidArgument (another target), UnsupportedModel.
Result<std::string> source_of(const Built& built);

// Compiles LLVM IR or bitcode (kIr, kBitcode) to a shared library, object or archive; without `form`, by file
// extension. Errors: InvalidArgument (another form), ParseError, UnknownTarget, CodegenFailed, CannotWrite.
Status compile_ir_file(const std::string& path, const std::string& output, OutputForm form);
Status compile_ir_file(const std::string& path, const std::string& output);

}  // namespace tilewright::driver
