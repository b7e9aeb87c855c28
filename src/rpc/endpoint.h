// SPDX-License-Identifier: Apache-2.0
// One end of a session. Both ends are alike: each can send requests (find, call, copy), and serves the other's requests
// even while it waits for an answer, which enables callbacks. Remote functions, modules and tensors are handles,
// wrapped as runtime functions, modules and tensors that forward each call.
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

// A remote device has its device type plus this for each preceding session in the session table.
inline constexpr int32_t kSessionStep = 128;
inline constexpr std::string_view kUpload = "tvm.rpc.server.upload";

class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  // Receives a file while it is being sent: `read` fills the given buffer. To refuse a file, do not read.
  using Upload = std::function<Status(const std::string& name, uint64_t bytes,
                                      const std::function<Status(std::span<char>)>& read)>;

  // `step`: what is added to the types of remote devices; 0 on the serving side.
  Endpoint(std::unique_ptr<Channel> channel, int32_t step) : channel_(std::move(channel)), step_(step) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  // ---- requests. Errors: those reported by the peer; ConnectionLost, TimeLimit, ProtocolError.
  Status start(std::span<const std::string> constructor);
  // A remote global function; null if there is none.
  Result<tw_function*> find(std::string_view name);
  Result<OwnedValue> call(uint64_t function, std::span<const tw_value> args);
  // Allocates a remote tensor; the returned value frees it. `scope` may be empty.
  Result<OwnedValue> allocate(DLDevice device, DLDataType dtype, std::span<const int64_t> shape,
                              std::string_view scope);
  Status copy_to(const DLTensor& remote, std::span<const char> bytes);
  // Limits the peer's frame size: copies are split into pieces of this many bytes.
  void copies_at_most(uint64_t bytes) { most_copied_ = bytes; }
  Status copy_from(const DLTensor& remote, std::span<char> bytes);
  Status copy_among(const DLTensor& from, const DLTensor& to);
  Status sync(DLDevice device);
  Result<OwnedValue> attribute(DLDevice device, int64_t kind);
  // Ends the session; later calls fail.
  void shutdown();
  int32_t step() const { return step_; }
  // The time at which the server ends the session; a later loss is reported as TimeLimit.
  void ends_at(std::chrono::steady_clock::time_point end) { end_ = end; }

  // ---- serving
  // Receives an uploaded file as an open descriptor, which the caller closes.
  using Adopt = std::function<Status(const std::string& name, uint64_t bytes, int file)>;
  void take_uploads(Upload upload, Adopt adopt = {}) { upload_ = std::move(upload), adopt_ = std::move(adopt); }
  // Serves until the peer ends the session. Errors: ConnectionLost, ProtocolError, TimeLimit.
  Status serve();

 private:
  struct Lent;  // arguments as runtime values, with what keeps them alive
  struct Wire;  // runtime values in wire form, likewise
  using Guard = std::unique_lock<std::recursive_mutex>;

  // endpoint.cc: frames.
  struct Head {
    uint64_t body = 0;  // size of the body
    Code code = Code::kNone;
  };
  Result<Head> read_head();
  Result<std::string> read_body(uint64_t bytes);
  Status send(std::string_view head, std::string_view bytes = {});
  Status copy_piece_to(const WireTensor& to, std::span<const char> bytes);
  Status copy_piece_from(const WireTensor& from, std::span<char> bytes);
  // Sends a request and serves incoming ones until its answer arrives. The values of a kReturn point into `*body`.
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
  bool broken_ = false;         // the stream is out of sync: nothing more is sent
  bool releasing_ = false;
  HandleTable lent_;
  std::set<uint64_t> upload_functions_;
  std::mutex proxies_mutex_;
  std::map<const void*, uint64_t> proxies_;  // handles of remote functions and modules, by their local proxies
  std::vector<std::pair<uint64_t, int32_t>> freed_;
  friend struct Proxy;
};

}  // namespace tilewright::rpc
