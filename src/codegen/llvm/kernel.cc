// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/kernel.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#if LLVM_VERSION_MAJOR >= 18
#include <llvm/Transforms/Scalar/InferAlignment.h>
#endif

#include "base/format.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "codegen/processor.h"
#include "tir/passes/byte_functions.h"
#include "tir/passes/legalize_small_floats.h"
#include "tir/passes/legalize_sub_bytes.h"

namespace tilewright::codegen {
namespace {

constexpr tir::KernelPass kLlvmPasses[] = {
    {"legalize_sub_bytes", tir::legalize_sub_bytes},
    {"legalize_small_floats", tir::legalize_small_floats},
};

int64_t buffer_bytes(const tir::Buffer& buffer) {
  return static_cast<int64_t>(buffer->dtype.element().bytes_for(static_cast<uint64_t>(buffer->size)));
}

void describe_pointer(llvm::Function* body, unsigned i, const tir::Buffer& buffer) {
  llvm::LLVMContext& c = body->getContext();
  // Parameters of a kernel do not overlap, except for elements that are read and then written at the same index.
  body->addParamAttr(i, llvm::Attribute::NoAlias);
  body->addParamAttr(i, llvm::Attribute::NoUndef);
#if LLVM_VERSION_MAJOR < 21
  body->addParamAttr(i, llvm::Attribute::NoCapture);
#endif
  if (buffer->read_only) body->addParamAttr(i, llvm::Attribute::ReadOnly);
  if (buffer->size > 0) {
    body->addParamAttr(i, llvm::Attribute::NonNull);
    body->addParamAttr(i, llvm::Attribute::getWithDereferenceableBytes(c, static_cast<uint64_t>(buffer_bytes(buffer))));
    const int alignment = buffer->alignment;
    if (alignment > 1 && (alignment & (alignment - 1)) == 0)
      body->addParamAttr(i, llvm::Attribute::getWithAlignment(c, llvm::Align(static_cast<uint64_t>(alignment))));
  }
  body->getArg(i)->setName(buffer->name);
}

}  // namespace

void set_function_attributes(llvm::Function* function, const Target& target) {
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-cpu", target.mcpu);
  function->addFnAttr("target-features", feature_string(target));
  const std::string width = format("{}", target.vector_bits);
  function->addFnAttr("min-legal-vector-width", width);
  function->addFnAttr("prefer-vector-width", width);  // use zmm registers even on CPUs tuned for 256 bits
  function->addFnAttr("no-trapping-math", "true");
  function->addFnAttr("no-builtins");  // loops stay loops: no memset or memcpy calls
}

const std::span<const tir::KernelPass> kLlvmLegalize = kLlvmPasses;

Status emit_kernel(llvm::Module& module, const tir::PrimFunc& given, const Target& target) {
  llvm::LLVMContext& c = module.getContext();
  auto failed = [&](std::string message) {
    return Diagnostic(ErrorCode::kCodegenFailed, std::move(message), format("kernel {}", given.name));
  };
  if (given.name.empty() || module.getFunction(given.name)) return failed("a kernel needs a name of its own");
  if (!given.body) return failed("the kernel has no body");
  const tir::PrimFunc function = TW_TRY(tir::run_kernel_passes(given, kLlvmLegalize));
  llvm::IRBuilder<> b(c);
  llvm::Type *ptr = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto* entry_type = llvm::FunctionType::get(b.getVoidTy(), {ptr, i64, i64}, false);
  auto* entry = llvm::Function::Create(entry_type, llvm::GlobalValue::ExternalLinkage, function.name, module);
  entry->setVisibility(llvm::GlobalValue::HiddenVisibility);
  set_function_attributes(entry, target);

  std::vector<llvm::Type*> types(function.params.size(), ptr);
  types.push_back(i64), types.push_back(i64);
  auto* body = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                      llvm::GlobalValue::InternalLinkage, function.name + ".body", module);
  set_function_attributes(body, target);
  for (auto attribute : {llvm::Attribute::WillReturn, llvm::Attribute::NoSync, llvm::Attribute::NoFree,
                         llvm::Attribute::NoRecurse, llvm::Attribute::MustProgress, llvm::Attribute::NoInline})
    body->addFnAttr(attribute);

  // The entry: loads the pointers from the array and calls the body. A kernel without tid runs entirely on thread 0.
  b.SetInsertPoint(llvm::BasicBlock::Create(c, "entry", entry));
  if (!function.tid) {
    auto* run = llvm::BasicBlock::Create(c, "run", entry);
    auto* skip = llvm::BasicBlock::Create(c, "skip", entry);
    b.CreateCondBr(b.CreateICmpEQ(entry->getArg(1), b.getInt64(0)), run, skip);
    b.SetInsertPoint(skip);
    b.CreateRetVoid();
    b.SetInsertPoint(run);
  }
  std::vector<llvm::Value*> args;
  for (size_t i = 0; i < function.params.size(); ++i)
    args.push_back(b.CreateLoad(ptr, b.CreateConstInBoundsGEP1_64(ptr, entry->getArg(0), i)));
  args.push_back(entry->getArg(1)), args.push_back(entry->getArg(2));
  b.CreateCall(body, args);
  b.CreateRetVoid();

  auto* first = llvm::BasicBlock::Create(c, "entry", body);
  auto* start = llvm::BasicBlock::Create(c, "start", body);
  b.SetInsertPoint(start);
  KernelEmitter emitter(b, first, target);
  // Worth it where two instructions look 64 bytes up among 256.
  constexpr int kLookUp = 18;
  if (has_feature(target, "avx512vbmi") && target.vector_bits >= 512)
    emitter.look_up(tir::byte_functions(function, kLookUp));
  for (size_t i = 0; i < function.params.size(); ++i) {
    const tir::Buffer& buffer = function.params[i];
    if (buffer->scope != tir::Scope::kGlobal)
      return failed(format("parameter '{}' is not global memory", buffer->name));
    describe_pointer(body, static_cast<unsigned>(i), buffer);
    emitter.bind_parameter(buffer, body->getArg(static_cast<unsigned>(i)));
  }
  const unsigned n = static_cast<unsigned>(function.params.size());
  body->getArg(n)->setName("tid"), body->getArg(n + 1)->setName("nthreads");
  if (function.tid) emitter.bind_index(function.tid, body->getArg(n));
  if (function.nthreads) emitter.bind_index(function.nthreads, body->getArg(n + 1));
  emitter.emit(function.body);
  if (emitter.error()) return failed(emitter.error()->message);
  // Stores past the caches are not ordered with those by which a thread says that it is done.
  if (processor_of(target).architecture == Architecture::kX86_64 &&
      std::any_of(function.params.begin(), function.params.end(), [](const tir::Buffer& p) { return p->streamed; }))
    b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b.CreateRetVoid();
  b.SetInsertPoint(first);
  b.CreateBr(start);

  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyFunction(*body, &stream) || llvm::verifyFunction(*entry, &stream))
    return failed("malformed LLVM IR: " + stream.str());
  return Ok{};
}

void optimize_kernels(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::LICMOptions licm;
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(licm), /*UseMemorySSA=*/true));
  passes.addPass(llvm::GVNPass(llvm::GVNOptions().setPRE(false).setLoadPRE(false)));
  passes.addPass(llvm::InstCombinePass());
  // Removes the stores after each product that an unrolled loop adds to an accumulator in memory.
  passes.addPass(llvm::DSEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::DCEPass());
#if LLVM_VERSION_MAJOR >= 18
  passes.addPass(llvm::InferAlignmentPass());
#endif
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, functions);
}

}  // namespace tilewright::codegen
