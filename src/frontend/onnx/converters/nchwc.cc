// SPDX-License-Identifier: Apache-2.0
// com.microsoft.nchwc: the blocked operators that onnxruntime's layout optimiser writes. They become plain NCHW
// operators whose channels are rounded up to whole blocks, with weights reordered at import; this compiler's own passes
// choose layouts.
#include <cstring>

#include "base/format.h"
#include "frontend/onnx/channel_blocks.h"
#include "frontend/onnx/converters/activation.h"
#include "frontend/onnx/converters/conv.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

int64_t block_of(NodeContext& c) {
  const int64_t block = c.int_attr(kChannelBlock, 0);
  if (block == 0)
    c.unsupported(
        "the file does not tell how many channels its blocks have; write it with onnxruntime's optimisations "
        "up to 'extended'");
  if (block != 8 && block != 16) c.fail(format("blocks of {} channels are impossible", block));
  return block;
}

Expr picture(NodeContext& c, size_t i) {
  if (c.rank(c.input(i)) != 4) c.fail_type(format("its input {} is no picture with channels", i));
  return c.input(i);
}

// The plain OIHW weight of one whose output channels (and input channels, if `both`) lie innermost in blocks.
Tensor in_order(const Tensor& t, int64_t block, bool both) {
  const Ints& d = t.shape();
  const int64_t window = d[2] * d[3], inner = both ? block : 1;
  Tensor out(t.dtype(), d);
  const auto* from = reinterpret_cast<const float*>(t.raw());
  auto* to = reinterpret_cast<float*>(out.mutable_raw());
  for (int64_t o = 0; o < d[0]; o += block)
    for (int64_t i = 0; i < d[1]; i += inner)
      for (int64_t w = 0; w < window; ++w)
        for (int64_t ii = i; ii < i + inner; ++ii)
          for (int64_t oo = o; oo < o + block; ++oo) to[(oo * d[1] + ii) * window + w] = *from++;
  return out;
}

Expr ordered_weight(NodeContext& c) {
  const Tensor stored = c.constant(1, "weight");
  const int64_t block = block_of(c), groups = c.int_attr("group", 1);
  if (stored.dtype() != kFloat32 || stored.rank() != 4) c.fail_type("its weight is no float32 tensor of rank 4");
  const Ints& d = stored.shape();
  const bool depthwise = d[1] == 1 && groups == d[0], both = !depthwise && d[1] >= block;
  if (d[0] % block != 0 || (both && d[1] % block != 0))
    c.fail_type(format("a weight {} does not lie in blocks of {} channels", shape_str(d), block));
  return c.constant_of(in_order(stored, block, both));
}

Values blocked_conv(NodeContext& c) {
  Expr y = convolution_of(c, picture(c, 0), ordered_weight(c), c.has(2) ? c.input(2) : Expr());
  if (c.has(3)) y = c.add(y, picture(c, 3));
  const auto values = c.floats_attr("activation_params");
  auto at = [&](size_t i) { return i < values.size() ? std::optional<double>(values[i]) : std::nullopt; };
  return {activated(c, y, {c.string_attr("activation", ""), at(0), at(1)})};
}

Values reorder_input(NodeContext& c) {
  Expr x = picture(c, 0);
  if (c.int_attr("channels_last", 0) != 0) x = channels_first(c, x);
  const int64_t block = block_of(c), channels = c.dims(x)[1], missing = (block - channels % block) % block;
  if (missing == 0) return {x};
  return {c.call("nn.pad", {x, c.scalar_like(0, x)}, make_attrs<relay::PadAttrs>([&](auto& a) {
                   a.pad_width = {{0, 0}, {0, missing}, {0, 0}, {0, 0}};
                 }))};
}
Values reorder_output(NodeContext& c) {
  Expr x = picture(c, 0);
  const int64_t channels = c.int_attr("channels"), all = c.dims(x)[1];
  if (channels < 0 || channels > all) c.fail_type(format("{} channels are more than the {} there are", channels, all));
  if (channels < all) x = c.slice(x, 1, 0, channels);
  return {c.int_attr("channels_last", 0) != 0 ? channels_last(c, x) : x};
}

Values blocked_max_pool(NodeContext& c) { return {largest_of_windows(c, picture(c, 0))}; }
Values blocked_average_pool(NodeContext& c) { return {average_of_windows(c, picture(c, 0))}; }
Values blocked_global_average_pool(NodeContext& c) { return {c.reduce("mean", picture(c, 0), {2, 3}, true)}; }
Values blocked_global_max_pool(NodeContext& c) { return {c.reduce("max", picture(c, 0), {2, 3}, true)}; }

Values blocked_upsample(NodeContext& c) {
  const Expr x = picture(c, 0);
  const Ints scales = c.ints_attr("scales"), d = c.dims(x);
  const std::string mode = c.string_attr("mode", "nearest");
  if (scales.size() != 4 || scales[0] != 1 || scales[1] != 1) c.fail("its scales are not those of rows and columns");
  if (mode != "nearest" && mode != "linear") c.fail(format("its mode '{}' is neither nearest nor linear", mode));
  for (int64_t s : scales)
    if (s < 1 || s > (1 << 16)) c.fail(format("a scale is {}", s));
  if (scales[2] == 1 && scales[3] == 1) return {x};
  return {c.call("image.resize2d", {x}, make_attrs<relay::Resize2DAttrs>([&](auto& a) {
                   a.size = {d[2] * scales[2], d[3] * scales[3]};
                   a.scales = {static_cast<double>(scales[2]), static_cast<double>(scales[3])};
                   a.method = mode == "nearest" ? "nearest_neighbor" : mode;
                   a.coordinate_transformation_mode = c.string_attr("coordinate_transformation_mode", "asymmetric");
                   a.rounding_method = mode == "nearest" ? "floor" : "";
                 }))};
}

constexpr ConverterEntry kBlocked[] = {
    {"Conv", 1, blocked_conv, kBlockedDomain},
    {"ReorderInput", 1, reorder_input, kBlockedDomain},
    {"ReorderOutput", 1, reorder_output, kBlockedDomain},
    {"MaxPool", 1, blocked_max_pool, kBlockedDomain},
    {"AveragePool", 1, blocked_average_pool, kBlockedDomain},
    {"GlobalAveragePool", 1, blocked_global_average_pool, kBlockedDomain},
    {"GlobalMaxPool", 1, blocked_global_max_pool, kBlockedDomain},
    {"Upsample", 1, blocked_upsample, kBlockedDomain},
};

}  // namespace

std::span<const ConverterEntry> nchwc_converters() { return kBlocked; }

}  // namespace tilewright::onnx
