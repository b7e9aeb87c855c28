// SPDX-License-Identifier: Apache-2.0
#include "lower/merge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/format.h"
#include "base/hash.h"
#include "tir/text.h"

namespace tilewright::lower {
namespace {

std::string text_without_name(tir::PrimFunc kernel) {
  kernel.name = "k";
  return tir::to_text(kernel);
}

// Where each of other's weights lies among those of `into`.
std::vector<uint64_t> joined_offsets(Lowered* into, const Lowered& other) {
  plan::Plan& first = into->plan;
  std::multimap<uint64_t, size_t> param_of;
  for (size_t i = 0; i < into->params.size(); ++i) param_of.emplace(into->params[i].content_hash(), i);
  std::vector<uint64_t> new_offset;
  for (size_t i = 0; i < other.params.size(); ++i) {
    const uint64_t hash = other.params[i].content_hash();
    auto [begin, end] = param_of.equal_range(hash);
    auto same = std::find_if(begin, end, [&](const auto& entry) {
      return into->params[entry.second] == other.params[i] &&
             first.params[entry.second].bytes == other.plan.params[i].bytes;
    });
    if (same != end) {
      new_offset.push_back(first.params[same->second].offset);
      continue;
    }
    uint64_t at = 0;
    for (const plan::Param& p : first.params) at = std::max(at, (p.offset + p.bytes + 63) / 64 * 64);
    plan::Param p = other.plan.params[i];
    p.offset = at;
    param_of.emplace(hash, into->params.size());
    new_offset.push_back(at);
    // Kernels may read a full vector at the last element.
    first.params_bytes = std::max(first.params_bytes, (at + p.bytes + 63) / 64 * 64 + 64);
    first.params.push_back(std::move(p));
    into->params.push_back(other.params[i]);
  }

  return new_offset;
}

}  // namespace

void merge_weights(Lowered* into, Lowered* other) {
  const std::vector<uint64_t> new_offset = joined_offsets(into, *other);
  plan::Plan& plan = other->plan;
  auto move = [&](std::vector<plan::Buffer>* buffers) {
    for (plan::Buffer& buffer : *buffers) {
      if (buffer.space != plan::Space::kParams) continue;
      for (size_t i = 0; i < plan.params.size(); ++i)
        if (plan.params[i].offset <= buffer.offset &&
            buffer.offset < plan.params[i].offset + std::max<uint64_t>(1, plan.params[i].bytes)) {
          buffer.offset = new_offset[i] + (buffer.offset - plan.params[i].offset);
          break;
        }
    }
  };
  move(&plan.buffers);
  for (plan::Plan& variant : plan.variants) move(&variant.buffers);
  plan.params.clear(), other->params.clear();
  plan.params_bytes = 0;
}

void merge_variant(Lowered* into, Lowered variant) {
  plan::Plan &first = into->plan, &other = variant.plan;
  std::map<std::string, uint32_t> kernel_of;
  std::set<std::string> names;
  for (size_t i = 0; i < into->kernels.size(); ++i) {
    kernel_of.emplace(format("{} {}", into->kernel_devices[i], text_without_name(into->kernels[i])),
                      static_cast<uint32_t>(i));
    names.insert(into->kernels[i].name);
  }
  std::vector<uint32_t> new_kernel;
  for (size_t i = 0; i < variant.kernels.size(); ++i) {
    tir::PrimFunc& kernel = variant.kernels[i];
    auto [slot, fresh] = kernel_of.try_emplace(format("{} {}", variant.kernel_devices[i], text_without_name(kernel)),
                                               static_cast<uint32_t>(into->kernels.size()));
    new_kernel.push_back(slot->second);
    if (!fresh) continue;
    const std::string base = kernel.name;
    for (int n = 1; !names.insert(kernel.name).second; ++n) kernel.name = format("{}_v{}", base, n);
    first.kernels.push_back(kernel.name);
    into->kernels.push_back(std::move(kernel));
    into->kernel_devices.push_back(variant.kernel_devices[i]);
  }

  merge_weights(into, &variant);
  for (plan::Step& step : other.steps) {
    if (step.kind == plan::StepKind::kKernel) step.kernel = new_kernel[step.kernel];
    if (step.kind == plan::StepKind::kExternal) step.kernel += static_cast<uint32_t>(first.externals.size());
  }
  // Each variant's external functions are its own: they were compiled for its shapes.
  first.externals.insert(first.externals.end(), other.externals.begin(), other.externals.end());
  std::move(variant.externals.begin(), variant.externals.end(), std::back_inserter(into->externals));
  other.externals.clear(), other.kernels.clear(), other.metadata.clear();
  first.variants.push_back(std::move(other));
  std::move(variant.taken_apart.begin(), variant.taken_apart.end(), std::back_inserter(into->taken_apart));
}

}  // namespace tilewright::lower
