// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/checked.h"
#include "base/format.h"
#include "relay/interpreter.h"
#include "relay/passes/table.h"
#include "relay/text.h"
#include "relay/text_case.h"
#include "relay/verifier.h"
#include "test_folders.h"

namespace tilewright::relay {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string trimmed(const std::string& s) {
  size_t begin = s.find_first_not_of(" \n"), end = s.find_last_not_of(" \n");
  return begin == std::string::npos ? "" : s.substr(begin, end - begin + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    if (!trimmed(part).empty()) out.push_back(trimmed(part));
  return out;
}

Result<Tensor> parse_constant(const std::string& line) {
  std::stringstream in(line);
  std::string name, dims, values;
  std::getline(in, name, ' ');
  std::getline(in, dims, ')');
  std::getline(in, values);
  DataType dtype = TW_TRY(parse_dtype(name));
  std::vector<int64_t> shape;
  for (const std::string& dim : split(dims.substr(dims.find('(') + 1), ',')) shape.push_back(std::stoll(dim));
  Tensor out = Tensor::zeros(dtype, shape);
  std::vector<std::string> items = split(values, ' ');
  if (items.empty() || (items.size() != 1 && static_cast<int64_t>(items.size()) != out.size()))
    return Diagnostic(ErrorCode::kParseError, "a constant has another number of values: " + line);
  for (int64_t i = 0; i < out.size(); ++i) {
    bool ramp = items[0] == "ramp";
    const std::string& item = items.size() == 1 ? items[0] : items[static_cast<size_t>(i)];
    if (dtype.is_float())
      out.set_double(i, ramp ? static_cast<double>(i + 1) : std::stod(item));
    else
      out.set_int(i, ramp ? i + 1 : std::stoll(item));
  }
  return out;
}

std::string constant_text(const Tensor& t) {
  std::string out = "// " + t.dtype().str() + " (";
  for (int i = 0; i < t.rank(); ++i) out += (i ? ", " : "") + std::to_string(t.shape()[static_cast<size_t>(i)]);
  out += ")";
  auto item = [&](int64_t i) {
    return t.dtype().is_float() ? format("{}", static_cast<float>(t.at_double(i))) : std::to_string(t.at_int(i));
  };
  bool same = true;
  for (int64_t i = 1; i < t.size(); ++i) same &= item(i) == item(0);
  for (int64_t i = 0; i < (same ? std::min<int64_t>(1, t.size()) : t.size()); ++i) out += " " + item(i);
  return out + "\n";
}

}  // namespace

std::string text_with_constants(const Module& module) {
  ModuleText printed = print_module(module);
  if (!printed.constants.empty()) printed.text += "// constants\n";
  for (const Tensor& constant : printed.constants) printed.text += constant_text(constant);
  return printed.text;
}

Result<TextCase> read_text_case(const std::string& path) {
  TextCase out;
  std::string text = read_file(path), module;
  size_t bar = text.find("// ----");
  if (bar == std::string::npos) return Diagnostic(ErrorCode::kParseError, "no '// ----' line", path);
  out.expected = trimmed(text.substr(text.find('\n', bar) == std::string::npos ? text.size() : text.find('\n', bar)));
  std::vector<Tensor> constants;
  bool in_constants = false;
  std::stringstream lines(text.substr(0, bar));
  for (std::string line; std::getline(lines, line);) {
    auto value_of = [&](const std::string& key) { return trimmed(line.substr(key.size())); };
    if (line.rfind("// constants", 0) == 0) {
      in_constants = true;
    } else if (in_constants && line.rfind("// ", 0) == 0) {
      constants.push_back(TW_TRY(parse_constant(line.substr(3))));
    } else if (line.rfind("// passes:", 0) == 0) {
      out.passes = split(value_of("// passes:"), ',');
    } else if (line.rfind("// opt_level:", 0) == 0) {
      out.context.opt_level = std::stoi(value_of("// opt_level:"));
    } else if (line.rfind("// vector_bits:", 0) == 0) {
      out.context.target.emplace();
      out.context.target->vector_bits = std::stoi(value_of("// vector_bits:"));
    } else if (line.rfind("// cpu_features:", 0) == 0) {
      out.context.target->cpu_features = split(value_of("// cpu_features:"), ',');
    } else if (line.rfind("// math: bf16", 0) == 0) {
      out.context.target->bfloat16_products = true;
    } else if (line.rfind("// config:", 0) == 0) {
      auto pair = split(value_of("// config:"), '=');
      std::string rest = trimmed(value_of("// config:").substr(value_of("// config:").find('=') + 1));
      std::string type;
      for (const ConfigKeyInfo& key : all_config_keys())
        if (pair[0] == key.name) type = key.type;
      if (type == "string")
        TW_TRY_STATUS(out.context.set_config(pair[0], rest));
      else if (type == "float")
        TW_TRY_STATUS(out.context.set_config(pair[0], std::stod(rest)));
      else if (type == "list of strings")
        TW_TRY_STATUS(out.context.set_config(pair[0], split(rest, ';')));
      else
        TW_TRY_STATUS(out.context.set_config(pair[0], int64_t{std::stoll(rest)}));
    } else if (line.rfind("// outputs: differ", 0) == 0) {
      out.same_outputs = false;
    } else if (line.rfind("// error:", 0) == 0) {
      out.error = value_of("// error:");
    } else {
      module += line + "\n";
    }
  }
  ParseOptions options;
  options.origin = path;
  options.zero_missing_constants = true;
  out.input = TW_TRY(parse_module(module, constants, options));
  return out;
}

namespace {

// Inputs for main, the same every time; nothing when a shape is not known, or larger than is worth filling.
std::optional<std::map<std::string, Value>> make_inputs(const Module& module) {
  std::map<std::string, Value> inputs;
  uint64_t state = 42;
  for (const Expr& param : module.main_function()->params) {
    const auto* type = as_tensor(param->type);
    auto shape = type ? static_shape(type->shape) : std::nullopt;
    if (!shape || *checked_element_count(*shape) > (1 << 24)) return std::nullopt;
    Value value = make_value(type->dtype, *shape);
    auto next = [&] {
      return static_cast<int64_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 40);
    };
    for (double& v : value.f) v = 0.25 + static_cast<double>(next() % 1000) / 250;  // positive: roots and logarithms
    for (int64_t& v : value.i) v = type->dtype.is_bool() ? next() % 2 : next() % 7;
    inputs[as<VarNode>(param)->name] = std::move(value);
  }
  return inputs;
}

// What the interpreter computes, where that is no more than it will hold, is the same before and after.
void expect_same_results(const Module& before, const Module& after) {
  auto inputs = make_inputs(before);
  if (!inputs) return;
  InterpretOptions options;
  options.module = &before;
  auto x = interpret(before, *inputs, options);
  if (!x.ok() && x.error().code == ErrorCode::kLimitExceeded) return;
  options.module = &after;
  auto y = interpret(after, *inputs, options);
  ASSERT_TRUE(x.ok()) << x.error().str();
  ASSERT_TRUE(y.ok()) << y.error().str();
  ASSERT_EQ(x->size(), y->size());
  for (size_t k = 0; k < x->size(); ++k) {
    const Value &a = (*x)[k], &b = (*y)[k];
    ASSERT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.i, b.i);
    for (size_t i = 0; i < a.f.size(); ++i) {
      if (std::isnan(a.f[i]) && std::isnan(b.f[i])) continue;
      if (a.f[i] == b.f[i]) continue;  // infinities
      double slack = 1e-5 * std::fabs(a.f[i]) + 1e-6;
      ASSERT_NEAR(a.f[i], b.f[i], slack) << "output " << k << ", element " << i;
    }
  }
}

class PassCase : public testing::TestWithParam<fs::path> {};

TEST_P(PassCase, GivesTheExpectedModule) {
  auto test = read_text_case(GetParam().string());
  ASSERT_TRUE(test.ok()) << test.error().str();
  Status sound = verify_module(test->input);
  // InferType is what makes modules with untyped parts verifiable.
  bool untyped = !test->passes.empty() && test->passes[0] == "InferType";
  ASSERT_TRUE(untyped || sound.ok()) << sound.error().str();
  for (const std::string& pass : test->passes) test->context.required.insert(pass);
  auto result = run_passes(test->input, test->passes, test->context);
  if (!test->error.empty()) {
    ASSERT_FALSE(result.ok()) << "an error was expected";
    EXPECT_NE(result.error().str().find(test->error), std::string::npos) << result.error().str();
    return;
  }
  ASSERT_TRUE(result.ok()) << result.error().str();
  bool recursive = GetParam().stem() == "inline";  // calls itself without end: not to be run
  if (!untyped && !recursive && test->same_outputs) expect_same_results(test->input, *result);
  std::string actual = trimmed(text_with_constants(*result));
  bool changed = std::any_of(test->context.log.begin(), test->context.log.end(), [](auto& r) { return r.changed; });
  if (!changed) actual = "unchanged";
  if (actual != test->expected && std::getenv("TW_UPDATE_TESTS")) {
    std::string text = read_file(GetParam());
    size_t line_end = text.find('\n', text.find("// ----"));
    std::ofstream(GetParam()) << text.substr(0, line_end) << "\n" << actual << "\n";
    return;
  }
  EXPECT_EQ(actual, test->expected);
}

std::vector<fs::path> case_files() {
  std::vector<fs::path> out;
  for (auto& entry : fs::directory_iterator(fs::path(TW_SOURCE_DIR) / "tests/relay/passes"))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Text, PassCase, testing::ValuesIn(case_files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

// The pass each file tests exists and each pass of the table has a file: the table cannot grow untested.
TEST(PassTable, EveryPassHasATextTest) {
  std::string all;
  for (const fs::path& path : case_files()) {
    std::string text = read_file(path);
    all += text.substr(0, text.find("#[version"));
  }
  for (const Pass<Module>& pass : all_passes())
    EXPECT_NE(all.find(pass.info.name), std::string::npos) << pass.info.name << " has no file in tests/relay/passes";
}

// x: 0, add: 1, nn.relu: 2, their calls 4 and 3, the function 5, which has x as its parameter.
TEST(PassTable, CapturePostDfsIndexInSpans) {
  Expr x = make_var("x", tensor_type({3}, kFloat32));
  Expr relu = call("nn.relu", {x});
  PassContext context;
  auto out = run_passes(Module().with_main(make_function({x}, call("add", {x, relu}))), {"CapturePostDfsIndexInSpans"},
                        context);
  ASSERT_TRUE(out.ok()) << out.error().str();
  const auto* main = out->main_function();
  ASSERT_TRUE(main->span);
  EXPECT_EQ(*main->span, "index:5:-1");
  EXPECT_EQ(*main->body->span, "index:4:5");
  EXPECT_EQ(*main->params[0]->span, "index:0:5");
  const auto& args = as<CallNode>(main->body)->args;
  EXPECT_EQ(args[0], main->params[0]);
  EXPECT_EQ(*args[1]->span, "index:3:4");
}

TEST(PassTable, UserPassesTakePart) {
  Module module;
  Expr x = make_var("x", tensor_type({2}, kFloat32));
  module.functions["main"] = make_function({x}, x);
  std::vector<Pass<Module>> user = {
      {{"Square", 0, "multiplies the result by itself"}, [](const Module& m, PassContext&) -> Result<Module> {
         const auto* f = m.main_function();
         return m.with_main(make_function(f->params, call("multiply", {f->body, f->body})));
       }}};
  PassContext context;
  auto result = run_passes(module, {"Square"}, context, user);
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_TRUE(is_call_to(result->main_function()->body, "multiply"));
  EXPECT_FALSE(run_passes(module, {"Square"}, context).ok());
}

}  // namespace
}  // namespace tilewright::relay
