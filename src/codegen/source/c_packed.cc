// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_packed.h"

#include <algorithm>

#include "base/format.h"
#include "codegen/source/c_types.h"
#include "codegen/source/c_weights.h"

namespace tilewright::codegen {
namespace {

// What all functions do: addresses of tensors, memory of its own, the kernel.
constexpr const char* kCall = R"(
typedef void (*Kernel)(void *const *buffers, int64_t tid, int64_t nthreads);

static int32_t call(Kernel kernel, TVMValue *args, int32_t num_args, int32_t tensors, uint64_t workspace_bytes) {
  void *buffers[MOST_BUFFERS];
  uint8_t *workspace = NULL;
  if (num_args != tensors) {
    TVMAPISetLastError("a packed function is called with another number of tensors than it has");
    return -1;
  }
  for (int32_t i = 0; i < tensors; ++i) {
    const DLTensor *t = (const DLTensor *)args[i].v_handle;
    buffers[i] = (uint8_t *)t->data + t->byte_offset;
  }
  if (workspace_bytes > 0) {
    workspace = (uint8_t *)TVMBackendAllocWorkspace(kDLCPU, 0, workspace_bytes + 64, kDLUInt, 8);
    if (!workspace) return -1;
    buffers[tensors] = workspace + (64 - (uintptr_t)workspace % 64) % 64;
  }
  kernel(buffers, 0, 1);
  return workspace ? (int32_t)TVMBackendFreeWorkspace(kDLCPU, 0, workspace) : 0;
}

)";

constexpr const char* kParameters =
    "TVMValue *args, int32_t *type_codes, int32_t num_args, TVMValue *out, int32_t *out_code, void *resource";

std::string unused(const char* names) { return format("  (void){};\n", names); }

struct Use {
  size_t tensors = 0;
  uint64_t scratch = 0;
};

// By kernel: the first step that calls it; all pass as many tensors.
std::vector<Use> uses_of(const plan::Plan& plan) {
  std::vector<Use> uses(plan.kernels.size());
  for (const plan::Step& step : plan.steps) {
    Use& use = uses[step.kernel];
    use.tensors = 0;
    for (uint32_t b : step.buffers) {
      if (plan.buffers[b].space == plan::Space::kScratch)
        use.scratch = std::max(use.scratch, plan.buffers[b].bytes);
      else
        ++use.tensors;
    }
  }
  return uses;
}

// Names by number of bytes and zeros: octal digits end with the escape only where no digit follows.
std::string table_of(const plan::Plan& plan, bool linked) {
  const size_t count = plan.kernels.size() + (linked ? 1 : 0);
  std::string names = format("    \"\\{:03o}\\{:03o}\"\n", count & 255, count >> 8), functions;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    names += format("    \"{}\\000\"\n", plan.kernels[i]);
    functions += format("    packed_{},\n", i);
  }
  if (linked) {
    names += "    \"_lookup_linked_param\\000\"\n";
    functions += "    lookup_linked_param,\n";
  }
  names.pop_back();
  return format(
      "static const TVMBackendPackedCFunc kFunctions[] = {{\n{}}};\n"
      "static const char kNames[] =\n{};\n"
      "static const TVMFuncRegistry kRegistry = {{kNames, kFunctions}};\n"
      "static const TVMModule kSystemLib = {{&kRegistry}};\n\n"
      "const TVMModule *TVMSystemLibEntryPoint(void) {{ return &kSystemLib; }}\n",
      functions, names);
}

std::string lookup_of(const plan::Plan& plan, const std::vector<LinkedParam>& linked,
                      const std::function<Tensor(size_t)>& weight) {
  std::string arrays, cases;
  for (const LinkedParam& l : linked) {
    const std::string name = format("weight_{}", l.storage);
    std::string array = c_weight(plan.params[l.param], name, weight(l.param));
    array.insert(array.find("static const "), "ALIGNED ");  // behind its comment
    arrays += array;
    cases += format("    case {}:\n      out->v_handle = (void *)(uintptr_t){};\n      return 0;\n", l.storage, name);
  }
  return "#if defined(__GNUC__)\n#define ALIGNED __attribute__((aligned(64)))\n#else\n#define ALIGNED\n#endif\n\n" +
         arrays +
         format("/* The weights of a storage of the graph. */\nstatic int32_t lookup_linked_param({}) {{\n",
                kParameters) +
         unused("type_codes") + unused("resource") +
         "  *out_code = kTVMOpaqueHandle;\n  if (num_args == 1) switch (args[0].v_int64) {\n" + cases +
         "    default:\n      break;\n  }\n  *out_code = kTVMNullptr;\n  return 0;\n}\n\n";
}

}  // namespace

std::string c_packed_functions(const plan::Plan& plan, const std::vector<LinkedParam>& linked,
                               const std::function<Tensor(size_t)>& weight) {
  const std::vector<Use> uses = uses_of(plan);
  size_t most = 1;
  for (const Use& use : uses) most = std::max(most, use.tensors + 1);
  std::string out = format(
      "/* {}: packed functions of a neural network, written by Tilewright {} for the target \"{}\" and the C runtime's "
      "graph executor */\n\n#include <tvm/runtime/c_backend_api.h>\n#include <tvm/runtime/crt/module.h>\n\n"
      "/* The kernels. */\n",
      c_comment(plan.model_name.empty() ? "default" : plan.model_name), plan.compiler_version, c_comment(plan.target));
  for (const std::string& kernel : plan.kernels)
    out += format("void {}(void *const *buffers, int64_t tid, int64_t nthreads);\n", kernel);
  out += format("\nenum {{ MOST_BUFFERS = {} }};\n", most) + kCall;
  for (size_t i = 0; i < plan.kernels.size(); ++i)
    out +=
        format("static int32_t packed_{}({}) {{\n", i, kParameters) + unused("type_codes") + unused("out") +
        unused("resource") + "  *out_code = kTVMNullptr;\n" +
        format("  return call({}, args, num_args, {}, {});\n}}\n", plan.kernels[i], uses[i].tensors, uses[i].scratch);
  out += "\n";
  if (!linked.empty()) out += lookup_of(plan, linked, weight);
  return out + table_of(plan, !linked.empty());
}

}  // namespace tilewright::codegen
