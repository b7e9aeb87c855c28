// SPDX-License-Identifier: Apache-2.0
#include "lower/merge.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/hash.h"
#include "tir/text.h"

namespace tilewright::lower {
namespace {

std::string text_without_name(tir::PrimFunc kernel) {
  kernel.name = "k";
  return tir::to_text(kernel);
}

}  // namespace

VariantMerger::VariantMerger(Lowered* into) : into_(into) {
  for (size_t i = 0; i < into->kernels.size(); ++i) {
    kernel_of_.emplace(format("{} {}", into->kernel_devices[i], text_without_name(into->kernels[i])),
                       static_cast<uint32_t>(i));
    names_.insert(into->kernels[i].name);
  }
  for (size_t i = 0; i < into->params.size(); ++i) param_of_.emplace(into->params[i].content_hash(), i);
  for (const plan::Param& p : into->plan.params)
    params_end_ = std::max(params_end_, (p.offset + p.bytes + 63) / 64 * 64);
}

void VariantMerger::add(Lowered variant) {
  Lowered* into = into_;
  plan::Plan &first = into->plan, &other = variant.plan;
  std::vector<uint32_t> new_kernel;
  for (size_t i = 0; i < variant.kernels.size(); ++i) {
    tir::PrimFunc& kernel = variant.kernels[i];
    auto [slot, fresh] = kernel_of_.try_emplace(format("{} {}", variant.kernel_devices[i], text_without_name(kernel)),
                                                static_cast<uint32_t>(into->kernels.size()));
    new_kernel.push_back(slot->second);
    if (!fresh) continue;
    const std::string base = kernel.name;
    for (int n = 1; !names_.insert(kernel.name).second; ++n) kernel.name = format("{}_v{}", base, n);
    first.kernels.push_back(kernel.name);
    into->kernels.push_back(std::move(kernel));
    into->kernel_devices.push_back(variant.kernel_devices[i]);
  }

  std::vector<uint64_t> new_offset;
  for (size_t i = 0; i < variant.params.size(); ++i) {
    const uint64_t hash = variant.params[i].content_hash();
    auto [begin, end] = param_of_.equal_range(hash);
    auto same = std::find_if(begin, end, [&](const auto& entry) {
      return into->params[entry.second] == variant.params[i] &&
             first.params[entry.second].bytes == other.params[i].bytes;
    });
    if (same != end) {
      new_offset.push_back(first.params[same->second].offset);
      continue;
    }
    const uint64_t at = params_end_;
    plan::Param p = other.params[i];
    p.offset = at;
    param_of_.emplace(hash, into->params.size());
    new_offset.push_back(at);
    // Kernels may read a full vector at the last element.
    first.params_bytes = std::max(first.params_bytes, (at + p.bytes + 63) / 64 * 64 + 64);
    params_end_ = (at + p.bytes + 63) / 64 * 64;
    first.params.push_back(std::move(p));
    into->params.push_back(variant.params[i]);
  }

  for (plan::Buffer& buffer : other.buffers) {
    if (buffer.space != plan::Space::kParams) continue;
    for (size_t i = 0; i < other.params.size(); ++i)
      if (other.params[i].offset <= buffer.offset &&
          buffer.offset < other.params[i].offset + std::max<uint64_t>(1, other.params[i].bytes)) {
        buffer.offset = new_offset[i] + (buffer.offset - other.params[i].offset);
        break;
      }
  }
  for (plan::Step& step : other.steps) {
    if (step.kind == plan::StepKind::kKernel) step.kernel = new_kernel[step.kernel];
    if (step.kind == plan::StepKind::kExternal) step.kernel += static_cast<uint32_t>(first.externals.size());
  }
  // Each variant's external functions are its own: they were compiled for its shapes.
  first.externals.insert(first.externals.end(), other.externals.begin(), other.externals.end());
  std::move(variant.externals.begin(), variant.externals.end(), std::back_inserter(into->externals));
  other.externals.clear(), other.kernels.clear(), other.params.clear(), other.metadata.clear();
  other.params_bytes = 0;
  first.variants.push_back(std::move(other));
  std::move(variant.taken_apart.begin(), variant.taken_apart.end(), std::back_inserter(into->taken_apart));
}

}  // namespace tilewright::lower
