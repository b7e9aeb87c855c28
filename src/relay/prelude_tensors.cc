// SPDX-License-Identifier: Apache-2.0
// Tensor arrays: the prelude's functions on lists of tensors, for one dtype and either any rank or one shape.
#include <optional>
#include <set>
#include <string>

#include "relay/prelude.h"
#include "relay/text.h"

namespace tilewright::relay {
namespace {

constexpr int kMostRank = 6;
constexpr int64_t kAnySize = -1;
using Sizes = std::vector<int64_t>;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string joined(const Sizes& sizes, const char* separator, const char* any) {
  std::string out;
  for (int64_t size : sizes) out += (out.empty() ? "" : separator) + (size < 0 ? any : std::to_string(size));
  return out;
}

std::string tensor_type(const Sizes& sizes, const std::string& dtype) {
  return "Tensor[(" + joined(sizes, ", ", "?") + "), " + dtype + "]";
}

// --- tensors of any rank: {t} is the data type, $ ends every name

// What holds for lists of any element. {n} is the type of a list of indices, {count} how many there are.
constexpr const char* kLists = R"(
def @tensor_array$(%n: int32) -> List[{t}] {
  if (%n == 0) { Nil } else { Cons(tensor_nil$, @tensor_array$(%n - 1)) }
}
def @tensor_array_read$(%ta: List[{t}], %n: int32) -> {t} { @nth(%ta, %n) }
def @tensor_array_write$(%ta: List[{t}], %n: int32, %v: {t}) -> List[{t}] { @update(%ta, %n, %v) }
)";

// ta with its elements at the indices replaced, in order.
constexpr const char* kScatter = R"(
def @tensor_array_scatter_helper$(%ta: List[{t}], %at: int32, %limit: int32, %indices: {n}, %values: List[{t}]) -> List[{t}] {
  if (%at == %limit) { %ta } else {
    let %next = @tensor_array_write{w}(%ta, take(%indices, %at), @tensor_array_read{w}(%values, %at));
    @tensor_array_scatter_helper$(%next, %at + 1, %limit, %indices, %values)
  }
}
def @tensor_array_scatter$(%ta: List[{t}], %indices: {n}, %values: List[{t}]) -> List[{t}] {
  @tensor_array_scatter_helper$(%ta, 0, {count}, %indices, %values)
}
)";

// Pieces of `value`, of these lengths along axis 0, in the first places of ta. {to}: the pieces' names, {from}:
// value's.
constexpr const char* kSplit = R"(
def @ta_split_helper$(%ta: List[{o}], %value: {v}, %offset: int32, %at: int32, %limit: int32, %lengths: {n}) -> List[{o}] {
  if (%at == %limit) { %ta } else {
    let %end = %offset + take(%lengths, %at);
    let %later = @ta_split_helper$(%ta, %value, %end, %at + 1, %limit, %lengths);
    @tensor_array_write{to}(%later, %at, @tensor_take{from}(%value, %offset, %end))
  }
}
def @tensor_array_split$(%ta: List[{o}], %value: {v}, %lengths: {n}) -> List[{o}] {
  @ta_split_helper$(%ta, %value, 0, 0, {count}, %lengths)
}
)";

constexpr const char* kConcat = R"(
def @tensor_array_concat$(%ta: List[{o}]) -> {o} {
  match (%ta) {
    Nil => {nil},
    Cons(%first, %rest) => { match (%rest) { Nil => %first, Cons(_, _) => @tensor_concatenate{to}(%first, @tensor_array_concat$(%rest)) } },
  }
}
)";

constexpr const char* kStack = R"(
def @tensor_array_stack$(%ta: List[{t}]) -> {s} {
  let %wide = @map(@tensor_expand_dims$, %ta);
  @foldl(@tensor_concatenate{to}, @hd(%wide), @tl(%wide))
}
)";
// stack of a list that holds one tensor.
constexpr const char* kStackOne = R"(
def @tensor_array_stack$(%ta: List[{t}]) -> {s} { @hd(@map(@tensor_expand_dims$, %ta)) }
)";

constexpr const char* kGather = R"(
def @tensor_array_gather_helper$(%ta: List[{t}], %done: List[{t}], %at: int32, %indices: Tensor[(?), int32]) -> {s} {
  if (%at == 0) { @tensor_array_stack$(%done) } else {
    let %one = @tensor_array_read$(%ta, take(%indices, %at - 1));
    @tensor_array_gather_helper$(%ta, Cons(%one, %done), %at - 1, %indices)
  }
}
def @tensor_array_gather$(%ta: List[{t}], %indices: Tensor[(?), int32]) -> {s} {
  @tensor_array_gather_helper$(%ta, Nil, take(shape_of(%indices, dtype="int32"), 0), %indices)
}
)";

// The rows of a tensor. {x}: its type, {c}: the constructor of a row.
constexpr const char* kUnstack = R"(
def @tensor_array_unstack{k}_helper$(%i: int32, %up: int32, %t: {x}) -> List[{o}] {
  if (%i == %up) { Nil } else { Cons({c}(take(%t, %i, axis=0)), @tensor_array_unstack{k}_helper$(%i + 1, %up, %t)) }
}
def @tensor_array_unstack{k}$(%t: {x}) -> List[{o}] {
  @tensor_array_unstack{k}_helper$(0, take(shape_of(%t, dtype="int32"), 0), %t)
}
)";

constexpr const char* kRange = "arange(%lower, %upper, 1, dtype=\"int32\")";

// Substitutes {count}: read from the list of indices, or a constant if its length is known.
std::string with_indices(std::string text, const char* name, const std::optional<Sizes>& shape) {
  Sizes sizes = shape.value_or(Sizes{kAnySize});
  bool known = !sizes.empty() && sizes[0] >= 0;
  text = replaced(text, "{n}", tensor_type(sizes, "int32"));
  return replaced(text, "{count}",
                  known ? std::to_string(sizes[0]) : std::string("take(shape_of(%") + name + ", dtype=\"int32\"), 0)");
}

std::string any_rank_text(const std::string& dtype) {
  std::string text = "type {t} {\n  tensor_nil$,\n";
  auto constructor = [](int rank) { return "tensor" + std::to_string(rank) + "$"; };
  auto sized = [&](int rank) { return tensor_type(Sizes(static_cast<size_t>(rank), kAnySize), dtype); };
  for (int rank = 0; rank <= kMostRank; ++rank) text += "  " + constructor(rank) + "(" + sized(rank) + "),\n";
  text += "}\ndef @tensor_take$(%t: {t}, %lower: int32, %upper: int32) -> {t} {\n  match? (%t) {\n";
  for (int rank = 1; rank <= kMostRank; ++rank)
    text += "    " + constructor(rank) + "(%x) => " + constructor(rank) + "(take(%x, " + kRange + ", axis=0)),\n";
  text += "  }\n}\ndef @tensor_expand_dims$(%t: {t}) -> {t} {\n  match? (%t) {\n";
  for (int rank = 0; rank < kMostRank; ++rank)
    text += "    " + constructor(rank) + "(%x) => " + constructor(rank + 1) + "(expand_dims(%x, axis=0)),\n";
  text += "  }\n}\ndef @tensor_concatenate$(%s: {t}, %t: {t}) -> {t} {\n  match? (%s) {\n";
  for (int rank = 1; rank <= kMostRank; ++rank) {
    std::string c = constructor(rank);
    text += "    " + c + "(%x) => { match? (%t) { " + c + "(%y) => " + c + "(concatenate((%x, %y), axis=0)) } },\n";
  }
  text += "  }\n}\n";
  for (int rank = 1; rank <= kMostRank; ++rank) {
    std::string rows = replaced(kUnstack, "{k}", "_tensor" + std::to_string(rank));
    text += replaced(replaced(rows, "{x}", sized(rank)), "{c}", constructor(rank - 1));
  }
  text +=
      kLists + with_indices(kScatter, "indices", {}) + with_indices(kSplit, "lengths", {}) + kConcat + kStack + kGather;
  for (const char* same : {"{o}", "{v}", "{s}"}) text = replaced(text, same, "{t}");
  for (const char* same : {"{w}", "{to}", "{from}"}) text = replaced(text, same, "$");
  text = replaced(text, "{nil}", "tensor_nil$");
  return replaced(replaced(text, "{t}", "tensor_" + dtype + "_t"), "$", "_" + dtype);
}

// --- tensors of one shape

class OneShape {
 public:
  OneShape(const TensorArrays& of, std::string dtype) : of_(of), dtype_(std::move(dtype)) {}

  std::string text() {
    const Sizes& shape = *of_.shape;
    Sizes stacked = led_by(of_.batch_dim == 1 ? 1 : kAnySize, shape);
    std::string own = ending(shape);
    take(shape);
    concatenate(shape);
    functions("def @tensor_expand_dims$(%t: {t}) -> {s} {\n  match? (%t) { " + constructor(shape) + "(%x) => " +
              constructor(stacked) + "(expand_dims(%x, axis=0)) }\n}\n");
    functions(kLists);
    if (!shape.empty()) {
      Sizes row(shape.begin() + 1, shape.end()), pieces = led_by(kAnySize, row);
      functions(replaced(
          replaced(replaced(replaced(kUnstack, "{k}", ""), "{x}", tensor_type(shape, dtype_)), "{c}", constructor(row)),
          "{o}", name_of_type(row)));
      Sizes value = of_.value_shape.value_or(shape);
      take(value);
      concatenate(pieces);
      lists(pieces);
      std::string split = replaced(with_indices(kSplit, "lengths", of_.lengths_shape), "{v}", name_of_type(value));
      std::string of_pieces = replaced(replaced(split + kConcat, "{from}", ending(value)), "{to}", ending(pieces));
      functions(
          replaced(replaced(of_pieces, "{nil}", "tensor_nil" + plain_ending(pieces)), "{o}", name_of_type(pieces)));
    }
    std::string scatter = replaced(with_indices(kScatter, "indices", of_.indices_shape), "{w}", own);
    functions(of_.indices_shape ? replaced(scatter, "$", own + "_indices_" + joined(*of_.indices_shape, "_", "any"))
                                : scatter);
    concatenate(stacked);
    functions(replaced(of_.batch_dim == 1 ? kStackOne : kStack, "{to}", ending(stacked)));
    functions(kGather);
    functions("def @tensor_get_data$(%t: {t}) -> " + tensor_type(shape, dtype_) + " {\n  match? (%t) { " +
              constructor(shape) + "(%x) => %x }\n}\n");
    std::string out;
    for (const Sizes& sizes : types_)
      out += "type " + plain_type(sizes) + " {\n  tensor_nil" + plain_ending(sizes) + ",\n  tensor_constructor" +
             plain_ending(sizes) + "(" + tensor_type(sizes, dtype_) + "),\n}\n";
    return out + text_;
  }

 private:
  static Sizes led_by(int64_t first, const Sizes& rest) {
    Sizes out{first};
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }
  // "_float32_any_3"; functions of one-tensor lists say so, the data's names do not.
  std::string plain_ending(const Sizes& sizes) const {
    return "_" + dtype_ + "_" + (sizes.empty() ? "scalar" : joined(sizes, "_", "any"));
  }
  std::string ending(const Sizes& sizes) const {
    std::string rest = plain_ending(sizes).substr(dtype_.size() + 1);
    return "_" + dtype_ + (of_.batch_dim == 1 ? "_batch1" : "") + rest;
  }
  std::string plain_type(const Sizes& sizes) const { return "static_tensor" + plain_ending(sizes) + "_t"; }
  std::string name_of_type(const Sizes& sizes) {
    types_.insert(sizes);
    return plain_type(sizes);
  }
  std::string constructor(const Sizes& sizes) {
    types_.insert(sizes);
    return "tensor_constructor" + plain_ending(sizes);
  }
  void functions(std::string text) {
    const Sizes& shape = *of_.shape;
    text = replaced(text, "{t}", name_of_type(shape));
    if (text.find("{s}") != std::string::npos)
      text = replaced(text, "{s}", name_of_type(led_by(of_.batch_dim == 1 ? 1 : kAnySize, shape)));
    text = replaced(text, "tensor_nil$", "tensor_nil" + plain_ending(shape));
    text_ += replaced(text, "$", ending(shape));
  }
  void once(const std::string& name, const Sizes& sizes, const std::string& body) {
    if (written_.insert(name + ending(sizes)).second) text_ += body;
  }
  void take(const Sizes& sizes) {
    if (sizes.empty()) return;
    Sizes out = sizes;
    out[0] = kAnySize;
    once("take", sizes,
         "def @tensor_take" + ending(sizes) + "(%t: " + name_of_type(sizes) + ", %lower: int32, %upper: int32) -> " +
             name_of_type(out) + " {\n  match? (%t) { " + constructor(sizes) + "(%x) => " + constructor(out) +
             "(take(%x, " + kRange + ", axis=0)) }\n}\n");
  }
  void concatenate(const Sizes& sizes) {
    if (sizes.empty()) return;
    Sizes out = sizes;
    out[0] = kAnySize;
    std::string type = name_of_type(sizes), c = constructor(sizes);
    once("concatenate", sizes,
         "def @tensor_concatenate" + ending(sizes) + "(%s: " + type + ", %t: " + type + ") -> " + name_of_type(out) +
             " {\n  match? (%s) { " + c + "(%x) => { match? (%t) { " + c + "(%y) => " + constructor(out) +
             "(concatenate((%x, %y), axis=0)) } } }\n}\n");
  }
  // The functions that split a list, for lists of another shape than the array's.
  void lists(const Sizes& sizes) {
    if (sizes == *of_.shape) return;
    std::string text =
        replaced(replaced(kLists, "{t}", name_of_type(sizes)), "tensor_nil$", "tensor_nil" + plain_ending(sizes));
    once("lists", sizes, replaced(text, "$", ending(sizes)));
  }

  const TensorArrays& of_;
  std::string dtype_, text_;
  std::set<Sizes> types_;
  std::set<std::string> written_;
};

}  // namespace

Result<Module> with_tensor_arrays(const Module& module, const TensorArrays& of) {
  std::string dtype = of.dtype.str();
  std::string text = of.shape ? OneShape(of, dtype).text() : any_rank_text(dtype);
  ParseOptions options;
  options.origin = "tensor arrays of " + dtype;
  Module arrays = TW_TRY(parse_module("#[version = \"0.0.5\"]\n" + std::string(prelude_text()) + text, {}, options));
  Module out = module;
  out.types.insert(arrays.types.begin(), arrays.types.end());
  for (const auto& [name, function] : arrays.functions) {
    bool again = (of.value_shape || of.lengths_shape) && name.find("split") != std::string::npos;
    if (again || !out.functions.count(name)) out.functions[name] = function;
  }
  return out;
}

}  // namespace tilewright::relay
