// SPDX-License-Identifier: Apache-2.0
// The bytes of sessions: every frame of a recorded session of the classic stack is read and written again, byte for
// byte.
#include "rpc/wire.h"

#include <gtest/gtest.h>

#include <random>

#include "rpc/recorded.h"

namespace tilewright::rpc {
namespace {

// The frames of the recorded session, without the two chunks of its handshake.
std::vector<std::string> recorded_frames() {
  std::vector<std::string> frames;
  for (const testing::Chunk& chunk : testing::recorded("session_direct.jsonl")) frames.push_back(chunk.bytes);
  EXPECT_GT(frames.size(), 100u);
  frames.erase(frames.begin(), frames.begin() + 2);
  return frames;
}

ByteReader reader(std::string_view bytes) { return ByteReader(std::as_bytes(std::span(bytes))); }

// The frame, read to values and written again; only what is raw data is copied.
std::string again(const std::string& bytes) {
  ByteReader in = reader(bytes);
  EXPECT_EQ(in.read<uint64_t>(), bytes.size() - sizeof(uint64_t));
  const auto code = static_cast<Code>(in.read<int32_t>());
  ByteWriter body;
  switch (code) {
    case Code::kInitServer: {
      body.write_string(in.read_string());
      auto values = read_values(in);
      EXPECT_TRUE(values.ok());
      write_values(body, *values);
      break;
    }
    case Code::kCallFunction: {
      body.write(in.read<uint64_t>());
      auto values = read_values(in);
      EXPECT_TRUE(values.ok()) << values.error().str();
      write_values(body, *values);
      break;
    }
    case Code::kCopyFromRemote:
    case Code::kCopyToRemote: {
      auto tensor = read_tensor(in);
      EXPECT_TRUE(tensor.ok());
      const auto size = in.read<uint64_t>();
      EXPECT_EQ(size, *byte_size(*tensor));
      write_tensor(body, *tensor);
      body.write(size);
      if (code == Code::kCopyToRemote) body.write_bytes(in.take(size).data(), size);
      break;
    }
    case Code::kCopyAck:
      return frame(code, std::string_view(bytes).substr(kFrameHead));
    default: {
      auto values = read_values(in);
      EXPECT_TRUE(values.ok()) << values.error().str();
      return frame(code, *values);
    }
  }
  return frame(code, body.str());
}

TEST(Wire, WritesARecordedSessionAgain) {
  size_t number = 0;
  for (const std::string& bytes : recorded_frames()) {
    EXPECT_EQ(again(bytes), bytes) << "frame " << number;
    ++number;
  }
}

TEST(Wire, ReadsWhatTheRecordedSessionSays) {
  const auto frames = recorded_frames();
  ByteReader init = reader(std::string_view(frames[0]).substr(kFrameHead));
  EXPECT_EQ(init.read_string(), kVersion);
  ByteReader name = reader(std::string_view(frames[2]).substr(kFrameHead));
  EXPECT_EQ(read_values(name)->at(0).text, "tvm.rpc.server.upload");
}

TEST(Wire, RefusesPartsAndStrays) {
  std::mt19937 random(1);
  for (const std::string& bytes : recorded_frames()) {
    const std::string_view body = std::string_view(bytes).substr(kFrameHead);
    // Every shorter sequence lacks something; every longer one has too much.
    ByteReader whole = reader(body);
    if (!read_values(whole).ok()) continue;
    ByteReader part = reader(body.substr(0, random() % body.size()));
    auto values = read_values(part);
    ASSERT_FALSE(values.ok());
    EXPECT_EQ(values.error().code, ErrorCode::kProtocolError);
    const std::string more = std::string(body) + '\0';
    ByteReader stray = reader(more);
    EXPECT_FALSE(read_values(stray).ok());
  }
}

void expect_refused(const WireValue& value) {
  ByteWriter out;
  write_values(out, std::span(&value, 1));
  ByteReader in = reader(out.str());
  auto values = read_values(in);
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.error().code, ErrorCode::kProtocolError);
}

TEST(Wire, RefusesWhatCannotBeSent) {
  for (const int32_t kind : {int32_t{TW_NDARRAY}, 2000, -1}) expect_refused(WireValue::of_handle(1, kind));
  WireValue deep;
  for (int i = 0; i < 10; ++i) {
    WireValue outer;
    outer.kind = TW_ARRAY;
    outer.items.push_back(deep);
    deep = outer;
  }
  expect_refused(deep);
  WireTensor tensor;
  tensor.shape.assign(33, 1);
  expect_refused(WireValue::of_tensor(tensor));
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{-1}, {int64_t{1} << 40, int64_t{1} << 40}}) {
    tensor.shape = shape;
    EXPECT_FALSE(byte_size(tensor).ok());
  }
}

TEST(Wire, RefusesCountsThatNothingFollows) {
  for (const int32_t count : {-1, 4097, 1 << 30}) {
    ByteWriter out;
    out.write(count);
    ByteReader in = reader(out.str());
    EXPECT_FALSE(read_values(in).ok());
  }
}

TEST(Wire, ListsKeepTheirItems) {
  WireValue list, inner;
  list.kind = inner.kind = TW_ARRAY;
  inner.items = {WireValue::of(7), WireValue::of_text("x"), WireValue()};
  WireTensor tensor{5, {kDLCPU, 0}, {kDLFloat, 16, 1}, {2, 3}, 8};
  list.items = {inner, WireValue::of_device({kDLCPU, 2}), WireValue::of_tensor(tensor)};
  ByteWriter out;
  write_values(out, std::span(&list, 1));
  ByteReader in = reader(out.str());
  auto values = read_values(in);
  ASSERT_TRUE(values.ok()) << values.error().str();
  const WireValue& read = values->at(0);
  ASSERT_EQ(read.items.size(), 3u);
  EXPECT_EQ(read.items[0].items[0].integer, 7);
  EXPECT_EQ(read.items[0].items[1].text, "x");
  EXPECT_EQ(read.items[0].items[2].kind, TW_NULL);
  EXPECT_EQ(read.items[1].device.device_id, 2);
  EXPECT_EQ(*byte_size(read.items[2].tensor), 12u);
  EXPECT_EQ(read.items[2].tensor.byte_offset, 8u);
}

TEST(Wire, ErrorsKeepTheirNumberAndAdvice) {
  const Diagnostic sent(ErrorCode::kShapeMismatch, "input 'x' is 2x2", "model", "give 4x4");
  const Diagnostic read = error_from(error_text(sent));
  EXPECT_EQ(read.code, ErrorCode::kShapeMismatch);
  EXPECT_EQ(read.message, "model: input 'x' is 2x2");
  EXPECT_EQ(read.hint, "give 4x4");
  for (const char* odd : {"", "something broke", "error[E", "error[E777 Odd]: x", "error[E505]"})
    EXPECT_EQ(error_from(odd).code, ErrorCode::kRemoteError) << odd;
}

}  // namespace
}  // namespace tilewright::rpc
