// SPDX-License-Identifier: Apache-2.0
// Compiles kernels to object files on several threads. One module and context per kernel: an object's bytes depend on
// its kernel alone, not on the number of threads.
#include <llvm/ADT/SmallString.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>

#include "base/format.h"
#include "codegen/codegen.h"
#include "codegen/kernel_cache.h"
#include "codegen/llvm/backend.h"
#include "codegen/llvm/kernel.h"
#include "codegen/llvm/machine.h"
#include "tir/text.h"

namespace tilewright::codegen {
namespace {

std::unique_ptr<llvm::Module> new_module(llvm::LLVMContext& context, const Target& target,
                                         llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>("tilewright", context);
  module->setTargetTriple(target.mtriple);
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  return module;
}

Result<std::string> compile_one(const tir::PrimFunc& function, const Target& target, llvm::TargetMachine& machine) {
  llvm::LLVMContext context;
  auto module = new_module(context, target, machine);
  TW_TRY_STATUS(emit_kernel(*module, function, target));
  optimize_kernels(*module, machine);
  auto object = emit_machine_code(*module, machine, /*assembly=*/false);
  if (!object) return std::move(object).error().at(format("kernel {}", function.name));
  return object;
}

// The key: everything that an object's bytes depend on.
CacheKey cache_key(const tir::PrimFunc& function, const Target& target) {
  return KernelCache::key_of(format("{}\nllvm {}\n{}\n{} {} {} {}\n{}", code_identity(), LLVM_VERSION_STRING,
                                    target.str(), feature_string(target), target.vector_bits, target.vector_registers,
                                    target.mtriple, tir::to_text(function)));
}

Result<std::string> find_or_compile(const tir::PrimFunc& function, const Target& target, TargetMachinePtr& machine,
                                    KernelCache* cache) {
  CacheKey key;
  if (cache) {
    key = cache_key(function, target);
    if (auto found = cache->find(key)) return std::move(*found);
  }
  if (!machine) machine = make_target_machine(target, Effort::kKernel);
  auto object = compile_one(function, target, *machine);
  if (cache && object) cache->store(key, *object);
  return object;
}

bool is_product(const llvm::User* user) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(user);
  return call && (call->getIntrinsicID() == llvm::Intrinsic::fma || call->getIntrinsicID() == llvm::Intrinsic::fmuladd);
}

// Kernels whose instructions stay in their order until registers are allocated: kernels already place loads where they
// are needed, and what LLVM's scheduler moves ahead is spilled. On ARM a factor for a tile's row takes a vector
// register; many are loaded in advance and the tile's sums are spilled (in a 1x1 convolution's inner loop of 112
// products: 44 stores and 40 copies, none in order). On x86 products of memory take no register, but those of lanes
// that were moved do: convolutions of narrow groups access the stack 439 times where they do 78 times in order (5,717
// and 158 with the machine model of Zen 4).
bool stays_in_order(const llvm::Function& function, const llvm::Triple& triple) {
  if (triple.isAArch64() || triple.isARM() || triple.isThumb()) return true;
  size_t products = 0, moved = 0;
  for (const llvm::BasicBlock& block : function)
    for (const llvm::Instruction& i : block) {
      products += is_product(&i);
      const auto* lanes = llvm::dyn_cast<llvm::ShuffleVectorInst>(&i);
      moved += lanes && !lanes->isZeroEltSplat() && llvm::any_of(lanes->users(), is_product);
    }
  return products >= 32 && moved * 4 >= products;
}

// Asked by LLVM before each pass over a function, by their names.
class InOrder : public llvm::OptPassGate {
 public:
  explicit InOrder(const llvm::Module& module) : context_(module.getContext()), before_(context_.getOptPassGate()) {
    for (const llvm::Function& function : module)
      if (stays_in_order(function, llvm::Triple(module.getTargetTriple())))
        functions_.insert(format("function ({})", function.getName().str()));
    context_.setOptPassGate(*this);
  }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;
  ~InOrder() override { context_.setOptPassGate(before_); }

  bool isEnabled() const override { return !functions_.empty(); }
#if LLVM_VERSION_MAJOR >= 20
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef over) const override {
#else
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef over) override {
#endif
    return pass != "Machine Instruction Scheduler" || !functions_.contains(over.str());
  }

 private:
  llvm::LLVMContext& context_;
  llvm::OptPassGate& before_;
  std::unordered_set<std::string> functions_;
};

// LLVM's loop strength reduction gives each access of a large tile its own pointer and spills them all (83 instead of
// 117 GFLOP/s on a 3x3 convolution, at twice the compile time). Addresses here already share one sum and differ by
// constants. Only a process-wide option disables the pass, read when a pipeline is built; lld may reset options.
bool add_code_generation(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine,
                         llvm::raw_pwrite_stream& stream, bool assembly) {
#if LLVM_VERSION_MAJOR >= 18
  auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
#else
  auto type = assembly ? llvm::CGFT_AssemblyFile : llvm::CGFT_ObjectFile;
#endif
  std::lock_guard guard(llvm_options_lock());
  auto& options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find("disable-lsr"); found != options.end())
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
  return !machine.addPassesToEmitFile(passes, stream, nullptr, type);
}

}  // namespace

Result<std::string> emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, bool assembly) {
  std::string problem;
  module.getContext().setDiagnosticHandlerCallBack(
#if LLVM_VERSION_MAJOR >= 19
      [](const llvm::DiagnosticInfo* info, void* out) {
        const llvm::DiagnosticInfo& i = *info;
#else
      [](const llvm::DiagnosticInfo& i, void* out) {
#endif
        if (i.getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream stream(*static_cast<std::string*>(out));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        i.print(printer);
      },
      &problem);
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  const InOrder in_order(module);
  llvm::legacy::PassManager passes;
  if (!add_code_generation(passes, machine, stream, assembly))
    return Diagnostic(ErrorCode::kCodegenFailed, "this target cannot write object files");
  passes.run(module);
  if (!problem.empty()) return Diagnostic(ErrorCode::kCodegenFailed, "LLVM: " + problem);
  return std::string(bytes.data(), bytes.size());
}

Result<Kernels> compile_objects(std::span<const tir::PrimFunc> functions, const Target& target, int jobs,
                                const std::function<void(int, int)>& progress, KernelCache* cache) {
  std::unordered_set<std::string> names;
  for (const tir::PrimFunc& function : functions)
    if (!names.insert(function.name).second)
      return Diagnostic(ErrorCode::kCodegenFailed, format("two kernels are named '{}'", function.name));
  initialize_llvm();
  const size_t count = functions.size();
  Kernels out;
  out.objects.resize(count);
  std::vector<std::optional<Diagnostic>> errors(count);
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex progress_lock;
  int done = 0;
  auto work = [&] {
    TargetMachinePtr machine;
    for (size_t i; !stop && (i = next++) < count;) {
      // An exception must not leave a thread; it is reported as an internal error.
      try {
        auto object = find_or_compile(functions[i], target, machine, cache && cache->usable() ? cache : nullptr);
        if (object)
          out.objects[i] = std::move(object).value();
        else
          errors[i] = std::move(object).error();
      } catch (const std::exception& e) {
        errors[i] = Diagnostic(ErrorCode::kInternal, e.what(), format("kernel {}", functions[i].name));
      }
      if (errors[i]) stop = true;
      if (progress) {
        std::lock_guard lock(progress_lock);
        progress(++done, static_cast<int>(count));
      }
    }
  };
  const size_t threads = std::min<size_t>(count, static_cast<size_t>(std::max(1, jobs)));
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  if (count > 0) work();
  for (std::thread& thread : others) thread.join();
  if (cache) cache->trim();
  for (auto& error : errors)
    if (error) return std::move(*error);
  return out;
}

Result<std::string> llvm_text(const tir::PrimFunc& function, const Target& target, std::string_view form) {
  TargetMachinePtr machine = make_target_machine(target, Effort::kKernel);
  llvm::LLVMContext context;
  auto module = new_module(context, target, *machine);
  TW_TRY_STATUS(emit_kernel(*module, function, target));
  optimize_kernels(*module, *machine);
  if (form == "s") return emit_machine_code(*module, *machine, true);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return stream.str();
}

namespace {
constexpr const char* kLlvmForms[] = {"ll", "s"};
}  // namespace

Backend llvm_backend() {
  return {"llvm",          "machine code for x86, ARM and RISC-V",
          resolve_cpu,     kLlvmLegalize,
          compile_objects, llvm_text,
          kLlvmForms,      Product::kMachineCode};
}

}  // namespace tilewright::codegen
