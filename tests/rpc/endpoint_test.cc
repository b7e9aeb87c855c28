// SPDX-License-Identifier: Apache-2.0
// Both ends of a session in one process: calls, tensors, callbacks, and what a damaged or hostile other end sends.
#include "rpc/endpoint.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <thread>

#include "base/work_folder.h"
#include "rpc/session_files.h"
#include "tilewright/function.h"

namespace tilewright::rpc {
namespace {

using std::chrono::milliseconds;

class EndpointTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_function(
        "test.sum",
        [](Args args) -> Value {
          const DLTensor& t = args[0].tensor();
          const auto* data = reinterpret_cast<const float*>(static_cast<const char*>(t.data) + t.byte_offset);
          return Value(static_cast<double>(std::accumulate(data, data + t.shape[0], 0.0F)));
        },
        true);
    register_function(
        "test.call", [](Args args) -> Value { return args[0].function()(args[1].integer(), "text"); }, true);
    register_function(
        "test.echo",
        [](Args args) -> Value {
          std::vector<Value> items;
          for (size_t i = 0; i < args.size(); ++i) {
            if (args[i].kind() == TW_INT) items.emplace_back(args[i].integer());
            if (args[i].kind() == TW_FLOAT) items.emplace_back(args[i].number());
            if (args[i].kind() == TW_STR) items.emplace_back(args[i].string());
            if (args[i].kind() == TW_FUNCTION) items.emplace_back(args[i].function());
            if (args[i].kind() == TW_NULL) items.emplace_back();
          }
          return Value::list(std::move(items));
        },
        true);
    register_function(
        "test.fail", [](Args) -> Value { throw std::runtime_error("deliberately"); }, true);
  }
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    client_ = std::make_shared<Endpoint>(socket_channel(ends[0], milliseconds(5000)), kSessionStep);
    server_ = std::make_shared<Endpoint>(socket_channel(ends[1], milliseconds(5000)), 0);
    thread_ = std::thread([this] { served_ = server_->serve(); });
  }
  void TearDown() override {
    if (client_) client_->shutdown();
    if (thread_.joinable()) thread_.join();
  }
  Function find(const char* name) {
    auto found = client_->find(name);
    EXPECT_TRUE(found.ok() && *found) << name;
    return Function(*found);
  }
  Value remote_floats(const std::vector<float>& values) {
    const std::array<int64_t, 1> shape{static_cast<int64_t>(values.size())};
    auto made = client_->allocate({static_cast<DLDeviceType>(kSessionStep + kDLCPU), 0}, {kDLFloat, 32, 1}, shape, {});
    EXPECT_TRUE(made.ok()) << made.error().str();
    Value tensor = Value::adopt(made->release());
    EXPECT_TRUE(
        client_->copy_to(tensor.tensor(), {reinterpret_cast<const char*>(values.data()), values.size() * 4}).ok());
    return tensor;
  }

  std::shared_ptr<Endpoint> client_, server_;
  std::thread thread_;
  Status served_ = Ok{};
};

TEST_F(EndpointTest, CallsTakeAndGiveEveryKind) {
  EXPECT_FALSE(*client_->find("test.none"));
  const Function echo = find("test.echo");
  const Value all = echo(7, -0.5, "text", echo, nullptr, std::string(100'000, 'x'));
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].integer(), 7);
  EXPECT_EQ(all[1].number(), -0.5);
  EXPECT_EQ(all[2].string(), "text");
  EXPECT_EQ(all[3].function()(3)[0].integer(), 3);  // its own function came back
  EXPECT_TRUE(all[4].is_null());
  EXPECT_EQ(all[5].string().size(), 100'000u);
}

TEST_F(EndpointTest, ErrorsAreThoseOfTheOtherSide) {
  try {
    find("test.fail")();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 101);
    EXPECT_NE(std::string(e.what()).find("deliberately"), std::string::npos);
  }
  EXPECT_EQ(find("test.echo")(1).size(), 1u);
}

TEST_F(EndpointTest, CallbacksCallBackAgain) {
  const Function echo = find("test.echo"), call = find("test.call");
  int64_t seen = 0;
  const Function mine = Function::of([&](Args args) -> Value {
    seen = args[0].integer();
    return Value(echo(seen * 2, args[1].string())[0].integer() + 1);  // while the other side waits
  });
  EXPECT_EQ(call(mine, 20).integer(), 41);
  EXPECT_EQ(seen, 20);
  const Function wrong = Function::of([](Args) -> Value { throw std::runtime_error("from the client"); });
  try {
    call(wrong, 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("from the client"), std::string::npos);
  }
}

TEST_F(EndpointTest, TensorsLieThere) {
  const Value tensor = remote_floats({1, 2, 3, 4.5F});
  EXPECT_EQ(find("test.sum")(tensor).number(), 10.5);
  std::vector<float> back(4);
  ASSERT_TRUE(client_->copy_from(tensor.tensor(), {reinterpret_cast<char*>(back.data()), 16}).ok());
  EXPECT_EQ(back, (std::vector<float>{1, 2, 3, 4.5F}));
  // A part of it; more than it has; another session's.
  DLTensor part = tensor.tensor();
  int64_t two = 2;
  part.shape = &two;
  part.byte_offset = 8;
  ASSERT_TRUE(client_->copy_from(part, {reinterpret_cast<char*>(back.data()), 8}).ok());
  EXPECT_EQ(back[1], 4.5F);
  part.byte_offset = 12;
  EXPECT_EQ(client_->copy_from(part, {reinterpret_cast<char*>(back.data()), 8}).error().code,
            ErrorCode::kInvalidArgument);
  part.byte_offset = ~uint64_t{0} - 3;
  EXPECT_EQ(client_->copy_to(part, {reinterpret_cast<char*>(back.data()), 8}).error().code,
            ErrorCode::kInvalidArgument);
  part = tensor.tensor();
  part.data = reinterpret_cast<void*>(uint64_t{0x7fffdeadbeef});
  EXPECT_EQ(client_->copy_from(part, {reinterpret_cast<char*>(back.data()), 16}).error().code,
            ErrorCode::kInvalidArgument);
  part.device.device_type = kDLCPU;
  EXPECT_EQ(client_->copy_to(part, {reinterpret_cast<char*>(back.data()), 16}).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(find("test.sum")(tensor).number(), 10.5);  // the session is in step
}

TEST_F(EndpointTest, MemoryThatIsNotThere) {
  const std::array<int64_t, 1> shape{int64_t{1} << 44};
  const DLDevice cpu{static_cast<DLDeviceType>(kSessionStep + kDLCPU), 0},
      cuda{static_cast<DLDeviceType>(kSessionStep + kDLCUDA), 0};
  EXPECT_EQ(client_->allocate(cpu, {kDLFloat, 64, 1}, shape, {}).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(client_->allocate(cuda, {kDLFloat, 32, 1}, {}, {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(client_->attribute(cpu, 0)->get().as.i, 1);
  EXPECT_EQ(client_->attribute(cuda, 0)->get().as.i, 0);
}

// What one end says that is no client of ours: bytes to a server, the answer, and how the session ends.
class HostileTest : public EndpointTest {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    raw_ = socket_channel(ends[0], milliseconds(2000));
    server_ = std::make_shared<Endpoint>(socket_channel(ends[1], milliseconds(5000)), 0);
    auto folder = WorkFolder::temporary("hostile_test");
    folder_ = std::make_unique<WorkFolder>(std::move(*folder));
    const auto files = *SessionFiles::open(folder_->path());
    ASSERT_TRUE(register_session_functions(files).ok());
    server_->take_uploads(
        [files](const std::string& name, uint64_t bytes, const auto& read) { return files->write(name, bytes, read); });
    thread_ = std::thread([this] {
      served_ = server_->serve();
      server_.reset();
    });
  }
  void TearDown() override {
    raw_->close();
    thread_.join();
  }
  // The error in the answer to `bytes`.
  Diagnostic refused(std::string_view bytes) {
    static_cast<void>(raw_->write(bytes).ok());
    uint64_t size = 0;
    int32_t code = 0;
    if (!raw_->read({reinterpret_cast<char*>(&size), 8}).ok() || !raw_->read({reinterpret_cast<char*>(&code), 4}).ok())
      return {};
    EXPECT_EQ(code, static_cast<int32_t>(Code::kException));
    std::string body(size - 4, '\0');
    EXPECT_TRUE(raw_->read(body).ok());
    ByteReader in(std::as_bytes(std::span(body)));
    const auto values = *read_values(in);
    return error_from(values.at(0).text);
  }
  std::unique_ptr<Channel> raw_;
  std::unique_ptr<WorkFolder> folder_;
};

TEST_F(HostileTest, AFrameThatIsTooLongEndsTheSession) {
  EXPECT_EQ(refused(frame_head(Code::kGetGlobalFunction, kMaxFrame + 1)).code, ErrorCode::kProtocolError);
  EXPECT_EQ(refused(frame(Code::kShutdown, std::string_view())).code, ErrorCode::kInternal);  // nobody answers
}

TEST_F(HostileTest, ALengthNobodyHasEndsTheSession) {
  EXPECT_EQ(refused(std::string(12, '\xff')).code, ErrorCode::kProtocolError);
}

TEST_F(HostileTest, UnknownRequestsEndTheSession) {
  EXPECT_EQ(refused(frame(static_cast<Code>(77), std::vector<WireValue>{})).code, ErrorCode::kProtocolError);
}

TEST_F(HostileTest, NumbersThatNobodyGaveAreErrorsAndNoMore) {
  ByteWriter call;
  call.write(uint64_t{0x41414141});
  write_values(call, std::vector<WireValue>{});
  EXPECT_EQ(refused(frame(Code::kCallFunction, call.str())).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(frame(Code::kFreeHandle, std::vector{WireValue::of_handle(9), WireValue::of(10)})).code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      refused(frame(Code::kFreeData, std::vector{WireValue::of_device({kDLCPU, 0}), WireValue::of_handle(9)})).code,
      ErrorCode::kInvalidArgument);
  ByteWriter copy;
  write_tensor(copy, {5, {kDLCPU, 0}, {kDLFloat, 32, 1}, {4}, 0});
  copy.write(uint64_t{16});
  EXPECT_EQ(refused(frame(Code::kCopyFromRemote, copy.str())).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(frame(Code::kCopyToRemote, copy.str() + std::string(16, 'x'))).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(frame(Code::kCopyToRemote, copy.str() + std::string(15, 'x'))).code, ErrorCode::kProtocolError);
}

}  // namespace
}  // namespace tilewright::rpc
