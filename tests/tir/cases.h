// SPDX-License-Identifier: Apache-2.0
// Text tests of passes: a .tir file holds cases
//
//   == name of the case
//   func ...            what goes in
//   == becomes
//   func ...            what the pass makes of it
//
// TW_UPDATE_TESTS=1 in the environment rewrites the expected parts. Also here: running a function on seeded random
// memory.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <type_traits>

#include "test_folders.h"
#include "tir/interpret.h"
#include "tir/memory.h"
#include "tir/text.h"

namespace tilewright::tir {

struct TextCase {
  std::string name, input, expected;
};

inline std::string read_text_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::vector<TextCase> read_cases(const std::string& text) {
  std::vector<TextCase> cases;
  std::stringstream in(text);
  std::string line;
  std::string* part = nullptr;
  while (std::getline(in, line)) {
    if (line == "== becomes") {
      part = &cases.back().expected;
    } else if (line.rfind("== ", 0) == 0) {
      cases.push_back({line.substr(3), "", ""});
      part = &cases.back().input;
    } else if (part) {
      *part += line + "\n";
    }
  }
  return cases;
}

// The bytes of every parameter after running f on seeded memory, all threads in turn; empty if it fails (then `error`).
// `any_bytes`: whatever they are as numbers.
inline std::vector<std::vector<std::byte>> run_on_random(const PrimFunc& f, unsigned seed, std::string* error = nullptr,
                                                         int threads = 1, bool any_bytes = false) {
  std::mt19937 random(seed);
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pointers;
  for (const auto& p : f.params) {
    auto& bytes = memory.emplace_back(p->dtype.bytes_for(p->size) + 8);
    for (size_t i = 0; any_bytes && i < p->dtype.bytes_for(p->size); ++i) bytes[i] = static_cast<std::byte>(random());
    for (int64_t i = 0; !any_bytes && i < p->size * p->dtype.lanes; ++i) {
      Lane lane{};
      int value = static_cast<int>(random() % 17) - 8;
      if (p->dtype.is_float())
        lane.f = value * 0.25;
      else
        lane.i = p->dtype.is_bool() ? value & 1 : p->dtype.is_int() ? value : std::abs(value);
      write_lane(bytes.data(), p->dtype.element(), i, lane);
    }
    pointers.push_back(bytes.data());
  }
  for (int t = 0; t < threads; ++t) {
    Status s = interpret(f, pointers, t, threads);
    if (s.ok()) continue;
    if (error) *error = s.error().str();
    return {};
  }
  return memory;
}

// Runs each case of tests/tir/FILE: the text must match, and both functions must do the same to memory. The pass may
// take the case's name, too.
template <class Pass>
void check_cases(const std::string& file, const Pass& pass) {
  const std::string path = std::string(TW_SOURCE_DIR) + "/tests/tir/" + file;
  const std::string text = read_text_file(path);
  std::vector<TextCase> cases = read_cases(text);
  ASSERT_FALSE(cases.empty()) << path;
  std::string updated = text.substr(0, text.find("== "));
  for (const auto& c : cases) {
    SCOPED_TRACE(file + ": " + c.name);
    auto input = parse_func(c.input);
    ASSERT_TRUE(input.ok()) << input.error().str();
    PrimFunc output = [&] {
      if constexpr (std::is_invocable_v<Pass, PrimFunc, const std::string&>)
        return pass(*input, c.name);
      else
        return pass(*input);
    }();
    const std::string got = to_text(output);
    updated += "== " + c.name + "\n" + c.input + "== becomes\n" + got + "\n";
    if (!std::getenv("TW_UPDATE_TESTS")) {
      EXPECT_EQ(c.expected, got + "\n");
    }
    bool same_dtypes = true;  // else only the bytes can be the same
    for (size_t i = 0; i < output.params.size(); ++i)
      same_dtypes = same_dtypes && output.params[i]->dtype == input->params[i]->dtype;
    for (int threads : {1, 3}) {
      std::string error;
      auto before = run_on_random(*input, 7, &error, threads, !same_dtypes);
      ASSERT_TRUE(error.empty()) << error;
      auto after = run_on_random(output, 7, &error, threads, !same_dtypes);
      ASSERT_TRUE(error.empty()) << error << "\n" << got;
      EXPECT_EQ(before, after) << "the pass changed what the function computes\n" << got;
    }
  }
  if (std::getenv("TW_UPDATE_TESTS")) std::ofstream(path) << updated;
}

}  // namespace tilewright::tir
