// SPDX-License-Identifier: Apache-2.0
// Models whose kernels are byte code: nothing of the file is executed by the processor, and nothing of it is trusted.

#include "base/format.h"
#include "base/formats/stackvm.h"
#include "base/hash.h"
#include "runtime/artifact.h"

namespace tilewright::runtime {
namespace {

Diagnostic bad_byte_code(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), {}, "compile the model again");
}

// Whether the program can be called with the step's buffers: as many, as large, and writable where it writes.
Status check_step(const plan::Plan& plan, const plan::Step& step, const stackvm::Program& program) {
  if (step.buffers.size() != program.parameters)
    return bad_byte_code(format("kernel {} takes {} buffers, and a step gives it {}", program.name, program.parameters,
                                step.buffers.size()));
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    const plan::Buffer& buffer = plan.buffers[step.buffers[i]];
    const stackvm::Memory& memory = program.memories[i];
    if (memory.unknown || buffer.bytes < memory.bytes)
      return bad_byte_code(
          format("kernel {} touches {} bytes of a buffer that has {}", program.name, memory.bytes, buffer.bytes));
    if (memory.written && (buffer.space == plan::Space::kParams || buffer.space == plan::Space::kInput))
      return bad_byte_code(format("kernel {} writes into the model's {}", program.name, name_of(buffer.space)));
  }
  return Ok{};
}

}  // namespace

Status Artifact::check_byte_code(const plan::Plan& plan) const {
  for (const plan::Step& step : plan.steps)
    if (step.kind == plan::StepKind::kKernel) TW_TRY_STATUS(check_step(plan, step, *kernels_[step.kernel].program()));
  return Ok{};
}

Result<std::shared_ptr<const Artifact>> Artifact::load_byte_code(MappedFile file, const std::string& path,
                                                                 const LoadOptions& options) {
  std::shared_ptr<Artifact> artifact(new Artifact);
  artifact->path_ = path;
  artifact->bytes_.emplace(std::move(file));
  auto read = stackvm::read_file(artifact->bytes_->bytes(), options.verify_params);
  if (!read.ok()) return std::move(read).error().at(path);
  auto programs = stackvm::read_programs(read->programs);
  if (!programs.ok()) return std::move(programs).error().at(path);
  ArtifactTable table{};
  table.plan = read->plan.data(), table.plan_bytes = read->plan.size();
  table.params = read->params.data(), table.params_bytes = read->params.size();
  table.kernel_count = programs->size();
  TW_TRY_STATUS(artifact->take(table, options));
  for (stackvm::Program& program : *programs) {
    artifact->code_.push_back(std::make_unique<const stackvm::Code>(std::move(program)));
    artifact->kernels_.emplace_back(artifact->code_.back().get());
  }
  for (size_t v = 0; v <= artifact->plan_.variants.size(); ++v)
    if (Status fits = artifact->check_byte_code(plan::variant_of(artifact->plan_, v)); !fits.ok())
      return std::move(fits).error().at(path);
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

}  // namespace tilewright::runtime
