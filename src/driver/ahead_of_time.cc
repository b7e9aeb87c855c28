// SPDX-License-Identifier: Apache-2.0
#include "driver/ahead_of_time.h"

#include <bit>

#include "base/format.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "codegen/backend.h"
#include "codegen/source/c_processors.h"
#include "codegen/source/c_program.h"
#include "driver/build.h"

namespace tilewright::driver {
namespace {

Diagnostic bad_option(std::string what, std::string hint) {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint));
}

Status check_pools_given(const std::vector<lower::MemoryPool>& pools) {
  for (const lower::MemoryPool& pool : pools)
    if (pool.name.empty()) return bad_option("a memory pool has no name", "name it: it becomes a member of a struct");
  return Ok{};
}

// Assigns weights to the program's constant pools and offsets.
Result<std::vector<codegen::CConstantPool>> plan_constants(const Built& built,
                                                           const std::vector<lower::MemoryPool>& pools,
                                                           int64_t alignment) {
  std::vector<codegen::CConstantPool> out;
  if (pools.empty()) return out;
  std::vector<lower::PooledBuffer> buffers;
  for (const plan::Param& p : built.lowered.plan.params) {
    lower::PooledBuffer b{p.name, static_cast<int64_t>(p.bytes), alignment, 0, 0, {}};
    for (uint32_t k = 0; k < pools.size(); ++k) b.pools.push_back(k);
    buffers.push_back(std::move(b));
  }
  TW_TRY_STATUS(lower::plan_pools(buffers, pools, "greedy_by_size"));
  const auto sizes = lower::pool_sizes(buffers, pools.size());
  for (size_t k = 0; k < pools.size(); ++k) out.push_back({pools[k].name, static_cast<uint64_t>(sizes[k]), {}});
  for (size_t i = 0; i < buffers.size(); ++i)
    out[buffers[i].pool].params.emplace_back(i, static_cast<uint64_t>(buffers[i].offset));
  return out;
}

Result<std::vector<codegen::CConstantPool>> plan_constants(const Built& built) {
  return plan_constants(built, built.ahead_of_time->constants, built.ahead_of_time->constant_alignment);
}

bool is_source(const Built& built) { return codegen::backend_of(built.target).makes_source(); }

Result<codegen::CInterface> interface_of(const Built& built) {
  const AheadOfTime& options = *built.ahead_of_time;
  const plan::Plan& plan = built.lowered.plan;
  if (!built.others.empty())
    return bad_option("a program in C is for one processor, and the target lists several", "name one after -mcpu=");
  if (!is_source(built) && !options.constants.empty())
    return bad_option("pools of constants are for the target c; of others the object holds the weights",
                      "compile for the target c, or give pools of workspace memory only");
  codegen::CInterface f;
  f.module = plan.model_name.empty() ? "default" : plan.model_name;
  f.packed = options.packed;
  f.own_workspace = options.workspace.empty();
  for (const lower::PlacedPool& p : built.lowered.pools)
    f.pools.push_back({p.name, static_cast<uint64_t>(p.begin), static_cast<uint64_t>(p.bytes)});
  f.constants = TW_TRY(plan_constants(built));
  f.input_offsets.assign(built.lowered.input_offsets.begin(), built.lowered.input_offsets.end());
  f.output_offsets.assign(built.lowered.output_offsets.begin(), built.lowered.output_offsets.end());
  f.alignment = static_cast<uint64_t>(TW_TRY(memory_of(options, built.target)).alignment);
  TW_TRY_STATUS(codegen::name_interface(plan, &f));
  return f;
}

Result<std::string> source_with(const Built& built, const codegen::CInterface& f) {
  const plan::Plan& plan = built.lowered.plan;
  if (!is_source(built)) {
    if (!plan.externals.empty())
      return Diagnostic(
          ErrorCode::kUnsupportedModel,
          format("an object without a runtime does not call '{}' of an external code generator", plan.externals[0]), {},
          "compile for the target c, which links its C source");
    return codegen::c_interface_of_object(plan, f);
  }
  std::vector<codegen::CExternal> externals = TW_TRY(c_externals(plan, built.external));
  return codegen::c_program({plan, built.lowered.kernels, built.objects,
                             [&](size_t i) { return built.lowered.params[i].tensor(); }, false, &f,
                             std::move(externals)});
}

Result<std::string> object_with(const Built& built, const codegen::CInterface& f) {
  std::vector<uint64_t> pools;
  for (const codegen::CPool& p : f.pools) pools.push_back(p.begin);
  std::vector<std::string> objects = built.objects;
  objects.push_back(
      TW_TRY(codegen::compile_entry(built.lowered.plan, built.target, codegen::object_entry_name(f), pools)));
  const WorkFolder folder = TW_TRY(WorkFolder::temporary("tilewright-object"));
  const std::string path = folder.path() + "/lib0.o";
  const auto pieces = weight_pieces(built.lowered.plan, built.lowered.params);
  const codegen::WeightPieces params = pieces;
  TW_TRY_STATUS(codegen::link_relocatable(objects, path, built.target, &params));
  return read_whole(path);
}

}  // namespace

Result<lower::MemoryOptions> memory_of(const AheadOfTime& options, const Target& target) {
  for (const int64_t alignment : {options.workspace_alignment, options.constant_alignment})
    if (alignment < 1 || alignment > 4096 || !std::has_single_bit(static_cast<uint64_t>(alignment)))
      return bad_option(format("memory cannot be aligned to {} bytes", alignment), "give a power of two up to 4096");
  TW_TRY_STATUS(check_pools_given(options.workspace));
  TW_TRY_STATUS(check_pools_given(options.constants));
  if (options.packed && !(options.workspace.empty() && options.constants.empty()))
    return bad_option("a packed function takes no memory pools", "use the C interface (interface-api \"c\")");
  if (options.tensors_in_pools && options.workspace.empty())
    return bad_option("inputs and outputs can lie in memory pools of the program only", "give a workspace memory pool");
  const bool source = codegen::backend_of(target).makes_source();
  lower::MemoryOptions memory;
  memory.pools = options.workspace;
  // C elements have at most 8 bytes; vectors and machine code work on whole cache lines.
  const bool elements = source && !codegen::is_vector_c(target);
  memory.alignment = std::max<int64_t>(options.workspace_alignment, elements ? 8 : 64);
  memory.exact = source;
  memory.one_thread = true;
  memory.inputs_and_outputs = options.tensors_in_pools;
  memory.algorithm = options.algorithm;
  memory.planner = options.planner;
  return memory;
}

Result<lower::MemoryOptions> memory_of(const RuntimePools& options) {
  TW_TRY_STATUS(check_pools_given(options.workspace));
  TW_TRY_STATUS(check_pools_given(options.constants));
  lower::MemoryOptions memory;
  memory.pools = options.workspace;
  memory.algorithm = options.algorithm;
  memory.planner = options.planner;
  return memory;
}

Result<std::vector<PoolUse>> pools_of(const Built& built) {
  std::vector<PoolUse> out;
  if (!built.ahead_of_time && !built.runtime_pools) return out;
  for (const lower::PlacedPool& p : built.lowered.pools) out.push_back({p.name, p.bytes, false});
  const auto constants =
      built.ahead_of_time ? plan_constants(built) : plan_constants(built, built.runtime_pools->constants, 64);
  for (const codegen::CConstantPool& p : TW_TRY(constants))
    out.push_back({p.name, static_cast<int64_t>(p.bytes), true});
  return out;
}

Result<codegen::CInterface> ahead_of_time_interface(const Built& built) { return interface_of(built); }

Result<std::string> ahead_of_time_source(const Built& built) { return source_with(built, TW_TRY(interface_of(built))); }

Result<Files> ahead_of_time_files(const Built& built) {
  const codegen::CInterface f = TW_TRY(interface_of(built));
  const std::string name = built.lowered.plan.model_name.empty() ? "default" : built.lowered.plan.model_name;
  Files files;
  if (!f.packed)
    files.emplace_back(
        "codegen/host/include/" + f.header,
        codegen::c_interface_header(built.lowered.plan, f, [&](size_t i) { return built.lowered.params[i].tensor(); }));
  files.emplace_back(format("codegen/host/src/{}_lib0.c", name), TW_TRY(source_with(built, f)));
  if (!is_source(built)) files.emplace_back(format("codegen/host/lib/{}_lib0.o", name), TW_TRY(object_with(built, f)));
  for (auto& file : c_external_files(built.external, name, 1)) files.push_back(std::move(file));
  return files;
}

}  // namespace tilewright::driver
