// SPDX-License-Identifier: Apache-2.0
// Pictures of tests/data/pictures, all of the same two patterns, in every format; damaged ones and those that claim too
// much.
#include "pictures/picture.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "test_folders.h"

namespace tilewright::pictures {
namespace {

std::vector<uint8_t> bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(TW_TEST_DATA "/pictures")) out.push_back(entry.path());
  return out;
}
std::vector<uint8_t> bytes_of_text(const std::string& text) { return {text.begin(), text.end()}; }

// How far the picture is from its pattern at most: smooth ones (24x32) are lossy, the others (5x7) are not.
int distance(Picture* p, bool smooth, bool grey) {
  int most = 0;
  for (int64_t y = 0; y < p->height; ++y)
    for (int64_t x = 0; x < p->width; ++x) {
      const int64_t red = smooth ? x * 8 : x * 40;
      const int64_t want[] = {red, grey ? red : smooth ? y * 10 : y * 60, grey ? red : (x + y) * (smooth ? 4 : 20)};
      for (int c = 0; c < 3; ++c) most = std::max(most, std::abs(static_cast<int>(want[c]) - p->at(y, x)[c]));
    }
  return most;
}

TEST(Pictures, EveryFormatGivesThePattern) {
  int decoded_files = 0;
  for (const auto& file : files()) {
    const std::string name = file.filename().string();
    const auto bytes = bytes_of(file);
    Decoded decoded = decode(bytes);
    if (decoded.missing) {
      std::printf("%s: not decoded without %s\n", name.c_str(), decoded.missing);
      continue;
    }
    ASSERT_TRUE(decoded.picture) << name;
    const bool smooth = name.starts_with("smooth"), grey = name.find("grey") != std::string::npos;
    EXPECT_EQ(decoded.picture->height, smooth ? 24 : 5) << name;
    EXPECT_EQ(decoded.picture->width, smooth ? 32 : 7) << name;
    EXPECT_LE(distance(&*decoded.picture, smooth, grey), smooth ? 24 : 0) << name;
    ++decoded_files;
  }
  EXPECT_GE(decoded_files, 6);  // BMP and PNM, wherever this runs
}

TEST(Pictures, PrefixesAreNoPicturesOrWholeOnes) {
  for (const auto& file : files()) {
    const auto bytes = bytes_of(file);
    for (size_t n = 0; n < bytes.size(); n += n < 100 ? 1 : 17) {
      // A copy of its own, so that a sanitizer sees a read beyond its end.
      const std::vector<uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      const Decoded decoded = decode(part);
      if (!decoded.picture) continue;
      const auto pixels = static_cast<size_t>(decoded.picture->height * decoded.picture->width);
      EXPECT_EQ(decoded.picture->pixels.size(), pixels * 3);
    }
  }
}

TEST(Pictures, ClaimsAreHeldAgainstTheBytes) {
  for (const char* text :
       {"P6 60000 60000 255\n", "P6 7 5 0\nxxx", "P6 7 5 65536\nxxx", "P4 8 2 \xff", "P3 2 1 255 1 2 3", "P1 2 2 1 0 1",
        "P7 1 1", "P6 -1 1 255 ", "P2 1 1 255 99999999999999999999"})
    EXPECT_FALSE(decode(bytes_of_text(text)).picture) << text;
  EXPECT_FALSE(decode({}).picture);
  EXPECT_FALSE(decode(bytes_of_text("nothing that is a picture")).picture);
}

TEST(Pictures, BitmapsOfText) {
  const Decoded bits = decode(bytes_of_text("P1\n# rows\n3 2\n101\n0 1 0\n"));
  ASSERT_TRUE(bits.picture);
  const int want[] = {0, 255, 0, 255, 0, 255};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(bits.picture->pixels[3 * i], want[i]);
  const Decoded wide = decode(bytes_of_text(std::string("P5 2 1 65535 \x80\x80\xff\xff", 17)));
  ASSERT_TRUE(wide.picture);
  EXPECT_EQ(wide.picture->pixels[0], 128);
  EXPECT_EQ(wide.picture->pixels[3], 255);
}

// Runs of 8 bits: two of colour 1, the end of the row, one plain triple, the end.
TEST(Pictures, BitmapsOfRuns) {
  auto little = [](uint32_t v, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += static_cast<char>(v >> (8 * i));
    return out;
  };
  const std::string palette =
      std::string(4, '\0') + std::string("\x10\x20\x30\0", 4) + std::string("\x01\x02\x03\0", 4);
  const std::string runs("\2\1\0\0\0\3\2\1\2\0\0\1", 12);
  const std::string file = "BM" + little(78, 4) + little(0, 4) + little(66, 4) + little(40, 4) + little(3, 4) +
                           little(2, 4) + little(1, 2) + little(8, 2) + little(1, 4) + little(12, 4) +
                           std::string(16, '\0') + palette + runs;
  Decoded decoded = decode(bytes_of_text(file));
  ASSERT_TRUE(decoded.picture);
  EXPECT_EQ(decoded.picture->at(1, 1)[0], 0x30);  // rows go up
  EXPECT_EQ(decoded.picture->at(1, 2)[0], 0);
  EXPECT_EQ(decoded.picture->at(0, 0)[2], 1);
  EXPECT_EQ(decoded.picture->at(0, 1)[2], 0x10);
}

}  // namespace
}  // namespace tilewright::pictures
