// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/run_time_control.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "frontend/lets.h"
#include "frontend/torch/alias.h"
#include "frontend/torch/growing.h"
#include "frontend/torch/wait.h"

namespace tilewright::torch {
namespace {

using frontend::Lets;

// A body is imported again until the set of mutated values and the types of carried values reach a fixed point; at most
// so often.
constexpr int kMostImports = 6;

void collect_names(const Argument& a, std::set<std::string>* names) {
  if (a.kind == Argument::kValue) names->insert(a.text);
  for (const Argument& item : a.items) collect_names(item, names);
}
// Collects the names that a graph reads (defined inside or outside) and those of lists that it mutates.
void collect_names(const Graph& graph, std::set<std::string>* reads, std::set<std::string>* changed_lists) {
  for (const Node& node : graph.nodes) {
    if (changes_list(node.target) && !node.inputs.empty()) changed_lists->insert(node.inputs[0].value.text);
    for (const NamedArgument& input : node.inputs) {
      collect_names(input.value, reads);
      if (input.value.graph) collect_names(*input.value.graph, reads, changed_lists);
    }
  }
  for (const Argument& output : graph.outputs) collect_names(output, reads);
}

// The surroundings as the graph of a branch or iteration sees them: values bound around it, and copies of memories and
// lists, so that mutations can be detected.
class Surroundings {
 public:
  using Given = std::map<const void*, Expr>;  // by memory or list: its content when the graph begins

  Surroundings(Importer& importer, Lets& lets, const Graph& graph, const Given& given)
      : importer_(importer), lets_(lets), given_(given) {
    std::set<std::string> reads, changed;
    collect_names(graph, &reads, &changed);
    scope.depth = importer.scope()->depth;
    for (const std::string& name : reads) {
      const Value* v = importer.scope()->find(name);
      if (!v) continue;
      if (changed.count(name) && v->list && !v->poisoned) grow(importer, *v);
      scope.values.emplace(name, inside(importer.current_value(*v)));
    }
  }

  struct Change {
    std::shared_ptr<Memory> memory;  // the memory of a tensor, or
    Value list;
    Expr content;
    const void* key() const { return memory ? static_cast<const void*>(memory.get()) : list.list.get(); }
    Expr before() const { return memory ? memory->whole : sequence_of(list); }
    void apply(const Expr& now) const {
      if (!memory) return set_sequence(list, now);
      memory->whole = now;
      ++memory->version;
    }
  };
  std::vector<Change> changes() const {
    std::vector<Change> out;
    for (const auto& [outer, inner] : memories_)
      if (inner->version > 0) out.push_back({outer, {}, inner->whole});
    for (const auto& [outer, inner] : lists_) {
      if (is_grown(outer) && sequence_of(inner) != started_.at(outer.list.get()))
        out.push_back({nullptr, outer, sequence_of(inner)});
      if (!is_grown(outer) && contents_of(inner) != contents_.at(outer.list.get()))
        onnx::refuse(ErrorCode::kUnsupportedOp, "a list that only a run changes, by another name");
    }
    return out;
  }

  Scope scope;

 private:
  Expr start(const void* key, const Expr& e) const {
    auto it = given_.find(key);
    return it != given_.end() ? it->second : lets_.bound("outside", e);
  }
  Value inside(const Value& v) {
    Value out = v;
    if (v.kind == Value::kNumber) out.expr = lets_.bound("outside", v.expr);
    if (v.kind == Value::kTensor) {
      if (!v.view) return Value(lets_.bound("outside", v.expr));
      const auto& outer = v.view->memory;
      auto found = std::find_if(memories_.begin(), memories_.end(), [&](const auto& m) { return m.first == outer; });
      if (found == memories_.end()) {
        auto memory = std::make_shared<Memory>();
        memory->whole = start(outer.get(), outer->whole);
        memories_.emplace_back(outer, memory);
        found = memories_.end() - 1;
      }
      out.like = known_of(v);
      out.view = std::make_shared<View>(*v.view);
      out.view->memory = found->second;
      out.view->version = 0;
      const bool given = given_.count(outer.get()) != 0;
      if (v.view->steps.empty())
        out.expr = found->second->whole;
      else if (!given)
        out.expr = lets_.bound("outside", v.expr);
      out.view->now = out.expr;
      if (given && !v.view->steps.empty()) {
        out.view->version = -1;
        out.expr = current(importer_.place(), *out.view);
        out.view->now = out.expr;
        out.view->version = 0;
      }
    }
    if (v.list) {
      for (const auto& [outer, inner] : lists_)
        if (outer.list == v.list) return inner;
      if (is_grown(v)) {
        Value item = v.list->front();
        item.expr = started_[v.list.get()] = start(v.list.get(), item.expr);
        out = Value::of_list({item});
      } else {
        std::vector<Value> items;
        for (const Value& item : *v.list) items.push_back(inside(item));
        out = Value::of_list(std::move(items));
      }
      lists_.emplace_back(v, out);
      contents_[v.list.get()] = contents_of(out);
    }
    return out;
  }
  // The identities of a list's items, whatever was done to the tensors.
  static std::vector<const void*> contents_of(const Value& list) {
    std::vector<const void*> out;
    for (const Value& item : *list.list) {
      const void* what = item.expr.get();
      if (item.list) what = item.list.get();
      if (item.view) what = item.view->memory.get();
      out.push_back(what);
    }
    return out;
  }

  Importer& importer_;
  Lets& lets_;
  const Given& given_;
  std::vector<std::pair<std::shared_ptr<Memory>, std::shared_ptr<Memory>>> memories_;
  std::vector<std::pair<Value, Value>> lists_;
  std::map<const void*, Expr> started_;
  std::map<const void*, std::vector<const void*>> contents_;
};

bool has_poison(const Values& values) {
  return std::any_of(values.begin(), values.end(),
                     [](const Value& v) { return v.poisoned || (v.list && has_poison(*v.list)); });
}
Values all_poisoned(size_t count) {
  Value bad;
  bad.poisoned = true;
  return Values(count, bad);
}

bool is_unset(const Value& v) { return v.kind == Value::kNothing && !v.text.empty(); }

// Collects the expressions in a value, in order.
void leaves_of(const Value& v, std::vector<Expr>* out) {
  if (v.list)
    for (const Value& item : *v.list) leaves_of(item, out);
  else if (v.expr)
    out->push_back(v.expr);
}
// A copy of the value with other expressions, of which its likenesses tell all that is known. Its tensors get memories
// of their own.
Value with_leaves(const Value& v, const std::vector<Expr>& leaves, size_t* next) {
  Value out = v;
  out.view = nullptr;
  if (v.list) {
    std::vector<Value> items;
    for (const Value& item : *v.list) items.push_back(with_leaves(item, leaves, next));
    return Value::of_list(std::move(items));
  }
  if (!v.expr) return out;
  out.expr = leaves.at((*next)++);
  return out;
}

// A placeholder of the type of `like`, for a value that nothing reads.
Value stand_in(NodeContext& c, const Value& like) {
  Value out = like;
  out.view = nullptr;
  if (like.list && !is_grown(like)) {
    std::vector<Value> items;
    for (const Value& item : *like.list) items.push_back(stand_in(c, item));
    return Value::of_list(std::move(items));
  }
  if (!like.expr) return out;
  const auto* t = as_tensor(like.expr->type);
  const auto shape = t && is_complete(like.expr->type) ? static_shape(t->shape) : std::nullopt;
  out.expr = shape ? c.zeros(t->dtype, *shape) : c.scalar(0, kFloat32);
  return out;
}

// What is known of both.
std::optional<Likeness> common_likeness(const std::optional<Likeness>& x, const std::optional<Likeness>& y) {
  if (!x || !y || x->dtype != y->dtype) return std::nullopt;
  Likeness out = *x;
  if (x->rank != y->rank) return Likeness{x->dtype, -1, {}};
  if (x->sizes.size() != y->sizes.size()) out.sizes.clear();
  for (size_t i = 0; i < out.sizes.size(); ++i)
    if (x->sizes[i] != y->sizes[i]) out.sizes[i] = -1;
  return out;
}

// Says of a value what its type says.
void state_likeness(Value* v) {
  if (v->kind == Value::kTensor || v->kind == Value::kNumber) v->like = known_of(*v);
  if (v->list)
    for (Value& item : *v->list) state_likeness(&item);
}

// What a loop carries may have other sizes in each step.
void forget_sizes(Value* v) {
  if (v->like) v->like->sizes.clear();
  if (v->list)
    for (Value& item : *v->list) forget_sizes(&item);
}

// Gives two values one structure.
void agree_on_structure(NodeContext& c, Value* a, Value* b) {
  if (is_unset(*a) && !is_unset(*b)) *a = stand_in(c, *b);
  if (is_unset(*b) && !is_unset(*a)) *b = stand_in(c, *a);
  if (a->list && b->list) {
    const bool grown = is_grown(*a) || is_grown(*b);
    if (grown || a->list->size() != b->list->size()) {
      Importer& importer = *c.place().torch;
      for (Value* v : {a, b}) {
        *v = Value::of_list(*v->list);
        grow(importer, *v);
      }
      return;
    }
    for (size_t i = 0; i < a->list->size(); ++i) agree_on_structure(c, &(*a->list)[i], &(*b->list)[i]);
    return;
  }
  const bool both_values = a->expr && b->expr;
  const bool both_same = a->kind == b->kind && a->text == b->text && a->dtype == b->dtype && a->option == b->option;
  if (!both_values && !both_same) c.unsupported("a value that only a run knows to be None, a text or a dtype");
  if (both_values && a->kind != b->kind) a->kind = b->kind = Value::kTensor;
  if (!both_values) return;
  a->like = b->like = common_likeness(known_of(*a), known_of(*b));
}

Expr as_one(const std::vector<Expr>& fields) { return fields.size() == 1 ? fields[0] : relay::make_tuple(fields); }
std::vector<Expr> parts_of(const Expr& e, size_t count) {
  if (count == 1) return {e};
  std::vector<Expr> out;
  for (size_t i = 0; i < count; ++i) out.push_back(relay::make_get(e, static_cast<int64_t>(i)));
  return out;
}

Expr untyped(NodeContext& c, const Expr& e) {
  onnx::Node identity;
  identity.op_type = identity.name = "Identity";
  identity.inputs = identity.outputs = {"value"};
  return c.place().onnx.defer(identity, {}, 13, {onnx::Value(e)}).at(0).expr;
}

bool raises(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& n) { return n.target.starts_with("prim.RaiseException"); });
}

using Change = Surroundings::Change;
void merge(std::vector<Change>* all, const std::vector<Change>& more) {
  for (const Change& change : more)
    if (std::none_of(all->begin(), all->end(), [&](const Change& known) { return known.key() == change.key(); }))
      all->push_back(change);
}
Expr content_of(const std::vector<Change>& changes, const Change& wanted, const Expr& otherwise) {
  for (const Change& change : changes)
    if (change.key() == wanted.key()) return change.content;
  return otherwise;
}

}  // namespace

Expr truth_of(NodeContext& c, const Expr& e) {
  if (!is_complete(e->type)) return e;
  return c.cast(c.rank(e) == 0 ? e : c.reshape(e, {}), kBool);
}

void agree_on_types(NodeContext& c, std::vector<Expr>* a, std::vector<Expr>* b) {
  for (size_t i = 0; i < a->size(); ++i) {
    Expr &x = (*a)[i], &y = (*b)[i];
    if (as_tensor(x->type) && is_complete(x->type) && type_equal(x->type, y->type)) continue;
    x = untyped(c, x);
    y = untyped(c, y);
  }
}

Values branch_at_run_time(NodeContext& c, const Expr& condition, const Graph& then_graph, const Graph& else_graph) {
  Importer& importer = *c.place().torch;
  // A branch that only raises is a check: it is assumed to hold, and the other branch is imported.
  if (raises(then_graph)) return importer.import_graph(else_graph, {}, importer.scope());
  if (raises(else_graph)) return importer.import_graph(then_graph, {}, importer.scope());
  Lets lets;
  const Surroundings::Given nothing;
  Surroundings first(importer, lets, then_graph, nothing), second(importer, lets, else_graph, nothing);
  Values a = importer.import_graph(then_graph, {}, &first.scope);
  Values b = importer.import_graph(else_graph, {}, &second.scope);
  if (a.size() != b.size()) c.fail("its branches have other results");
  if (has_poison(a) || has_poison(b)) return all_poisoned(a.size());
  std::vector<Expr> left, right;
  for (size_t i = 0; i < a.size(); ++i) {
    agree_on_structure(c, &a[i], &b[i]);
    leaves_of(a[i], &left);
    leaves_of(b[i], &right);
  }
  if (left.size() != right.size()) c.fail("its branches have other results");
  const size_t outputs = left.size();
  const std::vector<Change> of_first = first.changes(), of_second = second.changes();
  std::vector<Change> changes = of_first;
  merge(&changes, of_second);
  for (const Change& change : changes) {
    const Expr before = lets.bound("outside", change.before());
    left.push_back(content_of(of_first, change, before));
    right.push_back(content_of(of_second, change, before));
  }
  if (left.empty()) return a;
  agree_on_types(c, &left, &right);
  Expr branch = make_node<relay::IfNode>(truth_of(c, lets.bound("condition", condition)), as_one(left), as_one(right));
  std::vector<Expr> made = parts_of(lets.around(branch), left.size());
  for (size_t i = 0; i < changes.size(); ++i) changes[i].apply(made[outputs + i]);
  Values out;
  size_t next = 0;
  for (const Value& v : a) out.push_back(with_leaves(v, made, &next));
  return out;
}

namespace {

// A loop as a tail-recursive function: (step, go, carried..., changed...) -> (carried..., changed...).
class RecursiveStep {
 public:
  RecursiveStep(NodeContext& c, const ScriptLoop& loop, Values carried)
      : c_(c), importer_(*c.place().torch), loop_(loop), carried_(std::move(carried)) {}

  Values run() {
    for (Value& v : carried_) {
      v.view = nullptr;
      if (v.list) v = Value::of_list(*v.list);
      state_likeness(&v);
      forget_sizes(&v);
    }
    const size_t known_unsupported = importer_.unsupported_count();
    for (int round = 0;; ++round) {
      if (round == kMostImports) c_.unsupported("a loop whose carried values have other types in every step");
      importer_.forget_unsupported(known_unsupported);
      begin_round(round + 2 >= kMostImports);
      const Round ended = one_round();
      if (ended == Round::kPoisoned) return all_poisoned(carried_.size());
      if (ended == Round::kSettled) break;
    }
    return results();
  }

 private:
  enum class Round { kAgain, kSettled, kPoisoned };

  void begin_round(bool open) {
    initial_.clear();
    lets_ = Lets();
    for (const Value& v : carried_) leaves_of(v, &initial_);
    leaves_ = initial_.size();
    for (const Change& change : changes_) initial_.push_back(change.before());
    for (Expr& e : initial_) e = lets_.bound("initial", e);
    for (size_t i = 0; i < initial_.size(); ++i) {
      const Type& now = initial_[i]->type;
      const Type type = as_tensor(now) ? now : incomplete_type();
      if (i >= types_.size()) types_.push_back(type);
      types_[i] = open ? incomplete_type() : frontend::common_type(types_[i], type);
    }
    types_.resize(initial_.size());
  }

  Round one_round() {
    const Expr step = relay::make_var("step", tensor_type({}, kInt64)),
               go = relay::make_var("go", tensor_type({}, kBool));
    params_ = {step, go};
    for (const Type& t : types_) params_.push_back(relay::make_var("carried", t));
    std::vector<Type> parameter_types;
    for (const Expr& p : params_) parameter_types.push_back(p->type);
    const Type result = types_.size() == 1 ? types_[0] : tuple_type(types_);
    self_ = relay::make_var("loop", func_type(parameter_types, result));
    const std::vector<Expr> state(params_.begin() + 2, params_.end());

    Surroundings::Given given;
    for (size_t i = 0; i < changes_.size(); ++i) given[changes_[i].key()] = state[leaves_ + i];
    Surroundings inside(importer_, lets_, loop_.body, given);
    Values arguments = {Value::number(step)};
    size_t next_leaf = 0;
    for (const Value& v : carried_) arguments.push_back(with_leaves(v, state, &next_leaf));
    Values made = importer_.import_graph(loop_.body, std::move(arguments), &inside.scope);
    if (has_poison(made)) return Round::kPoisoned;
    if (made.size() != carried_.size() + 1 || !made[0].expr) c_.fail("its body does not fit it");

    const std::vector<Change> now = inside.changes();
    const size_t known = changes_.size();
    merge(&changes_, now);
    if (changes_.size() != known) return Round::kAgain;
    std::vector<Expr> next;
    for (size_t i = 0; i < carried_.size(); ++i) {
      const bool grew = carried_[i].list && !is_grown(carried_[i]) && made[i + 1].list &&
                        (is_grown(made[i + 1]) || made[i + 1].list->size() != carried_[i].list->size());
      if (grew) {
        grow(importer_, carried_[i]);
        return Round::kAgain;
      }
      Value before = carried_[i];
      const bool told = known_of(made[i + 1]).has_value();
      agree_on_structure(c_, &before, &made[i + 1]);
      // Of a step that nothing is known of, as its samples do not fit together, the dtype and rank are taken to stay.
      if (!carried_[i].list && (told || before.like)) carried_[i].like = before.like;
      forget_sizes(&carried_[i]);
      leaves_of(made[i + 1], &next);
    }
    for (size_t i = 0; i < changes_.size(); ++i) next.push_back(content_of(now, changes_[i], state[leaves_ + i]));
    if (next.size() != types_.size()) c_.unsupported("a loop whose carried values change their structure");
    bool same = true;
    for (size_t i = 0; i < next.size(); ++i) {
      const Type common =
          frontend::common_type(types_[i], as_tensor(next[i]->type) ? next[i]->type : incomplete_type());
      same = same && (!is_complete(types_[i]) || type_equal(common, types_[i]));
      types_[i] = common;
    }
    if (!same) return Round::kAgain;
    function_ = step_function(made[0].expr, next, as_one(state));
    return Round::kSettled;
  }

  Expr step_function(const Expr& goes_on, const std::vector<Expr>& next, const Expr& state) {
    const Expr after = c_.add(params_[0], c_.constant_of(Tensor::scalar<int64_t>(kInt64, 1)));
    std::vector<Expr> arguments = {after, both(goes_on, after)};
    arguments.insert(arguments.end(), next.begin(), next.end());
    return relay::make_function(
        params_, make_node<relay::IfNode>(params_[1], relay::call_function(self_, std::move(arguments)), state));
  }
  // Whether iteration `step` runs.
  Expr both(const Expr& goes_on, const Expr& step) {
    const Tensor* known = NodeContext::known(goes_on);
    const bool always = known && known->size() == 1 && known->at_int(0) != 0;
    if (!loop_.limit) return truth_of(c_, goes_on);
    Expr below = c_.call("less", {step, lets_.bound("limit", loop_.limit)});
    return always ? below : c_.call("logical_and", {truth_of(c_, goes_on), below});
  }

  Values results() {
    const Expr first = c_.constant_of(Tensor::scalar<int64_t>(kInt64, loop_.first));
    std::vector<Expr> arguments = {first, both(lets_.bound("goes_on", loop_.goes_on), first)};
    arguments.insert(arguments.end(), initial_.begin(), initial_.end());
    const Expr call = make_node<relay::LetNode>(self_, function_, relay::call_function(self_, std::move(arguments)));
    const std::vector<Expr> made = parts_of(lets_.around(call), types_.size());
    for (size_t i = 0; i < changes_.size(); ++i) changes_[i].apply(made[leaves_ + i]);
    Values out;
    size_t next = 0;
    for (const Value& v : carried_) out.push_back(with_leaves(v, made, &next));
    return out;
  }

  NodeContext& c_;
  Importer& importer_;
  const ScriptLoop& loop_;
  Values carried_;
  Lets lets_;
  std::vector<Type> types_;
  std::vector<Expr> initial_, params_;
  size_t leaves_ = 0;
  std::vector<Change> changes_;
  Expr self_, function_;
};

}  // namespace

Values loop_at_run_time(NodeContext& c, const ScriptLoop& loop, const Values& carried) {
  RecursiveStep step(c, loop, carried);
  return step.run();
}

}  // namespace tilewright::torch
