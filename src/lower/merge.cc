// SPDX-License-Identifier: Apache-2.0
#include "lower/merge.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "base/hash.h"
#include "tir/text.h"

namespace tilewright::lower {
namespace {

std::string text_without_name(tir::PrimFunc kernel) {
  kernel.name = "k";
  return tir::to_text(kernel);
}

uint64_t hash_of_kernel(uint32_t device, const std::string& text) {
  return hash_bytes(text.data(), text.size()) ^ device;
}

}  // namespace

std::vector<uint64_t> JoinedWeights::join(Lowered* into, const Lowered& other) {
  plan::Plan& first = into->plan;
  for (; known_ < into->params.size(); ++known_) {
    param_of_.emplace(into->params[known_].content_hash(), known_);
    const plan::Param& p = first.params[known_];
    end_ = std::max(end_, (p.offset + p.bytes + 63) / 64 * 64);
  }
  std::vector<uint64_t> new_offset;
  for (size_t i = 0; i < other.params.size(); ++i) {
    const uint64_t hash = other.params[i].content_hash();
    auto [begin, end] = param_of_.equal_range(hash);
    auto same = std::find_if(begin, end, [&](const auto& entry) {
      return into->params[entry.second] == other.params[i] &&
             first.params[entry.second].bytes == other.plan.params[i].bytes;
    });
    if (same != end) {
      new_offset.push_back(first.params[same->second].offset);
      continue;
    }
    plan::Param p = other.plan.params[i];
    p.offset = end_;
    end_ = (p.offset + p.bytes + 63) / 64 * 64;
    param_of_.emplace(hash, into->params.size());
    new_offset.push_back(p.offset);
    // Kernels may load a full vector at the last element.
    first.params_bytes = std::max(first.params_bytes, end_ + 64);
    first.params.push_back(std::move(p));
    into->params.push_back(other.params[i]);
    ++known_;
  }
  return new_offset;
}

namespace {

void move_weights(const std::vector<uint64_t>& new_offset, Lowered* other) {
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

}  // namespace

void merge_weights(Lowered* into, Lowered* other) { move_weights(JoinedWeights().join(into, *other), other); }

void Variants::know_kernels(const Lowered& into) {
  for (; known_ < into.kernels.size(); ++known_) {
    kernel_of_.emplace(hash_of_kernel(into.kernel_devices[known_], text_without_name(into.kernels[known_])),
                       static_cast<uint32_t>(known_));
    names_.emplace(into.kernels[known_].name, 0);
  }
}

std::string Variants::free_name(const std::string& base) {
  auto [at, fresh] = names_.try_emplace(base, 0);
  if (fresh) return base;
  for (;;) {
    std::string name = format("{}_v{}", base, ++at->second);
    if (names_.try_emplace(name, 0).second) return name;
  }
}

void Variants::add(Lowered* into, Lowered variant) {
  plan::Plan &first = into->plan, &other = variant.plan;
  know_kernels(*into);
  std::vector<uint32_t> new_kernel;
  for (size_t i = 0; i < variant.kernels.size(); ++i) {
    tir::PrimFunc& kernel = variant.kernels[i];
    const uint32_t device = variant.kernel_devices[i];
    const std::string text = text_without_name(kernel);
    const uint64_t hash = hash_of_kernel(device, text);
    auto [begin, end] = kernel_of_.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& entry) {
      return into->kernel_devices[entry.second] == device && text_without_name(into->kernels[entry.second]) == text;
    });
    if (same != end) {
      new_kernel.push_back(same->second);
      continue;
    }
    kernel.name = free_name(kernel.name);
    new_kernel.push_back(static_cast<uint32_t>(into->kernels.size()));
    kernel_of_.emplace(hash, new_kernel.back());
    first.kernels.push_back(kernel.name);
    into->kernels.push_back(std::move(kernel));
    into->kernel_devices.push_back(device);
  }
  known_ = into->kernels.size();
  move_weights(weights_.join(into, variant), &variant);
  for (plan::Step& step : other.steps) {
    if (step.kind == plan::StepKind::kKernel) step.kernel = new_kernel[step.kernel];
    if (step.kind == plan::StepKind::kExternal) step.kernel += static_cast<uint32_t>(first.externals.size());
  }
  // External functions are never shared: they were compiled for the variant's shapes.
  first.externals.insert(first.externals.end(), other.externals.begin(), other.externals.end());
  std::move(variant.externals.begin(), variant.externals.end(), std::back_inserter(into->externals));
  other.externals.clear(), other.kernels.clear(), other.metadata.clear();
  first.variants.push_back(std::move(other));
  std::move(variant.taken_apart.begin(), variant.taken_apart.end(), std::back_inserter(into->taken_apart));
}

}  // namespace tilewright::lower
