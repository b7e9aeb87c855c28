// SPDX-License-Identifier: Apache-2.0
// The loops of object detection (topi/detection.h) against the interpreter, on one thread and on several.
#include <cmath>

#include "base/format.h"
#include "driver/graphs.h"
#include "relay/ops/image/attrs_vision.h"

namespace tilewright::driver {
namespace {
using namespace testing;
using Values = std::map<std::string, Tensor>;

void check_with(std::vector<Expr> inputs, Expr body, Values values, const char* target = "llvm") {
  VerifyOptions options;
  options.build.target = target;
  options.build.jobs = 1;
  options.inputs = std::move(values);
  auto report =
      verify_module(relay::Module().with_main(relay::make_function(std::move(inputs), std::move(body))), options);
  ASSERT_TRUE(report.ok()) << report.error().str();
  for (const auto& m : report->mismatches)
    ADD_FAILURE() << m.kernel << " (" << m.step << ") at " << shape_str(m.at) << ": " << m.ours << ", reference "
                  << m.reference;
  EXPECT_LE(report->largest_output_error, 1) << (report->outputs.empty() ? "" : report->outputs[0]);
}

// Corners of boxes of a few sizes on a grid, so that many overlap; in some the corners are swapped.
Tensor some_boxes(std::vector<int64_t> shape, int seed, DataType dtype = kFloat32) {
  Tensor t(dtype, shape);
  const Tensor random = random_tensor(kFloat32, shape, static_cast<uint64_t>(seed));
  for (int64_t i = 0; i < t.size(); i += 4) {
    const double x = 10 * std::fabs(random.at_double(i)), y = 10 * std::fabs(random.at_double(i + 1));
    const double w = 1 + std::fabs(random.at_double(i + 2)), h = 1 + std::fabs(random.at_double(i + 3));
    const bool swapped = i / 4 % 7 == 3;
    t.set_double(i, swapped ? x + w : x), t.set_double(i + 1, y);
    t.set_double(i + 2, swapped ? x : x + w), t.set_double(i + 3, y + h);
  }
  return t;
}
Tensor integers(std::vector<int64_t> shape, const std::function<int64_t(int64_t)>& value, DataType dtype = kInt32) {
  Tensor t(dtype, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, value(i));
  return t;
}

TEST(Detection, SuppressesBoxes) {
  const int64_t pictures = 2, rows = 4, n = 57;
  for (DataType dtype : {kFloat32, kFloat64})
    for (int way = 0; way < 24; ++way) {
      SCOPED_TRACE(way);
      const bool with_classes = way & 1, force = way & 2, pixels = way & 4;
      Expr boxes = input("boxes", {pictures, n, 4}, dtype), scores = input("scores", {rows, n}, dtype),
           order = input("order", {rows, n}, kInt32), valid = input("valid", {rows}, kInt32),
           most = input("most", {}, kInt32), iou = input("iou", {}, dtype),
           classes = input("classes", {rows, n}, dtype);
      Tensor score(dtype, {rows, n}), kinds(dtype, {rows, n}), limit(kInt32, {}), threshold(dtype, {});
      for (int64_t i = 0; i < score.size(); ++i) {
        score.set_double(i, i % 9 == 4 ? -0.5 : 1.0 - static_cast<double>(i % n) / n);
        kinds.set_double(i, static_cast<double>(i * 5 % 4) - 1);
      }
      limit.set_int(0, way / 8 == 1 ? 5 : -1);
      threshold.set_double(0, way / 8 == 2 ? 0 : 0.3);
      Values values{{"boxes", some_boxes({pictures, n, 4}, 3 + way, dtype)},
                    {"scores", score},
                    {"order", integers({rows, n}, [&](int64_t i) { return (i % n * 23 + i / n) % n; })},
                    {"valid", integers({rows}, [&](int64_t i) { return i == 1   ? 0
                                                                       : i == 2 ? n + 5
                                                                                : n - i; })},
                    {"most", limit},
                    {"iou", threshold}};
      std::vector<Expr> operands{boxes, scores, order, valid, most, iou};
      if (with_classes) operands.push_back(classes), values.emplace("classes", kinds);
      check_with(operands, call("vision.suppress", operands, make_attrs<relay::SuppressAttrs>([&](auto& a) {
                                  a.force_suppress = force;
                                  a.count_all = way & 1;
                                  a.pixels = pixels;
                                })),
                 values, way % 3 ? "llvm" : "llvm -mcpu=haswell");
      if (HasFailure()) return;
    }
}

TEST(Detection, MovesSetElementsToTheFront) {
  for (int64_t rows : {1, 5})
    for (DataType dtype : {kBool, kInt32}) {
      Expr flags = input("flags", {rows, 33}, dtype);
      Expr found = call("vision.compact", {flags});
      check_with({flags}, found,
                 {{"flags", integers(
                                {rows, 33}, [](int64_t i) { return i * i % 3 == 1 || i / 33 == 2; }, dtype)}});
    }
}

Tensor some_regions(int64_t count, int64_t pictures, double height, double width) {
  const Tensor random = random_tensor(kFloat32, {count, 4}, 23);
  Tensor t(kFloat32, {count, 5});
  for (int64_t k = 0; k < count; ++k) {
    t.set_double(k * 5, static_cast<double>(k % pictures));
    for (int64_t i = 0; i < 2; ++i) {
      const double size = i ? height : width, low = size * random.at_double(k * 4 + i),
                   length = size * std::fabs(random.at_double(k * 4 + 2 + i));
      t.set_double(k * 5 + 1 + i, low), t.set_double(k * 5 + 3 + i, low + length * (k % 5 == 4 ? -1 : 1));
    }
  }
  return t;
}

TEST(Detection, AlignsAndPoolsRegions) {
  // Channels: less than a vector, whole vectors, vectors and a rest; planes: those of one thread and of several, lines
  // of one vector and of more.
  for (const char* layout : {"NHWC", "NCHW"})
    for (int64_t channels : {3, 32, 21, 40})
      for (int way = 0; way < 8; ++way) {
        SCOPED_TRACE(format("{} {} channels, {}", layout, channels, way));
        const bool planes = layout == std::string("NCHW");
        const std::vector<int64_t> shape =
            planes ? std::vector<int64_t>{2, channels, 9, 37} : std::vector<int64_t>{2, 9, 11, channels};
        Expr data = input("data", shape), regions = input("regions", {7, 5});
        const Values values{{"regions", some_regions(7, 2, 18, planes ? 74 : 22)}};
        AttrsRef attrs = make_attrs<relay::RegionAlignAttrs>([&](auto& a) {
          a.pooled_size = {3, 2};
          a.spatial_scale = 0.47;
          a.sample_ratio = way % 2 ? 2 : -1;
          a.layout = layout;
          a.mode = way / 2 == 0 ? "avg" : way / 2 == 1 ? "max" : way / 2 == 2 ? "max_pixel" : "avg";
          a.half_pixel = way / 2 == 3;
        });
        check_with({data, regions}, call("vision.region_align", {data, regions}, attrs), values);
        if (HasFailure()) return;
        if (way > 0) continue;
        check_with({data, regions},
                   call("vision.region_pool", {data, regions}, make_attrs<relay::ROIPoolAttrs>([&](auto& a) {
                          a.pooled_size = {3, 4};
                          a.spatial_scale = 0.47;
                          a.layout = layout;
                        })),
                   values);
      }
}

// Regions that are no numbers, far away or of pictures that are not there read inside the data.
TEST(Detection, OddRegionsStayInsideThePictures) {
  Tensor odd(kFloat32, {4, 5});
  const double huge = 1e30, none = std::nan("");
  const double rows[4][5] = {
      {-7, 0, 0, 3, 3}, {99, huge, huge, 2 * huge, 3 * huge}, {none, none, 1, none, 3}, {0, huge, 0, 1, 1}};
  for (int64_t i = 0; i < 20; ++i) odd.set_double(i, rows[i / 5][i % 5]);
  VerifyOptions options;
  options.build.jobs = 1;
  options.inputs = {{"regions", odd}};
  for (const char* layout : {"NHWC", "NCHW"})
    for (int64_t samples : {-1, 2}) {
      Expr data = input("data", {2, 4, 5, 6}), regions = input("regions", {4, 5});
      auto sized = [&](auto& a) { a.pooled_size = {2, 2}, a.layout = layout; };
      auto sampled = [&](auto& a) { sized(a), a.sample_ratio = samples; };
      for (Expr body : {call("vision.region_align", {data, regions}, make_attrs<relay::RegionAlignAttrs>(sampled)),
                        call("vision.region_pool", {data, regions}, make_attrs<relay::ROIPoolAttrs>(sized))}) {
        auto report = verify_module(relay::Module().with_main(relay::make_function({data, regions}, body)), options);
        ASSERT_TRUE(report.ok()) << report.error().str();
        EXPECT_TRUE(report->mismatches.empty()) << layout << samples;
      }
    }
}

}  // namespace
}  // namespace tilewright::driver
