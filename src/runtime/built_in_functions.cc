// SPDX-License-Identifier: Apache-2.0
// The runtime's global functions, under their classic names.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/format.h"
#include "runtime/classic/const_loader.h"
#include "runtime/classic/factory_record.h"
#include "runtime/cpu.h"
#include "runtime/dltensor.h"
#include "runtime/function.h"
#include "runtime/link_file.h"
#include "runtime/measure_functions.h"
#include "runtime/module.h"
#include "runtime/params_file.h"
#include "runtime/system_lib.h"
#include "runtime/tensor_value.h"

namespace tilewright::runtime {
namespace {

Result<Value> load_from_file(const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 2));
  std::string form(args.size() > 1 ? TW_TRY(args.string(1)) : std::string_view());
  return Value(TW_TRY(load_module_file(std::string(TW_TRY(args.string(0))), form)));
}

Result<Value> load_so(const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 2));
  return Value(std::shared_ptr<Module>(TW_TRY(LibraryModule::load(std::string(TW_TRY(args.string(0)))))));
}

// (path, format; default: the file extension): objects, archives, LLVM IR and packages are linked by the system's
// compiler.
Result<Value> load_objects(const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 2));
  const std::string path(TW_TRY(args.string(0)));
  std::string form = path.substr(std::min(path.rfind('.') + 1, path.size()));
  if (args.size() > 1) form = TW_TRY(args.string(1));
  return Value(TW_TRY(load_linked(path, form)));
}

// (module, ...) -> C source
Result<Value> pack_imports(const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 3));
  return Value::string(TW_TRY(pack_imports_to_c(TW_TRY(args.module(0)))));
}

Result<Value> linked_in(const Arguments& args) {
  TW_TRY_STATUS(args.expect(0, 0));
  return Value(TW_TRY(system_lib()));
}

Result<Value> load_factory_of(const char* type_key, const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 1));
  return Value(TW_TRY(load_factory(type_key, TW_TRY(args.bytes(0)))));
}
Result<Value> load_aot_factory(const Arguments& args) { return load_factory_of("AotExecutorFactory", args); }
Result<Value> load_graph_factory(const Arguments& args) { return load_factory_of("GraphExecutorFactory", args); }
Result<Value> load_old_factory(const Arguments& args) { return load_factory_of("GraphRuntimeFactory", args); }

Result<Value> num_threads(const Arguments&) { return Value(int64_t{default_thread_count()}); }

// bytes -> [[name, tensor], ...]
Result<Value> load_params(const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 1));
  auto tensors = TW_TRY(read_params_file(std::as_bytes(std::span(TW_TRY(args.bytes(0))))));
  std::vector<Value> items;
  for (const auto& t : tensors) {
    std::vector<Value> pair;
    pair.push_back(Value::string(t.name));
    pair.push_back(copy_value({t.name, t.dtype, t.shape}, t.data.data()));
    items.push_back(Value::array(std::move(pair)));
  }
  return Value::array(std::move(items));
}

// (name, tensor, name, tensor, ...) -> bytes
Result<Value> save_params(const Arguments& args) {
  if (args.size() % 2 != 0)
    return Diagnostic(ErrorCode::kInvalidArgument, "save_params takes names and tensors in turn");
  std::vector<NamedTensor> tensors;
  std::vector<std::string> compact(args.size() / 2);
  for (size_t i = 0; i < args.size(); i += 2) {
    NamedTensor t;
    t.name = std::string(TW_TRY(args.string(i)));
    const DLTensor* tensor = TW_TRY(args.tensor(i + 1));
    if (tensor->ndim < 0 || tensor->ndim > 32 || (tensor->ndim > 0 && !tensor->shape))
      return Diagnostic(ErrorCode::kShapeMismatch, format("parameter '{}' has an invalid shape", t.name));
    t.dtype = TW_TRY(from_dlpack(tensor->dtype));
    t.shape.assign(tensor->shape, tensor->shape + tensor->ndim);
    plan::TensorInfo info{t.name, t.dtype, t.shape};
    TW_TRY_STATUS(check_tensor(tensor, info, format("parameter '{}'", t.name)));
    std::string& bytes = compact[i / 2];
    bytes.resize(byte_size(info));
    TW_TRY_STATUS(copy_from(*tensor, t.dtype, bytes.data()));
    t.data = std::as_bytes(std::span(bytes));
    tensors.push_back(std::move(t));
  }
  return Value::bytes(write_params_file(tensors));
}

// (function, number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown) -> a function that takes the
// arguments to call with and returns the seconds per call for each repeat. `number` is increased until a repeat takes
// at least min_repeat_ms.
Result<Value> time_evaluator(const Arguments& args) {
  TW_TRY_STATUS(args.expect(1, 6));
  FunctionRef timed(tw_function_retain(TW_TRY(args.function(0))));
  int64_t number = TW_TRY(args.integer_or(1, 10)), repeat = TW_TRY(args.integer_or(2, 1)),
          least_ms = TW_TRY(args.integer_or(3, 0));
  int64_t cooldown_ms = TW_TRY(args.integer_or(4, 0)), cool_every = std::max<int64_t>(1, TW_TRY(args.integer_or(5, 1)));
  if (number < 1 || repeat < 1 || repeat > 1'000'000 || least_ms < 0 || cooldown_ms < 0)
    return Diagnostic(ErrorCode::kInvalidArgument, format("{} calls repeated {} times cannot be timed", number, repeat),
                      {}, "number and repeat start at 1, times at 0");
  return Value(make_function("time_evaluator", [=](const Arguments& given) -> Result<Value> {
    using Clock = std::chrono::steady_clock;
    auto once = [&]() -> Status {
      TW_TRY(call(timed.get(), given.from(0)));
      return Ok{};
    };
    TW_TRY_STATUS(once());
    std::vector<Value> seconds;
    int64_t n = number;
    for (int64_t r = 0; r < repeat; ++r) {
      double elapsed = 0;
      for (;;) {
        auto start = Clock::now();
        for (int64_t i = 0; i < n; ++i) TW_TRY_STATUS(once());
        elapsed = std::chrono::duration<double>(Clock::now() - start).count();
        if (elapsed * 1e3 >= static_cast<double>(least_ms) || n > (int64_t{1} << 40)) break;
        double factor = static_cast<double>(least_ms) / std::max(elapsed * 1e3, 1e-3);
        n = std::max(n + 1, static_cast<int64_t>(static_cast<double>(n) * std::min(factor * 1.1, 1000.0)));
      }
      seconds.emplace_back(elapsed / static_cast<double>(n));
      if (cooldown_ms > 0 && (r + 1) % cool_every == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(cooldown_ms));
    }
    return Value::array(std::move(seconds));
  }));
}

Result<Value> load_constants(const Arguments& args) { return Value(TW_TRY(load_const_loader(TW_TRY(args.bytes(0))))); }

constexpr BuiltIn kBuiltIn[] = {
    {"cache_flush_cpu_non_first_arg", flush_cache},
    {"runtime.LoadParams", load_params},
    {"runtime.ModuleLoadFromFile", load_from_file},
    {"runtime.ModulePackImportsToC", pack_imports},
    {"runtime.NumThreads", num_threads},
    {"runtime.SaveParams", save_params},
    {"runtime.SystemLib", linked_in},
    {"runtime.TimeEvaluator", time_evaluator},
    {"runtime.module.loadbinary_AotExecutorFactory", load_aot_factory},
    {"runtime.module.loadbinary_GraphExecutorFactory", load_graph_factory},
    {"runtime.module.loadbinary_GraphRuntimeFactory", load_old_factory},
    {"runtime.module.loadbinary_const_loader", load_constants},
    {"runtime.module.loadbinary_metadata", load_constants},
    {"runtime.module.loadfile_a", load_objects},
    {"runtime.module.loadfile_bc", load_objects},
    {"runtime.module.loadfile_ll", load_objects},
    {"runtime.module.loadfile_o", load_objects},
    {"runtime.module.loadfile_so", load_so},
    {"runtime.module.loadfile_stackvm", load_so},
    {"runtime.module.loadfile_tar", load_objects},
    {"tvm.contrib.random.random_fill", random_fill},
    {"tvm.contrib.random.random_fill_for_measure", random_fill},
};

}  // namespace

std::span<const BuiltIn> built_in_functions() { return kBuiltIn; }

}  // namespace tilewright::runtime
