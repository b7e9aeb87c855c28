// SPDX-License-Identifier: Apache-2.0
// The whole way: a module (or a file of one) through passes, lowering and code generation to a library file.
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
#include "frontend/onnx/proto.h"
#include "ir/pass.h"
#include "lower/lower.h"
#include "relay/expr.h"

namespace tilewright::driver {

struct LoweredFunction;  // driver/functions.h

// Called as work goes on: the stage's name and how much of it is done (0..1).
using Progress = std::function<void(const char* stage, double fraction)>;

struct BuildOptions {
  std::string target = "llvm";  // may be a list of processors (driver/target_list.h)
  int opt_level = 3;
  std::vector<std::string> required_passes, disabled_passes;
  std::map<std::string, ConfigValue> config;
  std::vector<std::shared_ptr<PassInstrument>> instruments;
  std::vector<Pass<relay::Module>> user_passes;        // take the place of passes of the pipeline by the same names
  std::string name;                                    // the model's, in the library; empty: the file's
  std::string dump_ir;                                 // folder for numbered text files after each pass; empty: none
  int jobs = 0;                                        // code generation threads; 0: one per core
  int64_t stop_after = -1;                             // bisection: only the first so many optional passes
  std::map<std::string, std::vector<int64_t>> shapes;  // ONNX inputs
  // The same for further variants of the model in the same library (plan::Plan::variants).
  std::vector<std::map<std::string, std::vector<int64_t>>> more_shapes;
  // Of sizes that an ONNX model leaves free: the library has a variant for every size within them.
  std::vector<Bound> bounds;
  // ONNX inputs that become constants: name to its values, "1,3,640,640" or "@tensor.pb" (a serialised TensorProto).
  std::map<std::string, std::string> constants;
  std::map<std::string, Tensor> constant_tensors;  // the same, as tensors of the inputs' dtypes
  std::string params;  // a Relay module's weights: a .params file, bound to main's parameters of the same names
  // What kernels on other devices are compiled for, by device type (on_device says what is there); missing: `target`.
  // Their memory must be the processor's.
  std::map<int32_t, std::string> device_targets;
  std::vector<ExternalCodegen> external;  // code generators that take parts of the model
  // Loops that stand in the library beside the model's kernels; it calls them by name, as functions with the attribute
  // Extern.
  std::vector<std::shared_ptr<const LoweredFunction>> functions;
  Progress progress;
  std::string form;  // of the file that is written (output_form); empty: by its name
  // Objects are for a program that links them with the runtime library and finds the model by name
  // (runtime/system_lib.h).
  bool system_lib = false;
  // The weights become a file of their own of this name, which several artifacts share (base/formats/weights_file.h);
  // the runtime finds it, and a program without the runtime gives its address. Empty: they are in the artifact.
  std::string weights_file;
  bool aot = false;  // the library's executor calls the generated entry (one thread, one set of shapes) in place of
                     // walking the plan
  // The library is for programs without the runtime, behind the classic stack's interface; its memory is planned for
  // one thread.
  std::optional<AheadOfTime> ahead_of_time;
  std::string kernel_cache;  // folder of compiled kernels (codegen/kernel_cache.h); empty: none
  // Whether Built keeps the modules and the weights as they were before packing, which verification needs. A large
  // model takes a multiple of its memory with them.
  bool keep_modules = true;
  std::shared_ptr<const lower::KernelChooser> chooser;  // among kernels that apply; null: the cost model
};

struct Built {
  relay::Module imported;   // before any pass
  relay::Module optimized;  // what was lowered
  lower::Lowered lowered;
  std::vector<std::string> objects;
  ExternalCode external;  // what external code generators made; its modules are in plan.imports, too
  Target target;
  std::map<int32_t, Target> device_targets;
  std::vector<PassRecord> passes;  // over the Relay module, then the steps of lowering
  int dumped = 0;                  // texts that are in BuildOptions::dump_ir
  bool system_lib = false;
  std::string weights_file;
  std::optional<AheadOfTime> ahead_of_time;
  // The same for the other processors of a list, from the second best on: plans, kernels and objects of their own.
  // Their weights are in `lowered`.
  std::vector<Built> others;
};

// Errors: UnknownTarget, UnknownPass, FreeDimension, UnsupportedOp, CodegenFailed; Internal for a bug of ours.
Result<Built> build(const relay::Module& module, const BuildOptions& options);
// The same up to the fused, laid-out module; no code.
Result<Built> optimize(const relay::Module& module, const BuildOptions& options);
// The rest of the way for what passes have made already: a fused, laid-out module.
Result<Built> build_fused(const relay::Module& fused, const BuildOptions& options);
// What can be said without a model. Errors: UnknownTarget, UnknownPass, InvalidArgument (config).
Status check_options(const BuildOptions& options);
// Reads the model (ONNX, a .pt2 file of PyTorch, or a Relay module: driver/relay_file.h), then builds. Errors also:
// FileNotFound, MalformedModel and the importer's others.
Result<Built> build_onnx(const std::string& path, const BuildOptions& options);
// The same from memory; weights lie inside the bytes.
Result<Built> build_onnx(const onnx::SharedBytes& bytes, const BuildOptions& options);

// What a file becomes, by the end of its name.
enum class OutputForm {
  kLibrary,       // anything else: a shared library, what the runtime loads
  kObject,        // .o: one relocatable object, for a linker of the user's
  kArchive,       // .a: the objects as a static library, the same
  kPackage,       // .tar: mod.so, mod.json (the classic graph), mod.params (the weights under the graph's names)
  kIr,            // .ll: LLVM IR of everything, weights too
  kBitcode,       // .bc: the same
  kAssembly,      // .s: the same
  kSource,        // .c: one C file, from a target that makes source
  kObjects,       // no file name's: a tar of lib0.o and, of imported modules, devc.o
  kObjectsC,      // the same with devc.c
  kModelLibrary,  // no file name's: a Model Library Format (driver/model_library.h)
};
OutputForm output_form(const std::string& path);
// "library", "object", "archive", "package", "ir", "bitcode", "assembly", "source", "objects", "objects-c", "mlf";
// empty: the file name's. Error: InvalidArgument.
Result<OutputForm> output_form(const std::string& path, const std::string& name);

// Writes the file; it appears whole or not at all. Errors: CannotWrite, LinkFailed.
Status export_library(const Built& built, const std::string& path);
Status export_library(const Built& built, const std::string& path, OutputForm form);
// The same, and gives the memory of the weights back once they are written. `progress` counts their bytes.
Status export_library_and_release(Built* built, const std::string& path, OutputForm form,
                                  const Progress& progress = {});
// Writes lib0.o and, when the library imports modules, devc.o (devc.c with `in_c`) into a folder; their names.
Result<std::vector<std::string>> export_objects(const Built& built, const std::string& folder, bool in_c);

// The weights as they lie in the file: each at its offset, zeros between and after. They are taken from `weights` while
// they are written.
std::vector<codegen::WeightPiece> weight_pieces(const plan::Plan& plan, const std::vector<lower::Weight>& weights,
                                                const Progress& progress = {});
// The same as a .params file; none where they are a file of their own.
std::string params_file(const plan::Plan& plan, const std::vector<lower::Weight>& weights);

// The C file of a build for the target c. Errors: InvalidArgument (another target), UnsupportedModel.
Result<std::string> source_of(const Built& built);

// LLVM IR or bitcode of kIr or kBitcode as a shared library, an object or an archive; without `form`, by the end of
// the name. Errors: InvalidArgument (another form), ParseError, UnknownTarget, CodegenFailed, CannotWrite.
Status compile_ir_file(const std::string& path, const std::string& output, OutputForm form);
Status compile_ir_file(const std::string& path, const std::string& output);

}  // namespace tilewright::driver
