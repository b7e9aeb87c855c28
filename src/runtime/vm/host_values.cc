// SPDX-License-Identifier: Apache-2.0
// Sequences, optionals, references, and counters and lists of loops.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"
#include "base/format.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::runtime::vm {
namespace {

Result<const Object*> object(const HostCall& c, size_t i, Object::Kind kind, const char* what) {
  if (!c.has(i) || c.inputs[i]->kind != kind)
    return Diagnostic(ErrorCode::kTypeMismatch, format("operand {} is not {}", i, what));
  return c.inputs[i].get();
}
Result<const Object*> sequence(const HostCall& c, size_t i) {
  const Object* o = TW_TRY(object(c, i, Object::Kind::kAdt, "a sequence"));
  if (o->tag != 0)
    return Diagnostic(ErrorCode::kTypeMismatch, format("operand {} is an optional without a value, not a sequence", i));
  return o;
}
// A cell is the only kind of object whose content changes.
Result<Object*> cell(const HostCall& c, size_t i) {
  return const_cast<Object*>(TW_TRY(object(c, i, Object::Kind::kRef, "a reference")));
}

Result<int64_t> position(const HostCall& c, size_t i, int64_t size, int64_t limit) {
  const int64_t at = TW_TRY(c.integer(i));
  if (at < -size || at > limit) return host_error(format("position {} in a sequence of {}", at, size));
  return at < 0 ? at + size : at;
}

Value number(int64_t v) { return make_tensor(Tensor::scalar<int64_t>(kInt64, v)); }
Value truth(bool v) { return make_tensor(Tensor::scalar<uint8_t>(kBool, v)); }

Status sequence_at(HostCall& c) {
  const auto& s = TW_TRY(sequence(c, 0))->fields;
  const auto n = static_cast<int64_t>(s.size());
  c.give(0, s[static_cast<size_t>(TW_TRY(position(c, 1, n, n - 1)))]);
  return Ok{};
}
Status sequence_insert(HostCall& c) {
  auto s = TW_TRY(sequence(c, 0))->fields;
  const auto n = static_cast<int64_t>(s.size());
  const int64_t at = c.has(2) ? TW_TRY(position(c, 2, n, n)) : n;
  if (!c.has(1)) return host_error("nothing is inserted");
  s.insert(s.begin() + at, c.inputs[1]);
  c.give(0, make_adt(0, std::move(s)));
  return Ok{};
}
Status sequence_erase(HostCall& c) {
  auto s = TW_TRY(sequence(c, 0))->fields;
  const auto n = static_cast<int64_t>(s.size());
  if (n == 0) return host_error("an empty sequence has nothing to erase");
  s.erase(s.begin() + (c.has(1) ? TW_TRY(position(c, 1, n, n - 1)) : n - 1));
  c.give(0, make_adt(0, std::move(s)));
  return Ok{};
}
Status sequence_length(HostCall& c) {
  c.give(0, number(static_cast<int64_t>(TW_TRY(sequence(c, 0))->fields.size())));
  return Ok{};
}
// The argument for a SequenceMap's body: a sequence's i-th element; a tensor as it is.
Status sequence_item(HostCall& c) {
  if (c.has(0) && c.inputs[0]->kind == Object::Kind::kTensor) {
    c.give(0, c.inputs[0]);
    return Ok{};
  }
  return sequence_at(c);
}

// Calls take(tensor, i) for the elements of each tensor for each of `outer` places, in the order of the whole.
template <class Take>
void each_in_order(const std::vector<Tensor>& tensors, int64_t outer, Take&& take) {
  for (int64_t o = 0; o < outer; ++o)
    for (const Tensor& t : tensors) {
      const int64_t width = t.size() / outer;
      for (int64_t i = o * width; i < (o + 1) * width; ++i) take(t, i);
    }
}

// Concatenates tensors along an axis, or stacks them along a new one.
Result<Tensor> joined(HostCall& c, std::span<const Value> parts, int64_t axis, bool new_axis, bool reverse) {
  std::vector<Tensor> tensors;
  for (const Value& v : parts) {
    if (!v || v->kind != Object::Kind::kTensor)
      return Diagnostic(ErrorCode::kTypeMismatch, "something that is not a tensor is joined to tensors");
    tensors.push_back(v->tensor);
  }
  if (tensors.empty()) return host_error("no tensor to join");
  if (reverse) std::reverse(tensors.begin(), tensors.end());
  const int64_t rank = tensors[0].rank() + (new_axis ? 1 : 0);
  if (axis < -rank || axis >= rank) return host_error(format("axis {} of {} axes", axis, rank));
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  std::vector<int64_t> shape;
  int64_t total = 0;
  for (const Tensor& t : tensors) {
    auto mine = t.shape();
    if (new_axis) mine.insert(mine.begin() + static_cast<std::ptrdiff_t>(at), 1);
    if (shape.empty()) shape = mine;
    if (mine.size() != shape.size() || t.dtype() != tensors[0].dtype())
      return host_error(format("{} {} and {} {} cannot be joined", tensors[0].dtype().str(),
                               shape_str(tensors[0].shape()), t.dtype().str(), shape_str(t.shape())));
    for (size_t d = 0; d < mine.size(); ++d)
      if (d != at && mine[d] != shape[d])
        return host_error(format("{} and {} cannot be joined along axis {}", shape_str(tensors[0].shape()),
                                 shape_str(t.shape()), at));
    if (!checked_add(total, mine[at], &total))
      return Diagnostic(ErrorCode::kLimitExceeded, "the joined tensor is too large");
  }
  shape[at] = total;
  int64_t outer = 1;
  for (size_t d = 0; d < at; ++d) outer *= shape[d];
  if (tensors[0].dtype().is_string()) {
    std::vector<std::string> texts;
    each_in_order(tensors, outer,
                  [&](const Tensor& t, int64_t i) { texts.push_back(t.string_values()[static_cast<size_t>(i)]); });
    return Tensor::strings(std::move(shape), std::move(texts));
  }
  Tensor out = TW_TRY(c.pool.allocate(tensors[0].dtype(), shape));
  if (out.dtype().bits % 8 != 0) {  // several elements share a byte
    int64_t to = 0;
    each_in_order(tensors, outer, [&](const Tensor& t, int64_t i) {
      if (t.dtype().is_float())
        out.set_double(to++, t.at_double(i));
      else
        out.set_int(to++, t.at_int(i));
    });
    return out;
  }
  std::byte* to = out.mutable_raw();
  std::vector<int64_t> widths;
  for (const Tensor& t : tensors) widths.push_back(outer == 0 ? 0 : static_cast<int64_t>(t.bytes()) / outer);
  for (int64_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (widths[i] == 0) continue;
      std::memcpy(to, tensors[i].raw() + o * widths[i], static_cast<size_t>(widths[i]));
      to += widths[i];
    }
  return out;
}

Status concat_from_sequence(HostCall& c) {
  const auto& s = TW_TRY(sequence(c, 0))->fields;
  c.give(0, make_tensor(
                TW_TRY(joined(c, s, TW_TRY(c.attribute("axis", 0)), TW_TRY(c.attribute("new_axis", 0)) != 0, false))));
  return Ok{};
}

// Elements [begin, end) of an axis.
Result<Tensor> part_of(HostCall& c, const Tensor& t, size_t axis, int64_t begin, int64_t end, bool drop_axis) {
  auto shape = t.shape();
  int64_t outer = 1, inner = static_cast<int64_t>(t.dtype().bytes());
  for (size_t d = 0; d < axis; ++d) outer *= shape[d];
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t size = shape[axis];
  shape[axis] = end - begin;
  if (drop_axis) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Tensor out = TW_TRY(c.pool.allocate(t.dtype(), shape));
  for (int64_t o = 0; o < outer && end > begin && inner > 0; ++o)
    std::memcpy(out.mutable_raw() + o * (end - begin) * inner, t.raw() + (o * size + begin) * inner,
                static_cast<size_t>((end - begin) * inner));
  return out;
}
Result<size_t> axis_of(HostCall& c, const Tensor& t) {
  const int64_t axis = TW_TRY(c.attribute("axis", 0)), rank = t.rank();
  if (axis < -rank || axis >= rank) return host_error(format("axis {} of a tensor with {} axes", axis, rank));
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

Status split_to_sequence(HostCall& c) {
  const Tensor x = TW_TRY(c.tensor(0));
  TW_TRY_STATUS(check_copyable(x));
  const size_t axis = TW_TRY(axis_of(c, x));
  const int64_t size = x.shape()[axis];
  std::vector<int64_t> parts;
  bool drop = false;
  if (!c.has(1)) {
    parts.assign(static_cast<size_t>(size), 1);
    drop = TW_TRY(c.attribute("keepdims", 1)) == 0;
  } else if (const Tensor split = TW_TRY(c.tensor(1)); split.rank() == 0) {
    const int64_t each = TW_TRY(c.integer(1));
    if (each < 1) return host_error(format("parts of {} elements", each));
    for (int64_t at = 0; at < size; at += each) parts.push_back(std::min(each, size - at));
  } else {
    if (split.rank() > 1 || !split.dtype().is_integral())
      return host_error("the parts' sizes are not a list of integers");
    int64_t total = 0;
    for (int64_t i = 0; i < split.size(); ++i) {
      parts.push_back(split.at_int(i));
      if (parts.back() < 0 || !checked_add(total, parts.back(), &total))
        return host_error(format("a part of {} elements", parts.back()));
    }
    if (total != size) return host_error(format("parts of {} elements together, the axis has {}", total, size));
  }
  std::vector<Value> out;
  int64_t at = 0;
  for (int64_t n : parts) {
    out.push_back(make_tensor(TW_TRY(part_of(c, x, axis, at, at + n, drop))));
    at += n;
  }
  c.give(0, make_adt(0, std::move(out)));
  return Ok{};
}

Status optional_has(HostCall& c) {
  c.give(0, truth(c.has(0) && !is_none(c.inputs[0])));
  return Ok{};
}
Status optional_get(HostCall& c) {
  if (!c.has(0) || is_none(c.inputs[0])) return host_error("an optional without a value is read");
  c.give(0, c.inputs[0]);
  return Ok{};
}

// Loops. A list is a reference to a growing sequence.
Status make_cell(HostCall& c) {
  auto o = std::make_shared<Object>();
  o->kind = Object::Kind::kRef;
  o->fields.assign(c.inputs.begin(), c.inputs.end());
  c.give(0, std::move(o));
  return Ok{};
}
Status ref_read(HostCall& c) {
  Object* o = TW_TRY(cell(c, 0));
  if (o->fields.empty()) return host_error("a reference to nothing is read");
  c.give(0, o->fields[0]);
  return Ok{};
}
Status ref_write(HostCall& c) {
  Object* o = TW_TRY(cell(c, 0));
  if (!c.has(1)) return host_error("nothing is written to a reference");
  o->fields.assign(1, c.inputs[1]);
  c.give(0, make_adt(0, {}));
  return Ok{};
}
Status list_append(HostCall& c) {
  Object* o = TW_TRY(cell(c, 0));
  if (!c.has(1)) return host_error("a loop collects nothing");
  o->fields.push_back(c.inputs[1]);
  c.give(0, c.inputs[0]);  // the same list, grown in place: its only user comes later
  return Ok{};
}
Status list_sequence(HostCall& c) {
  c.give(0, make_adt(0, TW_TRY(cell(c, 0))->fields));
  return Ok{};
}
// Stacks the values that a loop collected; without iterations, an empty tensor of the dtype and shape in the
// attributes.
Status list_stack(HostCall& c) {
  const auto& parts = TW_TRY(cell(c, 0))->fields;
  if (parts.empty()) {
    auto dtype = c.attributes.find("dtype"), dims = c.attributes.find("shape");
    if (dtype == c.attributes.end() || dims == c.attributes.end())
      return host_error("a loop without steps has an output of unknown type");
    std::vector<int64_t> shape;
    for (size_t at = 0; at < dims->second.size();) {
      const size_t end = std::min(dims->second.find('x', at), dims->second.size());
      shape.push_back(std::strtoll(dims->second.substr(at, end - at).c_str(), nullptr, 10));
      at = end + 1;
    }
    const bool of_text = dtype->second == "string" && std::find(shape.begin(), shape.end(), 0) != shape.end();
    if (of_text) {
      c.give(0, make_tensor(Tensor::strings(std::move(shape), {})));
      return Ok{};
    }
    c.give(0, make_tensor(TW_TRY(c.pool.allocate(TW_TRY(parse_dtype(dtype->second)), std::move(shape)))));
    return Ok{};
  }
  c.give(0, make_tensor(TW_TRY(
                joined(c, parts, TW_TRY(c.attribute("axis", 0)), true, TW_TRY(c.attribute("reverse", 0)) != 0))));
  return Ok{};
}
Status next_step(HostCall& c) {
  c.give(0, number(TW_TRY(c.integer(0)) + 1));
  return Ok{};
}
Status more_steps(HostCall& c) {
  c.give(0, number(TW_TRY(c.integer(0)) < TW_TRY(c.integer(1))));
  return Ok{};
}
Status dimension(HostCall& c) {
  const Tensor t = TW_TRY(c.tensor(0));
  c.give(0, number(t.shape()[TW_TRY(axis_of(c, t))]));
  return Ok{};
}
// Element i along an axis, from the end with `reverse`.
Status element(HostCall& c) {
  const Tensor t = TW_TRY(c.tensor(0));
  TW_TRY_STATUS(check_copyable(t));
  const size_t axis = TW_TRY(axis_of(c, t));
  const int64_t size = t.shape()[axis];
  int64_t i = TW_TRY(c.integer(1));
  if (i < 0 || i >= size) return host_error(format("element {} of {}", i, size));
  if (TW_TRY(c.attribute("reverse", 0)) != 0) i = size - 1 - i;
  c.give(0, make_tensor(TW_TRY(part_of(c, t, axis, i, i + 1, true))));
  return Ok{};
}

constexpr HostEntry kValueFunctions[] = {
    {"SequenceAt", sequence_at},
    {"SequenceInsert", sequence_insert},
    {"SequenceErase", sequence_erase},
    {"SequenceLength", sequence_length},
    {"ConcatFromSequence", concat_from_sequence},
    {"SplitToSequence", split_to_sequence},
    {"OptionalHasElement", optional_has},
    {"OptionalGetElement", optional_get},
    {"sequence_item", sequence_item},
    {"ref_create", make_cell},
    {"ref_read", ref_read},
    {"ref_write", ref_write},
    {"list_append", list_append},
    {"list_sequence", list_sequence},
    {"list_stack", list_stack},
    {"next_step", next_step},
    {"more_steps", more_steps},
    {"dimension", dimension},
    {"element", element},
};

}  // namespace

std::span<const HostEntry> value_functions() { return kValueFunctions; }

}  // namespace tilewright::runtime::vm
