// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_interface.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/format.h"
#include "codegen/source/c_external.h"
#include "codegen/source/c_metadata.h"
#include "codegen/source/c_types.h"

namespace tilewright::codegen {
namespace {

// Replaces everything but letters and digits by underscores, as the classic stack does.
std::string plain_name(const std::string& text) {
  std::string out;
  for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out;
}
// The same, with an underscore added if the result is a reserved C name.
std::string member_name(const std::string& text) {
  std::string out = plain_name(text);
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "_" + out;
  return c_identifier(out) == out + "_" ? out + "_" : out;
}

std::string with_case(std::string text, int (*change)(int)) {
  for (char& c : text) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return text;
}

Status take_names(const std::vector<std::string>& given, const char* what, std::vector<std::string>* out) {
  std::set<std::string> taken;
  for (const std::string& name : given) {
    out->push_back(member_name(name));
    if (!taken.insert(out->back()).second)
      return Diagnostic(ErrorCode::kInvalidArgument, format("two {} are called '{}' in C", what, out->back()),
                        format("'{}'", name), "rename one of them");
  }
  return Ok{};
}

std::vector<std::string> pool_names(const CInterface& f) {
  std::vector<std::string> names;
  for (const CPool& pool : f.pools) names.push_back(pool.name);
  for (const CConstantPool& pool : f.constants) names.push_back(pool.name);
  return names;
}

bool has_pools(const CInterface& f) { return !f.own_workspace || !f.constants.empty(); }

std::string struct_of(const CInterface& f, const char* suffix, const char* brief, const std::vector<std::string>& names,
                      const std::vector<std::string>& notes) {
  std::string out = format("/* {} */\nstruct {}_{} {{\n", brief, f.prefix, suffix);
  for (size_t i = 0; i < names.size(); ++i)
    out += format("  void* {};{}\n", names[i], notes[i].empty() ? "" : format(" /* {} */", notes[i]));
  if (names.empty()) out += "  char none; /* C has no struct without a member */\n";
  return out + "};\n\n";
}

std::vector<std::string> notes_of(const std::vector<plan::TensorInfo>& tensors) {
  std::vector<std::string> notes;
  for (const plan::TensorInfo& t : tensors)
    notes.push_back(c_comment(format("{}: {} {}", t.name, t.dtype.str(), shape_str(t.shape))));
  return notes;
}

std::string parameters(const CInterface& f) {
  std::vector<std::string> list;
  if (!f.tensors_in_pools()) {
    list.push_back(format("struct {}_inputs* inputs", f.prefix));
    list.push_back(format("struct {}_outputs* outputs", f.prefix));
  }
  if (has_pools(f)) list.push_back(format("struct {}_workspace_pools* workspace_pools", f.prefix));
  std::string out;
  for (const std::string& p : list) out += (out.empty() ? "" : ", ") + p;
  return out;
}

// The bytes of a constant pool, as a macro that initialises an array.
std::string pool_data(const plan::Plan& plan, const CConstantPool& pool, const std::function<Tensor(size_t)>& weight) {
  std::string bytes(pool.bytes, '\0');
  for (const auto& [param, at] : pool.params) {
    const Tensor data = weight(param);
    std::copy_n(reinterpret_cast<const char*>(data.raw()), plan.params[param].bytes,
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 5 + bytes.size() / 4);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i % 16 == 0) out += " \\\n  ";
    out += {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15], ','};
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string pool_macros(const plan::Plan& plan, const CInterface& f, const std::function<Tensor(size_t)>& weight) {
  std::string out;
  for (const CPool& pool : f.pools)
    if (!f.own_workspace)
      out += format("#define {}_{}_WORKSPACE_POOL_SIZE {}\n", f.macro, with_case(plain_name(pool.name), std::toupper),
                    pool.bytes);
  for (const CConstantPool& pool : f.constants) {
    const std::string name = format("{}_{}", f.macro, with_case(plain_name(pool.name), std::toupper));
    out += format("#define {}_CONSTANT_POOL_SIZE {}\n", name, pool.bytes);
    if (weight) out += format("#define {}_CONSTANT_POOL_DATA{}\n", name, pool_data(plan, pool, weight));
  }
  return out;
}

uint64_t workspace_bytes(const CInterface& f) {
  uint64_t bytes = 0;
  for (const CPool& pool : f.pools) bytes += pool.bytes;
  return bytes;
}

// The address of a byte of the arena, as an expression.
std::string in_pools(const CInterface& f, uint64_t offset) {
  const CPool& pool = pool_of(f, offset);
  return format("(uint8_t *)workspace_pools->{} + {}", member_name(pool.name), offset - pool.begin);
}

// The structs of tensors that lie in the pools.
std::string map_functions(const CInterface& f) {
  std::string out;
  for (const bool inputs : {true, false}) {
    const char* what = inputs ? "inputs" : "outputs";
    const auto& names = inputs ? f.inputs : f.outputs;
    const auto& offsets = inputs ? f.input_offsets : f.output_offsets;
    out += format("struct {0}_{1} {0}_map_{1}(struct {0}_workspace_pools* workspace_pools) {{\n  struct {0}_{1} {1};\n",
                  f.prefix, what);
    if (names.empty()) out += format("  (void)workspace_pools;\n  {}.none = 0;\n", what);
    for (size_t i = 0; i < names.size(); ++i) out += format("  {}.{} = {};\n", what, names[i], in_pools(f, offsets[i]));
    out += format("  return {};\n}}\n\n", what);
  }
  return out;
}

constexpr const char* kPackedData = R"(static void *tw_data(const void *args, int i) {
  const struct tw_tensor *tensor = ((const union tw_value *)args)[i].tensor;
  return (uint8_t *)tensor->data + tensor->byte_offset;
}

)";

std::string packed_functions(const plan::Plan& plan, const CInterface& f,
                             const std::function<std::string(const CAddresses&)>& compute) {
  CAddresses at;
  const size_t inputs = f.inputs.size();
  for (size_t i = 0; i < inputs; ++i) at.inputs.push_back(format("tw_data(args, {})", i));
  for (size_t i = 0; i < f.outputs.size(); ++i) at.outputs.push_back(format("tw_data(args, {})", inputs + i));
  at.pools = {"workspace.bytes"};
  const std::string run = format("int32_t {}_run({})", f.prefix, kCPackedParameters);
  const std::string main = format("int32_t {}___tvm_main__({})", f.prefix, kCPackedParameters);
  return kCPackedTypes + std::string(kPackedData) +
         format(
             "/* The model as a packed function of its inputs, then its outputs; what they hold is not looked at. */\n"
             "{0};\n{1};\n{0} {{\n  (void)type_codes;\n  (void)num_args;\n  (void)out_value;\n  (void)out_type_code;\n"
             "  (void)resource;\n  (void)args;\n{2}}}\n"
             "{1} {{\n  return {3}_run(args, type_codes, num_args, out_value, out_type_code, resource);\n}}\n",
             run, main, compute(at), f.prefix) +
         "\n" + c_metadata(plan, f);
}

}  // namespace

const CPool& pool_of(const CInterface& f, uint64_t offset) {
  size_t i = f.pools.size() - 1;
  while (i > 0 && f.pools[i].begin > offset) --i;
  return f.pools[i];
}

Status name_interface(const plan::Plan& plan, CInterface* f) {
  f->prefix = with_case("tvmgen_" + plain_name(f->module), std::tolower);
  f->macro = with_case(f->prefix, std::toupper);
  f->header = "tvmgen_" + plain_name(f->module) + ".h";
  std::vector<std::string> inputs, outputs;
  for (const plan::TensorInfo& t : plan.inputs) inputs.push_back(t.name);
  bool unnamed = true;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    outputs.push_back(plan.outputs[i].name);
    unnamed = unnamed && outputs.back() == format("output_{}", i);
  }
  // Unnamed outputs get the classic stack's names.
  for (size_t i = 0; unnamed && i < outputs.size(); ++i)
    outputs[i] = outputs.size() == 1 ? "output" : format("output{}", i);
  f->inputs.clear(), f->outputs.clear();
  TW_TRY_STATUS(take_names(inputs, "inputs", &f->inputs));
  TW_TRY_STATUS(take_names(outputs, "outputs", &f->outputs));
  std::vector<std::string> pools;
  TW_TRY_STATUS(take_names(pool_names(*f), "memory pools", &pools));
  for (size_t i = 0; i < pools.size(); ++i)
    (i < f->pools.size() ? f->pools[i].member : f->constants[i - f->pools.size()].member) = pools[i];
  return Ok{};
}

std::string c_interface_header(const plan::Plan& plan, const CInterface& f,
                               const std::function<Tensor(size_t)>& weight) {
  std::string out = format(
      "/* {}: the interface of a model that was compiled ahead of time for the target \"{}\". */\n"
      "#ifndef {}_H_\n#define {}_H_\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      c_comment(f.module), c_comment(plan.target), f.macro, f.macro);
  out += struct_of(f, "inputs", "Addresses of the inputs", f.inputs, notes_of(plan.inputs));
  out += struct_of(f, "outputs", "Addresses of the outputs", f.outputs, notes_of(plan.outputs));
  if (has_pools(f)) {
    std::vector<std::string> names, notes;
    for (const CPool& pool : f.pools) {
      if (f.own_workspace) continue;
      names.push_back(member_name(pool.name));
      notes.push_back(format("{} bytes, aligned to {}", pool.bytes, f.alignment));
    }
    for (const CConstantPool& pool : f.constants) {
      names.push_back(member_name(pool.name));
      notes.push_back(format("{} bytes of weights, aligned to {}", pool.bytes, f.alignment));
    }
    out += struct_of(f, "workspace_pools", "Addresses of the memory pools", names, notes);
  }
  if (f.tensors_in_pools())
    out += format(
        "/* Where the inputs and the outputs lie in the pools */\n"
        "struct {0}_inputs {0}_map_inputs(struct {0}_workspace_pools* workspace_pools);\n"
        "struct {0}_outputs {0}_map_outputs(struct {0}_workspace_pools* workspace_pools);\n\n",
        f.prefix);
  out += format("/* Runs the model; returns 0. {} */\nint32_t {}_run({});\n\n",
                f.own_workspace ? "Not on two threads at once: its workspace is static memory."
                                : "Calls with different pools may run at the same time.",
                f.prefix, parameters(f));
  out += format("/* Bytes that a run works in{} */\n#define {}_WORKSPACE_SIZE {}\n",
                f.own_workspace ? ", which are the model's own" : "", f.macro, workspace_bytes(f));
  out += pool_macros(plan, f, weight);
  return out + format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {}_H_ */\n", f.macro);
}

std::string c_interface_functions(const plan::Plan& plan, const CInterface& f,
                                  const std::function<std::string(const CAddresses&)>& compute) {
  std::string out;
  if (f.own_workspace)
    out += format(
        "#if defined(__GNUC__)\n#define TW_ALIGNED(n) __attribute__((aligned(n)))\n#else\n#define "
        "TW_ALIGNED(n)\n#endif\n"
        "static union {{\n  uint8_t bytes[{}];\n  double aligned;\n  int64_t aligned_too;\n}} workspace "
        "TW_ALIGNED({});\n\n",
        std::max<uint64_t>(1, workspace_bytes(f)), f.alignment);
  if (f.packed) return out + packed_functions(plan, f, compute);
  if (f.tensors_in_pools()) out += map_functions(f);
  CAddresses at;
  auto tensors = [&](bool inputs) {
    std::vector<std::string> list;
    const auto& names = inputs ? f.inputs : f.outputs;
    const auto& offsets = inputs ? f.input_offsets : f.output_offsets;
    for (size_t i = 0; i < names.size(); ++i)
      list.push_back(f.tensors_in_pools() ? format("(void *)({})", in_pools(f, offsets[i]))
                                          : format("{}->{}", inputs ? "inputs" : "outputs", names[i]));
    return list;
  };
  at.inputs = tensors(true), at.outputs = tensors(false);
  for (const CPool& pool : f.pools)
    at.pools.push_back(f.own_workspace ? "workspace.bytes" : format("workspace_pools->{}", member_name(pool.name)));
  for (const CConstantPool& pool : f.constants)
    at.constants.push_back(format("workspace_pools->{}", member_name(pool.name)));
  out += format("int32_t {}_run({}) {{\n", f.prefix, parameters(f));
  if (!f.tensors_in_pools()) out += "  (void)inputs;\n  (void)outputs;\n";
  if (has_pools(f)) out += "  (void)workspace_pools;\n";
  return out + compute(at) + "}\n";
}

std::string object_entry_name(const CInterface& f) { return f.prefix + "_compute"; }

std::string c_interface_of_object(const plan::Plan& plan, const CInterface& f) {
  const std::string entry = object_entry_name(f);
  std::string out = f.packed ? "#include <stdint.h>\n\n" : c_interface_header(plan, f, {}) + "\n";
  out += format(
      "/* The kernels' object has it. */\nint32_t {}(void *const *inputs, void *const *outputs, void *const "
      "*pools);\n\n",
      entry);
  return out + c_interface_functions(plan, f, [&](const CAddresses& at) {
           std::string body;
           const std::pair<const char*, const std::vector<std::string>&> lists[] = {
               {"input", at.inputs}, {"output", at.outputs}, {"pool", at.pools}};
           for (const auto& [name, list] : lists) {
             body += format("  void *{}_list[{}];\n", name, std::max<size_t>(1, list.size()));
           }
           for (const auto& [name, list] : lists) {
             if (list.empty()) body += format("  {}_list[0] = 0;\n", name);
             for (size_t i = 0; i < list.size(); ++i) body += format("  {}_list[{}] = {};\n", name, i, list[i]);
           }
           return body + format("  return {}(input_list, output_list, pool_list);\n", entry);
         });
}

}  // namespace tilewright::codegen
