// SPDX-License-Identifier: Apache-2.0
#include "runtime/function.h"

#include <map>
#include <mutex>

#include "base/format.h"
#include "base/near_match.h"
#include "runtime/c_support.h"
#include "runtime/module.h"

struct tw_function {
  std::atomic<int64_t> references{1};
  std::string name;
  tilewright::runtime::Body body;
};

namespace tilewright::runtime {
namespace {

// Never destroyed: it may hold functions of an interpreter that has ended.
struct Table {
  std::mutex mutex;
  std::map<std::string, FunctionRef, std::less<>> functions;
};
Table& table() {
  static Table* the_table = new Table;
  return *the_table;
}

const BuiltIn* find_built_in(std::string_view name) {
  for (const BuiltIn& b : built_in_functions())
    if (name == b.name) return &b;
  return nullptr;
}

}  // namespace

Value::Value(int64_t i) {
  value_.kind = TW_INT;
  value_.as.i = i;
}
Value::Value(double f) {
  value_.kind = TW_FLOAT;
  value_.as.f = f;
}
Value::Value(FunctionRef f) {
  value_.kind = f ? TW_FUNCTION : TW_NULL;
  value_.as.function = f.release();
}
Value::Value(std::shared_ptr<Module> module) {
  value_.kind = TW_MODULE;
  value_.as.module = new tw_module{1, std::move(module)};
}
Value Value::string(std::string_view text) {
  Value v;
  char* data = new char[text.size() + 1];
  std::memcpy(data, text.data(), text.size());
  data[text.size()] = 0;
  v.value_.kind = TW_STR;
  v.value_.size = text.size();
  v.value_.as.str = data;
  return v;
}
Value Value::bytes(std::string_view data) {
  Value v = string(data);
  v.value_.kind = TW_BYTES;
  return v;
}
Value Value::ndarray(DLManagedTensor* owned) {
  Value v;
  v.value_.kind = TW_NDARRAY;
  v.value_.as.ndarray = owned;
  return v;
}
Value Value::array(std::vector<Value> items) {
  Value v;
  auto* data = new tw_value[items.size()];
  for (size_t i = 0; i < items.size(); ++i) data[i] = items[i].release();
  v.value_.kind = TW_ARRAY;
  v.value_.size = items.size();
  v.value_.as.array = data;
  return v;
}
Value Value::shape(std::span<const int64_t> dims) {
  std::vector<Value> items;
  for (int64_t d : dims) items.emplace_back(d);
  return array(std::move(items));
}

const char* kind_name(int32_t kind) {
  switch (kind) {
    case TW_INT:
      return "an integer";
    case TW_FLOAT:
      return "a float";
    case TW_HANDLE:
      return "a pointer";
    case TW_NULL:
      return "nothing";
    case TW_DTYPE:
      return "a dtype";
    case TW_DEVICE:
      return "a device";
    case TW_TENSOR:
    case TW_NDARRAY:
      return "a tensor";
    case TW_ARRAY:
      return "a list";
    case TW_MODULE:
      return "a module";
    case TW_FUNCTION:
      return "a function";
    case TW_STR:
      return "a string";
    case TW_BYTES:
      return "bytes";
    default:
      return "a value of unknown kind";
  }
}

Status Arguments::expect(size_t at_least, size_t at_most) const {
  if (size() >= at_least && size() <= at_most) return Ok{};
  std::string wanted = at_least == at_most ? format("{}", at_least) : format("{} to {}", at_least, at_most);
  return Diagnostic(ErrorCode::kInvalidArgument,
                    format("function '{}' takes {} arguments, {} were given", function_, wanted, size()));
}

Result<const tw_value*> Arguments::take(size_t i, std::initializer_list<int32_t> kinds, const char* wanted) const {
  if (i >= size())
    return Diagnostic(ErrorCode::kInvalidArgument, format("function '{}' lacks argument {}, {}", function_, i, wanted));
  for (int32_t kind : kinds)
    if (values_[i].kind == kind) return &values_[i];
  return Diagnostic(ErrorCode::kInvalidArgument, format("argument {} of function '{}' is {}, not {}", i, function_,
                                                        kind_name(values_[i].kind), wanted));
}

Result<int64_t> Arguments::integer(size_t i) const { return TW_TRY(take(i, {TW_INT}, "an integer"))->as.i; }
Result<double> Arguments::number(size_t i) const {
  const tw_value* v = TW_TRY(take(i, {TW_FLOAT, TW_INT}, "a number"));
  return v->kind == TW_INT ? static_cast<double>(v->as.i) : v->as.f;
}
Result<std::string_view> Arguments::string(size_t i) const {
  const tw_value* v = TW_TRY(take(i, {TW_STR}, "a string"));
  return std::string_view(v->as.str, v->size);
}
Result<std::string_view> Arguments::bytes(size_t i) const {
  const tw_value* v = TW_TRY(take(i, {TW_BYTES, TW_STR}, "bytes"));
  return std::string_view(v->as.str, v->size);
}
Result<const DLTensor*> Arguments::tensor(size_t i) const {
  const tw_value* v = TW_TRY(take(i, {TW_TENSOR, TW_NDARRAY}, "a tensor"));
  return v->kind == TW_TENSOR ? v->as.tensor : &v->as.ndarray->dl_tensor;
}
Result<tw_function*> Arguments::function(size_t i) const {
  return TW_TRY(take(i, {TW_FUNCTION}, "a function"))->as.function;
}
Result<std::shared_ptr<Module>> Arguments::module(size_t i) const {
  return TW_TRY(take(i, {TW_MODULE}, "a module"))->as.module->module;
}

FunctionRef make_function(std::string name, Body body) {
  return FunctionRef(new tw_function{1, std::move(name), std::move(body)});
}

Result<Value> call(tw_function* function, std::span<const tw_value> arguments) {
  return function->body(Arguments(arguments, function->name));
}

Status register_global(std::string name, FunctionRef function, bool override_existing) {
  if (name.empty()) return Diagnostic(ErrorCode::kInvalidArgument, "a global function needs a name");
  std::lock_guard lock(table().mutex);
  auto& slot = table().functions[name];
  if ((slot || find_built_in(name)) && !override_existing)
    return Diagnostic(ErrorCode::kInvalidArgument, format("a global function named '{}' exists already", name), {},
                      "register it with override, or under another name");
  std::swap(
      slot,
      function);  // frees the old one after unlocking, since its owner may be an interpreter with a lock of its own
  return Ok{};
}

FunctionRef find_global(std::string_view name) {
  {
    std::lock_guard lock(table().mutex);
    auto found = table().functions.find(name);
    if (found != table().functions.end() && found->second) return found->second;
  }
  const BuiltIn* b = find_built_in(name);
  return b ? make_function(b->name, b->body) : FunctionRef();
}

Result<FunctionRef> require_global(const std::string& name, std::string_view family) {
  FunctionRef found = find_global(name);
  if (found) return found;
  std::string hint;
  for (const std::string& other : global_names())
    if (!family.empty() && other.starts_with(family)) hint += (hint.empty() ? "registered are " : ", ") + other;
  if (hint.empty()) hint = did_you_mean(name, global_names(), "load the library that registers it first");
  return Diagnostic(ErrorCode::kUnknownFunction, format("no global function is named '{}'", name), {}, hint);
}

Status remove_global(const std::string& name) {
  FunctionRef removed;
  {
    std::lock_guard lock(table().mutex);
    auto found = table().functions.find(name);
    if (found != table().functions.end()) {
      removed = std::move(found->second);
      table().functions.erase(found);
    }
  }
  if (removed) return Ok{};
  if (find_built_in(name)) return Diagnostic(ErrorCode::kUnknownFunction, format("'{}' is built in and stays", name));
  return Diagnostic(ErrorCode::kUnknownFunction, format("no global function is named '{}'", name));
}

std::vector<std::string> global_names() {
  std::vector<std::string> names;
  for (const BuiltIn& b : built_in_functions()) names.emplace_back(b.name);
  {
    std::lock_guard lock(table().mutex);
    for (const auto& [name, function] : table().functions)
      if (function) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace tilewright::runtime

using namespace tilewright;
using namespace tilewright::runtime;

extern "C" {

tw_function* tw_function_retain(tw_function* function) {
  if (function) function->references.fetch_add(1, std::memory_order_relaxed);
  return function;
}

void tw_function_free(tw_function* function) {
  if (function && function->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete function;
}

void tw_value_free(tw_value* value) {
  if (!value) return;
  switch (value->kind) {
    case TW_STR:
    case TW_BYTES:
      delete[] value->as.str;
      break;
    case TW_ARRAY:
      for (uint64_t i = 0; i < value->size; ++i) tw_value_free(&value->as.array[i]);
      delete[] value->as.array;
      break;
    case TW_MODULE:
      tw_module_free(value->as.module);
      break;
    case TW_FUNCTION:
      tw_function_free(value->as.function);
      break;
    case TW_NDARRAY:
      if (value->as.ndarray && value->as.ndarray->deleter) value->as.ndarray->deleter(value->as.ndarray);
      break;
    default:
      break;
  }
  *value = {};
  value->kind = TW_NULL;
}

}  // extern "C"
