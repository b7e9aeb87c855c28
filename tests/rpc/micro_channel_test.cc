// SPDX-License-Identifier: Apache-2.0
#include "rpc/micro_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tilewright::rpc {
namespace {

std::vector<std::string> packets_in(std::string_view bytes, size_t most = 1 << 20) {
  PacketReader reader(most);
  std::vector<std::string> out;
  for (const char c : bytes)
    if (reader.take(c)) out.push_back(reader.payload());
  return out;
}

TEST(MicroChannel, ChecksumIsCcitt) { EXPECT_EQ(packet_crc("123456789"), 0x29b1); }

TEST(MicroChannel, PacketsComeBackAmongNoise) {
  std::string all(256, '\0'), line = "noise\xff\xfe";
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
  line += make_packet(all) + "\xff\xfe" + make_packet("") + "more" + make_packet("\xff\xff\xfd");
  EXPECT_EQ(packets_in(line), (std::vector<std::string>{all, "", "\xff\xff\xfd"}));
}

TEST(MicroChannel, DamagedPacketsAreDroppedAndTheNextIsRead) {
  const std::string good = make_packet("abcdef");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    const auto read = packets_in(bad + std::string(300, '\0') + good + good);
    ASSERT_FALSE(read.empty()) << "byte " << i;
    EXPECT_EQ(read.back(), "abcdef") << "byte " << i;
    for (const std::string& packet : read) EXPECT_EQ(packet, "abcdef") << "byte " << i;
  }
  EXPECT_TRUE(packets_in(make_packet(std::string(100, 'x')), 50).empty());
}

TEST(MicroChannel, ADeviceThatIsSilentOrGoneIsAnError) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  auto silent = micro_channel(ends[0], std::chrono::milliseconds(50), std::chrono::milliseconds(50));
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().code, ErrorCode::kTimeLimit);
  ::close(ends[1]);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ::close(ends[1]);
  auto gone = micro_channel(ends[0], std::chrono::milliseconds(2000), std::chrono::milliseconds(50));
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::kConnectionLost);
}

}  // namespace
}  // namespace tilewright::rpc
