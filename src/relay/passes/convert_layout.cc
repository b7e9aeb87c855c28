// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/convert_layout.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/format.h"
#include "relay/ops/attrs.h"
#include "relay/passes/rewrite.h"

namespace tilewright::relay {
namespace {

const ConfigKey<std::vector<std::string>> kDesired{"relay.ConvertLayout.desired_layouts", {}};

// An expression of the new graph, and how it lies: `to` where the old graph had `from`; both empty when as before.
struct Placed {
  Expr expr;
  std::string from, to;
  bool moved() const { return from != to; }
  bool lies_as(const Placed& other) const { return from == other.from && to == other.to; }
};

// The layouts that each operator may be given: of its data, channels first and last, and of its kernel.
struct Layouts {
  const char* op;
  std::array<const char*, 2> data, kernel;  // no kernel: null
};
constexpr Layouts kLayouts[] = {
    {"nn.conv1d", {"NCW", "NWC"}, {"OIW", "WIO"}},
    {"nn.conv2d", {"NCHW", "NHWC"}, {"OIHW", "HWIO"}},
    {"nn.conv3d", {"NCDHW", "NDHWC"}, {"OIDHW", "DHWIO"}},
    {"nn.max_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.avg_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.global_max_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.global_avg_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.adaptive_max_pool2d", {"NCHW", "NHWC"}, {}},
    {"nn.adaptive_avg_pool2d", {"NCHW", "NHWC"}, {}},
    {"image.resize2d", {"NCHW", "NHWC"}, {}},
};
const Layouts* layouts_of(std::string_view op) {
  const auto* found =
      std::find_if(std::begin(kLayouts), std::end(kLayouts), [&](const Layouts& l) { return op == l.op; });
  return found == std::end(kLayouts) ? nullptr : found;
}

Expr transformed(const Expr& x, const std::string& from, const std::string& to) {
  if (from == to) return x;
  // Going there and back again.
  if (is_call_to(x, "layout_transform")) {
    const auto& a = attrs_of<LayoutTransformAttrs>(x);
    if (a.src_layout == to && a.dst_layout == from) return arg(x, 0);
  }
  return call("layout_transform", {x}, make_attrs<LayoutTransformAttrs>([&](auto& a) {
                a.src_layout = from;
                a.dst_layout = to;
              }),
              x->span);
}

class Converter {
 public:
  explicit Converter(const DesiredLayouts& desired) : desired_(desired) {}

  Expr run(const Expr& body) {
    for (const Expr& e : post_order(body)) values_[e.get()] = place(e);
    return plain(body);
  }

 private:
  const Placed& at(const Expr& e) const { return values_.at(e.get()); }

  Expr plain(const Expr& e) {
    const Placed& p = at(e);
    if (!p.moved()) return p.expr;
    auto [it, fresh] = plains_.try_emplace(e.get());
    if (fresh) it->second = transformed(p.expr, p.to, p.from);
    return it->second;
  }
  // The value lying in `to`, where the old graph has it in `from`.
  Expr lying(const Expr& e, const std::string& from, const std::string& to) {
    const Placed& p = at(e);
    if (p.moved() && p.from == from && p.to == to) return p.expr;
    auto [it, fresh] = moved_.try_emplace(std::make_pair(e.get(), to));
    if (fresh) it->second = transformed(plain(e), from, to);
    return it->second;
  }

  Placed unmoved(const Expr& e) {
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids) kid = plain(kid);
    return {with_children(e, kids), "", ""};
  }

  Placed place(const Expr& e) {
    if (as<FunctionNode>(e)) return {e, "", ""};
    if (const auto* get = as<TupleGetItemNode>(e)) {
      auto it = tuples_.find(get->tuple.get());
      // Only a normalisation's first result and a split's parts lie as the data does.
      if (it != tuples_.end() && (it->second.all || get->index == 0))
        return {make_get(it->second.placed.expr, get->index, e->span), it->second.placed.from, it->second.placed.to};
      return unmoved(e);
    }
    if (!called_op(e)) return unmoved(e);
    std::string_view name = called_op(e)->name;
    Placed out;
    if (name == "nn.conv2d")
      out = convolution<Conv2DAttrs>(e);
    else if (name == "nn.conv1d")
      out = convolution<Conv1DAttrs>(e);
    else if (name == "nn.conv3d")
      out = convolution<Conv3DAttrs>(e);
    else if (name == "nn.max_pool2d")
      out = pool<MaxPool2DAttrs>(e);
    else if (name == "nn.avg_pool2d")
      out = pool<AvgPool2DAttrs>(e);
    else if (name == "nn.global_avg_pool2d" || name == "nn.global_max_pool2d")
      out = pool<GlobalPool2DAttrs>(e);
    else if (name == "nn.adaptive_avg_pool2d" || name == "nn.adaptive_max_pool2d")
      out = pool<AdaptivePool2DAttrs>(e);
    else if (name == "image.resize2d" && as<CallNode>(e)->args.size() == 1)
      out = pool<Resize2DAttrs>(e);
    else if (name == "nn.batch_norm")
      out = batch_norm(e);
    else if (name == "nn.bias_add")
      out = along_axis<BiasAddAttrs>(e);
    else if (name == "split")
      out = split(e);
    else if (name == "concatenate")
      out = concatenate(e);
    else if (name == "nn.pad")
      out = pad(e);
    else if (name == "mean" || name == "sum" || name == "max" || name == "min")
      out = reduce(e);
    else if (called_op(e)->pattern <= OpPattern::kBroadcast && name != "expand_dims" && name != "broadcast_to" &&
             name != "tile" && name != "repeat")
      out = elementwise(e);
    return out.expr ? out : unmoved(e);
  }

  template <class A>
  Placed convolution(const Expr& e) {
    const auto& a = attrs_of<A>(e);
    auto wanted = desired_.find(called_op(e)->name);
    if (wanted == desired_.end() || !(a.out_layout.empty() || a.out_layout == a.data_layout)) return {};
    const std::string& data = wanted->second[0] == "default" ? a.data_layout : wanted->second[0];
    std::string kernel = wanted->second.size() > 1 ? wanted->second[1] : "default";
    if (kernel == "default") {
      const Layouts& known = *layouts_of(called_op(e)->name);
      kernel = data == a.data_layout ? a.kernel_layout : known.kernel[data == known.data[1]];
    }
    if (data == a.data_layout && kernel == a.kernel_layout) return {};
    Expr x = data == a.data_layout ? plain(arg(e, 0)) : lying(arg(e, 0), a.data_layout, data);
    Expr w = transformed(plain(arg(e, 1)), a.kernel_layout, kernel);
    auto made = try_call(called_op(e)->name, {x, w}, make_attrs<A>([&](auto& out) {
                           out = a;
                           out.data_layout = data;
                           out.kernel_layout = kernel;
                           out.out_layout = "";
                         }),
                         e->span);
    if (!made.ok()) return {};
    return {*made, a.data_layout, data};
  }

  // Operators with a layout attribute that take any: the one they are wanted in, or their operand's.
  template <class A>
  Placed pool(const Expr& e) {
    const auto& a = attrs_of<A>(e);
    const Placed& p = at(arg(e, 0));
    auto wanted = desired_.find(called_op(e)->name);
    const bool chosen = wanted != desired_.end() && wanted->second[0] != "default";
    if (!chosen && (!p.moved() || a.layout != p.from)) return {};
    const std::string to = chosen ? wanted->second[0] : p.to;
    if (to == a.layout) return {};
    auto made = try_call(called_op(e)->name, {lying(arg(e, 0), a.layout, to)}, make_attrs<A>([&](auto& out) {
                           out = a;
                           out.layout = to;
                         }),
                         e->span);
    if (!made.ok()) return {};
    return {*made, a.layout, to};
  }

  // The same axis of the moved value.
  static int64_t moved_axis(int64_t axis, const Placed& p) {
    return static_cast<int64_t>(p.to.find(p.from[static_cast<size_t>(positive_axis(axis, p.from.size()))]));
  }

  template <class A>
  Placed along_axis(const Expr& e) {
    const Placed& p = at(arg(e, 0));
    if (!p.moved()) return {};
    std::vector<Expr> args = as<CallNode>(e)->args;
    args[0] = p.expr;
    for (size_t i = 1; i < args.size(); ++i) args[i] = plain(args[i]);
    Expr made = call(called_op(e)->name, args, make_attrs<A>([&](auto& a) {
                       a = attrs_of<A>(e);
                       a.axis = moved_axis(a.axis, p);
                     }),
                     e->span);
    return {made, p.from, p.to};
  }

  // Several results: found through TupleGetItem. The tuple as a whole, for any other user, is computed as before.
  Placed batch_norm(const Expr& e) {
    Placed moved = along_axis<BatchNormAttrs>(e);
    if (moved.expr) tuples_[e.get()] = {moved, false};
    return {};
  }
  Placed split(const Expr& e) {
    Placed moved = along_axis<SplitAttrs>(e);
    if (moved.expr) tuples_[e.get()] = {moved, true};
    return {};
  }

  Placed concatenate(const Expr& e) {
    const auto* tuple = as<TupleNode>(arg(e, 0));
    if (!tuple) return {};
    const Placed* lead = nullptr;
    for (const Expr& field : tuple->fields)
      if (at(field).moved() && !lead) lead = &at(field);
    if (!lead) return {};
    Placed as_lead = *lead;
    std::vector<Expr> fields;
    for (const Expr& field : tuple->fields) fields.push_back(lying(field, as_lead.from, as_lead.to));
    Expr made = call("concatenate", {make_tuple(fields, tuple->span)}, make_attrs<ConcatenateAttrs>([&](auto& a) {
                       a.axis = moved_axis(attrs_of<ConcatenateAttrs>(e).axis, as_lead);
                     }),
                     e->span);
    return {made, as_lead.from, as_lead.to};
  }

  Placed pad(const Expr& e) {
    const Placed& p = at(arg(e, 0));
    const auto& a = attrs_of<PadAttrs>(e);
    if (!p.moved() || a.pad_width.size() != p.from.size()) return {};
    std::vector<Expr> args{p.expr};
    for (size_t i = 1; i < as<CallNode>(e)->args.size(); ++i) args.push_back(plain(arg(e, i)));
    Expr made = call("nn.pad", args, make_attrs<PadAttrs>([&](auto& out) {
                       out = a;
                       for (size_t i = 0; i < p.from.size(); ++i) out.pad_width[p.to.find(p.from[i])] = a.pad_width[i];
                     }),
                     e->span);
    return {made, p.from, p.to};
  }

  Placed reduce(const Expr& e) {
    const Placed& p = at(arg(e, 0));
    const auto& a = attrs_of<ReduceAttrs>(e);
    if (!p.moved() || !a.axis || a.exclude) return {};
    std::vector<int64_t> axes;
    std::string left_from = p.from, left_to = p.to;
    for (int64_t axis : *a.axis) {
      char letter = p.from[static_cast<size_t>(positive_axis(axis, p.from.size()))];
      axes.push_back(moved_axis(axis, p));
      std::erase(left_from, letter);
      std::erase(left_to, letter);
    }
    // Without the reduced axes the rest must lie as it did.
    if (!a.keepdims && left_from != left_to) return {};
    std::sort(axes.begin(), axes.end());
    Expr made = call(called_op(e)->name, {p.expr}, make_attrs<ReduceAttrs>([&](auto& out) {
                       out = a;
                       out.axis = axes;
                     }),
                     e->span);
    return a.keepdims ? Placed{made, p.from, p.to} : Placed{made, "", ""};
  }

  Placed elementwise(const Expr& e) {
    const auto& c = *as<CallNode>(e);
    const Placed* lead = nullptr;
    for (const Expr& a : c.args)
      if (at(a).moved() && !lead) lead = &at(a);
    const auto* result = as_tensor(e->type);
    if (!lead || !result || result->shape.size() != lead->from.size()) return {};
    Placed as_lead = *lead;
    std::vector<Expr> args;
    for (const Expr& a : c.args) {
      auto moved = broadcast_operand(a, as_lead);
      if (!moved) return {};
      args.push_back(*moved);
    }
    auto made = try_call(called_op(e)->name, args, c.attrs, e->span);
    if (!made.ok()) return {};
    return {*made, as_lead.from, as_lead.to};
  }

  // An operand lined up with the moved value: leading axes it lacks are added before it is moved.
  std::optional<Expr> broadcast_operand(const Expr& a, const Placed& lead) {
    const auto* type = as_tensor(a->type);
    if (!type) return std::nullopt;
    const size_t rank = lead.from.size();
    if (type->shape.empty()) return plain(a);
    if (type->shape.size() == rank) return lying(a, lead.from, lead.to);
    auto shape = static_shape(type->shape);
    if (!shape || shape->size() > rank) return std::nullopt;
    shape->insert(shape->begin(), rank - shape->size(), 1);
    return transformed(reshape_to(plain(a), *shape), lead.from, lead.to);
  }

  struct Parts {
    Placed placed;
    bool all = false;
  };
  const DesiredLayouts& desired_;
  std::unordered_map<const ExprNode*, Placed> values_;
  std::unordered_map<const ExprNode*, Expr> plains_;
  std::map<std::pair<const ExprNode*, std::string>, Expr> moved_;
  std::unordered_map<const ExprNode*, Parts> tuples_;
};

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
    if (layouts.empty() || layouts.size() > (has_kernel ? 2 : 1) ||
        (layouts[0] != "default" && layouts[0] != known->data[0] && layouts[0] != known->data[1]))
      return Diagnostic(
          ErrorCode::kInvalidArgument,
          format("the layouts wanted for {} are not a data layout{}", op, has_kernel ? " and a kernel layout" : ""), "",
          format("for instance {}={}{}; data layouts are {} and {}", op, known->data[1],
                 has_kernel ? std::string(",") + known->kernel[1] : "", known->data[0], known->data[1]));
    if (layouts.size() == 2 && layouts[1] != "default") {
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
  return rewrite_functions(module, [&](const Expr& function) -> Expr {
    const auto& node = *as<FunctionNode>(function);
    // Islands do not cross bindings and branches.
    for (const Expr& e : post_order(function))
      if (as<LetNode>(e) || as<IfNode>(e) || as<MatchNode>(e)) return function;
    Expr body = Converter(desired).run(node.body);
    return body == node.body ? function : with_body(node, body);
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
