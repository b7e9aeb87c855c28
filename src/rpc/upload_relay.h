// SPDX-License-Identifier: Apache-2.0
// Relays a client's bytes to its session's process. Long uploads are written here, where they are decrypted, into an
// unnamed file in the session's folder, which the process receives as a descriptor (Code::kUploaded) and handles. All
// else is forwarded unchanged.
#pragma once
#include <string>
#include <vector>

#include "rpc/channel.h"

namespace tilewright::rpc {

class UploadRelay {
 public:
  // `socket` is that of `to`, for sending descriptors.
  UploadRelay(Channel& from, Channel& to, int socket, std::string folder);
  // Runs until the client disconnects. Unwanted data is read as well: closing a socket with unread data would lose the
  // last answer.
  void run();

 private:
  bool need(size_t bytes);  // reads until so many bytes are in part_; false: end of stream
  void forward(uint64_t bytes);
  // Handles the frame at at_ as a file; false if it is none, or must be forwarded.
  bool take_file(uint64_t frame_bytes);
  bool write_file(int file, uint64_t bytes);

  Channel& from_;
  Channel& to_;
  int socket_;
  std::string folder_;
  std::vector<char> part_;
  size_t at_ = 0, end_ = 0;  // range of bytes read but not forwarded
  uint64_t files_ = 0;       // total size of files
  bool taken_ = true, ended_ = false;
};

}  // namespace tilewright::rpc
