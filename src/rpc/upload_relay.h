// SPDX-License-Identifier: Apache-2.0
// What a client says, on its way to its session's process. A long file that is uploaded is written here, where its
// bytes are decrypted, into the session's folder, without a name; the process gets it as an open file (Code::kUploaded)
// and decides what becomes of it. All else goes through as it is.
#pragma once
#include <string>
#include <vector>

#include "rpc/channel.h"

namespace tilewright::rpc {

class UploadRelay {
 public:
  // `socket` is `to`'s, for descriptors.
  UploadRelay(Channel& from, Channel& to, int socket, std::string folder);
  // Until the client has ended. What nobody takes is read all the same: closing on unread bytes would lose the last
  // answer.
  void run();

 private:
  bool need(size_t bytes);  // that many wait in part_; false: the client has ended
  void forward(uint64_t bytes);
  // The file of the frame that begins at at_; false: it is none, or cannot be taken.
  bool take_file(uint64_t frame_bytes);
  bool write_file(int file, uint64_t bytes);

  Channel& from_;
  Channel& to_;
  int socket_;
  std::string folder_;
  std::vector<char> part_;
  size_t at_ = 0, end_ = 0;  // what was read and not passed on
  uint64_t files_ = 0;       // bytes of all that were taken
  bool taken_ = true, ended_ = false;
};

}  // namespace tilewright::rpc
