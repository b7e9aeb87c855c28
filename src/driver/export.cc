// SPDX-License-Identifier: Apache-2.0
// What a built model is written as.

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "base/work_folder.h"
#include "codegen/codegen.h"
#include "driver/build.h"
#include "driver/guarded.h"
#include "runtime/graph_json.h"
#include "runtime/params_file.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

// A POSIX tar file, member by member. Times, owners and modes are fixed: the same members, the same bytes.
class TarWriter {
 public:
  explicit TarWriter(std::ostream& out) : out_(out) {}
  void header(const std::string& name, uint64_t bytes) {
    char block[512] = {};
    auto put = [&](size_t at, const std::string& text) {
      std::memcpy(block + at, text.data(), text.size());
    };  // NOLINT(bugprone-not-null-terminated-result): fields end in zeros already
    put(0, name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    // Eleven octal digits reach 8 GiB; beyond, the size is binary with the first bit set (GNU).
    if (bytes < (uint64_t{1} << 33)) {
      put(124, format("{:011o}", bytes));
    } else {
      block[124] = static_cast<char>(0x80);
      for (int i = 0; i < 8; ++i) block[135 - i] = static_cast<char>(bytes >> (8 * i));
    }
    put(136, "00000000000");
    put(148, "        ");
    block[156] = '0';
    put(257, std::string("ustar\00000", 8));
    unsigned sum = 0;
    for (char c : block) sum += static_cast<unsigned char>(c);
    put(148, format("{:06o}", sum) + std::string("\0 ", 2));
    out_.write(block, sizeof block);
  }
  void pad(uint64_t bytes) {
    static const char kZeros[512] = {};
    if (bytes % 512 != 0) out_.write(kZeros, static_cast<std::streamsize>(512 - bytes % 512));
  }
  void add(const std::string& name, const std::string& bytes) {
    header(name, bytes.size());
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    pad(bytes.size());
  }
  bool add_file(const std::string& name, const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (!in || error) return false;
    header(name, bytes);
    if (bytes > 0) out_ << in.rdbuf();
    pad(bytes);
    return in.good() || in.eof();
  }
  void finish() {
    const std::string zeros(1024, '\0');
    out_.write(zeros.data(), 1024);
  }

 private:
  std::ostream& out_;
};

std::string params_file(const plan::Plan& plan, const std::vector<Tensor>& weights) {
  std::vector<runtime::NamedTensor> tensors;
  for (size_t i = 0; i < plan.params.size(); ++i)
    tensors.push_back({plan.params[i].name,
                       weights[i].dtype(),
                       weights[i].shape(),
                       {weights[i].raw(), static_cast<size_t>(weights[i].bytes())}});
  return runtime::write_params_file(tensors);
}

Status write_package(const plan::Plan& plan, const std::vector<Tensor>& weights, std::span<const std::string> objects,
                     const codegen::ByteSpans& params, const Target& target, const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return cannot_write(path, "there is a folder of this name");
  const WorkFolder folder = TW_TRY(WorkFolder::beside(path));
  const std::string library = folder.path() + "/mod.so", package = folder.path() + "/package";
  if (Status linked = codegen::link_shared(objects, library, target, &params); !linked.ok()) {
    Diagnostic error = std::move(linked).error();
    error.where = path;  // not the library inside the folder, of which the user knows nothing
    return error;
  }
  std::ofstream out(package, std::ios::binary);
  TarWriter tar(out);
  const bool copied = tar.add_file("mod.so", library);
  tar.add("mod.json", runtime::write_graph_json(plan));
  tar.add("mod.params", params_file(plan, weights));
  tar.finish();
  out.close();
  if (!out || !copied) return cannot_write(path, "no space, or the folder vanished");
  fs::rename(package, path, error);
  if (error) return cannot_write(path, error.message());
  return Ok{};
}

// `written` is called when the weights are on disk and no longer needed.
Status write_output(const plan::Plan& plan, const std::vector<Tensor>& weights, std::vector<std::string> objects,
                    const Target& target, const std::string& path, const std::function<void()>& written) {
  if (const OutputForm form = output_form(path);
      (form == OutputForm::kObject || form == OutputForm::kArchive) && !plan.externals.empty())
    return Diagnostic(
        ErrorCode::kUnsupportedModel,
        format(
            "the model calls '{}' of an imported module, and a program that links '{}' has no runtime to find it with",
            plan.externals[0], path),
        {}, "write a shared library (.so)");
  objects.push_back(TW_TRY(codegen::compile_glue(plan, target)));
  // Each tensor at its offset, zeros between and after.
  static const std::vector<std::byte> kZeros(256);
  std::vector<std::span<const std::byte>> pieces;
  uint64_t at = 0;
  auto pad_to = [&](uint64_t offset) {
    while (at < offset) {
      uint64_t n = std::min<uint64_t>(offset - at, kZeros.size());
      pieces.push_back(std::span(kZeros).first(n));
      at += n;
    }
  };
  for (size_t i = 0; i < plan.params.size(); ++i) {
    pad_to(plan.params[i].offset);
    pieces.push_back({weights[i].raw(), static_cast<size_t>(weights[i].bytes())});
    at += weights[i].bytes();
  }
  pad_to(plan.params_bytes);
  const codegen::ByteSpans params = pieces;
  switch (output_form(path)) {
    case OutputForm::kLibrary:
      return codegen::link_shared(objects, path, target, &params, written);
    case OutputForm::kObject:
      return codegen::link_relocatable(objects, path, target, &params, written);
    case OutputForm::kArchive:
      return codegen::write_archive(objects, path, target, &params, written);
    case OutputForm::kPackage:
      return write_package(plan, weights, objects, params, target, path);
  }
  return Ok{};
}

}  // namespace

OutputForm output_form(const std::string& path) {
  if (path.ends_with(".o")) return OutputForm::kObject;
  if (path.ends_with(".a")) return OutputForm::kArchive;
  if (path.ends_with(".tar")) return OutputForm::kPackage;
  return OutputForm::kLibrary;
}

Status export_library(const Built& built, const std::string& path) {
  return guarded(
      [&] { return write_output(built.lowered.plan, built.lowered.params, built.objects, built.target, path, {}); });
}

Status export_library_and_release(Built* built, const std::string& path) {
  return guarded([&] {
    return write_output(built->lowered.plan, built->lowered.params, std::move(built->objects), built->target, path,
                        [&] { built->lowered.params.clear(); });
  });
}

}  // namespace tilewright::driver
