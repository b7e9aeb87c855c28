// SPDX-License-Identifier: Apache-2.0
// Resolves the CPU to generate code for, the host's or a named one, with its vectors and features.
#include <elf.h>
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

std::string join_features(const Target& target) {
  std::string out = processor_of(target).unwanted;
  for (const std::string& feature : target.mattr) out += (out.empty() ? "" : ",") + feature;
  return out;
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
        LLVMInitializeX86AsmPrinter(), LLVMInitializeX86AsmParser();  // for inline assembly
    LLVMInitializeAArch64TargetInfo(), LLVMInitializeAArch64Target(), LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeARMTargetInfo(), LLVMInitializeARMTarget(), LLVMInitializeARMTargetMC();
    LLVMInitializeARMAsmPrinter();
    LLVMInitializeRISCVTargetInfo(), LLVMInitializeRISCVTarget(), LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
  });
}

std::mutex& llvm_options_lock() {
  static std::mutex lock;
  return lock;
}

std::string feature_string(const Target& target) { return join_features(target); }

void TargetMachineDeleter::operator()(llvm::TargetMachine* machine) const { delete machine; }

TargetMachinePtr make_target_machine(const Target& target, Effort effort) {
  initialize_llvm();
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(target.mtriple, error);
  TW_ICHECK(backend != nullptr, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only for operations with the contract flag
  options.UseInitArray = true;                           // constructors in .init_array, which all linkers support
  options.MCOptions.ABIName = target.mabi;
  if (!target.mfloat_abi.empty())
    options.FloatABIType = target.mfloat_abi == "hard" ? llvm::FloatABI::Hard : llvm::FloatABI::Soft;
#if LLVM_VERSION_MAJOR >= 18
  using Level = llvm::CodeGenOptLevel;
#else
  using Level = llvm::CodeGenOpt::Level;
#endif
  // The glue calls kernels one after another: unoptimised, it compiles in a third of the time, which halves what it
  // takes to load a small model that was just built. Where every byte of code counts, it is optimised.
  const Level level = effort == Effort::kKernel ? Level::Default : is_bare_metal(target) ? Level::Less : Level::None;
  // Programs without an operating system run at the address they were linked for.
  const auto relocation = is_bare_metal(target) ? llvm::Reloc::Static : llvm::Reloc::PIC_;
  const bool medium = processor_of(target).architecture == Architecture::kRiscv64;  // the small one is limited to 2 GiB
  return TargetMachinePtr(
      backend->createTargetMachine(target.mtriple, target.mcpu, feature_string(target), options, relocation,
                                   medium ? llvm::CodeModel::Medium : llvm::CodeModel::Small, level));
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

namespace {

// Adds the features of this machine's processor that differ from its model.
void add_host_differences(const llvm::Target& backend, Target* target) {
  // A virtual machine may hide features of the CPU model, and an unknown CPU has features that "generic" lacks.
  std::unique_ptr<llvm::MCSubtargetInfo> model(backend.createMCSubtargetInfo(target->mtriple, target->mcpu, ""));
  llvm::StringMap<bool> host_has = host_features();
  std::vector<std::string> differences;
  for (const char* feature : processor_of(*target).features) {
    auto found = host_has.find(feature);
    if (found == host_has.end()) continue;
    if (found->second != model->checkFeatures(format("+{}", feature)))
      differences.push_back((found->second ? "+" : "-") + std::string(feature));
  }
  target->mattr.insert(target->mattr.begin(), differences.begin(), differences.end());
}

// LLVM's triple, for the kind of code that the processor runs.
std::string triple_of(const Target& target, const std::string& host) {
  llvm::Triple triple(target.mtriple.empty() ? host : llvm::Triple::normalize(target.mtriple));
  // Debian's name for 32-bit ARM, version 7.
  if (triple.getArchName() == "arm" && triple.getEnvironment() == llvm::Triple::GNUEABIHF) triple.setArchName("armv7a");
  return triple.str();
}

// ARM's M profile only supports Thumb instructions.
void use_thumb(const llvm::Target& backend, Target* target) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend.createMCSubtargetInfo(target->mtriple, target->mcpu, join_features(*target)));
  if (info->checkFeatures("+mclass") && target->mtriple.starts_with("arm")) target->mtriple.replace(0, 3, "thumb");
}

Status check_features(const llvm::MCSubtargetInfo& all, const Target& target, const Processor& processor) {
#if LLVM_VERSION_MAJOR >= 17
  for (const std::string& feature : target.mattr) {
    bool found = false;
    for (const auto& known : all.getAllProcessorFeatures()) found |= feature.substr(1) == known.Key;
    if (!found)
      return unknown(format("'{}' in -mattr is not a feature of {}", feature, processor.name),
                     format("features are written as {}", processor.features_form));
  }
#endif
  return Ok{};
}

// Completes and checks -mabi= and -mfloat-abi=.
Status settle_abi(const Processor& processor, Target* target) {
  const bool arm = processor.architecture == Architecture::kArm;
  if (!target->mfloat_abi.empty() && !arm)
    return unknown(format("-mfloat-abi is ARM's, and the target is for {}", processor.name), "leave it out");
  std::string list;
  bool known = target->mabi.empty();
  for (const char* abi : processor.abis)
    known |= target->mabi == abi, list += (list.empty() ? "" : ", ") + std::string(abi);
  if (!known)
    return unknown(format("-mabi={} is no ABI of {}", target->mabi, processor.name),
                   list.empty() ? "leave it out" : "there are " + list);
  if (processor.elf_machine != EM_RISCV) return Ok{};
  const char* floats = has_feature(*target, "d") ? "d" : has_feature(*target, "f") ? "f" : "";
  const std::string base = processor.pointer_bits == 64 ? "lp64" : "ilp32";
  if (target->mabi.empty()) target->mabi = base + floats;
  const std::string wanted = target->mabi.substr(base.size());
  if ((wanted == "d" && *floats != 'd') || (wanted == "f" && *floats == 0))
    return unknown(format("-mabi={} passes numbers in registers that the processor lacks", target->mabi),
                   format("add -mattr=+{}, or use -mabi={}{}", wanted, base, floats));
  return Ok{};
}

// The vector size for kernels. Without vector units it is two elements, which become scalars in the end.
void settle_vectors(const Processor& processor, Target* target) {
  auto has = [&](const char* name) { return has_feature(*target, name); };
  auto vectors = [&](int bits, int registers) { target->vector_bits = bits, target->vector_registers = registers; };
  switch (processor.architecture) {
    case Architecture::kX86_64:
    case Architecture::kX86: {
      const bool wide = processor.architecture == Architecture::kX86_64;
      vectors(has("avx2") ? 256 : 128, wide ? 16 : 8);
      if (!wide && !has("sse2")) vectors(64, 8);
      if (has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq")) vectors(512, wide ? 32 : 8);
      break;
    }
    case Architecture::kAArch64:
      vectors(128, 32);
      break;
    case Architecture::kArm:
      has("neon") ? vectors(128, 16) : vectors(64, 8);
      break;
    case Architecture::kRiscv64:
    case Architecture::kRiscv32:
      has("v") ? vectors(128, 32) : vectors(64, 16);
      break;
  }
}

}  // namespace

Result<Target> resolve_cpu(Target target) {
  initialize_llvm();
  const llvm::Triple host(llvm::sys::getProcessTriple());
  target.mtriple = triple_of(target, host.str());
  const Processor* processor = find_processor(target.mtriple);
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(target.mtriple, error);
  if (backend == nullptr || processor == nullptr || !llvm::Triple(target.mtriple).isOSBinFormatELF()) {
    std::string known;
    for (const Processor& p : processors()) known += format("{}{}", known.empty() ? "" : ", ", p.triple);
    return unknown(format("there is no code generator for '{}'", target.mtriple),
                   format("use one such as {}, or leave -mtriple out for this machine", known));
  }
  const bool here = llvm::Triple(target.mtriple).getArch() == host.getArch();
  std::unique_ptr<llvm::MCSubtargetInfo> all(backend->createMCSubtargetInfo(target.mtriple, "generic", ""));
  const bool native = target.mcpu == "native" || (target.mcpu.empty() && here);
  if (native && !here)
    return unknown(format("-mcpu=native is this machine's CPU, which is not {}", processor->name), "name a CPU");
  if (native) {
    target.mcpu = llvm::sys::getHostCPUName().str();
    if (!all->isCPUStringValid(target.mcpu)) target.mcpu = "generic";
    add_host_differences(*backend, &target);
  } else if (target.mcpu.empty()) {
    target.mcpu = processor->default_cpu;
    // Hard-float systems have processors with NEON, except the oldest.
    if (processor->architecture == Architecture::kArm && target.mtriple.ends_with("gnueabihf"))
      target.mattr.insert(target.mattr.begin(), "+neon");
    // The base that all RISC-V Linux systems are compiled for; bare-metal processors may have less.
    if (processor->elf_machine == EM_RISCV && target.mattr.empty()) {
      target.mattr = {"+m", "+a", "+c"};
      if (!is_bare_metal(target) && target.mtriple.find("-linux") != std::string::npos)
        target.mattr.insert(target.mattr.end(), {"+f", "+d"});
    }
  } else if (!all->isCPUStringValid(target.mcpu)) {
    return unknown(format("there is no {} CPU named '{}'", processor->name, target.mcpu),
                   format("use {} or another name LLVM knows", processor->cpus));
  }
  TW_TRY_STATUS(check_features(*all, target, *processor));
  if (processor->architecture == Architecture::kArm) use_thumb(*backend, &target);
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend->createMCSubtargetInfo(target.mtriple, target.mcpu, join_features(target)));
  target.cpu_features.clear();
  for (const char* feature : processor->features)
    if (info->checkFeatures(format("+{}", feature))) target.cpu_features.emplace_back(feature);
  TW_TRY_STATUS(settle_abi(*processor, &target));
  settle_vectors(*processor, &target);
  if (target.vector_width > 0) {
    // A narrower register holds a piece of a vector; a processor with wider vectors has proportionally more narrow
    // ones.
    const int pieces = std::max(1, target.vector_width / target.vector_bits);
    target.vector_registers = std::max(4, target.vector_registers / pieces);
    target.vector_bits = target.vector_width;
  }
  const bool unnamed = target.mcpu == "generic" && processor->architecture != Architecture::kX86_64;
  target.machine = machine_model_of(unnamed ? processor->model : target.mcpu);
  // A damaged file counts as missing here; `tilewright targets` reports it.
  if (native || (here && target.mcpu == llvm::sys::getHostCPUName()))
    if (auto profile = stored_machine_profile(target.mcpu, target.vector_bits); profile.ok() && *profile)
      apply(**profile, &target.machine);
  return target;
}

}  // namespace tilewright::codegen
