// SPDX-License-Identifier: Apache-2.0
// TorchScript's lists and tuples, computed at the import. A list is one object for all its names: what changes it
// changes it for them all.
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace lists {
namespace {

const Values& items_of(NodeContext& c, const Value& v) {
  if (!v.list) c.fail_type("its operand is not a list");
  return *v.list;
}
Values& changed_items(NodeContext& c, const Value& v) { return const_cast<Values&>(items_of(c, v)); }

// Resolves Python's index into `count` items, which may be negative.
size_t place_of(NodeContext& c, const Value& index, size_t count) {
  const int64_t n = static_cast<int64_t>(count), i = c.integer_of(index, "idx");
  if (i < -n || i >= n) c.fail(format("its index {} is out of range for a list of {}", i, n));
  return static_cast<size_t>(i < 0 ? i + n : i);
}

Values all_arguments(NodeContext& c) {
  Values out;
  for (size_t i = 0; i < c.argument_count(); ++i) out.push_back(c.positional(i));
  return out;
}

// ---- construction and unpacking

Values construct(NodeContext& c) { return {Value::of_list(all_arguments(c))}; }
Values unpack(NodeContext& c) {
  Values out = items_of(c, c.positional(0));
  if (out.size() != c.output_count())
    c.fail(format("a list of {} items is unpacked into {}", out.size(), c.output_count()));
  return out;
}
// The item at a place that only a run has: items are tensors or numbers of one type, or lists of as many such.
// Nothing where they are not.
std::optional<Value> selected(NodeContext& c, const Values& items, const Expr& place) {
  const Value& first = items.front();
  if (first.list) {
    Values out;
    for (size_t k = 0; k < first.list->size(); ++k) {
      Values column;
      for (const Value& item : items) {
        if (!item.list || item.list->size() != first.list->size()) return std::nullopt;
        column.push_back(item.list->at(k));
      }
      auto one = selected(c, column, place);
      if (!one) return std::nullopt;
      out.push_back(std::move(*one));
    }
    return Value::of_list(std::move(out));
  }
  std::vector<Expr> rows;
  for (const Value& item : items) {
    const bool alike = item.expr && item.kind == first.kind && is_complete(item.expr->type) &&
                       static_shape(as_tensor(item.expr->type)->shape) && c.dtype(item.expr) == c.dtype(first.expr) &&
                       c.dims(item.expr) == c.dims(first.expr);
    if (!alike) return std::nullopt;
    rows.push_back(c.expand(item.expr, 0));
  }
  Value out(
      c.call("take", {c.concat(std::move(rows), 0), place}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; })));
  out.kind = first.kind;
  return out;
}
// A number out of a run, typed: where an item of Python's list is, counted from its end when it is negative.
Expr place_in(NodeContext& c, const Value& index, size_t count) {
  if (!index.expr || NodeContext::known(index.expr) || !as_tensor(index.expr->type)) return nullptr;
  const Expr at = c.cast(index.expr, kInt64);
  const Expr n = c.scalar(static_cast<int64_t>(count), kInt64);
  return c.call("where", {c.call("less", {at, c.scalar(0, kInt64)}), c.add(at, n), at});
}
// All sizes of a tensor whose rank only a run has are one tensor.
bool is_sizes(NodeContext& c, const Value& v) {
  return v.kind == Value::kTensor && v.expr && c.rank(v.expr) == 1 && c.dtype(v.expr).is_int();
}
Values get_item(NodeContext& c) {
  const Value& list = c.positional(0);
  if (is_sizes(c, list)) {
    const auto at = static_cast<int64_t>(place_of(c, c.positional(1), static_cast<size_t>(c.dims(list.expr)[0])));
    return {Value::number(c.squeeze(c.slice(list.expr, 0, at, at + 1), {0}))};
  }
  if (list.list && !list.list->empty())
    if (const Expr place = place_in(c, c.positional(1), list.list->size()))
      if (auto item = selected(c, *list.list, place)) return {std::move(*item)};
  if (list.kind == Value::kText) {
    const size_t at = place_of(c, c.positional(1), list.text.size());
    return {Value::of_text(list.text.substr(at, 1))};
  }
  const Values& items = items_of(c, list);
  return {items[place_of(c, c.positional(1), items.size())]};
}
Values length(NodeContext& c) {
  const Value& v = c.positional(0);
  if (v.kind == Value::kText) return {whole(static_cast<int64_t>(v.text.size()))};
  if (v.list) return {whole(static_cast<int64_t>(v.list->size()))};
  if (!v.expr || c.rank(v.expr) < 1) c.fail_type("its operand has no length");
  return {whole(c.dims(v.expr)[0])};
}
Values slice(NodeContext& c) {
  const bool sizes = is_sizes(c, c.value("l"));
  const Values none;
  const Values& items = sizes ? none : items_of(c, c.value("l"));
  const int64_t n = sizes ? c.dims(c.value("l").expr)[0] : static_cast<int64_t>(items.size());
  const int64_t step = c.integer("step", 1);
  if (step == 0) c.fail("its step is 0");
  // Backwards, from the last to before the first.
  const int64_t first = step > 0 ? 0 : n - 1, past = step > 0 ? n : -1;
  auto bounded = [&](std::optional<int64_t> at, int64_t fallback) {
    if (!at) return fallback;
    return std::clamp<int64_t>(*at < 0 ? *at + n : *at, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
  };
  const int64_t start = bounded(c.maybe_integer("start"), first), end = bounded(c.maybe_integer("end"), past);
  if (sizes && step > 0) return {c.slice(c.value("l").expr, 0, start, std::max(start, end), step)};
  std::vector<int64_t> places;
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step) places.push_back(i);
  if (sizes)
    return {c.call("take", {c.value("l").expr, c.ints_constant(places)},
                   make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }))};
  Values out;
  for (const int64_t i : places) out.push_back(items[static_cast<size_t>(i)]);
  return {Value::of_list(std::move(out))};
}
Values joined(NodeContext& c) {
  const Value &a = c.positional(0), &b = c.positional(1);
  if (a.kind == Value::kText && b.kind == Value::kText) return {Value::of_text(a.text + b.text)};
  Values out = items_of(c, a);
  const Values& more = items_of(c, b);
  out.insert(out.end(), more.begin(), more.end());
  return {Value::of_list(std::move(out))};
}
Values repeated(NodeContext& c) {
  const bool list_first = c.positional(0).list != nullptr;
  const Values& items = items_of(c, c.positional(list_first ? 0 : 1));
  const int64_t times = c.integer_of(c.positional(list_first ? 1 : 0), "n");
  if (times * static_cast<int64_t>(items.size()) > (1 << 20)) c.unsupported("a list of more than a million items");
  Values out;
  for (int64_t i = 0; i < times; ++i) out.insert(out.end(), items.begin(), items.end());
  return {Value::of_list(std::move(out))};
}
Values copied(NodeContext& c) {
  if (c.positional(0).kind == Value::kText) {
    Values letters;
    for (char letter : c.positional(0).text) letters.push_back(Value::of_text(std::string(1, letter)));
    return {Value::of_list(std::move(letters))};
  }
  return {Value::of_list(items_of(c, c.positional(0)))};
}
Values range(NodeContext& c) {
  const int64_t n = c.integer_of(c.positional(0), "n");
  if (n > (1 << 20)) c.unsupported("a list of more than a million items");
  Values out;
  for (int64_t i = 0; i < n; ++i) out.push_back(whole(i));
  return {Value::of_list(std::move(out))};
}

// ---- list mutation

// A list must not contain itself: walks over it would not end.
void check_new_item(NodeContext& c, const Value& list, const Value& item) {
  if (!item.list) return;
  if (item.list == list.list) c.unsupported("a list that holds itself");
  for (const Value& inner : *item.list) check_new_item(c, list, inner);
}
Values append(NodeContext& c) {
  check_new_item(c, c.positional(0), c.positional(1));
  changed_items(c, c.positional(0)).push_back(c.positional(1));
  return {c.positional(0)};
}
Values extend(NodeContext& c) {
  const Values more = items_of(c, c.positional(1));
  for (const Value& item : more) check_new_item(c, c.positional(0), item);
  Values& items = changed_items(c, c.positional(0));
  items.insert(items.end(), more.begin(), more.end());
  return {c.positional(0)};
}
Values insert(NodeContext& c) {
  check_new_item(c, c.positional(0), c.positional(2));
  Values& items = changed_items(c, c.positional(0));
  const int64_t n = static_cast<int64_t>(items.size()), i = c.integer_of(c.positional(1), "idx");
  items.insert(items.begin() + std::clamp<int64_t>(i < 0 ? i + n : i, 0, n), c.positional(2));
  return {};
}
Values pop(NodeContext& c) {
  Values& items = changed_items(c, c.positional(0));
  const size_t at = place_of(c, c.argument_count() > 1 ? c.positional(1) : whole(-1), items.size());
  Value out = items[at];
  items.erase(items.begin() + static_cast<int64_t>(at));
  return {out};
}
Values set_item(NodeContext& c) {
  check_new_item(c, c.positional(0), c.positional(2));
  Values& items = changed_items(c, c.positional(0));
  items[place_of(c, c.positional(1), items.size())] = c.positional(2);
  return {c.positional(0)};
}
Values clear(NodeContext& c) {
  changed_items(c, c.positional(0)).clear();
  return {};
}
Values reverse(NodeContext& c) {
  Values& items = changed_items(c, c.positional(0));
  std::reverse(items.begin(), items.end());
  return {};
}

constexpr ConverterEntry kTable[] = {
    {"prim.ListConstruct", construct},
    {"prim.TupleConstruct", construct},
    {"prim.ListUnpack", unpack},
    {"prim.TupleUnpack", unpack},
    {"prim.TupleIndex", get_item},
    {"prim.TupleSlice", slice},
    {"aten.__getitem__", get_item},
    {"aten.len", length},
    {"aten.slice.t", slice},
    {"aten.slice.str", slice},
    {"aten.add.t", joined},
    {"aten.add.str", joined},
    {"aten.add_.t", extend},
    {"aten.mul.left_t", repeated},
    {"aten.mul.right_", repeated},
    {"aten.list", copied},
    {"aten.list.t", copied},
    {"aten.copy.t", copied},
    {"prim.rangelist", range},
    {"aten.append", append},
    {"aten.extend", extend},
    {"aten.insert", insert},
    {"aten.pop", pop},
    {"aten._set_item", set_item},
    {"aten.clear", clear},
    {"aten.reverse", reverse},
};

}  // namespace
}  // namespace lists

std::span<const ConverterEntry> list_converters() { return lists::kTable; }

}  // namespace tilewright::torch
