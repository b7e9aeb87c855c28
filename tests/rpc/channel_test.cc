// SPDX-License-Identifier: Apache-2.0
// Connections between two ends of one process: whole messages, a peer that closes, one that is silent.
#include "rpc/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <thread>

namespace tilewright::rpc {
namespace {

using std::chrono::milliseconds;

class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    a_ = socket_channel(ends[0], milliseconds(200));
    b_ = socket_channel(ends[1], milliseconds(200));
  }
  std::unique_ptr<Channel> a_, b_;
};

TEST_F(ChannelTest, CarriesMoreThanABufferHolds) {
  const std::string sent(5'000'000, 'x');
  std::string read(sent.size(), ' ');
  std::thread writer([&] { EXPECT_TRUE(a_->write(sent).ok()); });
  EXPECT_TRUE(b_->read(read).ok());
  writer.join();
  EXPECT_EQ(read, sent);
}

TEST_F(ChannelTest, APeerThatGoesIsAnErrorOnBothWays) {
  EXPECT_TRUE(a_->write("half").ok());
  a_.reset();
  std::string read(8, ' ');
  EXPECT_EQ(b_->read(read).error().code, ErrorCode::kConnectionLost);
  EXPECT_EQ(b_->write("more").error().code, ErrorCode::kConnectionLost);  // and no signal
}

TEST_F(ChannelTest, ASilentPeerIsAnErrorInTime) {
  const auto start = std::chrono::steady_clock::now();
  std::string read(1, ' ');
  EXPECT_EQ(b_->read(read).error().code, ErrorCode::kTimeLimit);
  EXPECT_EQ(a_->write(std::string(50'000'000, 'x')).error().code, ErrorCode::kTimeLimit);  // nobody reads
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(2000));
}

TEST_F(ChannelTest, ClosingWakesAReaderInAnotherThread) {
  std::string read(1, ' ');
  std::thread closer([&] { b_->close(); });
  EXPECT_EQ(b_->read(read).error().code, ErrorCode::kConnectionLost);
  closer.join();
}

}  // namespace
}  // namespace tilewright::rpc
