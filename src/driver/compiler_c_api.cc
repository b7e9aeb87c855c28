// SPDX-License-Identifier: Apache-2.0
// The compiler library's C interface (tilewright/compiler.h). No exception leaves it.
#include <algorithm>
#include <atomic>
#include <cstring>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/work_folder.h"
#include "codegen/kernel_cache.h"
#include "driver/build.h"
#include "driver/cli/commands.h"
#include "driver/plugin.h"
#include "driver/target_list.h"
#include "driver/vm.h"
#include "runtime/c_support.h"
#include "runtime/dltensor.h"
#include "tilewright/compiler.h"

namespace {

using namespace tilewright;
using runtime::guarded;

std::vector<std::string> list(const char* const* items, uint64_t n) {
  std::vector<std::string> out;
  for (uint64_t i = 0; items && i < n; ++i)
    if (items[i]) out.emplace_back(items[i]);
  return out;
}

Result<driver::BuildOptions> build_options(const tw_compiler_options* given) {
  driver::BuildOptions o;
  o.kernel_cache = codegen::default_kernel_cache_folder();
  if (!given) return o;
  if (given->size < sizeof(size_t))
    return Diagnostic(ErrorCode::kInvalidArgument, "the options' size field is not set", {}, "set it to sizeof");
  tw_compiler_options c{};
  c.opt_level = -1;
  std::memcpy(&c, given, std::min(given->size, sizeof c));  // an older caller's structure may be shorter
  if (c.opt_level > 4) return Diagnostic(ErrorCode::kInvalidArgument, "the optimization level is above 4");
  if (c.target) o.target = c.target;
  if (c.opt_level >= 0) o.opt_level = c.opt_level;
  o.jobs = std::max(c.jobs, 0);
  if (c.dump_ir) o.dump_ir = c.dump_ir;
  o.required_passes = list(c.required_passes, c.num_required_passes);
  o.disabled_passes = list(c.disabled_passes, c.num_disabled_passes);
  TW_TRY_STATUS(driver::add_shapes(list(c.shapes, c.num_shapes), &o));
  o.bounds = TW_TRY(driver::parse_bounds(list(c.bounds, c.num_bounds)));
  for (const std::string& text : list(c.constants, c.num_constants)) {
    auto [name, value] = TW_TRY(driver::parse_constant(text));
    o.constants[name] = value;
  }
  if (c.no_kernel_cache) o.kernel_cache.clear();
  for (uint64_t i = 0; c.external && i < c.num_external; ++i)
    o.external.push_back(TW_TRY(driver::external_codegen(c.external[i])));
  for (uint64_t i = 0; c.device_targets && i < c.num_device_targets; ++i) {
    if (!c.device_targets[i].target) return Diagnostic(ErrorCode::kInvalidArgument, "a device's target is null");
    o.device_targets[c.device_targets[i].device_type] = c.device_targets[i].target;
  }
  if (c.format) o.form = c.format;
  if (c.params) o.params = c.params;
  if (c.weights) o.weights_file = c.weights;
  o.system_lib = c.system_lib != 0;
  for (const std::string& path : list(c.plugins, c.num_plugins)) TW_TRY_STATUS(driver::load_plugin(path, &o.external));
  if (c.progress)
    o.progress = [call = c.progress, context = c.progress_context](const char* stage, double fraction) {
      call(context, stage, fraction);
    };
  return o;
}

Status compile(const char* model, const char* output, const tw_compiler_options* options) {
  if (!model || !output) return Diagnostic(ErrorCode::kInvalidArgument, "the model's or the output's path is null");
  return driver::compile_onnx(model, output, TW_TRY(build_options(options)));
}

Status specialize(const char* format, const onnx::SharedBytes& source, const char* target, const char* const* names,
                  const DLTensor* arguments, uint64_t count, const char* output, uint8_t* by_value) {
  driver::BuildOptions options = TW_TRY(build_options(nullptr));
  options.target = TW_TRY(driver::target_here(target));
  options.keep_modules = false;
  std::map<std::string, Tensor> values;
  for (uint64_t i = 0; i < count; ++i) {
    const DLTensor& t = arguments[i];
    DataType dtype = TW_TRY(runtime::from_dlpack(t.dtype));
    values[names[i]] =
        Tensor::view(dtype, {t.shape, t.shape + t.ndim}, static_cast<const char*>(t.data) + t.byte_offset, nullptr);
  }
  std::vector<std::string> used;
  auto built = TW_TRY(driver::build_region(format, source, values, options, &used));
  for (uint64_t i = 0; i < count; ++i) by_value[i] = std::find(used.begin(), used.end(), names[i]) != used.end();
  return driver::export_library_and_release(&built, output, driver::loadable_form(built.target));
}

// A process that keeps specialising would accumulate free pages between live allocations: 6 KB per compilation.
void give_back_memory() {
#ifdef __GLIBC__
  static std::atomic<unsigned> calls{0};
  if (++calls % 16 == 0) malloc_trim(0);
#endif
}

}  // namespace

extern "C" {

int32_t tw_compiler_compile_onnx(const char* model, const char* output, const tw_compiler_options* options) {
  return guarded([&] { return compile(model, output, options); });
}

int32_t tw_compiler_specialize(const char* format, const void* source, uint64_t source_bytes, const char* target,
                               const char* const* names, const DLTensor* arguments, uint64_t count, const char* output,
                               uint8_t* by_value) {
  return guarded([&] {
    onnx::SharedBytes bytes{{static_cast<const std::byte*>(source), static_cast<size_t>(source_bytes)}, nullptr};
    auto status = specialize(format, bytes, target, names, arguments, count, output, by_value);
    give_back_memory();
    return status;
  });
}

int32_t tw_compiler_compile_ir(const char* ir, const char* output) {
  return guarded([&]() -> Status {
    if (!ir || !output) return Diagnostic(ErrorCode::kInvalidArgument, "the IR's or the output's path is null");
    return driver::compile_ir_file(ir, output);
  });
}

void tw_compiler_remove_work_folders(void) { remove_work_folders(); }

}  // extern "C"
