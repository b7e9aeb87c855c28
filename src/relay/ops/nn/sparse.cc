// SPDX-License-Identifier: Apache-2.0
// Sparse matrices: values, their columns and the row starts (CSR), or the
// same for blocks (BSR). Column indices and row starts known only at run
// time are clamped to their valid range; out-of-range constants are errors.
#include <algorithm>

#include "relay/ops/composition.h"
#include "relay/ops/reference.h"

namespace tilewright::relay {
namespace {

const char* const kForms = "values are (elements) of single numbers or (blocks, rows, columns)";

Status is_index(const TypeArgs& args, size_t i) {
  const auto& t = args.tensor(i);
  if (t.shape.size() != 1 || !t.dtype.is_integral() || t.dtype.bits < 8)
    return type_error(format("{} is not a vector of integers", type_str(args.types[i])));
  return Ok{};
}

// Checks operands 1 to 3, a matrix with `columns` columns of blocks; the values of constants are checked, too.
Status check_structure(const TypeArgs& args, const Dim& columns) {
  TW_TRY_STATUS(is_index(args, 2));
  TW_TRY_STATUS(is_index(args, 3));
  const auto& values = args.tensor(1);
  if (dims_differ(values.shape[0], args.tensor(2).shape[0]))
    return type_error(
        format("there are {} values and {} columns", values.shape[0].str(), args.tensor(2).shape[0].str()));
  if (args.tensor(3).shape[0] == Dim(0))
    return type_error("indptr is empty: it has one value more than there are rows");
  if (const Tensor* indices = constant_operand(args, 2); indices && columns.is_const())
    for (int64_t at : int_values(*indices))
      if (at < 0 || at >= columns.value()) return type_error(format("column {} is outside of {}", at, columns.value()));
  if (const Tensor* starts = constant_operand(args, 3)) {
    int64_t before = 0;
    for (int64_t at : int_values(*starts)) {
      if (at < before || (values.shape[0].is_const() && at > values.shape[0].value()))
        return type_error(format("indptr goes from {} to {} among {} values", before, at, values.shape[0].str()));
      before = at;
    }
  }
  return Ok{};
}

// The number of block columns in `length` columns. Errors: not a multiple.
Result<Dim> block_columns(const Dim& length, const Dim& width) {
  if (!width.is_const() || width.value() < 1) return type_error(format("blocks are {} columns wide", width.str()));
  if (length.is_const() && length.value() % width.value() != 0)
    return type_error(format("blocks of {} columns do not divide {}", width.value(), length.value()));
  return floordiv(length, width);
}

Result<Type> sparse_dense_type(const TypeArgs& args) {
  const auto &x = args.tensor(0), &values = args.tensor(1);
  TW_TRY_STATUS(product_dtypes(args));
  if (x.dtype != values.dtype)
    return type_error(format("operands are {} and {}", type_str(args.types[0]), type_str(args.types[1])));
  if (x.shape.size() != 2) return type_error(format("the dense operand {} is no matrix", shape_str(x.shape)));
  const size_t rank = values.shape.size();
  if (rank != 1 && rank != 3)
    return type_error(format("the sparse matrix has values {}; {}", shape_str(values.shape), kForms));
  Dim columns = TW_TRY(block_columns(x.shape[1], rank == 3 ? values.shape[2] : Dim(1)));
  TW_TRY_STATUS(check_structure(args, columns));
  Dim rows = (args.tensor(3).shape[0] - Dim(1)) * (rank == 3 ? values.shape[1] : Dim(1));
  if (attrs_of<SparseDenseAttrs>(args).sparse_lhs) return tensor_type({rows, x.shape[0]}, x.dtype);
  return tensor_type({x.shape[0], rows}, x.dtype);
}

// out[m, b * rows + j] = sum over the blocks of row b and their columns c of x[m, column * columns + c] * value[., j,
// c]
Result<std::vector<Value>> eval_sparse_dense(const EvalArgs& args) {
  const Value &x = args.inputs[0], &values = args.inputs[1], &indices = args.inputs[2], &starts = args.inputs[3];
  const bool single = values.shape.size() == 1, swapped = args.as<SparseDenseAttrs>().sparse_lhs;
  const int64_t blocks = values.shape[0], rows = single ? 1 : values.shape[1], columns = single ? 1 : values.shape[2];
  const int64_t m = x.shape[0], k = x.shape[1], down = starts.shape[0] - 1, n = down * rows;
  const int64_t across = k / columns;
  Value out = out_value(args);
  if (out.is_float()) out.bound.assign(static_cast<size_t>(out.size()), 0.0);
  const double u = unit_roundoff(out.dtype) * kSumSlack;
  auto start = [&](int64_t row) { return std::clamp<int64_t>(starts.i[static_cast<size_t>(row)], 0, blocks); };
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) {
      const int64_t row = c / rows, j = c % rows, to = swapped ? c * m + r : r * n + c;
      double sum = 0, squares = 0, spread = 0;
      uint64_t whole = 0;
      for (int64_t e = start(row); across > 0 && e < start(row + 1); ++e) {
        const int64_t column = std::clamp<int64_t>(indices.i[static_cast<size_t>(e)], 0, across - 1);
        for (int64_t i = 0; i < columns; ++i) {
          const auto a = static_cast<size_t>(r * k + column * columns + i),
                     b = static_cast<size_t>((e * rows + j) * columns + i);
          if (!out.is_float()) {
            whole += static_cast<uint64_t>(x.i[a]) * static_cast<uint64_t>(values.i[b]);
            continue;
          }
          const double term = x.f[a] * values.f[b];
          const double error = bound_at(x, static_cast<int64_t>(a)) * std::fabs(values.f[b]) +
                               bound_at(values, static_cast<int64_t>(b)) * std::fabs(x.f[a]);
          sum += term;
          squares += term * term;
          spread += error * error;
        }
      }
      if (!out.is_float()) {
        out.i[static_cast<size_t>(to)] = wrap_int(out.dtype, static_cast<int64_t>(whole));
        continue;
      }
      out.f[static_cast<size_t>(to)] = sum;
      out.bound[static_cast<size_t>(to)] = u * std::sqrt(squares) + std::sqrt(spread);
    }
  return one(std::move(out));
}

Result<Type> sparse_add_type(const TypeArgs& args) {
  const auto &x = args.tensor(0), &values = args.tensor(1);
  if (x.shape.size() != 2) return type_error(format("the dense operand {} is no matrix", shape_str(x.shape)));
  if (x.dtype != values.dtype)
    return type_error(format("operands are {} and {}", type_str(args.types[0]), type_str(args.types[1])));
  TW_TRY_STATUS(number_dtype(x.dtype));
  if (values.shape.size() != 1)
    return type_error(format("the sparse matrix has values {}, not (elements)", shape_str(values.shape)));
  TW_TRY_STATUS(check_structure(args, x.shape[1]));
  if (dims_differ(args.tensor(3).shape[0], x.shape[0] + Dim(1)))
    return type_error(format("indptr has {} values for {} rows; one more is needed", args.tensor(3).shape[0].str(),
                             x.shape[0].str()));
  return args.types[0];
}

Result<std::vector<Value>> eval_sparse_add(const EvalArgs& args) {
  const Value &values = args.inputs[1], &indices = args.inputs[2], &starts = args.inputs[3];
  Value out = args.inputs[0];
  const int64_t m = out.shape[0], n = out.shape[1], count = values.shape[0];
  if (out.is_float() && out.bound.empty()) out.bound.assign(static_cast<size_t>(out.size()), 0.0);
  auto start = [&](int64_t row) { return std::clamp<int64_t>(starts.i[static_cast<size_t>(row)], 0, count); };
  for (int64_t row = 0; row < m; ++row)
    for (int64_t e = start(row); n > 0 && e < start(row + 1); ++e) {
      const auto from = static_cast<size_t>(e),
                 to = static_cast<size_t>(row * n + std::clamp<int64_t>(indices.i[from], 0, n - 1));
      if (!out.is_float()) {
        out.i[to] = wrap_int(
            out.dtype, static_cast<int64_t>(static_cast<uint64_t>(out.i[to]) + static_cast<uint64_t>(values.i[from])));
        continue;
      }
      out.f[to] += values.f[from];
      out.bound[to] += bound_at(values, e) + unit_roundoff(out.dtype) * std::fabs(out.f[to]);
    }
  return one(std::move(out));
}

Result<Type> sparse_transpose_type(const TypeArgs& args) {
  const auto &values = args.tensor(0), &starts = args.tensor(2);
  if (values.shape.size() != 1)
    return type_error(format("the sparse matrix has values {}, not (elements)", shape_str(values.shape)));
  TW_TRY_STATUS(number_dtype(values.dtype));
  TW_TRY_STATUS(is_index(args, 1));
  TW_TRY_STATUS(is_index(args, 2));
  if (dims_differ(values.shape[0], args.tensor(1).shape[0]))
    return type_error(
        format("there are {} values and {} columns", values.shape[0].str(), args.tensor(1).shape[0].str()));
  if (starts.shape[0] == Dim(0)) return type_error("indptr is empty: it has one value more than there are rows");
  return tuple_type({args.types[0], args.types[1], args.types[2]});
}

// Counting sort by column, stable by row. Elements that the row starts do not cover leave zeros at the end; of elements
// that they cover twice, the surplus goes to the last position.
Result<std::vector<Value>> eval_sparse_transpose(const EvalArgs& args) {
  const Value &values = args.inputs[0], &indices = args.inputs[1], &starts = args.inputs[2];
  const int64_t n = starts.shape[0] - 1, count = values.shape[0];
  Value data = out_value(args, 0), rows = out_value(args, 1), begins = out_value(args, 2);
  if (data.is_float() && !values.bound.empty()) data.bound.assign(static_cast<size_t>(count), 0.0);
  std::vector<int64_t> next(static_cast<size_t>(n) + 1, 0);
  auto each = [&](auto&& use) {
    auto start = [&](int64_t row) { return std::clamp<int64_t>(starts.i[static_cast<size_t>(row)], 0, count); };
    for (int64_t row = 0; row < n; ++row)
      for (int64_t e = start(row); e < start(row + 1); ++e)
        use(row, static_cast<size_t>(e),
            static_cast<size_t>(std::clamp<int64_t>(indices.i[static_cast<size_t>(e)], 0, n - 1)));
  };
  each([&](int64_t, size_t, size_t column) { ++next[column + 1]; });
  for (size_t c = 0; c < static_cast<size_t>(n); ++c) {
    next[c + 1] += next[c];
    begins.i[c] = wrap_int(begins.dtype, next[c]);
  }
  begins.i[static_cast<size_t>(n)] = wrap_int(begins.dtype, count);
  each([&](int64_t row, size_t from, size_t column) {
    const auto at = static_cast<size_t>(std::min(next[column]++, count - 1));
    if (data.is_float())
      data.f[at] = values.f[from];
    else
      data.i[at] = values.i[from];
    if (!data.bound.empty()) data.bound[at] = values.bound[from];
    rows.i[at] = wrap_int(rows.dtype, row);
  });
  std::vector<Value> out;
  for (Value* v : {&data, &rows, &begins}) out.push_back(std::move(*v));
  return out;
}

Result<Type> sparse_conv2d_type(const TypeArgs& args) {
  const auto& a = attrs_of<SparseConv2DAttrs>(args);
  const auto &x = args.tensor(0), &values = args.tensor(1);
  TW_TRY_STATUS(product_dtypes(args));
  if (x.dtype != values.dtype)
    return type_error(format("operands are {} and {}", type_str(args.types[0]), type_str(args.types[1])));
  if (a.layout != "NHWC" && a.layout != "NCHW")
    return type_error(format("layout \"{}\" is not NHWC or NCHW", a.layout));
  if (a.kernel_size != std::vector<int64_t>{1, 1} && a.kernel_size != std::vector<int64_t>{3, 3})
    return type_error("kernel_size is not [1, 1] or [3, 3]");
  if (x.shape.size() != 4) return type_error(format("data {} is not in layout {}", shape_str(x.shape), a.layout));
  const size_t rank = values.shape.size(), channel = a.layout == "NHWC" ? 3 : 1;
  if (rank != 2 && rank != 3)
    return type_error(format("the sparse matrix has values {}, not (blocks, rows) or (blocks, rows, columns)",
                             shape_str(values.shape)));
  const Dim taps(a.kernel_size[0] * a.kernel_size[1]);
  Dim columns = TW_TRY(block_columns(x.shape[channel] * taps, rank == 3 ? values.shape[2] : Dim(1)));
  TW_TRY_STATUS(check_structure(args, columns));
  Shape out = x.shape;
  out[channel] = (args.tensor(3).shape[0] - Dim(1)) * values.shape[1];
  return tensor_type(std::move(out), x.dtype);
}

// The classic operator's form: the sparse matrix has one row per output channel; its columns are the channels of one
// position, for 3x3 kernels in the order of the layout (HWI or IHW).
Result<Expr> expand_sparse_conv2d(const TypeArgs& args) {
  Composition c(args);
  const auto& a = attrs_of<SparseConv2DAttrs>(args);
  const std::vector<int64_t> shape = TW_TRY(known_sizes(args, 0)), blocks = TW_TRY(known_sizes(args, 1)),
                             starts = TW_TRY(known_sizes(args, 3));
  const bool last = a.layout == "NHWC";
  const int64_t down = last ? 1 : 2;  // the axis of height
  const int64_t batch = shape[0], height = shape[static_cast<size_t>(down)],
                width = shape[static_cast<size_t>(down) + 1], channels = shape[last ? 3 : 1];
  Expr x = c[0];
  int64_t depth = channels;
  if (a.kernel_size[0] == 3) {
    std::vector<std::vector<int64_t>> widths(4, {0, 0});
    widths[static_cast<size_t>(down)] = widths[static_cast<size_t>(down) + 1] = {1, 1};
    Expr padded = c.pad(x, widths, c.number(0, args.tensor(0).dtype));
    std::vector<Expr> windows;
    for (int64_t i = 0; i < 9; ++i)
      windows.push_back(c.slice(c.slice(padded, down, i / 3, i / 3 + height), down + 1, i % 3, i % 3 + width));
    depth = 9 * channels;
    // (N, H, W, 9, C) or (N, C, 9, H, W)
    x = c.call<StackAttrs>("stack", {c.tuple(std::move(windows))}, [&](auto& s) { s.axis = last ? 3 : 2; });
    if (!last) x = c.reshape(x, {batch, depth, height, width});
  }
  if (!last) x = c.transpose(x, {0, 2, 3, 1});
  Expr values = blocks.size() == 3 ? c[1] : c.reshape(c[1], {blocks[0], blocks[1], 1});
  Expr y = c.call("nn.sparse_dense", {c.reshape(x, {batch * height * width, depth}), values, c[2], c[3]});
  y = c.reshape(y, {batch, height, width, (starts[0] - 1) * blocks[1]});
  return c.result(last ? y : c.transpose(y, {0, 3, 1, 2}));
}

// The sparse matrix on the left; the other order has a kernel.
Result<Expr> expand_sparse_dense(const TypeArgs& args) {
  Composition c(args);
  Expr product = c.call("nn.sparse_dense", {c[0], c[1], c[2], c[3]});
  if (attrs_of<SparseDenseAttrs>(args).sparse_lhs) return c.result(c.transpose(product, {1, 0}));
  return c.result(product);
}
Result<Expr> expand_left_side(const TypeArgs& args) {
  if (attrs_of<SparseDenseAttrs>(args).sparse_lhs) return expand_sparse_dense(args);
  return Diagnostic(ErrorCode::kFreeDimension, "a sparse right side stays as it is");
}

const std::vector<ArgDoc>& matrix_operands() {
  static const std::vector<ArgDoc> kOperands = {{"dense_data", "a matrix"},
                                                {"sparse_data", "(elements) or (blocks, rows, columns)"},
                                                {"sparse_indices", "the column of each"},
                                                {"sparse_indptr", "where each row begins, and the end"}};
  return kOperands;
}

OpDef with_expansion(OpDef def, Result<Expr> (*expand)(const TypeArgs&)) {
  def.expand = expand;
  return def;
}

}  // namespace

std::vector<OpDef> sparse_ops() {
  const std::vector<ArgDoc> csr = {{"sparse_data", "(elements)"},
                                   {"sparse_indices", "the column of each"},
                                   {"sparse_indptr", "where each row begins, and the end"}};
  const std::vector<ArgDoc> image = {{"dense_data", "in the layout"},
                                     {"sparse_data", "(blocks, rows) or (blocks, rows, columns)"},
                                     {"sparse_indices", "the column of each"},
                                     {"sparse_indptr", "where each row begins, and the end"}};
  return {
      define_composed("nn.internal.sparse_dense_padded",
                      "nn.sparse_dense; rows may be filled up with zeros, as kernels of graphics processors want them.",
                      matrix_operands(), OpPattern::kOutEWiseFusable, expand_sparse_dense,
                      make_default_attrs<SparseDenseAttrs>, sparse_dense_type),
      define_op("nn.sparse_add", "A matrix and a sparse one (CSR) of the same size.", matrix_operands(),
                OpPattern::kOpaque, sparse_add_type, eval_sparse_add, nullptr),
      define_composed("nn.sparse_conv2d",
                      "Convolution 1x1, or 3x3 with padding 1, by a sparse matrix of output channels (BSR).", image,
                      OpPattern::kOutEWiseFusable, expand_sparse_conv2d, make_default_attrs<SparseConv2DAttrs>,
                      sparse_conv2d_type),
      with_expansion(
          define_op("nn.sparse_dense", "(M, K) times the transpose of a sparse (N, K) matrix (CSR or BSR) -> (M, N).",
                    matrix_operands(), OpPattern::kOutEWiseFusable, sparse_dense_type, eval_sparse_dense,
                    make_default_attrs<SparseDenseAttrs>),
          expand_left_side),
      define_op("nn.sparse_transpose", "The transpose of a square sparse matrix (CSR): data, indices and indptr.", csr,
                OpPattern::kOpaque, sparse_transpose_type, eval_sparse_transpose,
                make_default_attrs<SparseTransposeAttrs>),
  };
}

}  // namespace tilewright::relay
