// SPDX-License-Identifier: Apache-2.0
// TorchScript's dictionaries: lists of (key, value) pairs in insertion order, computed at import. Like lists they are
// shared objects: a change is seen through every name.
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace dictionary {
namespace {

Values& pairs_of(NodeContext& c, const Value& v) {
  const bool pairs = v.list && std::all_of(v.list->begin(), v.list->end(),
                                           [](const Value& pair) { return pair.list && pair.list->size() == 2; });
  if (!pairs) c.fail_type("its operand is not a dictionary");
  return *v.list;
}
Value number_of(int64_t i) { return Value::number(relay::make_constant(Tensor::scalar<int64_t>(kInt64, i))); }
Value truth_of(bool b) {
  Tensor t = Tensor::zeros(kBool, {});
  t.set_int(0, b ? 1 : 0);
  return Value::number(relay::make_constant(std::move(t)));
}

bool same_key(NodeContext& c, const Value& a, const Value& b) {
  if (a.kind == Value::kText || b.kind == Value::kText) return a.kind == b.kind && a.text == b.text;
  return c.integer_of(a, "key") == c.integer_of(b, "key");
}
Value* found(NodeContext& c, const Value& dictionary, const Value& key) {
  for (Value& pair : pairs_of(c, dictionary))
    if (same_key(c, pair.list->at(0), key)) return &pair.list->at(1);
  return nullptr;
}
void put(NodeContext& c, const Value& dictionary, const Value& key, const Value& value) {
  if (Value* known = found(c, dictionary, key))
    *known = value;
  else
    pairs_of(c, dictionary).push_back(Value::of_list({key, value}));
}

Values construct(NodeContext& c) {
  const Value made = Value::of_list({});
  for (size_t i = 0; i + 1 < c.argument_count(); i += 2) put(c, made, c.positional(i), c.positional(i + 1));
  return {made};
}
// dict(pairs): the last of equal keys counts, in the place of the first.
Values of_pairs(NodeContext& c) {
  const Value made = Value::of_list({});
  if (c.argument_count() == 0) return {made};
  for (const Value& pair : pairs_of(c, c.positional(0))) put(c, made, pair.list->at(0), pair.list->at(1));
  return {made};
}
Values get_item(NodeContext& c) {
  const Value* value = found(c, c.positional(0), c.positional(1));
  if (!value) c.fail("its dictionary does not have the key");
  return {*value};
}
Values get(NodeContext& c) {
  if (const Value* value = found(c, c.positional(0), c.positional(1))) return {*value};
  return {c.argument_count() > 2 ? c.positional(2) : Value()};
}
Values set_item(NodeContext& c) {
  put(c, c.positional(0), c.positional(1), c.positional(2));
  return {};
}
Values remove(NodeContext& c) {
  Values& pairs = pairs_of(c, c.positional(0));
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!same_key(c, pairs[i].list->at(0), c.positional(1))) continue;
    const Value value = pairs[i].list->at(1);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(i));
    return c.output_count() == 0 ? Values() : Values{value};
  }
  c.fail("its dictionary does not have the key");
}
Values update(NodeContext& c) {
  const Values more = pairs_of(c, c.positional(1));
  for (const Value& pair : more) put(c, c.positional(0), pair.list->at(0), pair.list->at(1));
  return {};
}
Values contains(NodeContext& c) { return {truth_of(found(c, c.positional(0), c.positional(1)) != nullptr)}; }
Values length(NodeContext& c) { return {number_of(static_cast<int64_t>(pairs_of(c, c.positional(0)).size()))}; }
Values items(NodeContext& c) {
  Values out;
  for (const Value& pair : pairs_of(c, c.positional(0))) out.push_back(Value::of_list(*pair.list));
  return {Value::of_list(std::move(out))};
}
template <size_t kPart>
Values parts(NodeContext& c) {
  Values out;
  for (const Value& pair : pairs_of(c, c.positional(0))) out.push_back(pair.list->at(kPart));
  return {Value::of_list(std::move(out))};
}
Values clear(NodeContext& c) {
  pairs_of(c, c.positional(0)).clear();
  return {};
}

constexpr ConverterEntry kTable[] = {
    {"prim.DictConstruct", construct},
    {"aten.__getitem__.Dict_str", get_item},
    {"aten.__getitem__.Dict_int", get_item},
    {"aten.get.str", get},
    {"aten.get.int", get},
    {"aten.get.default_str", get},
    {"aten.get.default_int", get},
    {"aten._set_item.str", set_item},
    {"aten._set_item.int", set_item},
    {"aten.pop.Dict_str", remove},
    {"aten.pop.Dict_int", remove},
    {"aten.Delete.Dict_str", remove},
    {"aten.Delete.Dict_int", remove},
    {"aten.update.str", update},
    {"aten.update.int", update},
    {"aten.__contains__.str", contains},
    {"aten.__contains__.int", contains},
    {"aten.len.Dict_str", length},
    {"aten.len.Dict_int", length},
    {"aten.dict", of_pairs},
    {"aten.items.str", items},
    {"aten.items.int", items},
    {"aten.copy.Dict_str", items},
    {"aten.copy.Dict_int", items},
    {"aten.keys.str", parts<0>},
    {"aten.keys.int", parts<0>},
    {"aten.values.str", parts<1>},
    {"aten.values.int", parts<1>},
    {"aten.clear.str", clear},
    {"aten.clear.int", clear},
};

}  // namespace
}  // namespace dictionary

std::span<const ConverterEntry> dictionary_converters() { return dictionary::kTable; }

}  // namespace tilewright::torch
