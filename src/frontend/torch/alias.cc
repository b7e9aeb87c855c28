// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/alias.h"

#include <algorithm>

#include "base/format.h"
#include "frontend/torch/importer.h"

namespace tilewright::torch {
namespace {

constexpr size_t kMostSteps = 256;  // length of a chain of views; every write walks it

// How a write to a view's result is turned into a new value of the viewed tensor.
enum class Inverse {
  kSame,
  kReshape,
  kPermute,
  kTranspose,
  kSelect,
  kSlice,
  kParts,
  kPlaces,
  kNone,
  // Between complex tensors and real ones.
  kReal,
  kImaginary,
  kConjugate,
  kAsReal,
  kAsComplex,
};

struct ViewOp {
  std::string_view target;
  Inverse inverse;
  // When the operator gives a view. Otherwise its result is a new tensor: elements are not contiguous, or values
  // differ.
  enum When { kAlways, kInOrder, kUnchanged } when = kAlways;
};
constexpr ViewOp kViewOps[] = {
    {"aten.alias", Inverse::kSame},
    {"aten.detach", Inverse::kSame},
    {"aten.lift_fresh", Inverse::kSame},
    {"aten.view_as", Inverse::kReshape},
    {"aten.view", Inverse::kReshape},
    {"aten._unsafe_view", Inverse::kReshape},
    {"aten.unsqueeze", Inverse::kReshape},
    {"aten.squeeze", Inverse::kReshape},
    {"aten.unflatten", Inverse::kReshape},
    {"aten.reshape", Inverse::kReshape, ViewOp::kInOrder},
    {"aten.reshape_as", Inverse::kReshape, ViewOp::kInOrder},
    {"aten._reshape_alias", Inverse::kReshape, ViewOp::kInOrder},
    {"aten.flatten", Inverse::kReshape, ViewOp::kInOrder},
    {"aten.contiguous", Inverse::kSame, ViewOp::kInOrder},
    {"aten.to", Inverse::kSame, ViewOp::kUnchanged},
    {"aten.type_as", Inverse::kSame, ViewOp::kUnchanged},
    {"aten.dropout", Inverse::kSame, ViewOp::kUnchanged},
    {"aten.feature_dropout", Inverse::kSame, ViewOp::kUnchanged},
    {"aten.permute", Inverse::kPermute},
    {"aten.transpose", Inverse::kTranspose},
    {"aten.swapaxes", Inverse::kTranspose},
    {"aten.t", Inverse::kTranspose},
    {"aten.select", Inverse::kSelect},
    {"aten.slice", Inverse::kSlice},
    {"aten.narrow", Inverse::kSlice},
    {"aten.split", Inverse::kParts},
    {"aten.split_with_sizes", Inverse::kParts},
    {"aten.chunk", Inverse::kParts},
    {"aten.tensor_split", Inverse::kParts},
    {"aten.unbind", Inverse::kParts},
    {"aten.expand", Inverse::kNone},
    {"aten.expand_as", Inverse::kNone},
    {"aten.diagonal", Inverse::kPlaces},
    {"aten.unfold", Inverse::kPlaces},
    {"aten.movedim", Inverse::kPlaces},
    {"aten.as_strided", Inverse::kPlaces, ViewOp::kInOrder},
    {"aten.real", Inverse::kReal},
    {"aten.imag", Inverse::kImaginary},
    {"aten.conj", Inverse::kConjugate},
    {"aten._conj", Inverse::kConjugate},
    {"aten.view_as_real", Inverse::kAsReal},
    {"aten.view_as_complex", Inverse::kAsComplex},
};
const ViewOp* view_op(std::string_view target) {
  // Overloads for lists and strings are not views.
  if (target.ends_with(".t") && target != "aten.t") return nullptr;
  if (target.ends_with(".str")) return nullptr;
  const std::string_view base = without_overload(target);
  for (const ViewOp& op : kViewOps)
    if (op.target == base) return &op;
  return nullptr;
}

Values replay(const Place& place, const ViewStep& step, const Expr& seen) {
  NamedValues arguments = step.arguments;
  arguments.at(0).second = Value(seen);
  if (place.torch) return place.torch->convert_node(*step.node, arguments);
  return convert_resolved(place, *step.node, std::move(arguments));
}

Expr result_of(const Values& made, size_t result) {
  if (made.size() == 1 && made[0].list) return made[0].list->at(result).expr;
  return made.at(result).expr;
}

Expr put_slice(const NodeContext& c, const Expr& whole, int64_t axis, int64_t begin, int64_t count, const Expr& part) {
  const int64_t size = c.dims(whole).at(static_cast<size_t>(axis));
  std::vector<Expr> parts;
  if (begin > 0) parts.push_back(c.slice(whole, axis, 0, begin));
  parts.push_back(part);
  if (begin + count < size) parts.push_back(c.slice(whole, axis, begin + count, size));
  return c.concat(std::move(parts), axis);
}

// Replaces every `step`-th element along the axis, from `begin` on.
Expr put_strided(const NodeContext& c, const Expr& whole, int64_t axis, int64_t begin, int64_t step, const Expr& part) {
  const int64_t count = c.dims(part).at(static_cast<size_t>(axis));
  if (count == 0) return whole;
  if (step == 1) return put_slice(c, whole, axis, begin, count, part);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i) places.push_back(begin + i * step);
  Expr index = c.ints_constant(places);
  index = c.expand(index, 1, c.rank(whole) - axis - 1);
  return c.call("scatter_elements", {whole, c.broadcast_to(index, c.dims(part)), part},
                make_attrs<relay::ScatterElementsAttrs>([&](auto& a) { a.axis = axis; }));
}

// Where each element that the view shows stands in what it views, as the view of those places says.
Expr put_places(const Place& place, const ViewStep& step, const Expr& before, const Expr& content) {
  NodeContext c(place, *step.node, step.arguments);
  const std::vector<int64_t> sizes = c.dims(before);
  const Expr places = c.reshaped(c.counting(c.product(sizes)), sizes);
  const Expr shown = result_of(replay(place, step, places), step.result);
  Expr flat = c.call("scatter_elements", {c.reshaped(before, {-1}), c.reshaped(shown, {-1}), c.reshaped(content, {-1})},
                     make_attrs<relay::ScatterElementsAttrs>([](auto& a) { a.axis = 0; }));
  return c.reshaped(flat, sizes);
}

// The same where sizes or positions are known only at run time, by the operator's scatter form.
Expr put_back_at_run_time(const Place& place, const ViewStep& step, const Expr& before, const Expr& content) {
  const auto scattered = [&](const char* target, std::initializer_list<const char*> settings) {
    NamedValues arguments = {{"self", Value(before)}, {"src", Value(content)}};
    for (const char* name : settings)
      for (const auto& [given, v] : step.arguments)
        if (given == name) arguments.emplace_back(given, v);
    return place.torch->made_by(target, *step.node, arguments).expr;
  };
  switch (view_op(step.node->target)->inverse) {
    case Inverse::kSelect:
      return scattered("aten.select_scatter.default", {"dim", "index"});
    case Inverse::kSlice:
      return scattered("aten.slice_scatter.default", {"dim", "start", "end", "step"});
    case Inverse::kReshape:
      return place.torch
          ->made_by("aten.reshape_as.default", *step.node, {{"self", Value(content)}, {"other", Value(before)}})
          .expr;
    case Inverse::kSame:
    case Inverse::kPermute:
    case Inverse::kTranspose:
    case Inverse::kParts:
    case Inverse::kPlaces:
    case Inverse::kNone:
    case Inverse::kReal:
    case Inverse::kImaginary:
    case Inverse::kConjugate:
    case Inverse::kAsReal:
    case Inverse::kAsComplex:
      break;
  }
  throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, "a change in place of what it shows")};
}

// `before` with the step's result replaced by `content`.
Expr put_back(const Place& place, const ViewStep& step, const Expr& before, const Expr& content) {
  NodeContext c(place, *step.node, step.arguments);
  const int64_t rank = c.rank(before);
  switch (view_op(step.node->target)->inverse) {
    case Inverse::kSame:
      return content;
    case Inverse::kReshape:
      return c.reshaped(content, c.dims(before));
    case Inverse::kPermute: {
      std::vector<int64_t> back(static_cast<size_t>(rank));
      const std::vector<int64_t> axes = c.ints("dims");
      for (size_t i = 0; i < axes.size(); ++i)
        back.at(static_cast<size_t>(c.dim(axes[i], rank))) = static_cast<int64_t>(i);
      return c.transpose(content, back);
    }
    case Inverse::kTranspose:
      return replay(place, step, content).at(0).expr;
    case Inverse::kSelect: {
      const int64_t axis = c.dim(c.integer("dim"), rank), size = c.dims(before).at(static_cast<size_t>(axis));
      const int64_t at = c.integer("index");
      return put_slice(c, before, axis, at < 0 ? at + size : at, 1, c.expand(content, axis));
    }
    case Inverse::kSlice: {
      const int64_t axis = c.dim(c.integer("dim", 0), rank), size = c.dims(before).at(static_cast<size_t>(axis));
      int64_t begin = c.integer("start", 0);
      begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
      return put_strided(c, before, axis, begin, c.integer("step", 1), content);
    }
    case Inverse::kParts: {
      const bool unbinds = without_overload(step.node->target) == "aten.unbind";
      const int64_t axis = c.dim(c.integer("dim", 0), rank);
      if (unbinds) return put_slice(c, before, axis, static_cast<int64_t>(step.result), 1, c.expand(content, axis));
      const Values made = replay(place, step, before);
      int64_t begin = 0;
      for (size_t i = 0; i < step.result; ++i) begin += c.dims(result_of(made, i)).at(static_cast<size_t>(axis));
      return put_strided(c, before, axis, begin, 1, content);
    }
    case Inverse::kPlaces:
      return put_places(place, step, before, content);
    case Inverse::kNone:
    case Inverse::kReal:
    case Inverse::kImaginary:
    case Inverse::kConjugate:
    case Inverse::kAsReal:
    case Inverse::kAsComplex:
      break;
  }
  c.unsupported("a change in place of what it shows");
}

Expr put_back_anyhow(const Place& place, const ViewStep& step, const Expr& before, const Expr& content) {
  if (!place.torch || !place.torch->programs()) return put_back(place, step, before, content);
  const Inverse inverse = view_op(step.node->target)->inverse;
  const bool simple = inverse == Inverse::kSame || inverse == Inverse::kTranspose;
  if (!simple && (!is_complete(before->type) || !is_complete(content->type)))
    return put_back_at_run_time(place, step, before, content);
  try {
    return put_back(place, step, before, content);
  } catch (const ConversionFailure& failure) {
    const ErrorCode code = failure.diagnostic.code;
    if (code != ErrorCode::kFreeDimension && code != ErrorCode::kUnsupportedModel) throw;
    return put_back_at_run_time(place, step, before, content);
  }
}

}  // namespace

Value in_own_memory(Value v, const std::string& owner, int owner_kind) {
  if (v.list)
    for (Value& item : *v.list) item = in_own_memory(std::move(item));
  if (v.kind != Value::kTensor || v.view) return v;
  v.view = std::make_shared<View>();
  v.view->memory = std::make_shared<Memory>();
  v.view->memory->whole = v.expr;
  v.view->memory->owner = owner;
  v.view->memory->owner_kind = owner_kind;
  v.view->memory->complex = v.complex;
  v.view->now = v.expr;
  return v;
}

bool lies_in_order(const View& view) {
  return std::all_of(view.steps.begin(), view.steps.end(), [](const ViewStep& step) {
    const Inverse inverse = view_op(step.node->target)->inverse;
    return inverse == Inverse::kSame || inverse == Inverse::kReshape || inverse == Inverse::kAsReal ||
           inverse == Inverse::kAsComplex;
  });
}

bool begins_its_memory(const View& view) {
  return std::all_of(view.steps.begin(), view.steps.end(), [](const ViewStep& step) {
    const Inverse inverse = view_op(step.node->target)->inverse;
    return inverse == Inverse::kSame || inverse == Inverse::kReshape || inverse == Inverse::kPermute ||
           inverse == Inverse::kTranspose;
  });
}

bool is_view(std::string_view target) { return view_op(target) != nullptr; }

void share_memory(const Place& place, const Node& node, const NamedValues& arguments, Values* results) {
  const ViewOp* op = view_op(node.target);
  if (!op || arguments.empty() || !arguments[0].second.view) return;
  const View& seen = *arguments[0].second.view;
  if (seen.steps.size() >= kMostSteps)
    throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, "a view of views of views without end")};
  if (op->when == ViewOp::kInOrder && !lies_in_order(seen)) return;
  if (op->when == ViewOp::kUnchanged && (results->empty() || results->front().expr != arguments[0].second.expr)) return;
  auto share = [&](Value* v, size_t result) {
    if (v->kind != Value::kTensor) return;
    v->view = std::make_shared<View>(seen);
    ViewStep step{&node, arguments, result};
    step.arguments[0].second = Value();
    v->view->steps.push_back(std::move(step));
    v->view->now = v->expr;
    v->view->version = seen.memory->version;
  };
  if (results->size() == 1 && results->front().list) {
    std::vector<Value> items = *results->front().list;
    for (size_t i = 0; i < items.size(); ++i) share(&items[i], i);
    results->front() = Value::of_list(std::move(items));
    return;
  }
  for (size_t i = 0; i < results->size(); ++i) share(&(*results)[i], i);
}

namespace {

// What a view shows: a tensor, or the two parts of a complex one. What most views do to a tensor they do to each part.
struct Seen {
  Expr real, imaginary;  // imaginary: null where it is no complex tensor
};

class Chain {
 public:
  Chain(const Place& place, const View& view) : place_(place), view_(view), c_(place, *view.steps.at(0).node, {}) {}

  // What the views show of a memory's content, one after another; the content comes first.
  std::vector<Seen> shown(const Expr& whole) const {
    std::vector<Seen> out = {view_.memory->complex ? apart(whole) : Seen{whole, {}}};
    for (const ViewStep& step : view_.steps) out.push_back(through(step, out.back()));
    return out;
  }
  Expr written(const Expr& whole, const Expr& content) const {
    const std::vector<Seen> before = shown(whole);
    Seen now = before.back().imaginary ? apart(content) : Seen{content, {}};
    for (size_t i = view_.steps.size(); i-- > 0;) now = back(view_.steps[i], before[i], now);
    return together(now);
  }
  Expr together(const Seen& s) const {
    return s.imaginary ? made("aten.complex.default", {{"real", Value(s.real)}, {"imag", Value(s.imaginary)}}) : s.real;
  }

 private:
  // In a program it may wait for a size.
  Expr made(const char* target, const NamedValues& arguments) const {
    return place_.torch ? place_.torch->made_by(target, *view_.steps[0].node, arguments).expr
                        : c_.one_of(target, arguments);
  }
  Seen apart(const Expr& e) const {
    Value v(e);
    v.complex = true;
    return {made("aten.real.default", {{"self", v}}), made("aten.imag.default", {{"self", v}})};
  }
  Seen conjugated(const Seen& s) const { return {s.real, s.imaginary ? c_.call("negative", {s.imaginary}) : Expr()}; }
  Seen through(const ViewStep& step, const Seen& s) const {
    auto one = [&](const Expr& e) { return e ? result_of(replay(place_, step, e), step.result) : e; };
    const Inverse inverse = view_op(step.node->target)->inverse;
    if (inverse == Inverse::kReal) return {s.real, {}};
    if (inverse == Inverse::kImaginary) return {s.imaginary, {}};
    if (inverse == Inverse::kConjugate) return conjugated(s);
    if (inverse == Inverse::kAsReal) return {together(s), {}};
    if (inverse == Inverse::kAsComplex) return apart(s.real);
    return {one(s.real), one(s.imaginary)};
  }
  // `before` with what the step shows of it replaced.
  Seen back(const ViewStep& step, const Seen& before, const Seen& now) const {
    auto one = [&](const Expr& old, const Expr& e) { return e ? put_back_anyhow(place_, step, old, e) : e; };
    const Inverse inverse = view_op(step.node->target)->inverse;
    if (inverse == Inverse::kReal) return {now.real, before.imaginary};
    if (inverse == Inverse::kImaginary) return {before.real, now.real};
    if (inverse == Inverse::kConjugate) return conjugated(now);
    if (inverse == Inverse::kAsReal) return apart(now.real);
    if (inverse == Inverse::kAsComplex) return {together(now), {}};
    return {one(before.real, now.real), one(before.imaginary, now.imaginary)};
  }

  const Place& place_;
  const View& view_;
  NodeContext c_;
};

}  // namespace

Expr current(const Place& place, const View& view) {
  if (view.version == view.memory->version) return view.now;
  if (view.steps.empty()) return view.memory->whole;
  const Chain chain(place, view);
  return chain.together(chain.shown(view.memory->whole).back());
}

void write_through(const Place& place, View* view, Expr content) {
  Memory& memory = *view->memory;
  memory.whole = view->steps.empty() ? content : Chain(place, *view).written(memory.whole, content);
  view->version = ++memory.version;
  view->now = std::move(content);
}

}  // namespace tilewright::torch
