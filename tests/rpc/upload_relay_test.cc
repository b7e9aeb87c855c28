// SPDX-License-Identifier: Apache-2.0
// Whatever a client says comes out as it went in, whichever way it was cut, but for long files, which come as files.
#include "rpc/upload_relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "rpc/wire.h"

namespace tilewright::rpc {
namespace {

// What a client says, cut by chance.
class Cut : public Channel {
 public:
  Cut(std::string said, uint64_t seed) : said_(std::move(said)), random_(seed) {}
  Result<size_t> read_some(std::span<char> out) override {
    if (at_ == said_.size()) return connection_lost("the end");
    const size_t most = random_() % 4 == 0 ? 1 + random_() % 9 : 1 + random_() % 300'000;
    const size_t n = std::min({most, out.size(), said_.size() - at_});
    std::copy_n(said_.data() + at_, n, out.data());
    at_ += n;
    return n;
  }
  Status write(std::string_view) override { return Ok{}; }
  void finish() override {}
  void close() override {}

 private:
  std::string said_;
  size_t at_ = 0;
  std::mt19937_64 random_;
};

std::string upload(const std::string& name, const std::string& content, uint64_t handle = 7) {
  ByteWriter out;
  out.write(handle);
  write_values(out, std::vector{WireValue::of_text(name), WireValue::of_text(content, TW_BYTES)});
  return frame(Code::kCallFunction, out.str());
}

std::string some_bytes(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string out(n, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

struct Heard {
  std::string bytes;               // files as their frames
  std::vector<std::string> files;  // what they hold
};

// Frames that came, the files' contents read from their descriptors.
Heard relay(const std::string& said, uint64_t seed, const std::string& folder) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Heard heard;
  const auto session = descriptor_channel(ends[1]);
  std::thread reader([&] {
    std::vector<char> part(100'000);
    for (;;) {
      auto n = session->read_some(part);
      if (!n.ok()) break;
      heard.bytes.append(part.data(), *n);
      for (int file = session->take_descriptor(); file >= 0; file = session->take_descriptor()) {
        std::string content;
        char some[65536];
        for (ssize_t got = ::read(file, some, sizeof some); got > 0; got = ::read(file, some, sizeof some))
          content.append(some, static_cast<size_t>(got));
        ::close(file);
        heard.files.push_back(std::move(content));
      }
    }
  });
  const auto to = socket_channel(ends[0]);
  Cut from(said, seed);
  UploadRelay(from, *to, ends[0], folder).run();
  to->finish();
  reader.join();
  return heard;
}

std::string uploaded(const std::string& name, uint64_t bytes, uint64_t handle = 7) {
  ByteWriter out;
  out.write(handle);
  out.write(bytes);
  out.write_string(name);
  return frame(Code::kUploaded, out.str());
}

TEST(UploadRelay, OnlyLongFilesAreTaken) {
  const std::string folder = ::testing::TempDir();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    std::string said, expected;
    std::vector<std::string> files;
    for (int i = 0; i < 6; ++i) {
      const std::string content = some_bytes(random() % 3 == 0 ? random() % 900'000 : random() % 2000, seed + i);
      const std::string name = random() % 4 == 0 ? "" : std::string(random() % 200, 'n');
      switch (random() % 5) {
        case 0:  // an empty frame, a frame of another kind
          said += std::string(8, '\0') + frame(Code::kCopyToRemote, content);
          expected += std::string(8, '\0') + frame(Code::kCopyToRemote, content);
          break;
        case 1: {  // other arguments
          ByteWriter out;
          out.write(uint64_t{7});
          write_values(out, std::vector{WireValue::of(3), WireValue::of_text(content, TW_BYTES)});
          said += frame(Code::kCallFunction, out.str());
          expected += frame(Code::kCallFunction, out.str());
          break;
        }
        default: {
          const std::string whole = upload(name, content);
          said += whole;
          const bool is_long = whole.size() - sizeof(uint64_t) >= (256 << 10);
          expected += is_long ? uploaded(name, content.size()) : whole;
          if (is_long) files.push_back(content);
        }
      }
    }
    const Heard heard = relay(said, seed, folder);
    ASSERT_EQ(heard.bytes.size(), expected.size()) << seed;
    EXPECT_TRUE(heard.bytes == expected) << seed;
    EXPECT_TRUE(heard.files == files) << seed;
  }
}

TEST(UploadRelay, LengthsThatLieGoOnAsTheyAre) {
  const std::string folder = ::testing::TempDir();
  std::string whole = upload("n", some_bytes(300'000, 1));
  for (const size_t place : {size_t{0}, size_t{12 + 8}, size_t{12 + 20}, size_t{12 + 29}}) {
    std::string wrong = whole;
    wrong[place] = static_cast<char>(wrong[place] + 1);
    const Heard heard = relay(wrong, place, folder);
    EXPECT_TRUE(heard.bytes == wrong) << place;
    EXPECT_TRUE(heard.files.empty()) << place;
  }
  for (const uint64_t bytes : {~uint64_t{0}, uint64_t{1} << 40}) {
    std::string endless(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    endless += whole;
    EXPECT_TRUE(relay(endless, 1, folder).bytes == endless);
  }
  // A client that ends in the middle: the session sees that the file is not whole.
  const Heard cut = relay(whole.substr(0, 200'000), 3, folder);
  EXPECT_TRUE(cut.bytes == uploaded("n", 300'000));
  ASSERT_EQ(cut.files.size(), 1U);
  EXPECT_EQ(cut.files[0].size(), 200'000U - 49);
}

TEST(UploadRelay, AFolderThatIsGone) {
  const std::string whole = upload("n", some_bytes(300'000, 1));
  EXPECT_TRUE(relay(whole, 1, "/nonexistent").bytes == whole);
}

}  // namespace
}  // namespace tilewright::rpc
