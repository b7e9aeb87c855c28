// SPDX-License-Identifier: Apache-2.0
#include "base/byte_order.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(ByteOrder, FilesAreRefusedAsAWhole) {
  EXPECT_TRUE(check_byte_order("the file of weights", std::endian::little).ok());
  const Status refused = check_byte_order("the file of weights", std::endian::big);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCpuMismatch);
  EXPECT_EQ(refused.error().message, "the file of weights is little-endian, and this machine is big-endian");
}

}  // namespace
}  // namespace tilewright
