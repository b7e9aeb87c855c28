// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include "kernel_set.h"

namespace tilewright::topi::testing {

inline void expect_close(double actual, double expected, double scale, const std::string& where) {
  ASSERT_LE(std::abs(actual - expected), 1e-5 * scale + 2e-6 * std::abs(expected))
      << where << ": " << actual << " for " << expected;
}

}  // namespace tilewright::topi::testing
