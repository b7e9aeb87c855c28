// SPDX-License-Identifier: Apache-2.0
// Winograd convolutions.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "lower/conv_problem.h"
#include "lower/implementation.h"
#include "topi/winograd.h"

namespace tilewright::lower {
namespace {

// Whether the graph's weights exceed the caches, so that they are read from memory in every run.
bool weights_from_memory(const Graph& graph) {
  uint64_t bytes = 0;
  for (const GraphTensor& t : graph.tensors)
    if (t.kind == GraphTensor::Kind::kParam) bytes += t.data.bytes();
  return bytes > uint64_t{12} << 20;
}

// The rounding error that a Winograd layer may add, relative to its outputs' root mean square: a tenth of what `verify`
// allows a kernel. Larger estimates lead to smaller tiles, finally to the direct kernel.
constexpr double kWinogradErrorBudget = 1e-5;

// Weights of integer products computed in floats (IntegerProducts): their sums are exact in any order, but not through
// Winograd's fractions.
bool whole_numbers(const Tensor& weights) {
  if (weights.dtype() != kFloat32) return false;
  auto values = weights.as<float>();
  return std::all_of(values.begin(), values.end(), [](float v) { return v == std::nearbyint(v); });
}

bool transforms(const Problem& p, bool volume) {
  const DataType data = p.arg_dtype(0);
  if (!volume && has_words(p)) return data == kUInt8;
  return has_tiles(p) && (data == kFloat32 || data == kFloat64);
}

// Presents a volume to a kernel whose tiles lie in planes: depth and height are swapped, so that taps along the depth
// alone become taps of rows.
struct DepthHeightSwap {
  bool on = false;
  topi::Conv2dProblem operator()(topi::Conv2dProblem c) const {
    if (!on) return c;
    std::swap(c.in_depth, c.in_height), std::swap(c.out_depth, c.out_height);
    std::swap(c.kernel_depth, c.kernel_height), std::swap(c.stride_depth, c.stride_height);
    std::swap(c.dilation_depth, c.dilation_height), std::swap(c.pad_front, c.pad_top);
    c.pad_bottom = std::max<int64_t>(0, (c.out_height - 1) * c.stride_height +
                                            (c.kernel_height - 1) * c.dilation_height + 1 - c.pad_top - c.in_height);
    return c;
  }
  topi::View operator()(topi::View view) const {
    if (!on) return view;
    std::swap(view.shape[2], view.shape[3]), std::swap(view.strides[2], view.strides[3]);
    if (!view.halo_before.empty()) std::swap(view.halo_before[2], view.halo_before[3]);
    if (!view.halo_after.empty()) std::swap(view.halo_after[2], view.halo_after[3]);
    return view;
  }
  topi::Epilogue operator()(topi::Epilogue inner) const {
    if (!on) return inner;
    return [inner = std::move(inner)](const tir::PrimExpr& value, const topi::Index& index, const tir::PrimExpr& mask) {
      topi::Index real = index;
      std::swap(real[2], real[3]);
      return inner(value, real, mask);
    };
  }
};

// The anchor as the kernel sees it; `packed`: weights in the direct kernel's layout.
struct WinogradSite {
  topi::Conv2dProblem problem;
  DepthHeightSwap turn;
  bool volume = false, from_memory = false;
  int tile_height = 1, tile_width = 1;
  DataType dtype;
};

// Nothing if tiles of `tile` output pixels per axis (of the axes that have taps) do not apply.
std::optional<WinogradSite> winograd_site(const Problem& p, int tile, const topi::Conv2dProblem& problem,
                                          const DepthHeightSwap& turn, bool volume, const Tensor& packed) {
  WinogradSite site{problem, turn, volume, weights_from_memory(p.graph)};
  site.tile_height = problem.kernel_height == 1 ? 1 : tile, site.tile_width = problem.kernel_width == 1 ? 1 : tile;
  site.dtype = packed.dtype();
  if (whole_numbers(packed)) return std::nullopt;
  if (topi::winograd_error(packed, problem, site.tile_height, site.tile_width) > kWinogradErrorBudget)
    return std::nullopt;
  return site;
}

template <int tile>
bool has_winograd(const topi::Conv2dProblem& c) {
  return topi::winograd_applies(c, c.kernel_height == 1 ? 1 : tile, c.kernel_width == 1 ? 1 : tile);
}

template <int tile, bool volume>
struct Winograd {
  using Config = topi::WinogradConfig;
  static std::optional<WinogradSite> site(const Problem& p) {
    if (p.target.strict_math || !p.anchor.direct() || !transforms(p, volume)) return std::nullopt;
    // Transformed weights take up to four times the space.
    if (p.target.is_portable_c()) return std::nullopt;
    if constexpr (volume) {
      if (!is_blocked_volume(p)) return std::nullopt;
      const topi::Conv2dProblem c = volume_problem(p);
      const DepthHeightSwap turn{c.kernel_height == 1 && c.kernel_width == 1};
      const topi::Conv2dProblem turned = turn(c);
      if (!has_winograd<tile>(turned)) return std::nullopt;
      return winograd_site(p, tile, turned, turn, true, pack_volume_weights(p.input(1).data, turned));
    } else {
      if (p.arg_shape(0).size() != 5 || !p.constant(1)) return std::nullopt;
      const topi::Conv2dProblem c = conv2d_problem(p);
      if (c.words()) {
        if (tile != 2 || !topi::winograd_of_bytes(c, p.target)) return std::nullopt;
        return WinogradSite{c, {}, false, weights_from_memory(p.graph), 2, 2, kInt32};
      }
      if (!has_winograd<tile>(c) || p.arg_shape(1) != topi::packed_weight_shape(c)) return std::nullopt;
      return winograd_site(p, tile, c, {}, false, p.input(1).data);
    }
  }
  static std::vector<Config> configs(const Problem& p, const WinogradSite& s, size_t most) {
    return topi::winograd_configs(s.problem, s.tile_height, s.tile_width, s.from_memory, p.target, most);
  }
  // Tiles of output channels are consecutive.
  static std::vector<Formed<Config>> forms(const Problem& p, const WinogradSite& s) {
    std::vector<Formed<Config>> out;
    for (const auto& [time, c] :
         topi::winograd_config_of_columns(s.problem, s.tile_height, s.tile_width, s.from_memory, p.target))
      out.push_back({format("winograd {}x{} of {}", c.tile_height, c.tile_width, c.oc_blocks), c, time});
    return out;
  }
  static bool fits(const Problem&, const WinogradSite& s, const Config& c) {
    return c.tile_height == s.tile_height && c.tile_width == s.tile_width && topi::fits(s.problem, c);
  }
  static topi::Cost cost(const Problem& p, const WinogradSite& s, const Config& c) {
    return topi::winograd_cost(s.problem, c, s.from_memory, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const WinogradSite& s, const Config& config) {
    auto choice = std::make_shared<Choice>();
    const topi::HaloNeed need = topi::winograd_halo(s.problem, config);
    choice->halos = halo_of_data(p, volume ? spatial_halo(6, need, s.turn.on ? 2 : 3, 4) : spatial_halo(5, need));
    choice->scratch_dtype = s.dtype;
    choice->scratch_bytes = topi::winograd_scratch_bytes(s.problem, config, s.dtype);
    choice->repacks.emplace_back(p.input_index(1), [problem = s.problem, config](const Tensor& t) {
      return topi::winograd_weights(volume ? pack_volume_weights(t, problem) : t, problem, config);
    });
    choice->emit = [problem = s.problem, turn = s.turn, config, anchor = p.anchor](const GroupScope& scope,
                                                                                   const topi::KernelContext& context) {
      auto input = [&](size_t i) { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      topi::View w = topi::make_view(input(1).buffer, topi::winograd_weight_shape(problem, config));
      return topi::conv2d_winograd(problem, config, turn(input(0)), w, turn(scope.output()),
                                   turn(scope.epilogue(anchor)), context);
    };
    return choice;
  }
};

constexpr Implementation kWinogradImplementations[] = {
    tuned<Winograd<2, false>>("nn.contrib_conv2d_NCHWc", "conv2d_nchwc.winograd2", 10),
    tuned<Winograd<3, false>>("nn.contrib_conv2d_NCHWc", "conv2d_nchwc.winograd3", 10),
    tuned<Winograd<4, false>>("nn.contrib_conv2d_NCHWc", "conv2d_nchwc.winograd4", 10),
    tuned<Winograd<2, true>>("nn.conv3d", "conv3d_ncdhwc.winograd2", 10),
    tuned<Winograd<3, true>>("nn.conv3d", "conv3d_ncdhwc.winograd3", 10),
    tuned<Winograd<4, true>>("nn.conv3d", "conv3d_ncdhwc.winograd4", 10),
};

}  // namespace

std::span<const Implementation> winograd_implementations() { return kWinogradImplementations; }

}  // namespace tilewright::lower
