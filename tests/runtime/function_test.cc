// SPDX-License-Identifier: Apache-2.0
// Functions by name, modules of them, and the executor's classic functions, through the C interface and its C++
// wrapper.
#include "tilewright/function.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "runtime/artifact_maker.h"
#include "runtime/module.h"

namespace tilewright {
namespace {
using namespace tilewright::testing;

template <class F>
int code_of(F body) {
  try {
    body();
  } catch (const Error& e) {
    return e.code();
  }
  return 0;
}

TEST(Function, EveryKindOfValuePasses) {
  Function echo = Function::of([](Args args) -> Value {
    if (args[0].is_null()) return Value();
    switch (args[0].kind()) {
      case TW_INT:
        return args[0].integer();
      case TW_FLOAT:
        return args[0].number();
      case TW_STR:
        return args[0].string();
      case TW_BYTES:
        return Value::bytes(args[0].bytes());
      case TW_FUNCTION:
        return args[0].function();
      default:
        return std::to_string(args[0].kind());
    }
  });
  EXPECT_EQ(echo(-7).integer(), -7);
  EXPECT_EQ(echo(true).integer(), 1);
  EXPECT_EQ(echo(0.25).number(), 0.25);
  EXPECT_EQ(echo(std::string("a\0b", 3)).string(), std::string("a\0b", 3));
  EXPECT_EQ(echo(Value::bytes("xy")).bytes(), "xy");
  EXPECT_TRUE(echo(nullptr).is_null());
  EXPECT_EQ(echo(cpu()).string(), "6");
  EXPECT_EQ(echo(echo).function()(4).integer(), 4);
  std::vector<Value> items;
  items.emplace_back(1);
  items.emplace_back("two");
  Function second = Function::of([](Args args) -> Value { return args[0][1].string(); });
  EXPECT_EQ(second(Value::list(std::move(items))).string(), "two");
  EXPECT_EQ(code_of([&] { second(Value::list({})); }), 101);
  EXPECT_EQ(code_of([&] { echo(1).string(); }), 101);
  EXPECT_EQ(code_of([&] { echo(); }), 101);
}

TEST(Function, RegisteredFoundReplacedRemoved) {
  register_function("test.add", [](Args a) -> Value { return a[0].integer() + a[1].integer(); });
  EXPECT_EQ(global_function("test.add")(2, 3).integer(), 5);
  EXPECT_EQ(code_of([] { register_function("test.add", [](Args) { return Value(); }); }), 101);
  register_function(
      "test.add", [](Args) -> Value { return 0; }, true);
  EXPECT_EQ(global_function("test.add")(2, 3).integer(), 0);
  auto names = global_function_names();
  EXPECT_NE(std::find(names.begin(), names.end(), "test.add"), names.end());
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(tw_function_remove_global("test.add"), 0);
  EXPECT_EQ(code_of([] { global_function("test.add"); }), 507);
  EXPECT_EQ(tw_function_remove_global("test.add"), 507);
  EXPECT_EQ(tw_function_remove_global("runtime.LoadParams"), 507);
  EXPECT_EQ(code_of([] { register_function("runtime.LoadParams", [](Args) { return Value(); }); }), 101);
}

TEST(Function, ErrorsCrossWithCodeAndHint) {
  Function inner = Function::of([](Args) -> Value {
    throw Error(505, "ShapeMismatch", "turn it", "error[E505 ShapeMismatch]: too wide\n  hint: turn it");
  });
  Function outer = Function::of([&](Args args) -> Value { return args[0].function()(); });
  try {
    outer(inner);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 505);
    EXPECT_EQ(e.hint(), "turn it");
    EXPECT_STREQ(e.what(), "error[E505 ShapeMismatch]: too wide\n  hint: turn it");
  }
  Function plain = Function::of([](Args) -> Value { throw std::runtime_error("disk on fire"); });
  try {
    plain();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 101);
    EXPECT_NE(std::string(e.what()).find("disk on fire"), std::string::npos);
  }
  // A C function that fails silently is not blamed for an older error.
  tw_function* silent = nullptr;
  ASSERT_EQ(tw_function_create([](void*, const tw_value*, int32_t, tw_value*) { return int32_t{77}; }, nullptr, nullptr,
                               &silent),
            0);
  Function owner(silent);
  EXPECT_EQ(tw_function_call(silent, nullptr, 0, nullptr), 101);
  EXPECT_NE(std::string(tw_last_error_message()).find("status 77"), std::string::npos);
  EXPECT_EQ(tw_function_call(nullptr, nullptr, 0, nullptr), 101);
}

// Errors that the headers make themselves.
TEST(Function, EveryErrorSaysWhatToDo) {
  auto expect = [](int code, const std::function<void()>& wrong) {
    try {
      wrong();
      ADD_FAILURE() << "no error " << code;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_FALSE(e.hint().empty()) << e.what();
      EXPECT_NE(std::string(e.what()).find("\n  hint: " + e.hint()), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).rfind("error[E" + std::to_string(code) + " " + e.name() + "]: ", 0), 0u);
    }
  };
  register_function(
      "test.second", [](Args args) -> Value { return args[1].integer(); }, true);
  const Function second = global_function("test.second");
  expect(101, [&] { second(1); });
  expect(101, [&] { second(1, "text"); });
  expect(507, [] { global_function("test.absent"); });
  expect(102, [] { Module::load("/no/such/file.so"); });
  expect(102, [] { Model("/no/such/file.so"); });
}

TEST(Function, ContextsAreFreedOnce) {
  static int freed;
  freed = 0;
  tw_function* f = nullptr;
  ASSERT_EQ(tw_function_create([](void*, const tw_value*, int32_t, tw_value*) { return int32_t{0}; }, &freed,
                               [](void* c) { ++*static_cast<int*>(c); }, &f),
            0);
  ASSERT_EQ(tw_function_register("test.freed", f, 0), 0);
  tw_function_free(f);
  EXPECT_EQ(freed, 0);
  Function again = global_function("test.freed");
  ASSERT_EQ(tw_function_remove_global("test.freed"), 0);
  EXPECT_EQ(freed, 0);
  again = Function();
  EXPECT_EQ(freed, 1);
}

TEST(Function, TheTableServesManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 500; ++i) {
        std::string name = "test.thread" + std::to_string(t);
        register_function(
            name, [i](Args) -> Value { return i; }, true);
        if (global_function(name)().integer() != i) ++wrong;
        global_function_names();
      }
      tw_function_remove_global(("test.thread" + std::to_string(t)).c_str());
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// A kind of module of a user's: multiplies by a factor that its bytes hold.
class Scale : public ModuleKind {
 public:
  explicit Scale(int factor) : factor_(factor) {}
  std::string type_key() const override { return "test_scale"; }
  Function get_function(const std::string& name) override {
    if (name == "broken") throw std::runtime_error("no such luck");
    if (name != "scale") return Function();
    return Function::of([f = factor_](Args a) -> Value { return f * a[0].integer(); });
  }
  std::string save() const override { return std::to_string(factor_); }

 private:
  int factor_;
};

TEST(Module, KindsOfUsersAreLoadedByTheirKey) {
  EXPECT_EQ(code_of([] { Module::load_binary("test_scale", "3"); }), 507);
  register_function("runtime.module.loadbinary_test_scale",
                    [](Args a) -> Value { return Module::of(std::make_unique<Scale>(std::stoi(a[0].bytes()))); });
  Module m = Module::load_binary("test_scale", "3");
  EXPECT_EQ(m.type_key(), "test_scale");
  EXPECT_EQ(m["scale"](5).integer(), 15);
  EXPECT_EQ(m.save(), "3");
  EXPECT_FALSE(m.get_function("other"));
  EXPECT_EQ(code_of([&] { m["other"]; }), 507);
  EXPECT_EQ(code_of([&] { m.get_function("broken"); }), 101);
  // Functions outlive the module; imports are searched on demand; circles are refused.
  Module parent = Module::of(std::make_unique<Scale>(2));
  parent.import_module(m);
  EXPECT_EQ(parent.imported_modules().size(), 1u);
  EXPECT_EQ(parent.imported_modules()[0]["scale"](1).integer(), 3);
  EXPECT_EQ(code_of([&] { m.import_module(parent); }), 101);
  EXPECT_EQ(code_of([&] { m.import_module(m); }), 101);
  Function kept = m["scale"];
  m = parent = Module();
  EXPECT_EQ(kept(2).integer(), 6);
  // Other files by the end of their name.
  register_function("runtime.module.loadfile_scale", [](Args a) -> Value {
    return Module::of(std::make_unique<Scale>(static_cast<int>(a[0].string().size())));
  });
  EXPECT_EQ(Module::load("ab.scale")["scale"](1).integer(), 8);
  try {
    Module::load("ab.nothing");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 507);
    EXPECT_NE(e.hint().find("runtime.module.loadfile_scale"), std::string::npos);
  }
  register_function("runtime.module.loadbinary_wrong", [](Args) -> Value { return 3; });
  EXPECT_EQ(code_of([] { Module::load_binary("wrong", ""); }), 101);
  for (auto name :
       {"runtime.module.loadbinary_test_scale", "runtime.module.loadfile_scale", "runtime.module.loadbinary_wrong"})
    EXPECT_EQ(tw_function_remove_global(name), 0);
}

class LibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    source_ = small_model();
    make_artifact(source_, folder_ / "m.so");
  }
  DLTensor view(std::vector<float>& data, std::vector<int64_t>& shape) { return Executor::view(data.data(), shape); }
  TempFolder folder_;
  ArtifactSource source_;
};

TEST_F(LibraryTest, DefaultMakesAnExecutor) {
  Module lib = Module::load(folder_ / "m.so");
  EXPECT_EQ(lib.type_key(), "library");
  Module net = lib["default"](cpu()).module();
  EXPECT_EQ(net.type_key(), "GraphExecutor");
  EXPECT_TRUE(lib.get_function("small"));  // the model's name
  lib = Module();
  std::vector<float> x(64), y(64);
  std::vector<int64_t> shape = {4, 16};
  std::iota(x.begin(), x.end(), 0.0f);
  EXPECT_EQ(code_of([&] { net["run"](); }), 101);
  net["set_input"]("x", view(x, shape));
  net["run"]();
  Value out = net["get_output"](0);
  EXPECT_EQ(static_cast<const float*>(out.tensor().data)[17], 18 * 0.5f);
  net["get_output"](0, view(y, shape));
  EXPECT_EQ(y[17], 9.0f);
  EXPECT_EQ(net["get_num_inputs"]().integer(), 1);
  EXPECT_EQ(net["get_num_outputs"]().integer(), 1);
  EXPECT_EQ(net["get_input_index"]("x").integer(), 0);
  EXPECT_EQ(net["get_input_index"]("nope").integer(), -1);
  EXPECT_EQ(net["get_output_index"]("y").integer(), 0);
  Value info = net["get_input_info"]();
  EXPECT_EQ(info[0][0].string(), "x");
  EXPECT_EQ(info[0][1][1].integer(), 16);
  EXPECT_EQ(info[0][2].string(), "float32");
  // Bound memory is read and written in place.
  net["set_input_zero_copy"](0, view(x, shape));
  net["set_output_zero_copy"]("y", view(y, shape));
  x[1] = 99;
  net["run"]();
  EXPECT_EQ(y[1], 50.0f);
  EXPECT_EQ(code_of([&] { net["set_input"]("z", view(x, shape)); }), 504);
  EXPECT_EQ(code_of([&] { net["set_input"](7, view(x, shape)); }), 504);
  EXPECT_EQ(code_of([&] { net["set_input"](-1, view(x, shape)); }), 504);
  EXPECT_EQ(code_of([&] { net["set_input"]("x"); }), 101);
  EXPECT_EQ(code_of([&] { net["set_input"]("x", 3); }), 101);
  EXPECT_EQ(code_of([&] { net["debug_get_output"](0); }), 507);
  EXPECT_EQ(code_of([&] { Module::load(folder_ / "m.so")["default"](DLDevice{kDLCUDA, 0}); }), 101);
  net = Module();
  EXPECT_EQ(static_cast<const float*>(out.tensor().data)[17], 9.0f) << "a view keeps the executor's memory";
}

TEST_F(LibraryTest, WeightsAreReplacedForOneExecutor) {
  Module lib = Module::load(folder_ / "m.so");
  Module a = lib["default"](cpu()).module(), b = lib["default"](cpu()).module(), c = lib["default"](cpu()).module();
  std::vector<float> x(64, 1.0f), w(16, 10.0f);
  std::vector<int64_t> shape = {4, 16}, wide = {16}, wrong = {8};
  std::string params = global_function("runtime.SaveParams")("w", view(w, wide), "unrelated", view(w, wide)).bytes();
  for (Module* m : {&a, &b, &c}) (*m)["set_input"]("x", view(x, shape));
  a["load_params"](Value::bytes(params));
  c["share_params"](a, Value::bytes(params));
  auto first = [&](Module& m) {
    m["run"]();
    return static_cast<const float*>(m["get_output"](0).tensor().data)[3];
  };
  EXPECT_EQ(first(a), 20.0f);
  EXPECT_EQ(first(b), 3.0f);
  EXPECT_EQ(first(c), 20.0f);
  std::string bad = global_function("runtime.SaveParams")("w", view(w, wrong)).bytes();
  EXPECT_EQ(code_of([&] { b["load_params"](Value::bytes(bad)); }), 505);
  EXPECT_EQ(code_of([&] { b["load_params"](Value::bytes(bad.substr(0, 60))); }), 501);
  w[3] = 5;
  b["set_input"]("w", view(w, wide));
  EXPECT_EQ(first(b), 10.0f);
  Value list = lib["get_graph_params"]();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0][0].string(), "w");
  EXPECT_EQ(static_cast<const float*>(list[0][1].tensor().data)[3], 1.5f);
  Value loaded = global_function("runtime.LoadParams")(Value::bytes(params));
  EXPECT_EQ(loaded.size(), 2u);
}

TEST_F(LibraryTest, TheDebugExecutorLooksBetweenSteps) {
  Module lib = Module::load(folder_ / "m.so");
  Module net = lib["debug_create"]("default", cpu()).module();
  EXPECT_EQ(net.type_key(), "GraphExecutorDebug");
  std::vector<float> x(64, 4.0f), t(64);
  std::vector<int64_t> shape = {4, 16};
  net["set_input"]("x", view(x, shape));
  net["run"]();
  Value middle = net["debug_get_output"]("add_one");
  EXPECT_EQ(static_cast<const float*>(middle.tensor().data)[9], 5.0f);
  net["debug_get_output"](2, view(t, shape));  // nodes: x, w, add_one, scale
  EXPECT_EQ(t[9], 5.0f);
  EXPECT_EQ(static_cast<const float*>(net["debug_get_output"]("x").tensor().data)[0], 4.0f);
  EXPECT_EQ(static_cast<const float*>(net["debug_get_output"]("w").tensor().data)[2], 1.0f);
  net["execute_node"](3);
  EXPECT_EQ(static_cast<const float*>(net["get_node_output"](3, 0).tensor().data)[2], 5.0f);
  EXPECT_EQ(code_of([&] { net["debug_get_output"](4); }), 504);
  EXPECT_EQ(code_of([&] { net["debug_get_output"]("nope"); }), 504);
  EXPECT_EQ(code_of([&] { net["get_node_output"](3, 1); }), 504);
  Value times = net["run_individual"](3, 2);
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[0][1].number(), 0.0);
  EXPECT_GT(times[3][1].number(), 0.0);
  EXPECT_NE(net["profile"](3, "trace").string().find("traceEvents"), std::string::npos);
  EXPECT_NE(net["profile"](3).string().find("add"), std::string::npos);
  EXPECT_EQ(code_of([&] { net["profile"](3, "poem"); }), 101);
}

TEST_F(LibraryTest, GraphJsonHasTheClassicKeys) {
  auto json = nlohmann::json::parse(Module::load(folder_ / "m.so")["get_graph_json"]().string());
  EXPECT_EQ(json["arg_nodes"], nlohmann::json({0, 1}));
  EXPECT_EQ(json["heads"], nlohmann::json::parse("[[3, 0, 0]]"));
  EXPECT_EQ(json["node_row_ptr"], nlohmann::json({0, 1, 2, 3, 4}));
  ASSERT_EQ(json["nodes"].size(), 4u);
  EXPECT_EQ(json["nodes"][0]["op"], "null");
  EXPECT_EQ(json["nodes"][3]["op"], "tvm_op");
  EXPECT_EQ(json["nodes"][3]["inputs"], nlohmann::json::parse("[[2, 0, 0], [1, 0, 0]]"));
  EXPECT_EQ(json["nodes"][3]["attrs"]["func_name"], "scale");
  EXPECT_EQ(json["nodes"][3]["attrs"]["num_inputs"], "2");
  EXPECT_EQ(json["nodes"][3]["attrs"]["flatten_data"], "0");
  EXPECT_EQ(json["attrs"]["shape"][0], "list_shape");
  EXPECT_EQ(json["attrs"]["shape"][1][1], nlohmann::json({16}));
  EXPECT_EQ(json["attrs"]["dltype"][1].size(), 4u);
  EXPECT_EQ(json["attrs"]["storage_id"][0], "list_int");
}

TEST_F(LibraryTest, TimeEvaluatorCountsCalls) {
  int calls = 0;
  Function f = Function::of([&](Args) -> Value { return ++calls; });
  Function timed = global_function("runtime.TimeEvaluator")(f, 5, 3).function();
  Value seconds = timed();
  EXPECT_EQ(seconds.size(), 3u);
  EXPECT_GE(seconds[0].number(), 0.0);
  EXPECT_EQ(calls, 16);  // one to warm up
  EXPECT_EQ(code_of([&] { global_function("runtime.TimeEvaluator")(f, 0); }), 101);
  Function slow = global_function("runtime.TimeEvaluator")(f, 1, 1, 2).function();  // until a repeat lasts 2 ms
  calls = 0;
  slow();
  EXPECT_GT(calls, 100);
}

TEST_F(LibraryTest, ImportsTravelWithTheLibrary) {
  register_function("runtime.module.loadbinary_test_scale",
                    [](Args a) -> Value { return Module::of(std::make_unique<Scale>(std::stoi(a[0].bytes()))); });
  auto root = *runtime::LibraryModule::load(folder_ / "m.so");
  auto one = *runtime::load_module_binary("test_scale", "7"), two = *runtime::load_module_binary("test_scale", "11");
  ASSERT_TRUE(one->import_module(two).ok());
  ASSERT_TRUE(root->import_module(one).ok());
  auto saved = runtime::save_import_tree(root);
  ASSERT_TRUE(saved.ok()) << saved.error().str();
  source_.plan.imports = *saved;
  make_artifact(source_, folder_ / "with.so");
  Module again = Module::load(folder_ / "with.so");
  ASSERT_EQ(again.imported_modules().size(), 1u);
  EXPECT_EQ(again.get_function("scale", true)(2).integer(), 14);
  EXPECT_FALSE(again.get_function("scale"));
  EXPECT_EQ(again.imported_modules()[0].imported_modules()[0]["scale"](2).integer(), 22);
  // Every shorter or changed tree is refused or loads; nothing crashes.
  for (size_t n = 1; n < saved->size(); ++n) {
    auto library = *runtime::LibraryModule::load(folder_ / "m.so");
    EXPECT_FALSE(runtime::load_import_tree(std::string_view(*saved).substr(0, n), library).ok()) << n;
  }
  for (size_t n = 0; n < saved->size(); ++n)
    for (unsigned char bit : {1, 0x80}) {
      std::string bytes = *saved;
      bytes[n] = static_cast<char>(bytes[n] ^ bit);
      auto library = *runtime::LibraryModule::load(folder_ / "m.so");
      try {
        (void)runtime::load_import_tree(bytes, library);
      } catch (const Error&) {
      }
    }
  ASSERT_EQ(tw_function_remove_global("runtime.module.loadbinary_test_scale"), 0);
  try {
    Module::load(folder_ / "with.so");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 507);
    EXPECT_NE(std::string(e.what()).find("loadbinary_test_scale"), std::string::npos);
    EXPECT_NE(e.hint().find("--plugin"), std::string::npos) << e.hint();
  }
}

}  // namespace
}  // namespace tilewright
