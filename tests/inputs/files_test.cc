// SPDX-License-Identifier: Apache-2.0
// Tensor files: round trips, what numpy and ONNX write, and readers that survive damage.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "archive/check_sum.h"
#include "archive/zip.h"
#include "inputs/file.h"
#include "inputs/npy.h"
#include "inputs/picture.h"
#include "inputs/tensor_proto.h"

namespace tilewright::inputs {
namespace {

Tensor sample(DataType dtype, std::vector<int64_t> shape) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, static_cast<double>(i % 7));
  return t;
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

std::string npy(const std::string& header, const std::string& data) {
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += static_cast<char>(header.size());
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

TEST(Picture, ChannelsAreConvertedDeepAndHugeOnesRefused) {
  const std::string path = testing::TempDir() + "picture.pnm";
  auto load = [&](const std::string& bytes, const std::vector<int64_t>& shape) {
    EXPECT_TRUE(write_file(path, bytes_of(bytes)).ok());
    PictureOptions options;
    options.scale = 1;
    return load_picture(path, options, kFloat32, shape);
  };
  auto deep = load(std::string("P5 2 1 65535\n\x10\xff\x80\x01", 17), {1, 3, 1, 2});
  ASSERT_FALSE(deep.ok());
  EXPECT_NE(deep.error().str().find("16-bit"), std::string::npos) << deep.error().str();
  auto shallow = load(std::string("P5 2 1 255\n\x10\x80", 13), {1, 3, 1, 2});
  ASSERT_TRUE(shallow.ok()) << shallow.error().str();
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(shallow->as<float>()[2 * c], 0x10);
    EXPECT_EQ(shallow->as<float>()[2 * c + 1], 0x80);
  }
  auto grey = load(std::string("P6 1 1 255\n\x64\xc8\x32", 14), {1, 1, 1, 1});
  ASSERT_TRUE(grey.ok()) << grey.error().str();
  EXPECT_EQ(grey->as<float>()[0], (0x64 * 77 + 0xc8 * 150 + 0x32 * 29) >> 8);
  auto huge = load("P6 30000 30000 255\nabc", {1, 3, 8, 8});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code, ErrorCode::kLimitExceeded) << huge.error().str();
}

// The scan names a Huffman table that the file never defines: what is decoded, if anything, must not come from memory
// that the decoder never wrote.
TEST(Picture, AJpegWithoutItsTablesDoesNotReadWhatMemoryHeld) {
  const std::string path = testing::TempDir() + "tables.jpg";
  std::string jpeg("\xff\xd8\xff\xdb\0\x43\0", 7);
  jpeg += std::string(64, '\1');
  jpeg +=
      std::string("\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0", 23) + std::string(64, '\xa5');
  ASSERT_TRUE(write_file(path, bytes_of(jpeg)).ok());
  std::string first;
  for (uint32_t seed = 0; seed < 64; ++seed) {
    uint32_t state = seed * 2654435761u + 1;
    std::vector<std::unique_ptr<std::string>> held;  // the decoder's state is one block of 18 KB or so
    for (size_t size = 16 << 10; size < 24 << 10; size += 256) {
      held.push_back(std::make_unique<std::string>(size, '\0'));
      for (char& c : *held.back()) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    }
    held.clear();
    auto tensor = load_picture(path, {}, kFloat32, {1, 3, 8, 8});
    std::string now = tensor.ok()
                          ? std::string(reinterpret_cast<const char*>(tensor->as<float>().data()), tensor->bytes())
                          : tensor.error().str();
    if (seed == 0) first = now;
    ASSERT_EQ(now, first) << "with what memory held of seed " << seed;
  }
}

TEST(Npy, RoundTrips) {
  for (DataType dtype :
       {kFloat32, kFloat64, kFloat16, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64, kBool})
    for (const auto& shape : {std::vector<int64_t>{}, {5}, {2, 3, 4}, {0, 3}}) {
      Tensor t = sample(dtype, shape);
      auto bytes = write_npy(t);
      ASSERT_TRUE(bytes.ok());
      EXPECT_EQ(bytes->find('\n') % 64, 63u);
      auto back = read_npy(bytes_of(*bytes));
      ASSERT_TRUE(back.ok()) << back.error().str();
      EXPECT_TRUE(equal(t, *back)) << dtype.str() << " " << shape_str(shape);
    }
  EXPECT_FALSE(write_npy(sample({TypeCode::kInt, 4, 1}, {4})).ok());
}

TEST(Npy, ReadsOtherOrders) {
  auto swapped = read_npy(
      bytes_of(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", std::string("\0\1\1\0", 4))));
  ASSERT_TRUE(swapped.ok()) << swapped.error().str();
  EXPECT_EQ(swapped->at_int(0), 1);
  EXPECT_EQ(swapped->at_int(1), 256);
  auto columns = read_npy(bytes_of(npy("{'shape': (2, 3), 'fortran_order': True, \"descr\": '|u1'}", "\1\2\3\4\5\6")));
  ASSERT_TRUE(columns.ok()) << columns.error().str();
  const int expected[] = {1, 3, 5, 2, 4, 6};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(columns->at_int(i), expected[i]);
}

TEST(Npy, RefusesWhatItCannotHold) {
  auto code = [](const std::string& header, const std::string& data) {
    auto t = read_npy(bytes_of(npy(header, data)));
    return t.ok() ? ErrorCode::kInternal : t.error().code;
  };
  EXPECT_EQ(code("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "12345678"), ErrorCode::kUnsupportedModel);
  EXPECT_EQ(code("{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}", std::string(16, 'x')),
            ErrorCode::kUnsupportedModel);
  EXPECT_EQ(code("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"),
            ErrorCode::kUnsupportedModel);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "1234"), ErrorCode::kMalformedModel);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", "1234"),
            ErrorCode::kMalformedModel);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", "1234"),
            ErrorCode::kMalformedModel);
  EXPECT_EQ(code("{'descr': '<f4', 'shape': (1,)}", "1234"), ErrorCode::kMalformedModel);
  EXPECT_EQ(code("not a dictionary", "1234"), ErrorCode::kMalformedModel);
}

// Reads every truncation and many mutations: the answer does not matter, surviving does.
template <class F>
void damage(const std::string& bytes, F read) {
  std::mt19937 random(11);
  for (size_t n = 0; n < bytes.size(); n += 1 + n / 200) read(bytes.substr(0, n));
  for (int round = 0; round < 3000; ++round) {
    std::string d = bytes;
    for (int k = 0; k <= round % 4; ++k) d[random() % d.size()] = static_cast<char>(round % 2 ? random() : 0xff);
    read(d);
  }
}

TEST(Npy, SurvivesDamage) {
  auto bytes = write_npy(sample(kFloat32, {3, 4}));
  damage(*bytes, [](const std::string& s) { (void)read_npy(bytes_of(s)); });
}

TEST(Npz, RoundTripsAndSurvivesDamage) {
  NamedTensors tensors = {{"x", sample(kFloat32, {2, 3})}, {"a/b", sample(kInt64, {4})}};
  auto bytes = write_npz(tensors);
  ASSERT_TRUE(bytes.ok());
  auto back = read_npz(bytes_of(*bytes));
  ASSERT_TRUE(back.ok()) << back.error().str();
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[1].first, "a/b");
  EXPECT_TRUE(equal((*back)[0].second, tensors[0].second));
  EXPECT_TRUE(equal((*back)[1].second, tensors[1].second));
  EXPECT_EQ(*write_npz(tensors), *bytes);
  for (size_t n = 0; n < bytes->size(); ++n) EXPECT_FALSE(read_npz(bytes_of(bytes->substr(0, n))).ok()) << n;
  damage(*bytes, [](const std::string& s) { (void)read_npz(bytes_of(s)); });
}

TEST(Zip, ChecksSumsOfAnyLength) {
  std::vector<std::byte> data;
  for (uint32_t i = 0; i < 700; ++i) data.push_back(static_cast<std::byte>(i * i >> 3 ^ i * 131));
  for (size_t begin = 0; begin < 3; ++begin) {
    uint32_t state = 0xffffffffu;  // bit by bit
    for (size_t n = 0; begin + n <= data.size(); ++n) {
      EXPECT_EQ(archive::crc32_of(std::span(data).subspan(begin, n)), ~state) << n << " bytes";
      if (begin + n == data.size()) break;
      state ^= static_cast<uint32_t>(data[begin + n]);
      for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ (state & 1 ? 0xedb88320u : 0);
    }
  }
}

TEST(Zip, UnpacksDeflatedEntries) {
  std::string data;
  for (int i = 0; i < 5000; ++i) data += static_cast<char>(i % 50);
  auto stored = archive::write_zip({{"data", data}});
  ASSERT_TRUE(stored.ok());
  // The same archive with the entry deflated: patch method and packed size in both headers.
  std::string packed(compressBound(data.size()) + 16, '\0');
  z_stream z{};
  ASSERT_EQ(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(data.data()), z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data()), z.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.resize(z.total_out);
  deflateEnd(&z);
  std::string head = stored->substr(0, 34), tail = stored->substr(34 + data.size());
  auto put32 = [](std::string& s, size_t at, uint32_t v) { std::memcpy(s.data() + at, &v, 4); };
  head[8] = 8, put32(head, 18, static_cast<uint32_t>(packed.size()));
  tail[10] = 8, put32(tail, 20, static_cast<uint32_t>(packed.size()));
  put32(tail, tail.size() - 6, static_cast<uint32_t>(head.size() + packed.size()));
  std::string whole = head + packed + tail;
  auto entries = archive::read_zip(bytes_of(whole));
  ASSERT_TRUE(entries.ok()) << entries.error().str();
  EXPECT_EQ((*entries)[0].data, data);
  damage(whole, [](const std::string& s) { (void)archive::read_zip(bytes_of(s)); });
  // A claim to unpack to gigabytes is refused before anything is allocated.
  put32(tail, 24, 0xfffffff0);
  EXPECT_FALSE(archive::read_zip(bytes_of(head + packed + tail)).ok());
}

TEST(TensorProto, RoundTrips) {
  for (DataType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt8, kInt64, kUInt8, kBool,
                         DataType{TypeCode::kInt, 4, 1}, DataType{TypeCode::kFloat8E5M2, 8, 1}})
    for (const auto& shape : {std::vector<int64_t>{}, {5}, {2, 3}, {0}}) {
      Tensor t = sample(dtype, shape);
      auto bytes = write_tensor_proto("name", t);
      ASSERT_TRUE(bytes.ok());
      auto back = read_tensor_proto(bytes_of(*bytes));
      ASSERT_TRUE(back.ok()) << back.error().str();
      EXPECT_EQ(back->name, "name");
      EXPECT_TRUE(equal(back->tensor, t)) << dtype.str();
    }
  Tensor strings = Tensor::strings({2}, {"a", "bc"});
  auto back = read_tensor_proto(bytes_of(*write_tensor_proto("s", strings)));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->tensor.string_values()[1], "bc");
}

TEST(TensorProto, ReadsTypedFields) {
  // dims [2], type FLOAT, float_data packed [1, 2]
  std::string floats("\x08\x02\x10\x01\x22\x08\0\0\x80\x3f\0\0\0\x40", 14);
  auto t = read_tensor_proto(bytes_of(floats));
  ASSERT_TRUE(t.ok()) << t.error().str();
  EXPECT_EQ(t->tensor.at_double(1), 2);
  // dims [2], type INT64, int64_data [-1, 3] not packed
  std::string ints("\x08\x02\x10\x07\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x38\x03", 17);
  t = read_tensor_proto(bytes_of(ints));
  ASSERT_TRUE(t.ok()) << t.error().str();
  EXPECT_EQ(t->tensor.at_int(0), -1);
  EXPECT_EQ(t->tensor.at_int(1), 3);
  // type FLOAT16 with bits in int32_data: 0x3c00 is 1
  std::string half("\x10\x0a\x28\x80\x78", 5);
  t = read_tensor_proto(bytes_of(half));
  ASSERT_TRUE(t.ok()) << t.error().str();
  EXPECT_EQ(t->tensor.at_double(0), 1);
}

TEST(TensorProto, RefusesAndSurvivesDamage) {
  EXPECT_FALSE(read_tensor_proto(bytes_of(std::string("\x08\x02\x10\x01", 4))).ok());                  // no data
  EXPECT_FALSE(read_tensor_proto(bytes_of(std::string("\x10\x63", 2))).ok());                          // type 99
  EXPECT_FALSE(read_tensor_proto(bytes_of(std::string("\x08\xff\xff\xff\xff\x7f\x10\x01", 8))).ok());  // huge, no data
  EXPECT_FALSE(read_tensor_proto(bytes_of(std::string("\x10\x01\x70\x01", 4))).ok());                  // external
  auto bytes = write_tensor_proto("name", sample(kFloat32, {3, 4}));
  damage(*bytes, [](const std::string& s) { (void)read_tensor_proto(bytes_of(s)); });
  std::string typed("\x08\x02\x10\x01\x22\x08\0\0\x80\x3f\0\0\0\x40", 14);
  damage(typed, [](const std::string& s) { (void)read_tensor_proto(bytes_of(s)); });
}

}  // namespace
}  // namespace tilewright::inputs
