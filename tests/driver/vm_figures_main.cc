// SPDX-License-Identifier: Apache-2.0
// What a VM program costs beyond its kernels.
//   build/vm_figures instructions                        nanoseconds per instruction
//   build/vm_figures shapes MODEL.onnx [N] [LARGEST]      N runs (10000) with random free sizes up to LARGEST (64):
//   memory, compilations
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/format.h"
#include "driver/verify.h"
#include "driver/vm.h"
#include "runtime/vm/compiler_hook.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {
namespace {

using namespace runtime::vm;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double resident_mib() {
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

int instructions() {
  // while (more_steps(i, n)) { j = i; k = (j, j); j = k.0; i = next_step(i) }
  auto program = std::make_shared<Program>();
  for (const char* name : {"more_steps", "next_step"}) {
    program->regions.push_back(
        {"host", name[0] == 'm' ? std::vector<std::string>{"i", "n"} : std::vector<std::string>{"i"}, name});
    program->executable.primitives.emplace_back(name);
  }
  program->inputs = {{"n", kInt64, {}}};
  program->outputs = {"i"};
  auto loop = [&](bool moves) {
    Function f{"main", {"n"}, {0}, 8, {}};
    f.code = {{Opcode::kLoadConsti, {0, 1}},
              {Opcode::kLoadConsti, {1, 2}},
              {Opcode::kInvokePacked, {0, 3, 1, 1, 0, 3}},
              {Opcode::kIf, {3, 2, 1, 0}}};
    if (moves)
      for (int i = 0; i < 16; ++i) {
        f.code.push_back({Opcode::kMove, {1, 4}});
        f.code.push_back({Opcode::kLoadConsti, {7, 5}});
        f.code.push_back({Opcode::kGoto, {1}});
        f.code.push_back({Opcode::kIf, {5, 2, 1, 1}});
      }
    f.code.push_back({Opcode::kInvokePacked, {1, 2, 1, 1, 6}});
    f.code.push_back({Opcode::kMove, {6, 1}});
    const auto back = static_cast<int64_t>(f.code.size());
    f.code.push_back({Opcode::kGoto, {2 - back}});
    f.code[3].fields[3] = back + 1 - 3;
    f.code.push_back({Opcode::kRet, {1}});
    program->executable.functions = {f};
    auto runner = ProgramRunner::create(program, {});
    if (!runner.ok()) std::printf("%s\n", runner.error().str().c_str());
    constexpr int64_t kSteps = 1'000'000;
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double begin = seconds();
      auto got = (*runner)->run({Tensor::scalar<int64_t>(kInt64, kSteps)});
      if (!got.ok()) std::printf("%s\n", got.error().str().c_str());
      best = std::min(best, (seconds() - begin) / kSteps);
    }
    return best * 1e9;
  };
  const double bare = loop(false), more = loop(true);
  std::printf(
      "%.1f ns per instruction (Move, LoadConsti, Goto, If); %.1f ns for a step of a loop: two calls of functions and "
      "four instructions\n",
      (more - bare) / 64, bare);
  return 0;
}

int shapes(const std::string& model, int64_t runs, int64_t largest) {
  auto program = vm_program(model, {});
  if (!program.ok()) return std::printf("%s\n", program.error().str().c_str()), 1;
  auto shared = std::make_shared<const Program>(std::move(*program));
  SpecializedOptions options;
  options.evaluate = evaluate_with(shared, tw_compiler_evaluate, tw_compiler_last_error_message);
  auto runner = ProgramRunner::create(
      shared, specialize_with(shared, tw_compiler_specialize, tw_compiler_last_error_message), options);
  if (!runner.ok()) return std::printf("%s\n", runner.error().str().c_str()), 1;
  std::mt19937_64 engine(1);
  const double begin = seconds();
  int64_t refused = 0;
  for (int64_t run = 0; run < runs; ++run) {
    std::vector<Tensor> inputs;
    const auto size = static_cast<int64_t>(engine() % static_cast<uint64_t>(largest)) + 1;
    for (const auto& spec : shared->inputs) {
      std::vector<int64_t> shape = spec.shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] < 0) shape[d] = d == 0 && shape.size() > 1 ? size % 3 + 1 : size;  // a small batch
      inputs.push_back(random_tensor(spec.dtype, shape, engine()));
    }
    if (auto got = (*runner)->run(std::move(inputs)); !got.ok() && refused++ == 0)
      std::printf("%s\n", got.error().str().c_str());
    if (run + 1 == runs / 10 || run + 1 == runs / 2 || run + 1 == runs)
      std::printf("%lld runs, %.1f s: %.1f MiB resident, %zu compiled, %zu kept, %zu calls evaluated, %lld refused\n",
                  static_cast<long long>(run + 1), seconds() - begin, resident_mib(), (*runner)->functions().compiled(),
                  (*runner)->functions().kept(), (*runner)->functions().evaluated(), static_cast<long long>(refused));
  }
  return refused != 0;
}

}  // namespace
}  // namespace tilewright::driver

int main(int argc, char** argv) {
  using namespace tilewright::driver;
  if (argc >= 2 && !std::strcmp(argv[1], "instructions")) return instructions();
  if (argc >= 3 && !std::strcmp(argv[1], "shapes"))
    return shapes(argv[2], argc > 3 ? std::atoll(argv[3]) : 10000, argc > 4 ? std::atoll(argv[4]) : 64);
  std::fprintf(stderr, "vm_figures instructions | shapes MODEL.onnx [N] [LARGEST]\n");
  return 2;
}
