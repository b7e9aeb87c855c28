// SPDX-License-Identifier: Apache-2.0
#include "driver/source_run.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/format.h"
#include "base/plugin.h"
#include "base/work_folder.h"
#include "codegen/source/c_processors.h"
#include "codegen/source/c_program.h"
#include "runtime/link_file.h"

namespace tilewright::driver {
namespace {

constexpr const char* kSourceEntry = "tw_source_entry";
constexpr int64_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

// A wrapper that takes any number of tensors, compiled separately with only the model's declaration.
std::string entry_source(const plan::Plan& plan) {
  const std::string name = codegen::c_model_name(plan);
  std::string macro = name, call;
  for (char& c : macro) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (size_t i = 0; i < plan.inputs.size() + plan.outputs.size(); ++i) call += format("tensors[{}], ", i);
  return format(
      "#define {0}_DECLARATIONS_ONLY\n#include \"model.c\"\n"
      "void {1}(void *const *tensors, void *workspace);\n"
      "void {1}(void *const *tensors, void *workspace) {{\n  (void)tensors;\n  {2}_run({3}workspace);\n}}\n",
      macro, kSourceEntry, name, call);
}

}  // namespace

Result<std::vector<Tensor>> run_source(const Built& built, const std::vector<Tensor>& inputs) {
  const plan::Plan& plan = built.lowered.plan;
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-source"));
  const std::string &folder = place.path(), library = folder + "/model.so";
  TW_TRY_STATUS(write_part(folder + "/model.c", TW_TRY(source_of(built)), library));
  TW_TRY_STATUS(write_part(folder + "/entry.c", entry_source(plan), library));
  std::vector<std::string> command = codegen::c_compiler_options(built.target);
  for (const char* option : {"-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-fPIC", "-shared", "-o"})
    command.emplace_back(option);
  command.insert(command.end(), {library, folder + "/model.c", folder + "/entry.c", "-lm"});
  TW_TRY_STATUS(runtime::run_c_compiler(command, folder));
  void* handle = TW_TRY(open_plugin(library));
  auto* entry = reinterpret_cast<void (*)(void* const*, void*)>(dlsym(handle, kSourceEntry));
  if (entry == nullptr) return Diagnostic(ErrorCode::kInternal, format("the compiled source has no {}", kSourceEntry));
  std::vector<Tensor> outputs;
  for (const auto& t : plan.outputs) outputs.push_back(Tensor::zeros(t.dtype, t.shape));
  std::vector<void*> tensors;
  for (const Tensor& t : inputs) tensors.push_back(const_cast<std::byte*>(t.raw()));
  for (Tensor& t : outputs) tensors.push_back(t.mutable_raw());
  const auto bytes = static_cast<int64_t>(plan.arena_bytes);
  Tensor workspace(kUInt8, {bytes + kGuardBytes});
  std::fill_n(workspace.mutable_raw(), bytes + kGuardBytes, kGuard);
  entry(tensors.data(), workspace.mutable_raw());
  if (!std::all_of(workspace.raw() + bytes, workspace.raw() + bytes + kGuardBytes,
                   [](std::byte b) { return b == kGuard; }))
    return Diagnostic(ErrorCode::kAccuracyExceeded, "the C program wrote behind its workspace");
  return outputs;
}

}  // namespace tilewright::driver
