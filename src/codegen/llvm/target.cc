// SPDX-License-Identifier: Apache-2.0
// Which CPU code is generated for: the host's or a named one, its vectors and the features code may use.
#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/format.h"
#include "codegen/codegen.h"
#include "codegen/llvm/machine.h"
#include "ir/machine_profile.h"

namespace tilewright::codegen {
namespace {

// Features generated code can come to depend on, each checkable at run time. The list is the contract with the loader,
// so anything else LLVM would use unasked is turned off (kUnwanted).
constexpr const char* kX86Features[] = {"sse3",         "ssse3",
                                        "sse4.1",       "sse4.2",
                                        "popcnt",       "movbe",
                                        "avx",          "f16c",
                                        "fma",          "avx2",
                                        "bmi",          "bmi2",
                                        "lzcnt",        "gfni",
                                        "avx512f",      "avx512cd",
                                        "avx512bw",     "avx512dq",
                                        "avx512vl",     "avx512ifma",
                                        "avx512vbmi",   "avxvnni",
                                        "avx512vbmi2",  "avx512vnni",
                                        "avx512bitalg", "avx512vpopcntdq",
                                        "avx512bf16",   "avx512fp16"};
constexpr const char* kAArch64Features[] = {"neon", "fullfp16", "dotprod", "bf16", "i8mm", "sve"};
// Old AMD extensions no newer CPU has, and gathers, which are microcoded on AMD: the kernels never ask for them.
constexpr const char* kX86Unwanted = "-xop,-fma4,-tbm,-sse4a,-fast-gather";

std::string join_features(const Target& target, bool x86) {
  std::string out = x86 ? kX86Unwanted : "";
  for (const std::string& feature : target.mattr) out += (out.empty() ? "" : ",") + feature;
  return out;
}

std::span<const char* const> known_features(bool x86) {
  return x86 ? std::span<const char* const>(kX86Features) : std::span<const char* const>(kAArch64Features);
}

llvm::StringMap<bool> host_features() {
#if LLVM_VERSION_MAJOR >= 19
  return llvm::sys::getHostCPUFeatures();
#else
  llvm::StringMap<bool> features;
  llvm::sys::getHostCPUFeatures(features);
  return features;
#endif
}

Diagnostic unknown(std::string message, std::string hint) {
  return Diagnostic(ErrorCode::kUnknownTarget, std::move(message), {}, std::move(hint));
}

}  // namespace

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo(), LLVMInitializeX86Target(), LLVMInitializeX86TargetMC(),
        LLVMInitializeX86AsmPrinter(), LLVMInitializeX86AsmParser();  // of inline assembly
    LLVMInitializeAArch64TargetInfo(), LLVMInitializeAArch64Target(), LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::mutex& llvm_options_lock() {
  static std::mutex lock;
  return lock;
}

bool is_x86(const Target& target) { return target.mtriple.rfind("x86_64", 0) == 0; }

std::string feature_string(const Target& target) { return join_features(target, is_x86(target)); }

bool has_feature(const Target& target, std::string_view name) {
  return std::find(target.cpu_features.begin(), target.cpu_features.end(), name) != target.cpu_features.end();
}

void TargetMachineDeleter::operator()(llvm::TargetMachine* machine) const { delete machine; }

TargetMachinePtr make_target_machine(const Target& target, Effort effort) {
  initialize_llvm();
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(target.mtriple, error);
  TW_ICHECK(backend != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only what carries the contract flag
  options.UseInitArray = true;                           // constructors where every linker looks for them
#if LLVM_VERSION_MAJOR >= 18
  auto level = effort == Effort::kKernel ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::Less;
#else
  auto level = effort == Effort::kKernel ? llvm::CodeGenOpt::Default : llvm::CodeGenOpt::Less;
#endif
  return TargetMachinePtr(backend->createTargetMachine(target.mtriple, target.mcpu, feature_string(target), options,
                                                       llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

Result<Target> resolve_cpu(Target target) {
  initialize_llvm();
  const llvm::Triple host(llvm::sys::getProcessTriple());
  llvm::Triple triple(target.mtriple.empty() ? host.str() : llvm::Triple::normalize(target.mtriple));
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple.str(), error);
  const bool x86 = triple.getArch() == llvm::Triple::x86_64, arm = triple.getArch() == llvm::Triple::aarch64;
  if (backend == nullptr || !(x86 || arm) || !triple.isOSBinFormatELF())
    return unknown(format("there is no code generator for '{}'", triple.str()),
                   "use x86_64-linux-gnu or aarch64-linux-gnu, or leave -mtriple out for this machine");
  target.mtriple = triple.str();

  std::unique_ptr<llvm::MCSubtargetInfo> all(backend->createMCSubtargetInfo(target.mtriple, "generic", ""));
  const bool native = target.mcpu == "native" || (target.mcpu.empty() && triple.getArch() == host.getArch());
  if (native && triple.getArch() != host.getArch())
    return unknown(format("-mcpu=native is this machine's CPU, which is not {}", triple.getArchName().str()),
                   "name a CPU");
  if (native) {
    target.mcpu = llvm::sys::getHostCPUName().str();
    if (!all->isCPUStringValid(target.mcpu)) target.mcpu = "generic";
    // A virtual machine may hide features its CPU model has, and an unknown model has features "generic" lacks.
    std::unique_ptr<llvm::MCSubtargetInfo> model(backend->createMCSubtargetInfo(target.mtriple, target.mcpu, ""));
    llvm::StringMap<bool> host_has = host_features();
    std::vector<std::string> differences;
    for (const char* feature : known_features(x86)) {
      auto found = host_has.find(feature);
      if (found == host_has.end()) continue;
      if (found->second != model->checkFeatures(format("+{}", feature)))
        differences.push_back((found->second ? "+" : "-") + std::string(feature));
    }
    target.mattr.insert(target.mattr.begin(), differences.begin(), differences.end());
  } else if (target.mcpu.empty()) {
    target.mcpu = "generic";
  } else if (!all->isCPUStringValid(target.mcpu)) {
    return unknown(
        format("there is no {} CPU named '{}'", x86 ? "x86-64" : "AArch64", target.mcpu),
        x86 ? "use native, x86-64-v2, x86-64-v3, x86-64-v4, znver4, skylake-avx512 or another name LLVM knows"
            : "use native, generic, neoverse-n1, neoverse-v1, apple-m1 or another name LLVM knows");
  }
#if LLVM_VERSION_MAJOR >= 17
  for (const std::string& feature : target.mattr) {
    bool found = false;
    for (const auto& known : all->getAllProcessorFeatures()) found |= feature.substr(1) == known.Key;
    if (!found)
      return unknown(
          format("'{}' in -mattr is not a feature of {}", feature, x86 ? "x86-64" : "AArch64"),
          x86 ? "features are written as +avx2, +fma, +avx512f, -avx512f" : "features are written as +dotprod, -sve");
  }
#endif
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend->createMCSubtargetInfo(target.mtriple, target.mcpu, join_features(target, x86)));
  target.cpu_features.clear();
  for (const char* feature : known_features(x86))
    if (info->checkFeatures(format("+{}", feature))) target.cpu_features.push_back(feature);

  auto has = [&](const char* name) { return has_feature(target, name); };
  target.vector_bits = 128, target.vector_registers = x86 ? 16 : 32;
  if (has("avx2")) target.vector_bits = 256;
  if (has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq"))
    target.vector_bits = 512, target.vector_registers = 32;
  if (target.vector_width > 0) {
    // A register of an older processor holds a piece of a vector; one that has wider vectors has as many narrow ones.
    const int pieces = std::max(1, target.vector_width / target.vector_bits);
    target.vector_registers = std::max(4, target.vector_registers / pieces);
    target.vector_bits = target.vector_width;
  }
  target.machine = machine_model_of(target.mcpu);
  // A file that is damaged counts as none here; `tilewright targets` says so.
  if (native || (triple.getArch() == host.getArch() && target.mcpu == llvm::sys::getHostCPUName()))
    if (auto profile = stored_machine_profile(target.mcpu, target.vector_bits); profile.ok() && *profile)
      apply(**profile, &target.machine);
  return target;
}

}  // namespace tilewright::codegen
