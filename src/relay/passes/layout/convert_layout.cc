// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/layout/convert_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "base/format.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/passes/layout/layout_rewrite.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

const ConfigKey<std::vector<std::string>> kDesired{"relay.ConvertLayout.desired_layouts", {}};

// The supported data layouts of each operator (channels first, channels last) and its kernel layouts.
struct Layouts {
  const char* op;
  std::array<const char*, 2> data, kernel;  // kernel: null for operators without one
};
constexpr Layouts kLayouts[] = {
    {"nn.conv1d", {"NCW", "NWC"}, {"OIW", "WIO"}},
    {"nn.conv2d", {"NCHW", "NHWC"}, {"OIHW", "HWIO"}},
    {"nn.conv3d", {"NCDHW", "NDHWC"}, {"OIDHW", "DHWIO"}},
    {"nn.conv1d_transpose", {"NCW", "NWC"}, {"OIW", "WIO"}},
    {"nn.conv2d_transpose", {"NCHW", "NHWC"}, {"OIHW", "HWIO"}},
    {"nn.conv3d_transpose", {"NCDHW", "NDHWC"}, {"OIDHW", "DHWOI"}},
    {"nn.deformable_conv2d", {"NCHW", "NHWC"}, {"OIHW", "HWIO"}},
    {"qnn.conv2d", {"NCHW", "NHWC"}, {"OIHW", "HWIO"}},
    {"qnn.conv2d_transpose", {"NCHW", "NHWC"}, {"OIHW", "HWIO"}},
    {"nn.max_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.avg_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.global_max_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.global_avg_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.adaptive_max_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.adaptive_avg_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.upsampling", {"NCHW", "NHWC"}, {}},
    {"image.resize2d", {"NCHW", "NHWC"}, {}},
    {"image.resize3d", {"NCDHW", "NDHWC"}, {}},
    {"vision.roi_align", {"NCHW", "NHWC"}, {}},
    {"vision.roi_pool", {"NCHW", "NHWC"}, {}},
};
const Layouts* layouts_of(std::string_view op) {
  const auto* found =
      std::find_if(std::begin(kLayouts), std::end(kLayouts), [&](const Layouts& l) { return op == l.op; });
  return found == std::end(kLayouts) ? nullptr : found;
}

// "NCHW8c", the layout of channel blocks.
bool is_blocked(const std::string& layout) {
  return layout.size() > 5 && layout.starts_with("NCHW") && layout.ends_with('c') &&
         std::all_of(layout.begin() + 4, layout.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
}

// A call whose operands' layouts need not match yet: it is not typed.
Expr loose_call(const Expr& like, const std::vector<Expr>& args, AttrsRef attrs, const char* op = nullptr) {
  Expr callee = op ? Expr(make_node<OpNode>(find_op(op))) : as<CallNode>(like)->callee;
  return make_node<CallNode>(std::move(callee), args, std::move(attrs), incomplete_type(), like->span);
}

// The number of channels a convolution's data and kernel have.
bool is_depthwise(const Expr& e, const std::string& data, const std::string& kernel, int64_t groups) {
  auto channels = [&](size_t operand, const std::string& layout, char letter) {
    const auto* type = as_tensor(arg(e, operand)->type);
    const size_t at = layout.find(letter);
    return type && at < type->shape.size() ? type->shape[at].constant().value_or(-1) : -1;
  };
  const int64_t in = channels(0, data, 'C');
  // A depthwise kernel may have its outputs on the input axis.
  return groups > 1 && in == groups && std::max(channels(1, kernel, 'O'), channels(1, kernel, 'I')) == groups;
}

template <class A>
Expr converted_convolution(const Expr& e, const AttrsRef& attrs, const std::vector<Expr>& args,
                           const std::vector<std::string>& wanted) {
  const A& a = *attrs_as<A>(attrs);
  const std::string op = called_op(e)->name;
  const Layouts& known = *layouts_of(op);
  const std::string data = wanted[0] == "default" ? a.data_layout : wanted[0];
  std::string kernel = wanted.size() > 1 ? wanted[1] : "default";
  if (kernel == "default") {
    kernel = data == a.data_layout ? a.kernel_layout : known.kernel[data == known.data[1]];
    if constexpr (std::is_same_v<A, Conv2DAttrs>)
      if (data == known.data[1] && data != a.data_layout && is_depthwise(e, a.data_layout, a.kernel_layout, a.groups))
        kernel = "HWOI";
  }
  AttrsRef out = make_attrs<A>([&](auto& c) {
    c = a;
    c.data_layout = data;
    c.kernel_layout = kernel;
    if (c.out_layout == a.data_layout) c.out_layout.clear();
  });
  if (!is_blocked(data)) return loose_call(e, args, std::move(out));
  if constexpr (std::is_same_v<A, Conv2DAttrs>) {
    // The few channels of an image do not fill a block.
    const auto* type = as_tensor(arg(e, 0)->type);
    const int64_t block = std::stoll(data.substr(4)), channels = type->shape[1].constant().value_or(-1);
    if (op != "nn.conv2d" || (as<VarNode>(arg(e, 0)) && channels % block != 0)) return {};
    return loose_call(e, args, make_attrs<Conv2DNCHWcAttrs>([&](auto& c) {
                        c.strides = a.strides;
                        c.padding = a.padding;
                        c.dilation = a.dilation;
                        c.groups = a.groups;
                        c.channels = a.channels;
                        c.kernel_size = a.kernel_size;
                        c.data_layout = data;
                        c.kernel_layout = kernel;
                        c.out_dtype = a.out_dtype;
                      }),
                      "nn.contrib_conv2d_NCHWc");
  }
  return {};
}
template <class A>
Expr converted_image(const Expr& e, const AttrsRef& attrs, const std::vector<Expr>& args,
                     const std::vector<std::string>& wanted) {
  if (wanted[0] == "default") return {};
  return loose_call(e, args, make_attrs<A>([&](auto& c) {
                      c = *attrs_as<A>(attrs);
                      c.layout = wanted[0];
                      if constexpr (requires(A x) { x.out_layout; }) c.out_layout = wanted[0];
                    }));
}

using Conversion = Expr (*)(const Expr&, const AttrsRef&, const std::vector<Expr>&, const std::vector<std::string>&);
Conversion conversion_of(std::string_view op) {
  static const std::map<std::string_view, Conversion> kConversions = {
      {"nn.conv1d", converted_convolution<Conv1DAttrs>},
      {"nn.conv2d", converted_convolution<Conv2DAttrs>},
      {"nn.conv3d", converted_convolution<Conv3DAttrs>},
      {"nn.conv1d_transpose", converted_convolution<Conv1DTransposeAttrs>},
      {"nn.conv2d_transpose", converted_convolution<Conv2DTransposeAttrs>},
      {"nn.conv3d_transpose", converted_convolution<Conv3DTransposeAttrs>},
      {"nn.deformable_conv2d", converted_convolution<DeformableConv2DAttrs>},
      {"qnn.conv2d", converted_convolution<Conv2DAttrs>},
      {"qnn.conv2d_transpose", converted_convolution<Conv2DTransposeAttrs>},
      {"nn.max_pool2d", converted_image<MaxPool2DAttrs>},
      {"nn.avg_pool2d", converted_image<AvgPool2DAttrs>},
      {"nn.global_max_pool2d", converted_image<GlobalPool2DAttrs>},
      {"nn.global_avg_pool2d", converted_image<GlobalPool2DAttrs>},
      {"nn.adaptive_max_pool2d", converted_image<AdaptivePool2DAttrs>},
      {"nn.adaptive_avg_pool2d", converted_image<AdaptivePool2DAttrs>},
      {"nn.upsampling", converted_image<UpSamplingAttrs>},
      {"image.resize2d", converted_image<Resize2DAttrs>},
      {"image.resize3d", converted_image<Resize3DAttrs>},
      {"vision.roi_align", converted_image<ROIAlignAttrs>},
      {"vision.roi_pool", converted_image<ROIPoolAttrs>},
  };
  auto it = kConversions.find(op);
  return it == kConversions.end() ? nullptr : it->second;
}

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

Status check(const DesiredLayouts& desired) {
  for (auto& [op, layouts] : desired) {
    const Layouts* known = layouts_of(op);
    if (!known) {
      std::string names;
      for (const Layouts& each : kLayouts) names += (names.empty() ? "" : ", ") + std::string(each.op);
      return Diagnostic(ErrorCode::kInvalidArgument, format("ConvertLayout does not choose the layout of '{}'", op), "",
                        "it chooses for " + names + "; the operators around them follow");
    }
    const bool has_kernel = known->kernel[0] != nullptr;
    // Operators without a kernel accept "default" for further operands.
    const bool more = has_kernel || (layouts.size() == 2 && layouts[1] == "default");
    if (layouts.empty() || layouts.size() > (more ? 2 : 1) ||
        (layouts[0] != "default" && layouts[0] != known->data[0] && layouts[0] != known->data[1] &&
         !(op == "nn.conv2d" && is_blocked(layouts[0]))))
      return Diagnostic(
          ErrorCode::kInvalidArgument,
          format("the layouts wanted for {} are not a data layout{}", op, has_kernel ? " and a kernel layout" : ""), "",
          format("for instance {}={}{}; data layouts are {} and {}", op, known->data[1],
                 has_kernel ? std::string(",") + known->kernel[1] : "", known->data[0], known->data[1]));
    if (layouts.size() == 2 && layouts[1] != "default" && !is_blocked(layouts[0])) {
      std::string sorted = layouts[1], usual = known->kernel[0];
      std::sort(sorted.begin(), sorted.end());
      std::sort(usual.begin(), usual.end());
      if (sorted != usual)
        return Diagnostic(ErrorCode::kInvalidArgument,
                          format("'{}' is not a kernel layout of {} axes", layouts[1], usual.size()));
    }
  }
  return Ok{};
}

}  // namespace

Result<Module> convert_layout(const Module& module, const DesiredLayouts& desired) {
  TW_TRY_STATUS(check(desired));
  return rewrite_layouts(
      module, [&](const Expr& e, const AttrsRef& attrs, const std::vector<Expr>& args) -> Result<Expr> {
        auto wanted = desired.find(called_op(e)->name);
        return wanted == desired.end() ? Expr() : conversion_of(wanted->first)(e, attrs, args, wanted->second);
      });
}

Result<Module> convert_layout(const Module& module, PassContext& context) {
  DesiredLayouts desired;
  for (const std::string& entry : context.get(kDesired)) {
    auto sides = parts(entry, '=');
    if (sides.size() != 2)
      return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is not operator=layouts", entry));
    desired[sides[0]] = parts(sides[1], ',');
  }
  return convert_layout(module, desired);
}

}  // namespace tilewright::relay
