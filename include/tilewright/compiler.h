/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling models from C and C++ (link tilewright::compiler). What comes out is a shared library for
 * tilewright/runtime.h.
 *
 *   tilewright::compile("model.onnx", "model.so");
 *   tilewright::compile("model.onnx", "model.so", {.target = "llvm -mcpu=x86-64-v3", .shapes = {"x=1x3x224x224"}}); //
 * C++20
 */
#ifndef TILEWRIGHT_COMPILER_H_
#define TILEWRIGHT_COMPILER_H_
#include <stddef.h>
#include <stdint.h>

#include "tilewright/c_api.h"
#include "tilewright/dlpack.h"
#include "tilewright/text_tensor.h"

#if defined(_WIN32)
#define TW_COMPILER_API
#else
#define TW_COMPILER_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A code generator of yours: parts of a model that match its patterns become modules it makes, which the library
 * imports and the executor calls (docs/external-codegen.md). The strings are copied. */
typedef struct tw_external_codegen {
  size_t size;          /* sizeof(tw_external_codegen) */
  const char* name;     /* "vecunit" */
  const char* patterns; /* one a line, "vecunit.dense: nn.dense add? nn.relu?"; null: none */
  /* 1: the match is taken, 0: it is not, as a graph of one kernel; null: every match is. */
  int32_t (*supports)(void* context, const char* graph_json);
  /* Makes the module of one function and hands its type key and its bytes, what runtime.module.loadbinary_<type key>
   * takes, to `deliver`; or hands over a null type key and the text of an error. Called in the compiling thread. */
  void (*generate)(void* context, const char* symbol, const char* graph_json, const DLTensor* constants,
                   uint64_t num_constants,
                   void (*deliver)(void* receiver, const char* type_key, const void* data, uint64_t size),
                   void* receiver);
  void* context;
} tw_external_codegen;

/* A plug-in (`tilewright compile --plugin lib.so`) is a shared library that has this function: its code generators,
 * which stay valid as long as it is loaded. */
TW_COMPILER_API const tw_external_codegen* tw_compiler_plugin(uint64_t* count);

/* What kernels for a device are compiled for, where a model places parts of itself on several (on_device). */
typedef struct tw_device_target {
  int32_t device_type; /* DLDeviceType */
  const char* target;
} tw_device_target;

typedef struct tw_compiler_options {
  size_t size;               /* sizeof(tw_compiler_options) */
  const char* target;        /* null: this machine; "llvm -mcpu=x86-64-v3 -math=strict"; -math=bf16 */
  int32_t opt_level;         /* 0 to 4; -1: the default, 3 */
  int32_t jobs;              /* threads that generate code; 0: one per core */
  const char* const* shapes; /* "name=1x3x224x224"; "name=1x3x48x{160,320}" for several shapes in one library */
  uint64_t num_shapes;
  const char* const* required_passes;
  uint64_t num_required_passes;
  const char* const* disabled_passes;
  uint64_t num_disabled_passes;
  const char* dump_ir; /* folder for the module after each pass; null: none */
  void (*progress)(void* context, const char* stage, double fraction); /* may be null */
  void* progress_context;
  int32_t no_kernel_cache;      /* 1: compile every kernel anew and keep none */
  const char* const* constants; /* "name=1,3,640,640" or "name=@tensor.pb": inputs that become part of the model */
  uint64_t num_constants;
  const tw_external_codegen* external;
  uint64_t num_external;
  const tw_device_target* device_targets;
  uint64_t num_device_targets;
  const char* format;         /* "library", "object", "archive", "package", "ir", "bitcode", "assembly", "objects",
                                 "objects-c" (docs/cpp.md); null: by the end of the output's name */
  int32_t system_lib;         /* 1: for a program that links the object and asks the runtime for the model by name */
  const char* const* plugins; /* shared libraries with tw_compiler_plugin */
  uint64_t num_plugins;
  const char* params;  /* a Relay module's weights: a .params file, bound to main's parameters by name; null: none */
  const char* weights; /* a file for the weights, which several outputs share (docs/cpp.md); null: in the output */
  const char* const* bounds; /* "batch=1..8": the library runs at every size between, without the compiler */
  uint64_t num_bounds;
} tw_compiler_options;

/* Compiles an ONNX model, or a Relay module (its text, or JSON of the classic save_json), to a shared library;
 * `options` may be null. 0, or the number of an error (docs/errors/). The output appears whole or not at all. */
TW_COMPILER_API int32_t tw_compiler_compile_onnx(const char* model, const char* output,
                                                 const tw_compiler_options* options);
/* LLVM IR or bitcode that a compilation wrote (.ll, .bc) to a shared library, an object (.o) or an archive (.a). */
TW_COMPILER_API int32_t tw_compiler_compile_ir(const char* ir, const char* output);
/* Compiles one region of a VM program (a model whose sizes are known only when it runs) for these arguments into a
 * shared library. by_value[i] becomes 1 where the value of argument i, not its shape alone, is compiled in. 0 or an
 * error's number. */
TW_COMPILER_API int32_t tw_compiler_specialize(const char* format, const void* source, uint64_t source_bytes,
                                               const char* target, const char* const* names, const DLTensor* arguments,
                                               uint64_t count, const char* output, uint8_t* by_value);
/* Computes one region of a VM program on these arguments without compiling it; `give` receives its results in order,
 * and by_value is as above. Error 104: a region that can be compiled is too much work for that; never if however_long
 * is 1. libtilewright_vm.so has this, too. */
TW_COMPILER_API int32_t tw_compiler_evaluate(const char* format, const void* source, uint64_t source_bytes,
                                             const char* const* names, const tw_text_tensor* arguments, uint64_t count,
                                             int32_t however_long, uint8_t* by_value,
                                             void (*give)(void* context, const tw_text_tensor* result), void* context);
/* "error[E202 UnsupportedOp]: where: message\n  hint: ..." of this thread's last failed call. */
TW_COMPILER_API const char* tw_compiler_last_error_message(void);
/* Its parts. */
TW_COMPILER_API int32_t tw_compiler_last_error(tw_error_info* out);
/* Removes the temporary folders of all work under way: for a program that a signal is about to end. A thread that
 * still works and wants another one waits, so nothing of the compiler may be called afterwards. */
TW_COMPILER_API void tw_compiler_remove_work_folders(void);
/* The compiler's verbs of the tilewright program: argv as main has it. Returns the exit code. */
TW_COMPILER_API int tw_compiler_main(int argc, const char* const* argv);

#ifdef __cplusplus
}

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tilewright {

// tw_external_codegen in C++. What `generate` throws fails the compilation with its text.
struct ExternalCodegen {
  std::string name, patterns;
  std::function<bool(const std::string& graph_json)> supports;
  // (type key, bytes): with tilewright/function.h, {module.type_key(), module.save()}.
  std::function<std::pair<std::string, std::string>(const std::string& symbol, const std::string& graph_json,
                                                    const std::vector<DLTensor>& constants)>
      generate;

  // For tw_compiler_plugin and the like. This must outlive it.
  tw_external_codegen as_c() const {
    tw_external_codegen e{};
    e.size = sizeof e;
    e.name = name.c_str(), e.patterns = patterns.c_str();
    e.context = const_cast<ExternalCodegen*>(this);
    if (supports)
      e.supports = [](void* self, const char* graph) -> int32_t {
        try {
          return static_cast<ExternalCodegen*>(self)->supports(graph);
        } catch (...) {
          return 0;
        }
      };
    e.generate = [](void* self, const char* symbol, const char* graph, const DLTensor* constants, uint64_t count,
                    void (*deliver)(void*, const char*, const void*, uint64_t), void* receiver) {
      try {
        auto [key, bytes] = static_cast<ExternalCodegen*>(self)->generate(
            symbol, graph, std::vector<DLTensor>(constants, constants + count));
        deliver(receiver, key.c_str(), bytes.data(), bytes.size());
      } catch (const std::exception& error) {
        const std::string text = error.what();
        deliver(receiver, nullptr, text.data(), text.size());
      } catch (...) {
        deliver(receiver, nullptr, nullptr, 0);
      }
    };
    return e;
  }
};

struct CompileOptions {
  std::string target = "llvm";
  int opt_level = 3;
  int jobs = 0;
  std::vector<std::string> shapes, required_passes, disabled_passes;
  std::string dump_ir;
  std::vector<std::string> constants;  // "name=1,3,640,640": inputs that become part of the model
  std::vector<ExternalCodegen> external;
  std::vector<std::pair<int, std::string>> device_targets;  // device type, target
  std::string format;                                       // "objects", say; empty: by the end of the output's name
  bool system_lib = false;                                  // for a program that links the object: Module::system_lib()
  std::vector<std::string> plugins;                         // shared libraries with code generators
  std::string params;                                       // a Relay module's weights: a .params file
  std::string weights;  // a file for the weights, which several outputs share; empty: they are in the output
  std::vector<std::string> bounds;  // "batch=1..8": sizes that the model leaves free, each of which the output runs at
  bool kernel_cache =
      true;  // keep compiled kernels in $TILEWRIGHT_CACHE_DIR, $XDG_CACHE_HOME/tilewright or ~/.cache/tilewright
};

// The number of the error in docs/errors/ and its text.
class CompileError : public std::runtime_error {
 public:
  CompileError(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

inline void compile(const std::string& model, const std::string& output,
                    const CompileOptions& options = CompileOptions()) {
  auto pointers = [](const std::vector<std::string>& list) {
    std::vector<const char*> out;
    for (const auto& s : list) out.push_back(s.c_str());
    return out;
  };
  auto shapes = pointers(options.shapes), required = pointers(options.required_passes),
       disabled = pointers(options.disabled_passes), constants = pointers(options.constants),
       bounds = pointers(options.bounds);
  tw_compiler_options c{};
  c.size = sizeof c;
  c.target = options.target.c_str();
  c.opt_level = options.opt_level;
  c.jobs = options.jobs;
  c.shapes = shapes.data(), c.num_shapes = shapes.size();
  c.bounds = bounds.data(), c.num_bounds = bounds.size();
  c.required_passes = required.data(), c.num_required_passes = required.size();
  c.disabled_passes = disabled.data(), c.num_disabled_passes = disabled.size();
  c.dump_ir = options.dump_ir.empty() ? nullptr : options.dump_ir.c_str();
  c.constants = constants.data(), c.num_constants = constants.size();
  c.no_kernel_cache = options.kernel_cache ? 0 : 1;
  std::vector<tw_external_codegen> external;
  for (const ExternalCodegen& codegen : options.external) {
    external.push_back(codegen.as_c());
  }
  c.external = external.data(), c.num_external = external.size();
  std::vector<tw_device_target> devices;
  for (const auto& [device, target] : options.device_targets) devices.push_back({device, target.c_str()});
  c.device_targets = devices.data(), c.num_device_targets = devices.size();
  c.format = options.format.empty() ? nullptr : options.format.c_str();
  c.system_lib = options.system_lib ? 1 : 0;
  auto plugins = pointers(options.plugins);
  c.plugins = plugins.data(), c.num_plugins = plugins.size();
  c.params = options.params.empty() ? nullptr : options.params.c_str();
  c.weights = options.weights.empty() ? nullptr : options.weights.c_str();
  if (int32_t code = tw_compiler_compile_onnx(model.c_str(), output.c_str(), &c))
    throw CompileError(code, tw_compiler_last_error_message());
}

// LLVM IR or bitcode (`compile("model.onnx", "model.ll")`) to a shared library or an object.
inline void compile_ir(const std::string& ir, const std::string& output) {
  if (int32_t code = tw_compiler_compile_ir(ir.c_str(), output.c_str()))
    throw CompileError(code, tw_compiler_last_error_message());
}

}  // namespace tilewright
#endif  // __cplusplus
#endif  // TILEWRIGHT_COMPILER_H_
