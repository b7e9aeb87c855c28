// SPDX-License-Identifier: Apache-2.0
// Direct convolutions: over channel blocks, depthwise ones, and on plain layouts.
#include <algorithm>

#include "lower/conv_problem.h"
#include "lower/implementation.h"
#include "lower/place.h"
#include "relay/ops/attrs.h"
#include "topi/conv_direct.h"
#include "topi/narrow_groups.h"
#include "topi/pack.h"
#include "topi/paired_groups.h"
#include "topi/words.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// 1x1 convolutions merge rows if neither side has gaps
// between them; until halos are known, that is assumed.
bool may_flatten(const Problem& p, const topi::Conv2dProblem& c) {
  if (c.kernel_height != 1 || c.kernel_width != 1 || c.stride_height != 1 || c.stride_width != 1) return false;
  return !p.graph.placed || topi::can_flatten(c, view_of(p.input(0)), view_of(p.output()));
}

// Weights OIHW4i16o: a block of output channels holds several groups of 4.
bool holds_narrow_groups(const Problem& p) {
  const auto weights = p.arg_shape(1);
  return p.attrs<Conv2DNCHWcAttrs>().groups > 1 && p.arg_shape(0).size() == 5 && weights[4] < weights[5];
}

// nn.contrib_conv2d_NCHWc, or nn.conv3d over channel blocks, whose weights are packed here.
template <bool volume>
struct DirectBlocks {
  using Config = topi::Conv2dConfig;
  struct Site {
    topi::Conv2dProblem problem;
    bool flatten = false;
  };
  static std::optional<Site> site(const Problem& p) {
    if (!p.anchor.direct() || !(has_tiles(p) || (!volume && has_words(p))) || (volume && !is_blocked_volume(p)))
      return std::nullopt;
    if (!volume && holds_narrow_groups(p)) return std::nullopt;
    const topi::Conv2dProblem c = volume ? volume_problem(p) : conv2d_problem(p);
    if (c.words() && c.plain_data && c.dilation_width != 1) return std::nullopt;
    if (volume && is_depthwise_volume(c)) return std::nullopt;
    return Site{c, may_flatten(p, c)};
  }
  static std::vector<Config> configs(const Problem& p, const Site& s, size_t most) {
    return topi::configs(s.problem, p.target, s.flatten, most);
  }
  static bool fits(const Problem&, const Site& s, const Config& c) {
    return topi::fits(s.problem, c) && (s.flatten || !c.flatten);
  }
  static topi::Cost cost(const Problem& p, const Site& s, const Config& c) {
    return topi::estimate(s.problem, c, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const Site& s, const Config& config) {
    const topi::Conv2dProblem problem = s.problem;
    auto choice = std::make_shared<Choice>();
    choice->halos =
        halo_of_data(p, spatial_halo(p.arg_shape(0).size(), topi::halo_need(problem), volume ? 3 : 2, volume ? 4 : 3));
    if (volume)
      choice->repacks.emplace_back(p.input_index(1), [=](const Tensor& t) { return pack_volume_weights(t, problem); });
    if (problem.words())
      choice->repacks.emplace_back(p.input_index(1),
                                   [=](const Tensor& t) { return topi::pack_conv2d_words(t, problem.plain_data); });
    choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      const topi::View w = topi::make_view(input(1).buffer, topi::packed_weight_shape(problem));
      return topi::conv2d_nchwc(problem, config, input(0), w, scope.output(), scope.epilogue(anchor), context);
    };
    return choice;
  }
};

// Several groups within a block of channels, or one that fills it.
struct NarrowGroups {
  using Config = topi::NarrowGroupsConfig;
  static std::optional<topi::Conv2dProblem> site(const Problem& p) {
    if (!p.anchor.direct() || !has_tiles(p)) return std::nullopt;
    const topi::Conv2dProblem c = conv2d_problem(p);
    const int64_t in = c.in_channels / c.groups;
    const bool fills_block = c.groups > 1 && in == c.lanes && c.split == 1 && !c.plain_data;
    if (!holds_narrow_groups(p) && !fills_block) return std::nullopt;
    if (!topi::is_narrow_group(in, c.out_channels / c.groups, c.lanes)) return std::nullopt;
    return c;
  }
  static std::vector<Config> configs(const Problem& p, const topi::Conv2dProblem& c, size_t most) {
    return topi::narrow_groups_configs(c, p.target, most);
  }
  static bool fits(const Problem&, const topi::Conv2dProblem& c, const Config& config) { return topi::fits(c, config); }
  static topi::Cost cost(const Problem& p, const topi::Conv2dProblem& c, const Config& config) {
    return topi::estimate(c, config, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const topi::Conv2dProblem& c, const Config& config) {
    auto choice = std::make_shared<Choice>();
    choice->halos = halo_of_data(p, spatial_halo(5, topi::halo_need(c)));
    choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      return topi::narrow_groups_conv2d_nchwc(c, config, input(0), input(1), scope.output(), scope.epilogue(anchor),
                                              context);
    };
    return choice;
  }
};

// Pairs of groups that fill whole blocks of channels.
struct PairedGroups {
  using Config = topi::PairedGroupsConfig;
  static std::optional<topi::Conv2dProblem> site(const Problem& p) {
    if (!p.anchor.direct() || !has_tiles(p) || holds_narrow_groups(p) || !p.constant(1)) return std::nullopt;
    const topi::Conv2dProblem c = conv2d_problem(p);
    if (!topi::has_paired_groups(c)) return std::nullopt;
    return c;
  }
  static std::vector<Config> configs(const Problem& p, const topi::Conv2dProblem& c, size_t most) {
    return topi::paired_groups_configs(c, p.target, most);
  }
  static std::vector<Formed<Config>> forms(const Problem& p, const topi::Conv2dProblem& c) {
    return {{"pairs of groups", configs(p, c, 1)[0]}};
  }
  static bool fits(const Problem&, const topi::Conv2dProblem& c, const Config& config) { return topi::fits(c, config); }
  static topi::Cost cost(const Problem& p, const topi::Conv2dProblem& c, const Config& config) {
    return topi::estimate(c, config, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const topi::Conv2dProblem& c, const Config& config) {
    auto choice = std::make_shared<Choice>();
    choice->halos = halo_of_data(p, spatial_halo(5, topi::halo_need(c)));
    choice->repacks.emplace_back(p.input_index(1), [=](const Tensor& t) { return topi::pack_paired_weights(t, c); });
    choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      return topi::paired_groups_conv2d_nchwc(c, config, input(0), input(1), scope.output(), scope.epilogue(anchor),
                                              context);
    };
    return choice;
  }
};

// Depthwise.
template <bool volume>
struct Depthwise {
  using Config = topi::DepthwiseConfig;
  struct Site {
    topi::DepthwiseProblem problem;
    Halo halo;
  };
  static std::optional<Site> site(const Problem& p) {
    if (!p.anchor.direct() || !has_tiles(p)) return std::nullopt;
    if constexpr (volume) {
      if (!is_blocked_volume(p)) return std::nullopt;
      const topi::Conv2dProblem c = volume_problem(p);
      if (!is_depthwise_volume(c) || c.plain_data) return std::nullopt;
      return Site{depthwise_volume_problem(c), spatial_halo(6, topi::halo_need(c), 3, 4)};
    } else {
      const topi::DepthwiseProblem d = depthwise2d_problem(p);
      return Site{d, window_halo(d, p.arg_shape(0).size())};
    }
  }
  static std::vector<Config> configs(const Problem& p, const Site& s, size_t most) {
    return topi::configs(s.problem, p.target, most);
  }
  static bool fits(const Problem&, const Site& s, const Config& c) { return topi::fits(s.problem, c); }
  static topi::Cost cost(const Problem& p, const Site& s, const Config& c) {
    return topi::estimate(s.problem, c, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const Site& s, const Config& config) {
    const topi::DepthwiseProblem d = s.problem;
    auto choice = std::make_shared<Choice>();
    choice->halos = halo_of_data(p, s.halo);
    if (volume)
      choice->repacks.emplace_back(p.input_index(1), [lanes = d.lanes](const Tensor& t) {
        const auto& shape = t.shape();
        return topi::pack_depthwise_weights(t.reshaped({shape[0], 1, shape[2] * shape[3], shape[4]}), lanes);
      });
    choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      topi::View w = input(1);
      if (!volume)
        w = topi::make_view(w.buffer,
                            {topi::ceil_div(d.channels, d.lanes), d.kernel_height, d.kernel_width, int64_t{d.lanes}});
      return topi::depthwise_conv2d_nchwc(d, config, input(0), w, scope.output(), scope.epilogue(anchor), context);
    };
    return choice;
  }
};

// nn.conv1d/2d/3d on plain layouts, where the blocked kernels do not apply.
struct PlainSite {
  topi::ConvDirectProblem problem;
  Halo halo;
  topi::View data, out;  // without memory: extents and dtypes
};
template <class A>
struct PlainConv {
  using Config = topi::ConvDirectConfig;
  static std::optional<PlainSite> site(const Problem& p) {
    if (!p.anchor.direct() || !has_tiles(p)) return std::nullopt;
    const auto& attrs = p.attrs<A>();
    if (attrs.data_layout.substr(0, 2) != "NC" || attrs.data_layout.find('c') != std::string::npos ||
        attrs.kernel_layout.substr(0, 2) != "OI" ||
        !(attrs.out_layout.empty() || attrs.out_layout == attrs.data_layout))
      return std::nullopt;
    auto data = p.arg_shape(0), weights = p.arg_shape(1), out = p.out_shape();
    size_t spatial = data.size() - 2;
    auto padding = attrs.padding;
    if (padding.size() == 1) padding.assign(2 * spatial, padding[0]);
    if (padding.size() == spatial)
      padding.insert(padding.end(), padding.begin(), padding.begin() + static_cast<std::ptrdiff_t>(spatial));
    topi::ConvDirectProblem problem;
    problem.groups = attrs.groups;
    Halo halo;
    halo.before.assign(data.size(), 0);
    halo.after.assign(data.size(), 0);
    for (size_t i = 0; i < spatial; ++i) {
      int64_t kernel = weights[i + 2], stride = attrs.strides[i], dilation = attrs.dilation[i], before = padding[i];
      problem.kernel.push_back(kernel);
      problem.strides.push_back(stride);
      problem.dilations.push_back(dilation);
      problem.pads_before.push_back(before);
      halo.before[i + 2] = before;
      halo.after[i + 2] =
          std::max<int64_t>(0, (out[i + 2] - 1) * stride + (kernel - 1) * dilation - before - (data[i + 2] - 1));
    }
    auto shaped = [dtype = p.arg_dtype(0)](const std::vector<int64_t>& shape) {
      return topi::make_view(tir::make_buffer("", dtype, topi::product(shape)), shape);
    };
    return PlainSite{std::move(problem), std::move(halo), shaped(data), shaped(out)};
  }
  static std::vector<Config> configs(const Problem& p, const PlainSite& s, size_t most) {
    return topi::configs(s.problem, s.data, s.out, p.target, most);
  }
  static bool fits(const Problem&, const PlainSite&, const Config& c) {
    return c.oc_rows >= 1 && c.rows >= 1 && c.vectors >= 1;
  }
  static topi::Cost cost(const Problem& p, const PlainSite& s, const Config& c) {
    return topi::estimate(s.problem, c, s.data, s.out, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const PlainSite& s, const Config& config) {
    auto choice = std::make_shared<Choice>();
    choice->halos = halo_of_data(p, s.halo);
    choice->emit = [problem = s.problem, config, anchor = p.anchor](const GroupScope& scope,
                                                                    const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      return topi::conv_direct(problem, config, input(0), input(1), scope.output(), scope.epilogue(anchor), context);
    };
    return choice;
  }
};

constexpr bool kByPlace = true;
constexpr Implementation kConvImplementations[] = {
    tuned<DirectBlocks<false>>("nn.contrib_conv2d_NCHWc", "conv2d_nchwc.direct", 10, kByPlace),
    tuned<NarrowGroups>("nn.contrib_conv2d_NCHWc", "conv2d_nchwc.narrow_groups", 10),
    tuned<PairedGroups>("nn.contrib_conv2d_NCHWc", "conv2d_nchwc.paired_groups", 10),
    tuned<Depthwise<false>>("nn.contrib_depthwise_conv2d_NCHWc", "depthwise_conv2d_nchwc.direct", 10),
    tuned<PlainConv<Conv1DAttrs>>("nn.conv1d", "conv1d.direct", 5),
    tuned<PlainConv<Conv2DAttrs>>("nn.conv2d", "conv2d.direct", 5),
    tuned<PlainConv<Conv3DAttrs>>("nn.conv3d", "conv3d.direct", 5),
    tuned<DirectBlocks<true>>("nn.conv3d", "conv3d_ncdhwc.direct", 10, kByPlace),
    tuned<Depthwise<true>>("nn.conv3d", "conv3d_ncdhwc.depthwise", 10),
};

}  // namespace

std::span<const Implementation> conv_implementations() { return kConvImplementations; }

}  // namespace tilewright::lower
