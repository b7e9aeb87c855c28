// SPDX-License-Identifier: Apache-2.0
// Functions called by name across languages, their arguments and results, and the process-wide registry.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "tilewright/c_api.h"

namespace tilewright::runtime {

class Module;

// Owns one reference to a tw_function; may be empty.
class FunctionRef {
 public:
  FunctionRef() = default;
  explicit FunctionRef(tw_function* owned) : function_(owned) {}
  FunctionRef(const FunctionRef& other) : function_(tw_function_retain(other.function_)) {}
  FunctionRef(FunctionRef&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  FunctionRef& operator=(FunctionRef other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~FunctionRef() { tw_function_free(function_); }
  explicit operator bool() const { return function_ != nullptr; }
  tw_function* get() const { return function_; }
  tw_function* release() { return std::exchange(function_, nullptr); }

 private:
  tw_function* function_ = nullptr;
};

// A result: owns the content of its tw_value.
class Value {
 public:
  Value() { value_.kind = TW_NULL; }
  Value(int64_t i);                       // NOLINT: results are written as `return int64_t{3};`
  Value(double f);                        // NOLINT
  Value(FunctionRef f);                   // NOLINT
  Value(std::shared_ptr<Module> module);  // NOLINT
  static Value string(std::string_view text);
  static Value bytes(std::string_view data);
  static Value ndarray(DLManagedTensor* owned);
  static Value array(std::vector<Value> items);
  static Value shape(std::span<const int64_t> dims);
  static Value adopt(tw_value owned) {
    Value v;
    v.value_ = owned;
    return v;
  }
  Value(Value&& other) noexcept : value_(other.release()) {}
  Value& operator=(Value&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() { tw_value_free(&value_); }
  const tw_value& get() const { return value_; }
  tw_value release() {
    tw_value out = value_;
    value_ = {};
    value_.kind = TW_NULL;
    return out;
  }

 private:
  tw_value value_{};
};

// "a string", for errors.
const char* kind_name(int32_t kind);

// The arguments of a call, checked on access. Errors: InvalidArgument with the argument's number.
class Arguments {
 public:
  Arguments(std::span<const tw_value> values, std::string_view function) : values_(values), function_(function) {}
  size_t size() const { return values_.size(); }
  const tw_value& operator[](size_t i) const { return values_[i]; }
  Status expect(size_t at_least, size_t at_most) const;
  bool is(size_t i, int32_t kind) const { return i < values_.size() && values_[i].kind == kind; }
  Result<int64_t> integer(size_t i) const;
  Result<double> number(size_t i) const;  // accepts an integer
  Result<std::string_view> string(size_t i) const;
  Result<std::string_view> bytes(size_t i) const;  // accepts a string
  Result<const DLTensor*> tensor(size_t i) const;
  Result<tw_function*> function(size_t i) const;
  Result<std::shared_ptr<Module>> module(size_t i) const;
  Result<int64_t> integer_or(size_t i, int64_t otherwise) const {
    return i < size() ? integer(i) : Result<int64_t>(otherwise);
  }
  std::span<const tw_value> from(size_t i) const { return values_.subspan(std::min(i, values_.size())); }

 private:
  Result<const tw_value*> take(size_t i, std::initializer_list<int32_t> kinds, const char* wanted) const;
  std::span<const tw_value> values_;
  std::string_view function_;
};

using Body = std::function<Result<Value>(const Arguments&)>;
// `name` is for errors.
FunctionRef make_function(std::string name, Body body);
// Calls it; errors of a user's function come back as the Diagnostic it reported.
Result<Value> call(tw_function* function, std::span<const tw_value> arguments);

// ---- the registry of functions by name; thread-safe ----
Status register_global(std::string name, FunctionRef function, bool override_existing);
FunctionRef find_global(std::string_view name);  // empty if there is none
// The function, or UnknownFunction with the nearest names that begin with `family` as hint.
Result<FunctionRef> require_global(const std::string& name, std::string_view family);
Status remove_global(const std::string& name);
std::vector<std::string> global_names();  // sorted

// Functions that the runtime provides.
struct BuiltIn {
  const char* name;
  Result<Value> (*body)(const Arguments&);
};
std::span<const BuiltIn> built_in_functions();

}  // namespace tilewright::runtime
