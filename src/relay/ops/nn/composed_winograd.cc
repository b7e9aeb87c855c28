// SPDX-License-Identifier: Apache-2.0
// Convolutions with pre-transformed weights, as modules of the classic stack contain them: Winograd tiles and the
// interleaved panels of a matrix product. The compiler chooses such algorithms itself; these operators reproduce the
// modules exactly.
#include <algorithm>
#include <cmath>
#include <functional>

#include "relay/ops/composition.h"
#include "relay/ops/nn/attrs_winograd.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

// Toom-Cook matrices for m outputs of a filter of r taps: y = output^T ((filter w) * (data^T x)), over alpha = m + r -
// 1 interpolation points, the last at infinity. Points and scaling are those that classic weights were made with
// (Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution", 2018).
struct ToomCook {
  int64_t m, r, alpha;
  std::vector<double> data, filter, output;  // alpha x alpha, alpha x r, alpha x m, row-major
};
Result<ToomCook> toom_cook(int64_t m, int64_t r) {
  if (m < 2 || m > 8) return type_error(format("tile_size {} is not from 2 to 8", m));
  if (r < 3 || r > 7) return type_error(format("a kernel of {} taps is not from 3 to 7", r));
  static const std::vector<double> kPoints[] = {
      {0, -1, 1, 0.5},
      {0, -1, 1, 0.5, -2},
      {0, -1, 1, 0.5, -2, -0.5},
      {0, -1, 1, 0.5, -0.5, 2, -2},
      {0, -1, 1, 0.5, -0.5, 2, -2, -0.25},
      {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4},
      {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 0.75, -4.0 / 3},
      {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4, 0.75, -4.0 / 3},
      {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4, 0.75, -4.0 / 3, 0.25},
      {0, -1, 1, 0.5, -0.5, 2, -2, -0.25, 4, 0.25, -0.75, 4.0 / 3, -4},
  };
  const int64_t alpha = m + r - 1, finite = alpha - 1;
  static const std::vector<double> kFew{0, -1, 1};
  const std::vector<double>& a = finite == 3 ? kFew : kPoints[finite - 4];
  ToomCook t{m, r, alpha, std::vector<double>(static_cast<size_t>(alpha * alpha)), {}, {}};
  auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<double> scale(at(alpha), 1), distance(at(finite), 1);
  for (int64_t i = 0; i < finite; ++i) {
    for (int64_t k = 0; k < finite; ++k)
      if (k != i) distance[at(i)] *= a[at(i)] - a[at(k)];
    scale[at(i)] = distance[at(i)];
  }
  scale[0] = std::fabs(scale[0]);
  auto powers = [&](int64_t columns, bool divided) {
    std::vector<double> out;
    for (int64_t i = 0; i < alpha; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const double v = i == finite ? (j == columns - 1) : std::pow(a[at(i)], static_cast<double>(j));
        out.push_back(divided ? v / scale[at(i)] : v);
      }
    return out;
  };
  t.output = powers(m, false);
  t.filter = powers(r, true);
  // Column i of the finite part is the Lagrange polynomial of point i; the last column, for infinity, cancels the
  // highest power.
  for (int64_t i = 0; i < finite; ++i) {
    std::vector<double> p{1};  // coefficients, lowest power first
    for (int64_t k = 0; k < finite; ++k) {
      if (k == i) continue;
      p.push_back(0);
      for (size_t d = p.size() - 1; d > 0; --d) p[d] = p[d - 1] - a[at(k)] * p[d];
      p[0] *= -a[at(k)];
    }
    for (int64_t row = 0; row < finite; ++row) {
      const double coefficient = p[at(row)] / distance[at(i)];
      t.data[at(row * alpha + i)] = coefficient;
      t.data[at(row * alpha + finite)] -= coefficient * std::pow(a[at(i)], static_cast<double>(finite));
    }
  }
  t.data[at(finite * alpha + finite)] = 1;
  for (int64_t row = 0; row < alpha; ++row)
    for (int64_t column = 0; column < alpha; ++column) t.data[at(row * alpha + column)] *= scale[at(column)];
  return t;
}

std::vector<double> transposed(const std::vector<double>& matrix, int64_t rows) {
  const int64_t columns = static_cast<int64_t>(matrix.size()) / rows;
  std::vector<double> out;
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) out.push_back(matrix[static_cast<size_t>(r * columns + c)]);
  return out;
}

// A tensor with named axes, which can be permuted and multiplied one by one.
class Named {
 public:
  Named(Composition* c, Expr e, std::vector<std::string> axes, Ints sizes)
      : c_(c), e_(std::move(e)), axes_(std::move(axes)), sizes_(std::move(sizes)) {}
  const Expr& expr() const { return e_; }
  int64_t find(const std::string& axis) const { return std::find(axes_.begin(), axes_.end(), axis) - axes_.begin(); }
  // Splits `axis` into overlapping windows: `tiles` of `taps` elements, `step` apart.
  void windows(const std::string& axis, int64_t tiles, int64_t step, int64_t taps, const std::string& tap) {
    const int64_t at = find(axis);
    Ints table;
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t i = 0; i < taps; ++i) table.push_back(t * step + i);
    e_ = c_->take(e_, c_->indices(table, {tiles, taps}), at);
    sizes_[static_cast<size_t>(at)] = tiles;
    sizes_.insert(sizes_.begin() + at + 1, taps);
    axes_.insert(axes_.begin() + at + 1, tap);
  }
  void order(const std::vector<std::string>& axes) {
    Ints places, sizes;
    for (const std::string& axis : axes) {
      places.push_back(find(axis));
      sizes.push_back(sizes_[static_cast<size_t>(places.back())]);
    }
    if (axes != axes_) e_ = c_->transpose(e_, places);
    axes_ = axes;
    sizes_ = std::move(sizes);
  }
  // Multiplies along the axis by a matrix (rows x extent); the axis then has `rows` elements and is moved last.
  void multiply(const std::string& axis, const std::vector<double>& matrix, DataType dtype) {
    std::vector<std::string> axes = axes_;
    axes.erase(axes.begin() + find(axis));
    axes.push_back(axis);
    order(axes);
    const int64_t rows = static_cast<int64_t>(matrix.size()) / sizes_.back();
    e_ = c_->call("nn.dense", {e_, c_->numbers(matrix, {rows, sizes_.back()}, dtype)});
    sizes_.back() = rows;
  }
  int64_t size(const std::vector<std::string>& axes) const {
    int64_t n = 1;
    for (const std::string& axis : axes) n *= sizes_[static_cast<size_t>(find(axis))];
    return n;
  }

 private:
  Composition* c_;
  Expr e_;
  std::vector<std::string> axes_;
  Ints sizes_;
};

std::string tap_of(size_t d) { return "a" + std::to_string(d); }
std::string tile_of(size_t d) { return "t" + std::to_string(d); }

// The depth of a 3-D kernel is transformed only if it is as long as the other axes.
bool transforms(size_t d, const Ints& kernel) {
  return kernel.size() < 3 || d > 0 || (kernel[0] > 2 && kernel[0] < 8 && kernel[0] == kernel[1]);
}

// (O, I, kernel...) -> (points..., O, I)
template <size_t kSpatial>
Result<Expr> expand_weight_transform(const TypeArgs& args) {
  Composition c(args);
  const Ints shape = TW_TRY(known_sizes(args, 0));
  if (shape.size() != kSpatial + 2) return type_error(format("the weight {} is no kernel", shape_str(to_shape(shape))));
  const DataType dtype = args.tensor(0).dtype;
  if (!dtype.is_float()) return type_error(format("the weight is {}", type_str(args.types[0])));
  const Ints kernel(shape.begin() + 2, shape.end());
  if (kernel[kSpatial - 1] != kernel[kSpatial - 2]) return type_error("the kernel is not square");
  const ToomCook t = TW_TRY(toom_cook(attrs_of<ConvWinogradWeightTransformAttrs>(args).tile_size, kernel.back()));
  std::vector<std::string> axes{"O", "I"}, wanted;
  for (size_t d = 0; d < kSpatial; ++d) axes.push_back(tap_of(d)), wanted.push_back(tap_of(d));
  Named w(&c, c[0], axes, shape);
  for (size_t d = 0; d < kSpatial; ++d)
    if (transforms(d, kernel)) w.multiply(tap_of(d), t.filter, dtype);
  wanted.insert(wanted.end(), {"O", "I"});
  w.order(wanted);
  return c.result(w.expr());
}

// Data are NCHW or NHWC; transformed weights (points..., I, O), for 2-D also with blocked outputs (points, O/v, I, v).
struct WinogradConvolution {
  Expr x, weight;           // NC.., (points..., I, O)
  Ints x_shape, w_shape;    // their shapes
  Ints kernel, padding;     // taps; begins, then ends
  int64_t tile = 0;         // outputs of one tile along each axis
  ToomCook transform = {};  // of the last axis
  bool channels_last = false;
  int64_t outputs() const { return w_shape.back(); }
};

template <class A, size_t kSpatial>
Status check_winograd_attributes(const TypeArgs& args, const Ints& x_shape, const Ints& w_shape) {
  const auto& a = attrs_of<A>(args);
  const DataType dtype = args.tensor(0).dtype;
  if (!dtype.is_float() || args.tensor(1).dtype != dtype)
    return type_error(format("operands are {} and {}", type_str(args.types[0]), type_str(args.types[1])));
  const std::string standard = A().data_layout, last = kSpatial == 2 ? "NHWC" : "NDHWC";
  if ((a.data_layout != last && a.data_layout != standard) || !(a.out_layout.empty() || a.out_layout == a.data_layout))
    return type_error(format("data_layout \"{}\" is not {} or {}", a.data_layout, standard, last));
  auto all_one = [](const Ints& v) { return std::all_of(v.begin(), v.end(), [](int64_t s) { return s == 1; }); };
  if (!all_one(a.strides) || !all_one(a.dilation) || a.groups != 1)
    return type_error("Winograd's tiles are for strides, dilation and groups of 1");
  if (x_shape.size() != kSpatial + 2 || (w_shape.size() != kSpatial + 2 && !(kSpatial == 2 && w_shape.size() == 5)))
    return type_error(format("data {} and transformed weight {} have other numbers of axes",
                             shape_str(args.tensor(0).shape), shape_str(args.tensor(1).shape)));
  constexpr int64_t kFar = 1 << 30;
  if (a.tile_size < 2 || a.tile_size > 8) return type_error(format("tile_size {} is not from 2 to 8", a.tile_size));
  for (int64_t p : a.padding)
    if (p < 0 || p > kFar) return type_error(format("padding {} is out of range", p));
  return Ok{};
}

template <class A, size_t kSpatial>
Result<WinogradConvolution> winograd_convolution(Composition& c, const TypeArgs& args) {
  const auto& a = attrs_of<A>(args);
  WinogradConvolution w;
  w.x_shape = TW_TRY(known_sizes(args, 0));
  w.w_shape = TW_TRY(known_sizes(args, 1));
  TW_TRY_STATUS((check_winograd_attributes<A, kSpatial>(args, w.x_shape, w.w_shape)));
  w.x = c[0];
  w.weight = c[1];
  w.tile = a.tile_size;
  w.channels_last = a.data_layout != A().data_layout;
  if (w.w_shape.size() == 5 && kSpatial == 2) {
    w.weight = c.transpose(w.weight, {0, 1, 3, 2, 4});
    w.w_shape = {w.w_shape[0], w.w_shape[1], w.w_shape[3], w.w_shape[2] * w.w_shape[4]};
    w.weight = c.reshape(w.weight, w.w_shape);
  }
  const int64_t in = w.w_shape[kSpatial], channels = w.x_shape[w.channels_last ? kSpatial + 1 : 1];
  if (channels != in) return type_error(format("the data has {} channels, the transformed weight {}", channels, in));
  if (a.channels && *a.channels != w.outputs())
    return type_error(format("channels is {}, the weight has {}", *a.channels, w.outputs()));
  w.padding = TW_TRY(full_padding(a.padding, kSpatial));
  w.kernel = a.kernel_size.value_or(Ints());
  if (w.kernel.empty())
    for (size_t d = 0; d < kSpatial; ++d) w.kernel.push_back(w.w_shape[d] - w.tile + 1);
  if (w.kernel.size() != kSpatial) return type_error(format("kernel_size has {} values", w.kernel.size()));
  w.transform = TW_TRY(toom_cook(w.tile, w.kernel.back()));
  for (size_t d = 0; d < kSpatial; ++d) {
    const bool transformed = transforms(d, w.kernel);
    if (w.kernel[d] < 1 || w.w_shape[d] != (transformed ? w.transform.alpha : w.kernel[d]) ||
        (transformed && w.kernel[d] != w.transform.r))
      return type_error(format("the transformed weight {} is not that of tiles of {} and a kernel {}",
                               shape_str(args.tensor(1).shape), w.tile, shape_str(to_shape(w.kernel))));
  }
  if (w.channels_last) {
    Ints axes{0, kSpatial + 1};
    for (size_t d = 0; d < kSpatial; ++d) axes.push_back(static_cast<int64_t>(d) + 1);
    w.x = c.transpose(w.x, axes);
    w.x_shape.insert(w.x_shape.begin() + 1, in);
    w.x_shape.pop_back();
  }
  return w;
}

// One matrix product per point: (points, rows, columns) x (points, columns, outputs).
Expr product_of_points(Composition& c, Named& data, const WinogradConvolution& w,
                       const std::vector<std::string>& points, const std::vector<std::string>& places,
                       const std::vector<std::string>& depth) {
  const int64_t count = data.size(points), rows = data.size(places), columns = data.size(depth);
  std::vector<std::string> order = points;
  order.insert(order.end(), places.begin(), places.end());
  order.insert(order.end(), depth.begin(), depth.end());
  data.order(order);
  std::vector<std::string> w_axes, w_order = points;
  for (size_t d = 0; d + 2 < w.w_shape.size(); ++d) w_axes.push_back(tap_of(d));
  w_axes.insert(w_axes.end(), {"C", "O"});
  w_order.insert(w_order.end(), depth.begin(), depth.end());
  w_order.push_back("O");
  Named turned(&c, w.weight, w_axes, w.w_shape);
  turned.order(w_order);
  return c.call<BatchMatmulAttrs>(
      "nn.batch_matmul",
      {c.reshape(data.expr(), {count, rows, columns}), c.reshape(turned.expr(), {count, columns, w.outputs()})},
      [](auto& attrs) { attrs.transpose_b = false; });
}

template <class A, size_t kSpatial>
Result<Expr> expand_winograd(const TypeArgs& args) {
  Composition c(args);
  const DataType dtype = args.tensor(0).dtype;
  const WinogradConvolution w = TW_TRY((winograd_convolution<A, kSpatial>(c, args)));
  const ToomCook& t = w.transform;
  const int64_t m = w.tile;
  // Pads to whole tiles.
  std::vector<Ints> widths(kSpatial + 2, {0, 0});
  Ints sizes(kSpatial), tiles(kSpatial);
  for (size_t d = 0; d < kSpatial; ++d) {
    const bool transformed = transforms(d, w.kernel);
    const int64_t length = w.x_shape[d + 2] + w.padding[d] + w.padding[d + kSpatial];
    sizes[d] = length - w.kernel[d] + 1;
    if (sizes[d] < 1) return type_error(format("a window of {} does not fit an axis of {}", w.kernel[d], length));
    tiles[d] = transformed ? (sizes[d] + m - 1) / m : sizes[d];
    const int64_t needed = transformed ? (tiles[d] - 1) * m + t.alpha : length;
    widths[d + 2] = {w.padding[d], w.padding[d + kSpatial] + std::max<int64_t>(needed - length, 0)};
    TW_TRY_STATUS(fits_constant({tiles[d], w.w_shape[d]}));
  }
  std::vector<std::string> axes{"N", "C"}, points, places{"N"}, depth, back{"N", "O"};
  for (size_t d = 0; d < kSpatial; ++d) {
    axes.push_back(tile_of(d));
    places.push_back(tile_of(d));
    (transforms(d, w.kernel) ? points : depth).push_back(tap_of(d));
  }
  depth.push_back("C");
  Named data(&c, c.pad(w.x, widths, c.number(0, dtype)), axes, w.x_shape);
  for (size_t d = 0; d < kSpatial; ++d)
    data.windows(tile_of(d), tiles[d], transforms(d, w.kernel) ? m : 1, w.w_shape[d], tap_of(d));
  for (const std::string& point : points) data.multiply(point, transposed(t.data, t.alpha), dtype);
  const Expr product = product_of_points(c, data, w, points, places, depth);
  // Inverse transform, from points to outputs.
  std::vector<std::string> y_axes = points;
  y_axes.insert(y_axes.end(), places.begin(), places.end());
  y_axes.push_back("O");
  Ints y_shape;
  for (const std::string& axis : y_axes) y_shape.push_back(axis == "O" ? w.outputs() : data.size({axis}));
  Named y(&c, c.reshape(product, y_shape), y_axes, y_shape);
  for (const std::string& point : points) y.multiply(point, transposed(t.output, t.alpha), dtype);
  Ints whole{w.x_shape[0], w.outputs()};
  for (size_t d = 0; d < kSpatial; ++d) {
    back.push_back(tile_of(d));
    if (transforms(d, w.kernel)) back.push_back(tap_of(d));
    whole.push_back(transforms(d, w.kernel) ? tiles[d] * m : tiles[d]);
  }
  y.order(back);
  Expr result = c.reshape(y.expr(), whole);
  for (size_t d = 0; d < kSpatial; ++d)
    if (whole[d + 2] != sizes[d]) result = c.slice(result, static_cast<int64_t>(d) + 2, 0, sizes[d]);
  if (w.channels_last) {
    Ints places_back{0};
    for (size_t d = 0; d < kSpatial; ++d) places_back.push_back(static_cast<int64_t>(d) + 2);
    places_back.push_back(1);
    result = c.transpose(result, places_back);
  }
  return c.result(c.cast(result, TW_TRY(number_dtype_or(attrs_of<A>(args).out_dtype, dtype))));
}

// HWIO -> (O / tile_rows, H*W*I / tile_cols, tile_rows, tile_cols), zero padded.
Result<Expr> expand_gemm_weight_transform(const TypeArgs& args) {
  Composition c(args);
  const auto& a = attrs_of<ConvGemmWeightTransformAttrs>(args);
  const Ints shape = TW_TRY(known_sizes(args, 0));
  constexpr int64_t kLargestTile = 1 << 16;
  if (a.tile_rows < 1 || a.tile_cols < 1 || a.tile_rows > kLargestTile || a.tile_cols > kLargestTile)
    return type_error(format("tiles of {} rows and {} columns", a.tile_rows, a.tile_cols));
  if (shape.size() != 4) return type_error(format("the weight {} is not HWIO", shape_str(to_shape(shape))));
  const int64_t k = shape[0] * shape[1] * shape[2], n = shape[3];
  const int64_t rows = (n + a.tile_rows - 1) / a.tile_rows, columns = (k + a.tile_cols - 1) / a.tile_cols;
  Expr flat = c.pad(c.reshape(c[0], {k, n}), {{0, columns * a.tile_cols - k}, {0, rows * a.tile_rows - n}},
                    c.number(0, args.tensor(0).dtype));
  return c.result(c.transpose(c.reshape(flat, {columns, a.tile_cols, rows, a.tile_rows}), {2, 0, 3, 1}));
}

// Restores the kernel from its panels and convolves with that.
Result<Expr> expand_gemm(const TypeArgs& args) {
  Composition c(args);
  const auto& a = attrs_of<Conv2DAttrs>(args);
  const Ints data = TW_TRY(known_sizes(args, 0)), panels = TW_TRY(known_sizes(args, 1));
  if (a.data_layout != "NHWC" || !(a.out_layout.empty() || a.out_layout == "NHWC"))
    return type_error(format("data_layout \"{}\" is not NHWC", a.data_layout));
  if (!a.channels || !a.kernel_size || a.kernel_size->size() != 2)
    return type_error("channels and kernel_size are needed: the panels do not say them");
  if (data.size() != 4 || panels.size() != 4)
    return type_error(format("data {} and panels {} have other numbers of axes", shape_str(args.tensor(0).shape),
                             shape_str(args.tensor(1).shape)));
  if (a.groups != 1) return type_error("the panels are for one group");
  const Ints& kernel = *a.kernel_size;
  constexpr int64_t kLargest = 1 << 15;
  if (kernel[0] < 1 || kernel[1] < 1 || kernel[0] > kLargest || kernel[1] > kLargest)
    return type_error(format("kernel_size is {}", shape_str(to_shape(kernel))));
  const int64_t k = kernel[0] * kernel[1] * data[3], rows = panels[1] * panels[3], columns = panels[0] * panels[2];
  if (k > rows || *a.channels > columns || *a.channels < 0)
    return type_error(format("panels {} do not hold a kernel {} of {} channels for {}", shape_str(args.tensor(1).shape),
                             shape_str(to_shape(kernel)), data[3], *a.channels));
  Expr flat = c.reshape(c.transpose(c[1], {1, 3, 0, 2}), {rows, columns});
  flat = c.slice(c.slice(flat, 0, 0, k), 1, 0, *a.channels);
  Expr weight = c.reshape(flat, {kernel[0], kernel[1], data[3], *a.channels});
  return c.result(c.call<Conv2DAttrs>("nn.conv2d", {c[0], weight}, [&](auto& attrs) {
    attrs = a;
    attrs.kernel_layout = "HWIO";
  }));
}

}  // namespace

std::vector<OpDef> composed_winograd_ops() {
  const std::vector<ArgDoc> kernel{{"weight", "a kernel"}};
  const std::vector<ArgDoc> operands{{"data", "in its layout"}, {"weight", "transformed"}};
  return {
      define_composed("nn.contrib_conv2d_gemm_weight_transform", "A kernel (HWIO) as panels of a matrix product.",
                      {{"weights", "HWIO"}}, OpPattern::kOutEWiseFusable, expand_gemm_weight_transform,
                      make_default_attrs<ConvGemmWeightTransformAttrs>),
      define_composed("nn.contrib_conv2d_gemm_without_weight_transform",
                      "A convolution (NHWC) by panels that nn.contrib_conv2d_gemm_weight_transform made.", operands,
                      OpPattern::kOutEWiseFusable, expand_gemm, make_default_attrs<Conv2DAttrs>),
      define_composed("nn.contrib_conv2d_winograd_weight_transform",
                      "A square kernel (OIHW) at the points of Winograd's tiles: (points, points, O, I).", kernel,
                      OpPattern::kOutEWiseFusable, expand_weight_transform<2>,
                      make_default_attrs<ConvWinogradWeightTransformAttrs>),
      define_composed("nn.contrib_conv2d_winograd_without_weight_transform",
                      "A convolution by Winograd's tiles; the transformed weight is (points, points, I, O).", operands,
                      OpPattern::kOutEWiseFusable, expand_winograd<Conv2DWinogradAttrs, 2>,
                      make_default_attrs<Conv2DWinogradAttrs>),
      define_composed("nn.contrib_conv3d_winograd_weight_transform",
                      "A kernel (OIDHW) at the points of Winograd's tiles; a depth of another size stays as it is.",
                      kernel, OpPattern::kOutEWiseFusable, expand_weight_transform<3>,
                      make_default_attrs<ConvWinogradWeightTransformAttrs>),
      define_composed("nn.contrib_conv3d_winograd_without_weight_transform",
                      "A 3-D convolution by Winograd's tiles; the transformed weight is (points..., I, O).", operands,
                      OpPattern::kOutEWiseFusable, expand_winograd<Conv3DWinogradAttrs, 3>,
                      make_default_attrs<Conv3DWinogradAttrs>),
  };
}

}  // namespace tilewright::relay
