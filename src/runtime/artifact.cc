// SPDX-License-Identifier: Apache-2.0
#include "runtime/artifact.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/hash.h"
#include "base/plugin.h"
#include "runtime/arena.h"
#include "runtime/cpu.h"
#include "runtime/instruction_set.h"
#include "runtime/mapped_file.h"

namespace tilewright::runtime {
namespace {

Diagnostic bad(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), {}, "compile the model again");
}

// All checks that do not execute anything in the file.
Result<ElfImage> check_file(std::span<const std::byte> file, const LoadOptions& options) {
  ElfImage image = TW_TRY(check_artifact_file(file, options.verify_params));
  if (image.machine != this_elf_machine() || image.word_bits != 8 * sizeof(void*))
    return for_another_machine(elf_file_machine(file));
  return image;
}

// Requests huge pages (MappedFile) for the whole segment, since advice for part of it would split the mapping, and a
// huge page must lie in one mapping. Smaller segments are read ahead.
void expect_weights(uint64_t address, uint64_t bytes) {
  const uint64_t first = address / 4096 * 4096;
  void* start = reinterpret_cast<void*>(first);
  const uint64_t length = address + bytes - first;
  if (length < kHugePage || madvise(start, length, MADV_HUGEPAGE) != 0) madvise(start, length, MADV_WILLNEED);
}

// Whether addresses lie within the checked library. Without an image the model is part of the program.
struct Inside {
  const ElfImage* image;
  uint64_t base;
  const ElfSegment* segment(const void* p, uint64_t bytes) const {
    return image->segment_of(reinterpret_cast<uintptr_t>(p) - base, bytes);
  }
  bool operator()(const void* p, uint64_t bytes) const { return image ? segment(p, bytes) != nullptr : p != nullptr; }
  bool code(const void* p) const {
    if (!image) return p != nullptr;
    const ElfSegment* s = segment(p, 1);
    return s && s->executable;
  }
  bool text(const char* p) const {
    for (uint64_t n = 1; n <= (1 << 12); ++n)
      if (!(*this)(p, n) || p[n - 1] == '\0') return (*this)(p, n);
    return false;
  }
};

// Checks the table after loading: its pointers must stay within the library.
Status check_table(const ArtifactTable& table, const ElfImage* image, uint64_t base) {
  TW_TRY_STATUS(check_artifact_table(table));
  const Inside inside{image, base};
  if (!inside(table.plan, table.plan_bytes)) return bad("the execution plan lies outside of the library");
  if (table.params_bytes != 0 && !inside(table.params, table.params_bytes))
    return bad("the weights lie outside of the library");
  if (table.params_bytes != 0 && reinterpret_cast<uintptr_t>(table.params) % 64 != 0)
    return bad("the weights are not aligned");
  if (table.kernel_count > (1u << 24) || !inside(table.kernels, table.kernel_count * sizeof(KernelFunction)))
    return bad("the list of kernels lies outside of the library");
  for (uint64_t i = 0; image && i < table.kernel_count; ++i)
    if (!inside.code(reinterpret_cast<const void*>(table.kernels[i])))
      return bad(format("kernel {} lies outside of the code", i));
  if (hash_bytes(table.plan, table.plan_bytes) != table.plan_hash)
    return bad("the execution plan does not match its check sum");
  return Ok{};
}

// A path of the descriptor that was never used before in this process: a library loaded twice is known by both names
// until its last user closes it, and the linker would confuse a later file that gets a closed descriptor's number with
// it.
std::string fresh_name(int descriptor) {
  static std::atomic<uint64_t> count{0};
  uint64_t n = count.fetch_add(1, std::memory_order_relaxed);
  auto slashes = [&n] {
    size_t length = 1 + n % 1000;
    n /= 1000;
    return std::string(length, '/');
  };
  std::string name = slashes() + "proc";
  name += slashes() + "self";
  name += slashes() + "fd";
  return name + slashes() + std::to_string(descriptor);
}

}  // namespace

Result<std::shared_ptr<const Artifact>> Artifact::load(const std::string& path, const LoadOptions& options) {
  MappedFile file = TW_TRY(MappedFile::open(path, "a compiled model"));
  if (stackvm::is_file(file.bytes())) return load_byte_code(std::move(file), path, options);
  auto image = check_file(file.bytes(), options);
  if (!image.ok()) return std::move(image).error().at(path);

  std::shared_ptr<Artifact> artifact(new Artifact);
  artifact->path_ = path;
  // Loads through the checked descriptor: the dynamic linker identifies
  // libraries by path, even when a newer file has replaced the old one.
  // The descriptor stays open so that no other library gets its number.
  artifact->file_ = file.release_descriptor();
  artifact->library_ = dlopen(fresh_name(artifact->file_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!artifact->library_ && access("/proc/self/fd", F_OK) != 0) {
    const std::string absolute = absolute_path(path);
    artifact->library_ = dlopen(absolute.empty() ? path.c_str() : absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  link_map* map = nullptr;
  if (!artifact->library_ || dlinfo(artifact->library_, RTLD_DI_LINKMAP, &map) != 0 || !map) {
    const char* why = dlerror();
    return bad(format("the library cannot be loaded: {}", why ? why : "unknown reason")).at(path);
  }
  const void* symbol = dlsym(artifact->library_, kArtifactSymbol);
  if (reinterpret_cast<uintptr_t>(symbol) - map->l_addr != image->find(kArtifactSymbol)->address)
    return bad("the table of kernels is not where the file says").at(path);
  ArtifactTable table{};
  std::memcpy(&table, symbol, sizeof table);
  if (auto chosen = artifact->choose(&table, &*image, map->l_addr); !chosen.ok())
    return std::move(chosen).error().at(path);
  if (auto status = check_table(table, &*image, map->l_addr); !status.ok()) return std::move(status).error().at(path);
  TW_TRY_STATUS(artifact->take(table, options));
  // Modules linked in as a separate object (devc.o).
  if (const ElfSymbol* blob = image->find(kImportsSymbol); blob && artifact->plan_.imports.empty()) {
    const ElfSegment* home = image->segment_of(blob->address, 8);
    uint64_t bytes = 0;
    if (home) std::memcpy(&bytes, reinterpret_cast<const void*>(map->l_addr + blob->address), sizeof bytes);
    if (!home || bytes > (uint64_t{1} << 46) || !image->segment_of(blob->address, 8 + bytes))
      return bad("the imported modules lie outside of the library").at(path);
    artifact->plan_.imports.assign(reinterpret_cast<const char*>(map->l_addr + blob->address + 8), bytes);
  }
  const bool apart = artifact->weights_ != nullptr;
  if (!artifact->entry_) artifact->entry_ = dlsym(artifact->library_, apart ? kRunWithWeightsSymbol : kRunSymbol);
  if (artifact->entry_ && !Inside{&*image, map->l_addr}.code(artifact->entry_))
    return bad("the entry function lies outside of the code").at(path);
  if (table.params_bytes != 0) {
    const ElfSegment* home =
        image->segment_of(reinterpret_cast<uintptr_t>(table.params) - map->l_addr, table.params_bytes);
    expect_weights(map->l_addr + home->address, home->file_bytes);
  }
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

Result<std::shared_ptr<const Artifact>> Artifact::linked(const std::string& name, const ArtifactTable* table,
                                                         void* entry) {
  std::shared_ptr<Artifact> artifact(new Artifact);
  artifact->path_ = name;
  if (auto known = check_artifact_table(*table); !known.ok()) return std::move(known).error().at(name);
  ArtifactTable own = *table;
  artifact->entry_ = entry;
  if (auto chosen = artifact->choose(&own, nullptr, 0); !chosen.ok()) return std::move(chosen).error().at(name);
  if (auto status = check_table(own, nullptr, 0); !status.ok()) return std::move(status).error().at(name);
  LoadOptions options;
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  options.home = std::string(program, length > 0 ? static_cast<size_t>(length) : 0);
  TW_TRY_STATUS(artifact->take(own, options));
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

Status Artifact::choose(ArtifactTable* table, const ElfImage* image, uint64_t base) {
  TW_TRY_STATUS(check_artifact_table(*table));
  if (table->set_count == 0) return Ok{};
  const Inside inside{image, base};
  if (table->set_count > kMostInstructionSets || !inside(table->sets, table->set_count * sizeof(InstructionSet)))
    return bad("the list of instruction sets lies outside of the library");
  std::vector<InstructionSetChoice> choices;
  for (const InstructionSet& set : std::span(table->sets, table->set_count)) {
    if (!inside.text(set.name) || !inside.text(set.features))
      return bad("the name of an instruction set lies outside of the library");
    choices.push_back({set.name, missing_cpu_features(std::string_view(set.features))});
  }
  const InstructionSet& chosen = table->sets[TW_TRY(choose_instruction_set(choices))];
  table->plan = chosen.plan, table->plan_bytes = chosen.plan_bytes, table->plan_hash = chosen.plan_hash;
  table->kernels = chosen.kernels, table->kernel_count = chosen.kernel_count;
  entry_ = chosen.entry;
  return Ok{};
}

// Takes the plan over, and checks that the artifact and the machine satisfy it.
Status Artifact::take(const ArtifactTable& table, const LoadOptions& options) {
  auto plan = plan::read_plan({static_cast<const std::byte*>(table.plan), static_cast<size_t>(table.plan_bytes)});
  if (!plan.ok()) {
    Diagnostic d = std::move(plan).error();
    d.where = path_;
    return d;
  }
  if (auto fits = check_artifact_plan(*plan, table.kernel_count, table.params_bytes); !fits.ok())
    return std::move(fits).error().at(path_);
  if (auto missing = missing_cpu_features(plan->cpu_features); !missing.empty())
    return Diagnostic(
        ErrorCode::kCpuMismatch,
        format("the model was compiled for '{}', and this machine lacks {}", plan->target, comma_separated(missing)),
        path_, "compile the model on this machine, or with --target for an older CPU");
  plan_ = std::move(*plan);
  for (uint64_t i = 0; table.kernels && i < table.kernel_count; ++i) kernels_.emplace_back(table.kernels[i]);
  params_ = static_cast<const std::byte*>(table.params);
  return plan_.weights_file.empty() ? Status(Ok{}) : open_weights(options);
}

Status Artifact::open_weights(const LoadOptions& options) {
  std::string file = options.weights;
  if (file.empty()) {
    const std::string& home = options.home.empty() ? path_ : options.home;
    const size_t slash = plan_.weights_file[0] == '/' ? std::string::npos : home.rfind('/');
    file = (slash == std::string::npos ? "" : home.substr(0, slash + 1)) + plan_.weights_file;
  }
  auto weights = SharedWeights::open(file, options.verify_params);
  if (!weights.ok() && weights.error().code == ErrorCode::kFileNotFound)
    return Diagnostic(ErrorCode::kFileNotFound,
                      format("the model's weights are a file of their own: {}: {}", file, weights.error().message),
                      path_, "put the file there, or name it when the model is loaded");
  if (!weights.ok()) return std::move(weights).error();
  if (Status fits = check_weights_of_plan(plan_, (*weights)->list()); !fits.ok())
    return std::move(fits).error().at(file);
  weights_ = std::move(*weights);
  params_ = weights_->data();
  return Ok{};
}

int Artifact::run_entry(void* const* inputs, void* const* outputs, void* arena) const {
  return weights_ ? reinterpret_cast<EntryWithWeights>(entry_)(inputs, outputs, arena, params_)
                  : reinterpret_cast<EntryFunction>(entry_)(inputs, outputs, arena);
}

void* Artifact::symbol(const std::string& name, bool code) const {
  void* found = library_ ? dlsym(library_, name.c_str()) : nullptr;
  Dl_info place{};
  const ElfW(Sym)* entry = nullptr;
  link_map* own = nullptr;
  if (!found ||
      dladdr1(found, &place, const_cast<void**>(reinterpret_cast<const void**>(&entry)), RTLD_DL_SYMENT) == 0 ||
      !entry || dlinfo(library_, RTLD_DI_LINKMAP, &own) != 0)
    return nullptr;
  const bool ours = reinterpret_cast<uintptr_t>(place.dli_fbase) == own->l_addr;  // and not in a library it depends on
  return ours && ELF64_ST_TYPE(entry->st_info) == (code ? STT_FUNC : STT_OBJECT) ? found : nullptr;
}

Artifact::~Artifact() {
  if (library_) dlclose(library_);
  if (file_ >= 0) close(file_);
}

}  // namespace tilewright::runtime
