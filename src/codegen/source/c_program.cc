// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "codegen/source/c_kernel.h"
#include "codegen/source/c_processors.h"
#include "codegen/source/c_shared_kernels.h"
#include "codegen/source/c_types.h"
#include "codegen/source/c_weights.h"

namespace tilewright::codegen {
namespace {

Status check_source_plan(const plan::Plan& plan, bool externals) {
  auto refused = [](std::string what, std::string hint) {
    return Diagnostic(ErrorCode::kUnsupportedModel, std::move(what), {}, std::move(hint));
  };
  if (!plan.variants.empty())
    return refused("a C file holds a model for one set of input shapes", "compile one file for each shape");
  if (plan.devices.size() > 1) return refused("a C file runs on the processor alone", "leave the other devices out");
  for (const plan::Step& step : plan.steps)
    if (step.kind == plan::StepKind::kCopy || (step.kind == plan::StepKind::kExternal && !externals))
      return refused(
          format("step '{}' calls '{}', which a C file has no runtime for", step.name, plan::callee_of(plan, step)),
          "compile without the external code generator, or for the target llvm");
  for (const auto* list : {&plan.inputs, &plan.outputs})
    for (const plan::TensorInfo& t : *list)
      if (c_type(t.dtype) == nullptr)
        return refused(format("C has no {} values, which '{}' holds", t.dtype.str(), t.name), "");
  return Ok{};
}

// Resolves the `@restrict` marks of c_kernel.
std::string with_restrict(std::string kernel, bool apart) {
  const std::string mark = "@restrict ", word = apart ? "restrict " : "";
  for (size_t at = kernel.find(mark); at != std::string::npos; at = kernel.find(mark, at))
    kernel.replace(at, mark.size(), word);
  return kernel;
}

// conv_pairs kernels (topi/conv_pairs.h) use all registers: GCC must keep the order of their loads, or it spills a
// third more. Functions with other options only inline what must be inline.
constexpr const char* kInOrder = "TW_IN_ORDER ";
constexpr const char* kInOrderMacros =
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    "#define TW_IN_ORDER __attribute__((optimize(\"no-schedule-insns\")))\n#else\n#define TW_IN_ORDER\n#endif\n"
    "#ifdef __GNUC__\n#define TW_INLINE static inline __attribute__((always_inline))\n#else\n"
    "#define TW_INLINE static inline\n#endif\n\n";

// Whether a step's kernel writes bytes that it also receives by another argument.
bool overlaps(const plan::Buffer& a, const plan::Buffer& b) {
  return a.space == b.space && a.index == b.index && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}
bool overlaps(const plan::Plan& plan, const plan::Step& step, const tir::PrimFunc& f) {
  for (size_t i = 0; i < step.buffers.size(); ++i)
    for (size_t k = 0; k < step.buffers.size(); ++k)
      if (i != k && !f.params[i]->read_only && overlaps(plan.buffers[step.buffers[i]], plan.buffers[step.buffers[k]]))
        return true;
  return false;
}

class CProgramWriter {
 public:
  explicit CProgramWriter(const CProgram& program) : p_(program), plan_(program.plan) {
    name_ = c_model_name(plan_);
    for (const char* taken : {"workspace", "weights", "arena"}) names_.insert(taken);
    if (p_.interface != nullptr) name_ = p_.interface->prefix;
    for (const std::string& kernel : plan_.kernels) names_.insert(c_kernel_name(kernel));
    for (const CExternal& e : p_.externals) names_.insert({e.symbol, "tensors", "values", "codes", "has_constants"});
    for (const plan::TensorInfo& t : plan_.inputs) inputs_.push_back(unique(t.name));
    for (const plan::TensorInfo& t : plan_.outputs) outputs_.push_back(unique(t.name));
    for (char& c : macro_ = name_) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }

  Result<std::string> write() {
    if (p_.interface != nullptr) return write_with_interface(*p_.interface);
    const std::string run = TW_TRY(run_function());
    const std::string kernels = definitions_;
    std::string weights;
    if (!p_.weights_apart)
      for (size_t i : used_params_) weights += c_weight(plan_.params[i], param_names_[i], p_.weight(i), has_vectors());
    std::string out = head() + declarations() + format("\n#ifndef {}_DECLARATIONS_ONLY\n", macro_);
    out += definitions(weights, kernels) + run;
    return out + format("#endif /* {}_DECLARATIONS_ONLY */\n", macro_);
  }

 private:
  std::string definitions(const std::string& weights, const std::string& kernels) const {
    std::string helpers = c_helpers(kernels);
    std::string out = "#include <math.h>\n#include <string.h>\n\n";
    if (kernels.find(kInOrder) != std::string::npos) {
      out += kInOrderMacros;
      for (size_t at = 0; (at = helpers.find("static inline ", at)) != std::string::npos;)
        helpers.replace(at, std::char_traits<char>::length("static inline "), "TW_INLINE ");
    }
    // Keeps sums of products in the order for which registers suffice; another order takes half as long again on a
    // Cortex-M4.
    if (is_small())
      out += "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC optimize(\"no-tree-reassoc\")\n#endif\n\n";
    out += c_helper_headers(helpers);
    if (!helpers.empty()) out += "/* ---- arithmetic that C leaves open ---- */\n\n" + helpers + "\n";
    if (!weights.empty()) out += "/* ---- weights ---- */\n\n" + weights;
    return out + "/* ---- kernels ---- */\n\n" + kernels;
  }

  // Kernels and steps with the classic interface, including the header: the file needs no other.
  Result<std::string> write_with_interface(const CInterface& f) {
    pools_.clear();
    for (const CPool& pool : f.pools) pools_.push_back({unique("pool_" + pool.name), pool.begin});
    for (const CConstantPool& pool : f.constants) {
      constant_pools_.push_back(unique("constants_" + pool.name));
      for (const auto& [param, at] : pool.params) in_constant_pool_[param] = {constant_pools_.size() - 1, at};
    }
    const std::string steps = TW_TRY(run_function());
    std::string weights;
    for (size_t i : used_params_) weights += c_weight(plan_.params[i], param_names_[i], p_.weight(i), has_vectors());
    std::string out =
        format("/* {}: a neural network in C99, written by Tilewright {} for the target \"{}\": {} */\n\n",
               c_comment(f.module), plan_.compiler_version, c_comment(plan_.target),
               f.packed ? "a packed function" : "what " + f.header + " declares");
    out += f.packed ? "#include <stdint.h>\n" : c_interface_header(plan_, f, {});
    out += "\n";
    if (!p_.externals.empty()) out += c_external_declarations(p_.externals);
    out += definitions(weights, definitions_) + steps + "\n";
    return out + c_interface_functions(plan_, f, [&](const CAddresses& at) {
             std::string arguments;
             for (const auto* list : {&at.inputs, &at.outputs, &at.pools, &at.constants})
               for (const std::string& a : *list) arguments += (arguments.empty() ? "" : ", ") + a;
             return p_.externals.empty() ? format("  {}_steps({});\n  return 0;\n", name_, arguments)
                                         : format("  return {}_steps({});\n", name_, arguments);
           });
  }

  std::string unique(const std::string& text) {
    const std::string base = c_identifier(text);
    std::string out = base;
    for (int i = 1; !names_.insert(out).second; ++i) out = format("{}_{}", base, i);
    return out;
  }

  static std::string describe(const plan::TensorInfo& t) {
    std::string out = format("{} {}", t.dtype.str(), shape_str(t.shape));
    if (is_bits_float(t.dtype)) out += ", the values' bits";
    if (t.dtype.is_bool()) out += ", 0 or 1";
    if (t.dtype.bits < 8) out += ", packed from the low bits up";
    return out;
  }

  std::string prototype() const {
    std::vector<std::string> params;
    for (size_t i = 0; i < inputs_.size(); ++i)
      params.push_back(format("const {} *{}", c_storage_type(plan_.inputs[i].dtype), inputs_[i]));
    for (size_t i = 0; i < outputs_.size(); ++i)
      params.push_back(format("{} *{}", c_storage_type(plan_.outputs[i].dtype), outputs_[i]));
    if (p_.weights_apart) params.push_back("const void *weights");
    const bool classic = p_.interface != nullptr;
    if (!classic) params.push_back("void *workspace");
    for (size_t i = 0; classic && i < pools_.size(); ++i) params.push_back("uint8_t *" + pools_[i].name);
    for (const std::string& pool : constant_pools_) params.push_back("const uint8_t *" + pool);
    std::string out = classic ? format("static {} {}_steps(", p_.externals.empty() ? "void" : "int32_t", name_)
                              : format("void {}_run(", name_);
    size_t column = out.size();
    const std::string indent(column, ' ');
    for (size_t i = 0; i < params.size(); ++i) {
      const std::string word = params[i] + (i + 1 < params.size() ? ", " : ")");
      if (i > 0 && column + word.size() > 110) out += "\n" + indent, column = indent.size();
      out += word, column += word.size();
    }
    return out;
  }

  std::string head() const {
    std::string out = format("/* {}: a neural network in C99, written by Tilewright {} for the target \"{}\".\n *\n",
                             c_comment(plan_.model_name.empty() ? "model" : plan_.model_name), plan_.compiler_version,
                             c_comment(plan_.target));
    out += format(
        " *   {}_run(...) computes the outputs from the inputs. It needs the C library and libm (-lm), calls\n"
        " *   no malloc, keeps no state and may run on several threads, each with a workspace of its own.\n *\n",
        name_);
    if (has_vectors()) {
      const std::string cpu = plan_.target.substr(plan_.target.find("-mcpu=") + 6);
      out += format(
          " *   Its vectors are GNU C's: compile with GCC 12, Clang 15 or later and -std=gnu99 -O2 {}.\n"
          " *   Without that option the results are the same, and slow. Align the workspace to 64 bytes for speed.\n "
          "*\n",
          c_machine_option(cpu.substr(0, cpu.find(' '))));
    }
    auto list = [&](const char* what, const std::vector<plan::TensorInfo>& tensors,
                    const std::vector<std::string>& names) {
      for (size_t i = 0; i < tensors.size(); ++i)
        out += format(" *   {:<9} {}: {}{}\n", what, names[i], describe(tensors[i]),
                      names[i] == tensors[i].name ? "" : format(" ('{}' in the model)", c_comment(tensors[i].name)));
    };
    list("input", plan_.inputs, inputs_);
    list("output", plan_.outputs, outputs_);
    if (p_.weights_apart)
      out += format(" *   weights   the {} bytes of the weights file, aligned to 8 bytes\n", plan_.params_bytes);
    out += format(" *   workspace {} bytes ({}_WORKSPACE_BYTES), aligned to 8 bytes; contents do not matter\n *\n",
                  plan_.arena_bytes, macro_);
    out += " *   Tensors are dense and row-major; outputs overlap neither each other, nor inputs, nor the workspace.\n";
    if (!p_.weights_apart) out += format(" *   The weights in this file take {} bytes.\n", plan_.params_bytes);
    return out +
           format(" *   To declare the function elsewhere: #define {}_DECLARATIONS_ONLY and #include this file. */\n",
                  macro_);
  }

  std::string declarations() const {
    return format(
        "#ifndef {0}_DECLARED\n#define {0}_DECLARED\n#include <stdint.h>\n\n"
        "#define {0}_WORKSPACE_BYTES {1}\n\n"
        "#ifdef __cplusplus\nextern \"C\"\n#endif\n{2};\n\n#endif /* {0}_DECLARED */\n",
        macro_, std::max<uint64_t>(1, plan_.arena_bytes), prototype());
  }

  // The index of the parameter that contains a buffer of the params space.
  Result<size_t> param_of(const plan::Buffer& b) const {
    for (size_t i = 0; i < plan_.params.size(); ++i) {
      const plan::Param& p = plan_.params[i];
      if (b.offset >= p.offset && b.offset - p.offset <= p.bytes && b.bytes <= p.bytes - (b.offset - p.offset))
        return i;
    }
    return Diagnostic(ErrorCode::kInternal, format("weights '{}' lie in no constant of the plan", b.name));
  }

  static std::string offset_by(const std::string& pointer, uint64_t bytes, const char* type, const char* qualifier) {
    if (bytes == 0) return format("({}{} *){}", qualifier, type, pointer);
    return format("({}{} *)({} + {})", qualifier, type, pointer, bytes);
  }

  std::string in_arena(uint64_t offset, const char* type) const {
    size_t i = pools_.size() - 1;
    while (i > 0 && pools_[i].begin > offset) --i;
    return offset_by(pools_[i].name, offset - pools_[i].begin, type, "");
  }

  // The kernel argument for a buffer.
  Result<std::string> argument(const plan::Buffer& b, DataType dtype) {
    const char* type = c_storage_type(dtype);
    switch (b.space) {
      case plan::Space::kInput:
      case plan::Space::kOutput: {
        const bool input = b.space == plan::Space::kInput;
        const std::string& name = (input ? inputs_ : outputs_)[b.index];
        if (b.offset == 0 && (input ? plan_.inputs : plan_.outputs)[b.index].dtype == dtype) return name;
        const char* bytes = input ? "const uint8_t" : "uint8_t";
        return offset_by(format("({} *){}", bytes, name), b.offset, type, input ? "const " : "");
      }
      case plan::Space::kArena:
        return in_arena(b.offset, type);
      case plan::Space::kScratch:
        return in_arena(plan_.arena_bytes - plan_.scratch_bytes + b.offset, type);
      case plan::Space::kParams:
        break;
    }
    if (p_.weights_apart) return offset_by("(const uint8_t *)weights", b.offset, type, "const ");
    const size_t i = TW_TRY(param_of(b));
    if (auto it = in_constant_pool_.find(i); it != in_constant_pool_.end())
      return offset_by(constant_pools_[it->second.first], it->second.second + b.offset - plan_.params[i].offset, type,
                       "const ");
    if (used_params_.insert(i).second) param_names_[i] = unique("w_" + plan_.params[i].name);
    const uint64_t skipped = b.offset - plan_.params[i].offset;
    if (skipped == 0 && plan_.params[i].dtype == dtype) return param_names_[i];
    return offset_by(format("(const uint8_t *){}", param_names_[i]), skipped, type, "const ");
  }

  // Of GNU C, for a processor that the target names.
  bool has_vectors() const { return plan_.target.find("-mcpu=") != std::string::npos && !is_small(); }
  bool is_small() const { return plan_.target.find("-mcpu=cortex-m") != std::string::npos; }

  // Emits each kernel before the first step that calls it.
  void define_kernels() {
    std::map<uint32_t, std::string> described;
    for (const plan::Step& step : plan_.steps) {
      if (step.kind != plan::StepKind::kKernel) continue;
      if (overlaps(plan_, step, p_.functions[step.kernel])) overlapping_.insert(step.kernel);
      described.try_emplace(step.kernel, format("{} ({})", c_comment(step.name), c_comment(step.implementation)));
    }
    std::vector<CKernelText> texts;
    std::vector<uint32_t> kernels;
    for (const auto& [kernel, what] : described) {
      texts.push_back(
          {c_kernel_name(plan_.kernels[kernel]), with_restrict(p_.kernels[kernel], overlapping_.count(kernel) == 0)});
      kernels.push_back(kernel);
    }
    CSharedKernels shared;
    if (is_small()) {
      shared = share_kernels(texts);
    } else {
      for (const CKernelText& t : texts)
        shared.first.push_back(shared.first.size()), shared.definitions.push_back(t),
            shared.calls.push_back({t.name, ""});
    }
    for (size_t i = 0; i < kernels.size(); ++i) calls_[kernels[i]] = shared.calls[i];
    for (size_t i = 0; i < shared.first.size(); ++i)
      definitions_ +=
          format("/* {} */\n{}{}\n", described[kernels[shared.first[i]]],
                 is_small() && shared.definitions[i].text.find("tw_dot2(") != std::string::npos ? kInOrder : "",
                 shared.definitions[i].text);
  }

  Result<std::string> external_step(const plan::Step& step) {
    CTensors tensors;
    for (const uint32_t index : step.buffers) {
      const plan::Buffer& b = plan_.buffers[index];
      tensors.emplace_back(TW_TRY(argument(b, b.dtype)), &b);
    }
    return format("  /* {}: of an external code generator */\n", c_comment(step.name)) +
           c_external_call(p_.externals[step.kernel], tensors);
  }

  Result<std::string> run_function() {
    define_kernels();
    std::string body;
    bool arena = false;
    for (const plan::Step& step : plan_.steps) {
      if (step.kind == plan::StepKind::kExternal) {
        body += TW_TRY(external_step(step));
        continue;
      }
      const tir::PrimFunc& f = p_.functions[step.kernel];
      const CKernelCall& called = calls_[step.kernel];
      body += format("  /* {}{} */\n  {}(", c_comment(step.name),
                     step.source.empty() ? "" : format(": node {}", c_comment(step.source)), called.name);
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        const plan::Buffer& b = plan_.buffers[step.buffers[i]];
        arena |= b.space == plan::Space::kArena || b.space == plan::Space::kScratch;
        const bool last = i + 1 == step.buffers.size();
        body += format("\n      {}{} /* {}: {} {} {} */", TW_TRY(argument(b, f.params[i]->dtype)),
                       !last                    ? ","
                       : called.numbers.empty() ? ");"
                                                : "",
                       c_comment(b.name.empty() ? "scratch" : b.name), b.dtype.str(), shape_str(b.shape),
                       plan::name_of(b.space));
      }
      if (step.buffers.empty()) body += ");";
      if (!called.numbers.empty()) body += "\n      " + called.numbers + ");";
      body += "\n";
    }
    std::string out = prototype() + " {\n";
    if (p_.interface == nullptr)
      out += arena ? "  uint8_t *const arena = (uint8_t *)workspace;\n" : "  (void)workspace;\n";
    for (const Pool& pool : pools_)
      if (p_.interface != nullptr) out += format("  (void){};\n", pool.name);
    for (const std::string& pool : constant_pools_) out += format("  (void){};\n", pool);
    for (const auto* names : {&inputs_, &outputs_})
      for (const std::string& name : *names) out += format("  (void){};\n", name);
    if (p_.weights_apart) out += "  (void)weights;\n";
    return out + body + (p_.externals.empty() ? "}\n" : "  return 0;\n}\n");
  }

  const CProgram& p_;
  const plan::Plan& plan_;
  struct Pool {
    std::string name;
    uint64_t begin;
  };
  std::vector<Pool> pools_ = {{"arena", 0}};
  std::vector<std::string> constant_pools_;
  std::map<size_t, std::pair<size_t, uint64_t>> in_constant_pool_;  // by param: the pool, and the offset in it
  std::string name_, macro_;
  std::set<std::string> names_;
  std::vector<std::string> inputs_, outputs_;
  std::set<size_t> used_params_;
  std::map<size_t, std::string> param_names_;
  std::set<uint32_t> overlapping_;
  std::map<uint32_t, CKernelCall> calls_;
  std::string definitions_;
};

}  // namespace

std::string c_model_name(const plan::Plan& plan) {
  // With the suffix, "default" is no keyword.
  const std::string run = "_run", name = c_identifier((plan.model_name.empty() ? "model" : plan.model_name) + run);
  return name.substr(0, name.size() - run.size());
}

std::string c_kernel_functions(std::span<const tir::PrimFunc> functions, std::span<const std::string> kernels,
                               const plan::Plan* plan) {
  // An element may be read, then written through another argument: restrict only where the plan shows that none is.
  std::vector<bool> apart(functions.size(), plan != nullptr);
  if (plan)
    for (const plan::Step& step : plan->steps)
      if (step.kind == plan::StepKind::kKernel && overlaps(*plan, step, functions[step.kernel]))
        apart[step.kernel] = false;
  std::string out;
  for (size_t i = 0; i < functions.size(); ++i) {
    const tir::PrimFunc& f = functions[i];
    std::string arguments;
    for (size_t k = 0; k < f.params.size(); ++k) arguments += format("{}buffers[{}]", k == 0 ? "" : ", ", k);
    out += format(
        "{0}\nvoid {1}(void *const *buffers, int64_t tid, int64_t nthreads);\n"
        "void {1}(void *const *buffers, int64_t tid, int64_t nthreads) {{\n"
        "  (void)buffers;\n  (void)nthreads;\n  if (tid == 0) {2}({3});\n}}\n\n",
        with_restrict(kernels[i], apart[i]), f.name, c_kernel_name(f.name), arguments);
  }
  const std::string helpers = c_helpers(out);
  return "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n\n" + c_helper_headers(helpers) + helpers +
         "\n" + out;
}

Result<std::string> c_program(const CProgram& program) {
  TW_TRY_STATUS(check_source_plan(program.plan, !program.externals.empty()));
  return CProgramWriter(program).write();
}

}  // namespace tilewright::codegen
