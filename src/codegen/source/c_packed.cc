// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_packed.h"

#include <algorithm>

#include "base/format.h"
#include "codegen/source/c_types.h"
#include "codegen/source/c_weights.h"

namespace tilewright::codegen {
namespace {

// What all functions do: addresses of tensors, then memory of their own, which lies behind one another.
constexpr const char* kCall = R"(
typedef void (*Kernel)(void *const *buffers, int64_t tid, int64_t nthreads);

static int32_t call(const Kernel *kernels, int32_t kernel_count, TVMValue *args, int32_t num_args, int32_t tensors,
                    const uint64_t *workspaces, int32_t workspace_count) {
  void *buffers[MOST_BUFFERS];
  uint64_t bytes = 0;
  uint8_t *workspace = NULL, *at;
  if (num_args != tensors) {
    TVMAPISetLastError("a packed function is called with another number of tensors than it has");
    return -1;
  }
  for (int32_t i = 0; i < tensors; ++i) {
    const DLTensor *t = (const DLTensor *)args[i].v_handle;
    buffers[i] = (uint8_t *)t->data + t->byte_offset;
  }
  for (int32_t i = 0; i < workspace_count; ++i) bytes += (workspaces[i] + 63) / 64 * 64;
  if (bytes > 0) {
    workspace = (uint8_t *)TVMBackendAllocWorkspace(kDLCPU, 0, bytes + 64, kDLUInt, 8);
    if (!workspace) return -1;
  }
  at = workspace ? workspace + (64 - (uintptr_t)workspace % 64) % 64 : NULL;
  for (int32_t i = 0; i < workspace_count; ++i) {
    buffers[tensors + i] = at;
    at += (workspaces[i] + 63) / 64 * 64;
  }
  for (int32_t i = 0; i < kernel_count; ++i) kernels[i](buffers, 0, 1);
  return workspace ? (int32_t)TVMBackendFreeWorkspace(kDLCPU, 0, workspace) : 0;
}

)";

constexpr const char* kParameters =
    "TVMValue *args, int32_t *type_codes, int32_t num_args, TVMValue *out, int32_t *out_code, void *resource";

std::string unused(const char* names) { return format("  (void){};\n", names); }

// A packed function: the kernels it calls, each with all of its tensors and workspaces.
struct Packed {
  std::string name;
  std::vector<std::string> kernels;
  size_t tensors = 0;
  std::vector<uint64_t> workspaces;
};

// By kernel: the first step that calls it; all pass as many tensors.
std::vector<Packed> packed_of(const plan::Plan& plan) {
  std::vector<Packed> out(plan.kernels.size());
  for (size_t i = 0; i < out.size(); ++i) out[i].name = plan.kernels[i], out[i].kernels = {plan.kernels[i]};
  for (const plan::Step& step : plan.steps) {
    if (step.kind != plan::StepKind::kKernel) continue;
    Packed& p = out[step.kernel];
    p.tensors = 0;
    for (const uint32_t b : step.buffers) {
      if (plan.buffers[b].space != plan::Space::kScratch)
        ++p.tensors;
      else if (p.workspaces.empty())
        p.workspaces.push_back(plan.buffers[b].bytes);
      else
        p.workspaces[0] = std::max(p.workspaces[0], plan.buffers[b].bytes);
    }
  }
  return out;
}

std::string packed_name(const std::string& function) { return function + "_packed"; }

std::string define(const Packed& p, bool shared) {
  std::string kernels, workspaces;
  for (const std::string& kernel : p.kernels) kernels += (kernels.empty() ? "" : ", ") + kernel;
  for (const uint64_t bytes : p.workspaces) workspaces += format("{}{}", workspaces.empty() ? "" : ", ", bytes);
  const std::string head = format("int32_t {}({})", packed_name(p.name), kParameters);
  std::string out = shared ? head + ";\n" + head : "static " + head;
  out += format(" {{\n  static const Kernel kernels[] = {{{}}};\n", kernels);
  if (!workspaces.empty()) out += format("  static const uint64_t workspaces[] = {{{}}};\n", workspaces);
  out += unused("type_codes") + unused("out") + unused("resource") + "  *out_code = kTVMNullptr;\n";
  return out + format("  return call(kernels, {}, args, num_args, {}, {}, {});\n}}\n", p.kernels.size(), p.tensors,
                      workspaces.empty() ? "NULL" : "workspaces", p.workspaces.size());
}

// Names by number of bytes and zeros: octal digits end with the escape only where no digit follows.
std::string table_of(const std::vector<std::string>& functions, bool linked) {
  const size_t count = functions.size() + (linked ? 1 : 0);
  std::string names = format("    \"\\{:03o}\\{:03o}\"\n", count & 255, count >> 8), entries;
  for (const std::string& name : functions) {
    names += format("    \"{}\\000\"\n", name);
    entries += format("    {},\n", packed_name(name));
  }
  if (linked) {
    names += "    \"_lookup_linked_param\\000\"\n";
    entries += "    lookup_linked_param,\n";
  }
  names.pop_back();
  return format(
      "static const TVMBackendPackedCFunc kFunctions[] = {{\n{}}};\n"
      "static const char kNames[] =\n{};\n"
      "static const TVMFuncRegistry kRegistry = {{kNames, kFunctions}};\n"
      "static const TVMModule kSystemLib = {{&kRegistry}};\n\n"
      "const TVMModule *TVMSystemLibEntryPoint(void) {{ return &kSystemLib; }}\n",
      entries, names);
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

// All of a file but the table.
std::string file_with(const plan::Plan& plan, const std::vector<Packed>& functions, const char* why, bool shared) {
  size_t most = 1;
  for (const Packed& p : functions) most = std::max(most, p.tensors + p.workspaces.size());
  std::string out = format(
      "/* {}: packed functions of {}, written by Tilewright {} for the target \"{}\" */\n\n"
      "#include <tvm/runtime/c_backend_api.h>\n#include <tvm/runtime/crt/module.h>\n\n/* The kernels. */\n",
      c_comment(plan.model_name.empty() ? "default" : plan.model_name), why, plan.compiler_version,
      c_comment(plan.target));
  for (const std::string& kernel : plan.kernels)
    out += format("void {}(void *const *buffers, int64_t tid, int64_t nthreads);\n", kernel);
  out += format("\nenum {{ MOST_BUFFERS = {} }};\n", most) + kCall;
  for (const Packed& p : functions) out += define(p, shared);
  return out;
}

}  // namespace

std::string c_packed_functions(const plan::Plan& plan, const std::vector<LinkedParam>& linked,
                               const std::vector<CExternal>& externals, const std::function<Tensor(size_t)>& weight,
                               bool own_table) {
  std::string out = file_with(plan, packed_of(plan), "a neural network for the C runtime's graph executor", !own_table);
  if (!externals.empty()) out += "\n" + c_external_declarations(externals);
  for (const CExternal& e : externals) {
    const std::string head = format("int32_t {}({})", packed_name(e.symbol), kParameters);
    out += (own_table ? "static " + head : head + ";\n" + head) + " {\n" + c_external_constants(e) +
           format("  return {}(args, type_codes, num_args, out, out_code, resource);\n}}\n", e.symbol);
  }
  out += "\n";
  if (!linked.empty()) out += lookup_of(plan, linked, weight);
  if (!own_table) return out;
  std::vector<std::string> names = plan.kernels;
  names.insert(names.end(), plan.externals.begin(), plan.externals.end());
  return out + table_of(names, !linked.empty());
}

std::string c_packed_functions(const plan::Plan& plan, const std::vector<plan::Function>& functions) {
  std::vector<Packed> list;
  std::vector<std::string> names;
  for (const plan::Function& f : functions) {
    Packed p{f.name, {}, f.tensors.size(), {}};
    for (const plan::FunctionKernel& k : f.kernels) p.kernels.push_back(plan.kernels[k.kernel]);
    for (const plan::FunctionWorkspace& w : f.workspaces)
      p.workspaces.push_back(static_cast<uint64_t>(plan::evaluate(w.bytes, {}).value_or(0)));
    names.push_back(f.name);
    list.push_back(std::move(p));
  }
  return file_with(plan, list, "tensors", false) + "\n" + table_of(names, false);
}

std::string c_system_lib(const std::vector<std::string>& names) {
  std::string out =
      "/* The packed functions of all models of this program. */\n\n#include <tvm/runtime/crt/module.h>\n\n";
  for (const std::string& name : names) out += format("int32_t {}({});\n", packed_name(name), kParameters);
  return out + "\n" + table_of(names, false);
}

}  // namespace tilewright::codegen
