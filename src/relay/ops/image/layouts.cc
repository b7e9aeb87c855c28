// SPDX-License-Identifier: Apache-2.0
// Layout rules of image and region operators.
#include "relay/ops/attrs.h"
#include "relay/ops/layout_inference.h"

namespace tilewright::relay {
namespace layouts {
namespace {

// Images whose spatial axes keep their place.
template <class A>
Inferred resized(const LayoutQuery& q) {
  const A& a = *attrs_as<A>(q.attrs);
  AttrsRef attrs = q.attrs;
  std::string layout = a.layout;
  if (q.now && (*q.now)[0]) {
    const std::string& now = *(*q.now)[0];
    bool stays = true;
    for (char axis : {'D', 'H', 'W'})
      if (place_of(layout, axis) >= 0) stays &= place_of(now, axis) == place_of(layout, axis) && !is_split(now, axis);
    if (stays && now != layout) {
      layout = now;
      attrs = changed<A>(q.attrs, [&](A& c) { c.layout = layout; });
    }
  }
  return LayoutInference{{layout}, {layout}, attrs};
}
template <class A>
Inferred regions(const LayoutQuery& q) {
  const std::string& layout = attrs_as<A>(q.attrs)->layout;
  return LayoutInference{{layout, "N5"}, {layout}, q.attrs};
}

constexpr Entry kImageLayouts[] = {
    {"image.resize1d", resized<Resize1DAttrs>},   {"image.resize2d", resized<Resize2DAttrs>},
    {"image.resize3d", resized<Resize3DAttrs>},   {"nn.upsampling", resized<UpSamplingAttrs>},
    {"vision.roi_align", regions<ROIAlignAttrs>}, {"vision.roi_pool", regions<ROIPoolAttrs>},
};

}  // namespace
}  // namespace layouts

void image_layouts(const FactsOf& facts) { layouts::add(facts, layouts::kImageLayouts); }

}  // namespace tilewright::relay
