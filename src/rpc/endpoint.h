// SPDX-License-Identifier: Apache-2.0
// One end of a session. Both ends are alike: each may ask (find, call, copy) and each serves what the other asks, also
// while it waits for an answer, which is how callbacks run. Functions, modules and tensors of the other side are
// numbers here, wrapped as functions, modules and tensors of the runtime that send each call across.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rpc/channel.h"
#include "rpc/handle_table.h"
#include "rpc/values.h"
#include "rpc/wire.h"

namespace tilewright::rpc {

// A device of the other end is the same type there, plus this for each session before it in the table of sessions.
inline constexpr int32_t kSessionStep = 128;
inline constexpr std::string_view kUpload = "tvm.rpc.server.upload";

class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  // Takes a file whose bytes are still coming: `read` fills what it is given. Refusing must not read.
  using Upload = std::function<Status(const std::string& name, uint64_t bytes,
                                      const std::function<Status(std::span<char>)>& read)>;

  // `step`: what devices of the other end have more than they have there; 0 on the side that serves a session.
  Endpoint(std::unique_ptr<Channel> channel, int32_t step) : channel_(std::move(channel)), step_(step) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  // ---- asking. Errors: what the other side reported; ConnectionLost, TimeLimit, ProtocolError.
  Status start(std::span<const std::string> constructor);
  // A function by its global name; empty when there is none.
  Result<tw_function*> find(std::string_view name);
  Result<OwnedValue> call(uint64_t function, std::span<const tw_value> args);
  // A tensor of the other side as a value of ours, which frees it. `scope` may be empty.
  Result<OwnedValue> allocate(DLDevice device, DLDataType dtype, std::span<const int64_t> shape,
                              std::string_view scope);
  Status copy_to(const DLTensor& remote, std::span<const char> bytes);
  // Frames of the other end are short: copies go in pieces of so many bytes.
  void copies_at_most(uint64_t bytes) { most_copied_ = bytes; }
  Status copy_from(const DLTensor& remote, std::span<char> bytes);
  Status copy_among(const DLTensor& from, const DLTensor& to);
  Status sync(DLDevice device);
  Result<OwnedValue> attribute(DLDevice device, int64_t kind);
  // Ends the session; later calls fail.
  void shutdown();
  int32_t step() const { return step_; }
  // When the server ends the session; what is lost after that is a matter of time.
  void ends_at(std::chrono::steady_clock::time_point end) { end_ = end; }

  // ---- serving
  // Takes a file that is here, open, and closed by who calls.
  using Adopt = std::function<Status(const std::string& name, uint64_t bytes, int file)>;
  void take_uploads(Upload upload, Adopt adopt = {}) { upload_ = std::move(upload), adopt_ = std::move(adopt); }
  // Until the other side ends the session. Errors: ConnectionLost, ProtocolError, TimeLimit.
  Status serve();

 private:
  struct Lent;  // arguments as values of the runtime, with what they need
  struct Wire;  // values of the runtime as those of a frame
  using Guard = std::unique_lock<std::recursive_mutex>;

  // endpoint.cc: frames.
  struct Head {
    uint64_t body = 0;  // bytes
    Code code = Code::kNone;
  };
  Result<Head> read_head();
  Result<std::string> read_body(uint64_t bytes);
  Status send(std::string_view head, std::string_view bytes = {});
  Status copy_piece_to(const WireTensor& to, std::span<const char> bytes);
  Status copy_piece_from(const WireTensor& from, std::span<char> bytes);
  // Sends a request and serves what comes before its answer. kReturn's values are in `*body`.
  Result<std::vector<WireValue>> exchange(std::string_view request, std::string_view bytes, std::string* body,
                                          std::span<char> raw = {});
  Result<std::vector<WireValue>> ask(Code code, std::span<const WireValue> values, std::string* body);
  void release_later(uint64_t handle, int32_t kind);
  void release_queued();

  // endpoint_values.cc: values.
  Result<WireValue> to_wire(const tw_value& value, Wire* keep, int depth);
  Result<std::vector<WireValue>> result_to_wire(OwnedValue value, Wire* keep);
  Result<WireValue> item_to_wire(const tw_value& item, Wire* keep, int depth);
  Result<tw_value> from_wire(const WireValue& value, Lent* keep);
  Result<OwnedValue> result_from_wire(std::span<const WireValue> values);
  Result<OwnedValue> owned_from_wire(const WireValue& value);
  Result<std::span<char>> bytes_of(const WireTensor& tensor, uint64_t bytes) const;
  Result<WireTensor> remote_tensor(const DLTensor& tensor) const;
  Result<DLDevice> there(DLDevice device) const;
  tw_function* proxy_function(uint64_t handle);
  tw_module* proxy_module(uint64_t handle);
  OwnedValue proxy_tensor(const WireTensor& tensor, int32_t kind);

  // endpoint_serve.cc: requests.
  Status serve_one(const Head& head, Guard* guard);
  Status answer(Code code, std::string_view body, Guard* guard);
  Result<std::vector<WireValue>> serve_call(std::string_view body, Wire* keep, Guard* guard);
  Result<std::vector<WireValue>> serve_request(Code code, std::string_view body);
  Result<std::vector<WireValue>> serve_find(std::string_view name);
  Status serve_upload(uint64_t bytes);
  Result<std::vector<WireValue>> serve_uploaded(uint64_t bytes, Wire* keep, Guard* guard);
  Status serve_copy(const Head& head);

  std::unique_ptr<Channel> channel_;
  int32_t step_;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::time_point::max();
  Upload upload_;
  uint64_t most_copied_ = ~uint64_t{0};
  Adopt adopt_;
  std::recursive_mutex mutex_;  // one exchange at a time
  bool broken_ = false;         // the bytes that come next belong to nothing: nothing more is sent
  bool releasing_ = false;
  HandleTable lent_;
  std::set<uint64_t> upload_functions_;
  std::mutex proxies_mutex_;
  std::map<const void*, uint64_t> proxies_;  // functions and modules that stand for the other side's
  std::vector<std::pair<uint64_t, int32_t>> freed_;
  friend struct Proxy;
};

}  // namespace tilewright::rpc
