// SPDX-License-Identifier: Apache-2.0
#include "rpc/upload_relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rpc/wire.h"

namespace tilewright::rpc {
namespace {

constexpr uint64_t kLong = uint64_t{256} << 10;  // minimum size for passing a file by descriptor
constexpr uint64_t kLongestName = 255;

template <class T>
T number_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Sends the bytes, with the descriptor attached to the first.
bool send_with(int socket, std::string_view bytes, int descriptor) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  while (!bytes.empty()) {
    iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &piece, message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control, message.msg_controllen = sizeof control;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    const ssize_t n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
    descriptor = -1;
  }
  return true;
}

}  // namespace

UploadRelay::UploadRelay(Channel& from, Channel& to, int socket, std::string folder)
    : from_(from), to_(to), socket_(socket), folder_(std::move(folder)), part_(256 << 10) {}

bool UploadRelay::need(size_t bytes) {
  if (end_ - at_ < bytes && at_ + bytes > part_.size()) {
    std::memmove(part_.data(), part_.data() + at_, end_ - at_);
    end_ -= at_, at_ = 0;
  }
  while (!ended_ && end_ - at_ < bytes) {
    if (at_ == end_) at_ = end_ = 0;
    auto n = from_.read_some(std::span(part_).subspan(end_));
    ended_ = !n.ok();
    if (n.ok()) end_ += *n;
  }
  return end_ - at_ >= bytes;
}

void UploadRelay::forward(uint64_t bytes) {
  while (bytes > 0 && (end_ > at_ || need(1))) {
    const size_t piece = std::min<uint64_t>(bytes, end_ - at_);
    taken_ = taken_ && to_.write({part_.data() + at_, piece}).ok();
    at_ += piece, bytes -= piece;
  }
}

bool UploadRelay::write_file(int file, uint64_t bytes) {
  bool written = true;
  while (bytes > 0 && (end_ > at_ || need(1))) {
    const size_t piece = std::min<uint64_t>(bytes, end_ - at_);
    for (size_t done = 0; written && done < piece;) {
      const ssize_t n = ::write(file, part_.data() + at_ + done, piece - done);
      if (n > 0) done += static_cast<size_t>(n);
      written = n > 0 || errno == EINTR;
    }
    at_ += piece, bytes -= piece;
  }
  return written && bytes == 0;
}

// A call with a name and bytes: handle of the callee, argument count two, their types, the name, the file.
bool UploadRelay::take_file(uint64_t frame_bytes) {
  constexpr size_t kUpToName = kFrameHead + sizeof(uint64_t) + 3 * sizeof(int32_t) + sizeof(uint64_t);
  if (!taken_ || !need(kUpToName)) return false;
  const char* call = part_.data() + at_ + kFrameHead;
  const auto handle = number_at<uint64_t>(call), name_bytes = number_at<uint64_t>(call + 20);
  const auto kind = number_at<int32_t>(call + 16);
  if (number_at<int32_t>(call + 8) != 2 || number_at<int32_t>(call + 12) != TW_STR ||
      (kind != TW_BYTES && kind != TW_STR) || name_bytes > kLongestName)
    return false;
  const size_t before_file = kUpToName + name_bytes + sizeof(uint64_t);
  if (!need(before_file)) return false;
  const std::string name(part_.data() + at_ + kUpToName, name_bytes);
  const auto bytes = number_at<uint64_t>(part_.data() + at_ + kUpToName + name_bytes);
  if (bytes > kMaxTransfer - files_ || sizeof(uint64_t) + frame_bytes != before_file + bytes) return false;
  const int file = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
  if (file < 0) return false;
  files_ += bytes;
  at_ += before_file;
  static_cast<void>(write_file(file, bytes));  // the receiver checks that the file is complete
  ByteWriter body;
  body.write(handle);
  body.write(bytes);
  body.write_string(name);
  ::lseek(file, 0, SEEK_SET);
  taken_ = send_with(socket_, frame(Code::kUploaded, body.str()), file);
  ::close(file);
  return true;
}

void UploadRelay::run() {
  while (need(sizeof(uint64_t))) {
    const auto bytes = number_at<uint64_t>(part_.data() + at_);
    const bool calls =
        bytes >= kLong && bytes <= kMaxTransfer + kMaxFrame && need(kFrameHead) &&
        number_at<int32_t>(part_.data() + at_ + sizeof bytes) == static_cast<int32_t>(Code::kCallFunction);
    if (calls && take_file(bytes)) continue;
    // The length is untrusted: the data is forwarded, and rejected there.
    forward(bytes > UINT64_MAX - sizeof bytes ? UINT64_MAX : sizeof bytes + bytes);
  }
  forward(end_ - at_);
}

}  // namespace tilewright::rpc
