// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "codegen/source/c_external.h"
#include "codegen/source/c_types.h"
#include "driver/micro/project.h"

namespace tilewright::driver {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// DLPack's type codes.
int type_code(DataType t) {
  if (t == kBFloat16) return 4;
  return t.is_float() ? 2 : t.is_int() ? 0 : 1;
}

std::string memory(const std::string& name, uint64_t bytes, uint64_t alignment, const std::string& values = {}) {
  if (!values.empty())
    return format("static const uint8_t {}[{}] ALIGNED({}) = {{{}}};\n", name, std::max<uint64_t>(1, bytes), alignment,
                  values);
  return format(
      "static union {{\n  uint8_t bytes[{}];\n  double aligned;\n  int64_t aligned_too;\n}} {} ALIGNED({});\n",
      std::max<uint64_t>(1, bytes), name, alignment);
}

// Names with the model's prefix are unique to it.
class ModelSource {
 public:
  explicit ModelSource(const LibraryModel& model) : model_(model), f_(model.interface) {}

  std::string text() const {
    std::string out = format("/* ---- {} */\n\n", f_.prefix);
    if (f_.packed)
      out += format("int32_t {}_run(void *, int32_t *, int32_t, void *, int32_t *, void *);\n", f_.prefix);
    else
      out += format("#include \"{}\"\n\n", f_.header);
    for (const LibraryPool& pool : f_.pools)
      out += memory(pool_name(pool), pool.bytes, f_.alignment,
                    pool.constant ? format("{}_{}_CONSTANT_POOL_DATA", upper(f_.prefix), upper(pool.member)) : "");
    if (!f_.tensors_in_pools) {
      for (size_t i = 0; i < f_.inputs.size(); ++i) out += memory(tensor_name("input", i), f_.inputs[i].bytes(), 16);
      for (size_t i = 0; i < f_.outputs.size(); ++i) out += memory(tensor_name("output", i), f_.outputs[i].bytes(), 16);
    }
    out += "\n" + shapes("input", f_.inputs) + shapes("output", f_.outputs);
    out += tensors("input", f_.inputs) + tensors("output", f_.outputs);
    return out + (f_.packed ? packed_run() : struct_run()) + "\n";
  }
  // Tensor addresses are known only when the program runs.
  std::string placement() const { return f_.tensors_in_pools ? format("  {}_place();\n", f_.prefix) : std::string(); }

 private:
  std::string pool_name(const LibraryPool& pool) const { return format("{}_pool_{}", f_.prefix, pool.member); }
  std::string tensor_name(const char* what, size_t i) const { return format("{}_{}_{}", f_.prefix, what, i); }
  std::string shapes(const char* what, const std::vector<LibraryTensor>& list) const {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) {
      std::string extents;
      for (const int64_t d : list[i].shape) extents += format("{}, ", d);
      out += format("static const int64_t {}_shape[] = {{{}0}};\n", tensor_name(what, i), extents);
    }
    return out;
  }
  std::string tensors(const char* what, const std::vector<LibraryTensor>& list) const {
    std::string out =
        format("static {}TVMAotTensor {}_tensors_{}s[] = {{\n", f_.tensors_in_pools ? "" : "const ", f_.prefix, what);
    for (size_t i = 0; i < list.size(); ++i) {
      const LibraryTensor& t = list[i];
      out += format("    {{{}, {}, {}, {}, {}, 1, {}, {}_shape}},\n", codegen::c_string(t.name),
                    f_.tensors_in_pools ? std::string("0") : tensor_name(what, i) + ".bytes", t.bytes(),
                    type_code(t.dtype), t.dtype.bits, t.shape.size(), tensor_name(what, i));
    }
    return out + "    {0, 0, 0, 0, 0, 0, 0, 0}};\n";
  }

  std::string structs() const {
    std::string out;
    const bool has_pools = !f_.pools.empty();
    if (has_pools) {
      out += format("  struct {}_workspace_pools pools;\n", f_.prefix);
      for (const LibraryPool& pool : f_.pools)
        out += pool.constant ? format("  pools.{} = (void *)(uintptr_t){};\n", pool.member, pool_name(pool))
                             : format("  pools.{} = {}.bytes;\n", pool.member, pool_name(pool));
    }
    return out;
  }
  std::string struct_run() const {
    const std::string pools = structs(), last = f_.pools.empty() ? "" : "&pools";
    if (f_.tensors_in_pools) {
      std::string out = format("static void {}_place(void) {{\n{}", f_.prefix, pools);
      for (const bool inputs : {true, false}) {
        const char* what = inputs ? "input" : "output";
        const auto& list = inputs ? f_.inputs : f_.outputs;
        out += format("  const struct {0}_{1}s {1}s = {0}_map_{1}s(&pools);\n", f_.prefix, what);
        for (size_t i = 0; i < list.size(); ++i)
          out += format("  {}_tensors_{}s[{}].data = {}s.{};\n", f_.prefix, what, i, what, list[i].member);
        if (list.empty()) out += format("  (void){}s;\n", what);
      }
      return out +
             format("}}\nstatic int32_t {0}_start(void) {{\n{1}  return {0}_run({2});\n}}\n", f_.prefix, pools, last);
    }
    std::string out = format("static int32_t {}_start(void) {{\n{}", f_.prefix, pools);
    for (const bool inputs : {true, false}) {
      const char* what = inputs ? "input" : "output";
      const auto& list = inputs ? f_.inputs : f_.outputs;
      out += format("  struct {0}_{1}s {1}s;\n", f_.prefix, what);
      for (size_t i = 0; i < list.size(); ++i)
        out += format("  {}s.{} = {}.bytes;\n", what, list[i].member, tensor_name(what, i));
      if (list.empty()) out += format("  {}s.none = 0;\n", what);
    }
    return out + format("  return {}_run(&inputs, &outputs{}{});\n}}\n", f_.prefix, last.empty() ? "" : ", ", last);
  }
  // DLPack tensors in unions of eight bytes.
  std::string packed_run() const {
    const size_t count = f_.inputs.size() + f_.outputs.size();
    std::string out = format("static int32_t {}_start(void) {{\n", f_.prefix);
    out += format("  static struct tw_tensor tensors[{0}];\n  union tw_value values[{0}];\n  int32_t codes[{0}];\n",
                  std::max<size_t>(1, count));
    for (size_t i = 0; i < count; ++i) {
      const bool input = i < f_.inputs.size();
      const size_t at = input ? i : i - f_.inputs.size();
      out += format(
          "  pack(&tensors[{0}], &{1}_tensors_{2}s[{3}]);\n  values[{0}].tensor = &tensors[{0}];\n"
          "  codes[{0}] = 7;\n",
          i, f_.prefix, input ? "input" : "output", at);
    }
    if (count == 0) out += "  (void)tensors;\n";
    return out + format("  return {}_run(values, codes, {}, 0, 0, 0);\n}}\n", f_.prefix, count);
  }

  const LibraryModel& model_;
  const LibraryInterface& f_;
};

constexpr const char* kPackedHelpers = R"(static void pack(struct tw_tensor *to, const TVMAotTensor *from) {
  to->data = from->data;
  to->device_type = 1;
  to->device_id = 0;
  to->ndim = from->ndim;
  to->type_code = from->type_code;
  to->type_bits = from->type_bits;
  to->type_lanes = from->type_lanes;
  to->shape = (int64_t *)(uintptr_t)from->shape;
  to->strides = 0;
  to->byte_offset = 0;
}

)";

Diagnostic no_project(const std::string& what, const std::string& hint) {
  return {ErrorCode::kInvalidArgument, what, {}, hint};
}

}  // namespace

Result<std::string> models_source(const ModelLibrary& library) {
  std::string body, entries;
  bool packed = false;
  size_t called = 0;  // the others are graphs, which the host interprets
  for (const LibraryModel& m : library.models) {
    if (!m.has_interface && library.has_system_lib()) continue;
    if (!m.has_interface)
      return no_project(
          format("model '{}' was not compiled ahead of time by this compiler: nothing says how to call it", m.name),
          "compile it with --format mlf and the executor aot");
    const LibraryInterface& f = m.interface;
    if (f.tensors_in_pools && f.pools.empty())
      return no_project(format("model '{}' has its tensors in pools, and no pool", m.name), "compile it again");
    ++called;
    packed |= f.packed;
    body += ModelSource(m).text();
    entries += format("    {{{}, {}, {}, {}_tensors_inputs, {}_tensors_outputs, {}_start}},\n",
                      codegen::c_string(m.name), f.inputs.size(), f.outputs.size(), f.prefix, f.prefix, f.prefix);
  }
  if (library.models.empty() && !library.has_system_lib())
    return no_project("the Model Library Format holds no model", "compile one with --format mlf");
  std::string place;
  for (const LibraryModel& m : library.models)
    if (m.has_interface) place += ModelSource(m).placement();
  if (called == 0) entries = "    {0, 0, 0, 0, 0, 0},\n";
  const std::string system_lib = library.has_system_lib() ? "TVMSystemLibEntryPoint()" : "0";
  return "/* The models of this project, and the memory of their tensors. Written by tilewright micro create. */\n"
         "#include <tvm/runtime/crt/aot_executor.h>\n#include <tvm/runtime/crt/module.h>\n\n"
         "#if defined(__GNUC__)\n#define ALIGNED(n) __attribute__((aligned(n)))\n#else\n#define "
         "ALIGNED(n)\n#endif\n\n" +
         (packed ? std::string(codegen::kCPackedTypes) + kPackedHelpers : std::string()) + body +
         format(
             "const TVMAotModel kTvmAotModels[] = {{\n{}}};\nconst int32_t kTvmAotModelCount = {};\n"
             "void TVMAotPlaceTensors(void) {{\n{}}}\n"
             "const TVMModule *TVMProjectSystemLib(void) {{ return {}; }}\n",
             entries, called, place, system_lib);
}

}  // namespace tilewright::driver
