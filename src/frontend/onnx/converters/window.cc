// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/converters/window.h"

#include <algorithm>

#include "base/format.h"

namespace tilewright::onnx {

void check_window(NodeContext& c, const std::vector<int64_t>& values, size_t want, const char* what, int64_t least) {
  if (values.size() != want) c.fail(format("its {} has {} values where {} are needed", what, values.size(), want));
  for (int64_t v : values)
    if (v < least || v > (int64_t{1} << 31)) c.fail(format("its {} holds {}, which is out of range", what, v));
}

namespace {

// The padding that gives ceil(size / stride) outputs; an odd element goes to the end (SAME_UPPER) or to the begin.
void auto_pads(NodeContext& c, const Expr& x, const std::string& mode, Window* w) {
  std::vector<int64_t> sizes = c.dims(x);
  size_t n = static_cast<size_t>(w->n);
  w->pads.assign(2 * n, 0);
  if (mode == "VALID") return;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") c.fail(format("its auto_pad '{}' is unknown", mode));
  for (size_t i = 0; i < n; ++i) {
    int64_t size = sizes[i + 2], out = (size + w->strides[i] - 1) / w->strides[i];
    int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1;
    int64_t total = std::max<int64_t>(0, (out - 1) * w->strides[i] + extent - size);
    int64_t small = total / 2, large = total - small;
    w->pads[i] = mode == "SAME_UPPER" ? small : large;
    w->pads[i + n] = mode == "SAME_UPPER" ? large : small;
  }
}

}  // namespace

Window read_window(NodeContext& c, const Expr& x, std::vector<int64_t> kernel) {
  Window w;
  w.n = c.rank(x) - 2;
  if (w.n < 1) c.fail_type(format("its input of rank {} has no spatial axis", c.rank(x)));
  if (w.n > 3) c.unsupported("more than three spatial axes");
  auto n = static_cast<size_t>(w.n);
  w.kernel = std::move(kernel);
  check_window(c, w.kernel, n, "kernel_shape", 1);
  w.strides = c.ints_attr("strides", std::vector<int64_t>(n, 1));
  check_window(c, w.strides, n, "strides", 1);
  w.dilations = c.ints_attr("dilations", std::vector<int64_t>(n, 1));
  check_window(c, w.dilations, n, "dilations", 1);
  w.pads = c.ints_attr("pads", std::vector<int64_t>(2 * n, 0));
  if (w.pads.empty()) w.pads.assign(2 * n, 0);
  check_window(c, w.pads, 2 * n, "pads", -(int64_t{1} << 31));
  std::string mode = c.string_attr("auto_pad", "NOTSET");
  if (mode != "NOTSET" && !mode.empty()) auto_pads(c, x, mode, &w);
  return w;
}

}  // namespace tilewright::onnx
