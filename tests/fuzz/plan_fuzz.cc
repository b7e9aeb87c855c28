// SPDX-License-Identifier: Apache-2.0
// fuzz-room: base
// A plan that the reader accepts is written to bytes that it accepts, too; everything else is a diagnostic.
#include <span>
#include <string>
#include <vector>

#include "base/formats/plan.h"

using namespace tilewright;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  plan::Plan plan;
  seeds->push_back(write_plan(plan));
  plan.model_name = "net";
  plan.target = "llvm";
  plan.cpu_features = {"avx2"};
  plan.inputs = {{"x", kFloat32, {1, 3, 8, 8}}};
  plan.outputs = {{"y", kFloat32, {1, 10}}};
  plan.kernels = {"conv"};
  plan.arena_bytes = 4096;
  plan.params_bytes = 1024;
  plan.buffers = {{plan::Space::kInput, 0, 0, 768, kFloat32, {1, 3, 8, 8}, "NCHW", "x"},
                  {plan::Space::kParams, 0, 64, 256, kFloat32, {64}, "", "w"},
                  {plan::Space::kOutput, 0, 0, 40, kFloat32, {1, 10}, "", "y"}};
  plan.steps = {{0, {0, 1, 2}, true, "nn.conv2d", "Conv_0", 1e6, 2048, 12.5}};
  plan.params = {{"w", kFloat32, {64}, "O64o", 64, 256}};
  plan.metadata = {{"character", "a\nb"}};
  seeds->push_back(write_plan(plan));
  plan.externals = {"unit_0"};
  plan.devices = {1, 12};
  plan.device_arena_bytes = {512};
  plan.buffers.push_back({plan::Space::kArena, 0, 0, 40, kFloat32, {1, 10}, "", "there", 1});
  plan.steps.push_back({0, {0, 3}, false, "unit.dense", "", 0, 0, 0, "external.unit", 1, plan::StepKind::kExternal});
  plan.steps.push_back({0, {3, 2}, false, "device_copy", "", 0, 0, 0, "device_copy", 1, plan::StepKind::kCopy});
  seeds->push_back(write_plan(plan));
  plan::Plan variant = plan;
  variant.inputs[0].shape[2] = 4;
  variant.buffers[0].bytes = 384;
  plan.variants = {variant};
  seeds->push_back(write_plan(plan));
  plan.variants[0].free_sizes = {{"height", 2, 4, {{false, 0, 2}}}};
  plan.variants[0].buffers.push_back({plan::Space::kInput, 1, 0, 8, kInt64, {1}, "", "size of height"});
  seeds->push_back(write_plan(plan));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Result<plan::Plan> plan = plan::read_plan(std::as_bytes(std::span(data, size)));
  if (!plan.ok()) return 0;
  // Not the input's own bytes: the reader drops figures for reports that are no numbers.
  const std::string written = write_plan(*plan);
  Result<plan::Plan> again = plan::read_plan(std::as_bytes(std::span(written)));
  if (!again.ok() || write_plan(*again) != written) __builtin_trap();
  return 0;
}
