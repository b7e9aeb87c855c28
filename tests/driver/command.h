// SPDX-License-Identifier: Apache-2.0
// The verbs of the command line that need the compiler, run in this process.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tilewright/compiler.h"

namespace tilewright::testing {

struct Said {
  int code;
  std::string out, error;
};

inline Said command(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"tilewright"};
  for (const auto& w : words) argv.push_back(w.c_str());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Said said{tw_compiler_main(static_cast<int>(argv.size()), argv.data()), {}, {}};
  std::fflush(stdout);
  said.out = ::testing::internal::GetCapturedStdout();
  said.error = ::testing::internal::GetCapturedStderr();
  return said;
}

}  // namespace tilewright::testing
