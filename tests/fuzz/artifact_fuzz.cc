// SPDX-License-Identifier: Apache-2.0
// fuzz-room: codegen
// What `inspect` reads of a library without loading it: everything it gives lies in the file, whatever the bytes are.
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/formats/artifact.h"
#include "base/formats/plan.h"
#include "base/formats/seal.h"
#include "base/work_folder.h"
#include "codegen/codegen.h"

using namespace tilewright;

namespace {

// A library as `compile` links it, with no kernels: the table, the plan, weights and, if any, imported modules.
std::string library(const char* target_text, const std::string& imports) {
  const Target target = codegen::resolve_target(parse_target(target_text).value()).value();
  plan::Plan plan;
  plan.model_name = "net";
  plan.target = target.str();
  plan.inputs = {{"x", kFloat32, {4}}};
  plan.params = {{"w", kFloat32, {16}, "", 0, 64}};
  plan.params_bytes = 64;
  const std::string weights(64, '\3');
  const codegen::WeightPiece pieces[] = {codegen::WeightPiece(std::as_bytes(std::span(weights)))};
  const codegen::WeightPieces params = pieces;
  std::vector<std::string> objects{codegen::compile_glue(plan, target).value()};
  if (!imports.empty()) objects.push_back(codegen::compile_imports(imports, target).value());
  const WorkFolder folder = WorkFolder::temporary("tilewright-fuzz").value();
  (void)codegen::link_shared(objects, folder.path() + "/net.so", target, &params).value();
  std::ifstream file(folder.path() + "/net.so", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

// With the seal every change is found at once; without it the changes reach the rest of the reader.
extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  for (const char* target : {"llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64", "llvm -mtriple=aarch64-linux-gnu"})
    for (const char* imports : {"", "a tree of modules"}) {
      const std::string whole = library(target, imports);
      const auto seal = read_artifact_seal(std::as_bytes(std::span(whole))).value();
      seeds->push_back(whole);
      seeds->push_back(whole.substr(0, seal->elf_bytes));
      if (!read_artifact_file(std::as_bytes(std::span(seeds->back()))).ok()) __builtin_trap();
    }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto contents = read_artifact_file(bytes);
  if (!contents.ok()) {
    const ErrorCode code = contents.error().code;
    if (code != ErrorCode::kBadArtifact && code != ErrorCode::kArtifactVersion && code != ErrorCode::kCpuMismatch)
      __builtin_trap();
    return 0;
  }
  auto inside = [&](const void* p, size_t n) {
    const auto* at = static_cast<const std::byte*>(p);
    return n == 0 || (at >= bytes.data() && n <= size && at + n <= bytes.data() + size);
  };
  if (!inside(contents->plan.data(), contents->plan.size()) ||
      !inside(contents->params.data(), contents->params.size()) ||
      !inside(contents->imports.data(), contents->imports.size()))
    __builtin_trap();
  (void)plan::read_plan(contents->plan).ok();
  return 0;
}
