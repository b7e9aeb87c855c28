// SPDX-License-Identifier: Apache-2.0
// Functions called by name across languages, and modules of them, for C++17 and later (link tilewright::runtime).
//
//   tilewright::register_function("demo.add", [](tilewright::Args args) { return tilewright::Value(args[0].integer() +
//   args[1].integer()); }); int64_t five = tilewright::global_function("demo.add")(2, 3).integer();      // or from
//   Python: tw.get_global_func("demo.add")(2, 3)
//
//   tilewright::Module lib = tilewright::Module::load("net.so");
//   tilewright::Module net = lib["default"](tilewright::cpu()).module();
//   net["set_input"]("x", tensor);  net["run"]();  net["get_output"](0, out);
//
// An exception that leaves a function of yours becomes the caller's tilewright::Error, and in Python tilewright.Error.
#ifndef TILEWRIGHT_FUNCTION_H_
#define TILEWRIGHT_FUNCTION_H_
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/runtime.h"

namespace tilewright {

class Function;
class Module;

inline DLDevice cpu(int32_t id = 0) { return {kDLCPU, id}; }

// One argument of a call, or one item of a list: a look at a value that someone else owns.
class Arg {
 public:
  explicit Arg(const tw_value& value) : value_(&value) {}
  int32_t kind() const { return value_->kind; }
  bool is_null() const { return value_->kind == TW_NULL; }
  int64_t integer() const { return want(TW_INT, "an integer").as.i; }
  double number() const {
    return value_->kind == TW_INT ? static_cast<double>(value_->as.i) : want(TW_FLOAT, "a number").as.f;
  }
  std::string string() const { return {want(TW_STR, "a string").as.str, value_->size}; }
  std::string bytes() const {
    if (value_->kind != TW_STR) want(TW_BYTES, "bytes");
    return {value_->as.str, value_->size};
  }
  DLDevice device() const { return want(TW_DEVICE, "a device").as.device; }
  const DLTensor& tensor() const {
    return value_->kind == TW_NDARRAY ? value_->as.ndarray->dl_tensor : *want(TW_TENSOR, "a tensor").as.tensor;
  }
  inline Function function() const;
  inline Module module() const;
  std::size_t size() const { return want(TW_ARRAY, "a list").size; }
  Arg operator[](std::size_t i) const {
    if (i >= size())
      detail::fail(101, "InvalidArgument",
                   "the list has " + std::to_string(size()) + " values, not a value " + std::to_string(i),
                   "size() says how many there are");
    return Arg(value_->as.array[i]);
  }
  const tw_value& raw() const { return *value_; }

 private:
  const tw_value& want(int32_t kind, const char* name) const {
    if (value_->kind != kind)
      detail::fail(101, "InvalidArgument",
                   std::string("a value is not ") + name + " (kind " + std::to_string(value_->kind) + ")",
                   "docs/runtime.md says what functions take and give");
    return *value_;
  }
  const tw_value* value_;
};

// The arguments of a call.
class Args {
 public:
  Args(const tw_value* values, int32_t count) : values_(values), count_(count) {}
  std::size_t size() const { return static_cast<std::size_t>(count_); }
  Arg operator[](std::size_t i) const {
    if (i >= size())
      detail::fail(101, "InvalidArgument", "argument " + std::to_string(i) + " is missing",
                   "docs/runtime.md says what functions take and give");
    return Arg(values_[i]);
  }

 private:
  const tw_value* values_;
  int32_t count_;
};

// A result: owns what it holds.
class Value {
 public:
  Value() { value_.kind = TW_NULL; }
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  Value(T i) {
    value_.kind = TW_INT, value_.as.i = static_cast<int64_t>(i);
  }
  Value(double f) { value_.kind = TW_FLOAT, value_.as.f = f; }
  Value(const std::string& text) { detail::check(tw_value_set_str(&value_, text.data(), text.size())); }
  Value(const char* text) : Value(std::string(text)) {}
  inline Value(const Function& function);
  inline Value(const Module& module);
  static Value bytes(const std::string& data) {
    Value v;
    detail::check(tw_value_set_bytes(&v.value_, data.data(), data.size()));
    return v;
  }
  static Value list(std::vector<Value> items) {
    Value v;
    detail::check(tw_value_set_array(&v.value_, items.size()));
    for (std::size_t i = 0; i < items.size(); ++i) v.value_.as.array[i] = items[i].release();
    return v;
  }
  // Takes the tensor; its deleter is called when the value goes.
  static Value ndarray(DLManagedTensor* tensor) {
    Value v;
    v.value_.kind = TW_NDARRAY, v.value_.as.ndarray = tensor;
    return v;
  }
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
  tw_value release() {
    tw_value out = value_;
    value_ = tw_value{};
    value_.kind = TW_NULL;
    return out;
  }
  Arg view() const { return Arg(value_); }
  bool is_null() const { return view().is_null(); }
  int64_t integer() const { return view().integer(); }
  double number() const { return view().number(); }
  std::string string() const { return view().string(); }
  std::string bytes() const { return view().bytes(); }
  const DLTensor& tensor() const { return view().tensor(); }
  inline Function function() const;
  inline Module module() const;
  std::size_t size() const { return view().size(); }
  Arg operator[](std::size_t i) const { return view()[i]; }

 private:
  tw_value value_{};
};

// A counted reference to a function.
class Function {
 public:
  Function() = default;
  explicit Function(tw_function* owned) : function_(owned) {}
  // Any callable from Args to Value.
  static Function of(std::function<Value(Args)> body) {
    auto* context = new std::function<Value(Args)>(std::move(body));
    tw_function* out = nullptr;
    int32_t status = tw_function_create(
        &invoke, context, [](void* c) { delete static_cast<std::function<Value(Args)>*>(c); }, &out);
    detail::check(status);
    return Function(out);
  }
  Function(const Function& other) : function_(tw_function_retain(other.function_)) {}
  Function(Function&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  Function& operator=(Function other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~Function() { tw_function_free(function_); }
  explicit operator bool() const { return function_ != nullptr; }
  tw_function* get() const { return function_; }

  template <class... T>
  Value operator()(const T&... arguments) const {
    tw_value values[sizeof...(T) + 1] = {borrow(arguments)..., tw_value{}};
    return call(values, static_cast<int32_t>(sizeof...(T)));
  }
  Value call(const tw_value* values, int32_t count) const {
    tw_value result{};
    result.kind = TW_NULL;
    detail::check(tw_function_call(function_, values, count, &result));
    return Value::adopt(result);
  }

 private:
  static tw_value of_kind(int32_t kind) {
    tw_value v{};
    v.kind = kind;
    return v;
  }
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  static tw_value borrow(T i) {
    tw_value v = of_kind(TW_INT);
    v.as.i = static_cast<int64_t>(i);
    return v;
  }
  static tw_value borrow(double f) {
    tw_value v = of_kind(TW_FLOAT);
    v.as.f = f;
    return v;
  }
  static tw_value borrow(std::nullptr_t) { return of_kind(TW_NULL); }
  static tw_value borrow(const char* text) {
    tw_value v = of_kind(TW_STR);
    v.as.str = text, v.size = std::char_traits<char>::length(text);
    return v;
  }
  static tw_value borrow(const std::string& text) {
    tw_value v = of_kind(TW_STR);
    v.as.str = text.data(), v.size = text.size();
    return v;
  }
  static tw_value borrow(const DLTensor& tensor) {
    tw_value v = of_kind(TW_TENSOR);
    v.as.tensor = const_cast<DLTensor*>(&tensor);
    return v;
  }
  static tw_value borrow(DLDevice device) {
    tw_value v = of_kind(TW_DEVICE);
    v.as.device = device;
    return v;
  }
  static tw_value borrow(const Function& function) {
    tw_value v = of_kind(TW_FUNCTION);
    v.as.function = function.get();
    return v;
  }
  static inline tw_value borrow(const Module& module);
  static tw_value borrow(const Value& value) { return value.view().raw(); }
  static tw_value borrow(const Arg& value) { return value.raw(); }

  static int32_t invoke(void* context, const tw_value* args, int32_t count, tw_value* result) {
    try {
      *result = (*static_cast<std::function<Value(Args)>*>(context))(Args(args, count)).release();
      return 0;
    } catch (const Error& e) {  // its text begins with the number and the place already
      std::string text = e.what();
      std::size_t at = text.find("]: "), end = text.find("\n  hint: ");
      return tw_set_last_error(e.code(),
                               at == std::string::npos
                                   ? text.c_str()
                                   : text.substr(at + 3, end == std::string::npos ? end : end - at - 3).c_str(),
                               nullptr, e.hint().c_str());
    } catch (const std::exception& e) {
      return tw_set_last_error(101, e.what(), nullptr, nullptr);
    } catch (...) {
      return tw_set_last_error(101, "a function threw something that is no std::exception", nullptr, nullptr);
    }
  }
  tw_function* function_ = nullptr;
};

// A kind of module of your own: derive, and give it to Module::of. `save` makes the bytes that the function registered
// as runtime.module.loadbinary_<type_key> takes.
class ModuleKind {
 public:
  virtual ~ModuleKind() = default;
  virtual std::string type_key() const = 0;
  virtual Function get_function(const std::string& name) = 0;  // empty when there is none
  virtual std::string save() const {
    detail::fail(101, "InvalidArgument", "a module of type '" + type_key() + "' cannot be written to a file",
                 "give its class a save()");
  }
};

// A counted reference to a module.
class Module {
 public:
  Module() = default;
  explicit Module(tw_module* owned) : module_(owned) {}
  // A compiled library, or any file that runtime.module.loadfile_<format> takes.
  static Module load(const std::string& path, const std::string& format = {}) {
    tw_module* out = nullptr;
    detail::check(tw_module_load_file(path.c_str(), format.c_str(), &out));
    return Module(out);
  }
  // What is linked into the program itself: models, as imported modules and by name, and registered functions.
  static Module system_lib() {
    tw_module* out = nullptr;
    detail::check(tw_system_lib(&out));
    return Module(out);
  }
  static Module load_binary(const std::string& type_key, const std::string& bytes) {
    tw_module* out = nullptr;
    detail::check(tw_module_load_binary(type_key.c_str(), bytes.data(), bytes.size(), &out));
    return Module(out);
  }
  static Module of(std::unique_ptr<ModuleKind> kind) {
    std::string key = kind->type_key();
    tw_module_class c{};
    c.size = sizeof c;
    c.type_key = key.c_str();
    c.get_function = [](void* self, const char* name, tw_function** out) -> int32_t {
      return guarded([&] { *out = tw_function_retain(static_cast<ModuleKind*>(self)->get_function(name).get()); });
    };
    c.save = [](void* self, tw_value* out) -> int32_t {
      return guarded([&] { *out = Value::bytes(static_cast<ModuleKind*>(self)->save()).release(); });
    };
    c.free_context = [](void* self) { delete static_cast<ModuleKind*>(self); };
    tw_module* out = nullptr;
    detail::check(tw_module_create(&c, kind.get(), &out));
    static_cast<void>(kind.release());  // the module has it now
    return Module(out);
  }
  Module(const Module& other) : module_(tw_module_retain(other.module_)) {}
  Module(Module&& other) noexcept : module_(std::exchange(other.module_, nullptr)) {}
  Module& operator=(Module other) noexcept {
    std::swap(module_, other.module_);
    return *this;
  }
  ~Module() { tw_module_free(module_); }
  tw_module* get() const { return module_; }
  std::string type_key() const { return tw_module_type_key(module_); }
  // The function, empty when there is none.
  Function get_function(const std::string& name, bool query_imports = false) const {
    tw_function* out = nullptr;
    detail::check(tw_module_get_function(module_, name.c_str(), query_imports, &out));
    return Function(out);
  }
  // The function; throws E507 when there is none.
  Function operator[](const std::string& name) const {
    Function f = get_function(name);
    if (!f)
      detail::fail(507, "UnknownFunction", "the module of type '" + type_key() + "' has no function '" + name + "'",
                   "docs/runtime.md lists the functions of modules");
    return f;
  }
  void import_module(const Module& module) const { detail::check(tw_module_import(module_, module.module_)); }
  std::vector<Module> imported_modules() const {
    std::vector<Module> out;
    for (uint64_t i = 0; i < tw_module_num_imports(module_); ++i) {
      tw_module* one = nullptr;
      detail::check(tw_module_get_import(module_, i, &one));
      out.emplace_back(one);
    }
    return out;
  }
  std::string save() const {
    tw_value out{};
    detail::check(tw_module_save(module_, &out));
    return Value::adopt(out).bytes();
  }

 private:
  template <class F>
  static int32_t guarded(F body) {
    try {
      body();
      return 0;
    } catch (const Error& e) {
      return tw_set_last_error(e.code(), e.what(), nullptr, e.hint().c_str());
    } catch (const std::exception& e) {
      return tw_set_last_error(101, e.what(), nullptr, nullptr);
    } catch (...) {
      return tw_set_last_error(101, "a module threw something that is no std::exception", nullptr, nullptr);
    }
  }
  tw_module* module_ = nullptr;
};

inline Function Arg::function() const {
  return Function(tw_function_retain(want(TW_FUNCTION, "a function").as.function));
}
inline Module Arg::module() const { return Module(tw_module_retain(want(TW_MODULE, "a module").as.module)); }
inline Function Value::function() const { return view().function(); }
inline Module Value::module() const { return view().module(); }
inline Value::Value(const Function& function) {
  value_.kind = function ? TW_FUNCTION : TW_NULL;
  value_.as.function = tw_function_retain(function.get());
}
inline Value::Value(const Module& module) {
  value_.kind = TW_MODULE;
  value_.as.module = tw_module_retain(module.get());
}
inline tw_value Function::borrow(const Module& module) {
  tw_value v = of_kind(TW_MODULE);
  v.as.module = module.get();
  return v;
}

inline void register_function(const std::string& name, std::function<Value(Args)> body,
                              bool override_existing = false) {
  detail::check(tw_function_register(name.c_str(), Function::of(std::move(body)).get(), override_existing));
}
// Throws E507 when there is none.
inline Function global_function(const std::string& name) {
  tw_function* out = nullptr;
  detail::check(tw_function_get_global(name.c_str(), &out));
  if (!out)
    detail::fail(507, "UnknownFunction", "no global function is named '" + name + "'",
                 "check the name, and that its library is loaded");
  return Function(out);
}
inline std::vector<std::string> global_function_names() {
  tw_value list{};
  detail::check(tw_function_list_globals(&list));
  Value owned = Value::adopt(list);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < owned.size(); ++i) names.push_back(owned[i].string());
  return names;
}

}  // namespace tilewright
#endif  // TILEWRIGHT_FUNCTION_H_
