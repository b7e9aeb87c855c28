// SPDX-License-Identifier: Apache-2.0
#include "base/formats/artifact.h"

#include <bit>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "base/formats/seal.h"
#include "base/formats/stackvm.h"
#include "base/hash.h"

namespace tilewright {
namespace {

Diagnostic bad(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), {}, "compile the model again");
}

Diagnostic wrong_version(std::string what) {
  return Diagnostic(ErrorCode::kArtifactVersion, std::move(what), {},
                    "compile the model again with the version you run");
}

}  // namespace

Status check_artifact_table(const ArtifactTable& table) {
  if (std::memcmp(table.magic, kArtifactMagic, sizeof table.magic) != 0)
    return bad("the table of kernels lacks its mark");
  if (table.abi != kArtifactAbi || table.table_bytes < sizeof(ArtifactTable))
    return wrong_version(format("the artifact has ABI {} ({} bytes), this runtime has {} ({} bytes)", table.abi,
                                table.table_bytes, kArtifactAbi, sizeof(ArtifactTable)));
  return Ok{};
}

Status check_artifact_plan(const plan::Plan& plan, uint64_t kernels, uint64_t params_bytes) {
  if (plan.kernels.size() == kernels && (plan.params_bytes <= params_bytes || !plan.weights_file.empty())) return Ok{};
  return bad(format("the plan wants {} kernels and {} bytes of weights, the library has {} and {}", plan.kernels.size(),
                    plan.params_bytes, kernels, params_bytes));
}

Result<ElfImage> check_artifact_file(std::span<const std::byte> file, bool params_too) {
  // Libraries are little-endian, and so are their seals: elsewhere they are possibly intact, and cannot be read.
  if (std::endian::native == std::endian::big) TW_TRY_STATUS(check_elf_byte_order(file));
  auto seal = TW_TRY(read_artifact_seal(file));
  if (seal) {
    TW_TRY_STATUS(check_artifact_seal(file, *seal, params_too));
    file = file.first(seal->elf_bytes);
  }
  ElfImage image = TW_TRY(read_elf(file));
  const ElfSymbol* table = image.find(kArtifactSymbol);
  if (!table) {
    for (const auto& s : image.symbols)
      if (s.name.starts_with("tw_artifact_v"))
        return wrong_version(format("the artifact has format {}, this runtime reads {}", s.name.substr(12),
                                    std::string_view(kArtifactSymbol).substr(12)));
    for (const char* mark : {"__tvm_module_ctx", "__TVMFuncCall", kImportsSymbol})
      if (image.find(mark))
        return wrong_version("the library holds machine code of the classic stack, which this runtime does not run");
    return bad("the shared library is not a compiled model: it has no table of kernels");
  }
  if (!image.file_offset(table->address, sizeof(ArtifactTable)))
    return bad("the table of kernels lies outside of the file");
  return image;
}

namespace {

// Resolves pointers in a library file's data.
struct Pointed {
  std::span<const std::byte> file;
  const ElfImage& image;
  // The bytes that the pointer at `field` refers to.
  std::optional<std::span<const std::byte>> bytes(uint64_t field, uint64_t count) const {
    const auto to = image.pointer_at(field);
    const auto offset = to ? image.file_offset(*to, count) : std::nullopt;
    if (!offset) return std::nullopt;
    return file.subspan(*offset, count);
  }
  // A short NUL-terminated text.
  std::string_view text(uint64_t field) const {
    constexpr uint64_t kLongest = 256;
    for (uint64_t n = 1; n <= kLongest; ++n) {
      const auto found = bytes(field, n);
      if (!found) break;
      if ((*found)[n - 1] == std::byte{0}) return {reinterpret_cast<const char*>(found->data()), n - 1};
    }
    return {};
  }
};

Result<std::span<const std::byte>> plan_at(const Pointed& pointed, uint64_t field, uint64_t bytes, uint64_t hash) {
  const auto plan = pointed.bytes(field, bytes);
  if (!plan) return bad("the execution plan lies outside of the library");
  if (hash_bytes(plan->data(), plan->size()) != hash) return bad("the execution plan does not match its check sum");
  return *plan;
}

Result<std::vector<ArtifactContents::Set>> sets_at(const Pointed& pointed, uint64_t field, uint64_t count) {
  std::vector<ArtifactContents::Set> out;
  if (count > kMostInstructionSets) return bad("the list of instruction sets is too long");
  if (count == 0) return out;
  const auto first = pointed.image.pointer_at(field);
  const auto all = pointed.bytes(field, count * sizeof(InstructionSet));
  if (!first || !all) return bad("the list of instruction sets lies outside of the library");
  for (uint64_t i = 0; i < count; ++i) {
    InstructionSet set{};
    std::memcpy(&set, all->data() + i * sizeof set, sizeof set);
    const uint64_t at = *first + i * sizeof set;
    const auto plan = TW_TRY(plan_at(pointed, at + offsetof(InstructionSet, plan), set.plan_bytes, set.plan_hash));
    out.push_back({pointed.text(at + offsetof(InstructionSet, name)), set.kernel_count, plan});
  }
  return out;
}

}  // namespace

Result<ArtifactContents> read_artifact_file(std::span<const std::byte> file) {
  if (stackvm::is_file(file)) {
    const stackvm::File content = TW_TRY(stackvm::read_file(file, true));
    ArtifactContents out;
    out.kernels = TW_TRY(stackvm::read_programs(content.programs)).size();
    out.plan = content.plan, out.params = content.params;
    return out;
  }
  const ElfImage image = TW_TRY(check_artifact_file(file, true));
  if (image.word_bits != 8 * sizeof(void*)) return for_another_machine(elf_file_machine(file));
  const uint64_t at = image.find(kArtifactSymbol)->address;
  ArtifactTable table{};  // its pointers are only set when it is loaded
  std::memcpy(&table, file.data() + *image.file_offset(at, sizeof table), sizeof table);
  TW_TRY_STATUS(check_artifact_table(table));
  const Pointed pointed{file, image};
  const auto plan = TW_TRY(plan_at(pointed, at + offsetof(ArtifactTable, plan), table.plan_bytes, table.plan_hash));
  ArtifactContents out{image.machine, table.kernel_count, plan, {}, {}, {}};
  out.sets = TW_TRY(sets_at(pointed, at + offsetof(ArtifactTable, sets), table.set_count));
  if (table.params_bytes != 0) {
    const auto params = pointed.bytes(at + offsetof(ArtifactTable, params), table.params_bytes);
    if (!params) return bad("the weights lie outside of the library");
    out.params = *params;
  }
  if (const ElfSymbol* blob = image.find(kImportsSymbol)) {
    const auto head = image.file_offset(blob->address, 8);
    uint64_t bytes = 0;
    if (head) std::memcpy(&bytes, file.data() + *head, sizeof bytes);
    const auto all = head && bytes < (uint64_t{1} << 46) ? image.file_offset(blob->address, 8 + bytes) : std::nullopt;
    if (!all) return bad("the imported modules lie outside of the library");
    out.imports = {reinterpret_cast<const char*>(file.data() + *all + 8), bytes};
  }
  return out;
}

}  // namespace tilewright
