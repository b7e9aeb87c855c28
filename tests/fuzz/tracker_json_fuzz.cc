// SPDX-License-Identifier: Apache-2.0
// fuzz-room: rpc
// Lines of an input are messages of three peers in turn: each is answered or refused, and what is refused changes
// nothing.
#include <cstdlib>
#include <string>
#include <vector>

#include "rpc/tracker_table.h"

using namespace tilewright;
using rpc::TrackerTable;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  seeds->push_back(
      "[5, {\"key\": \"server:k\", \"addr\": [null, 9090]}]\n[1]\n[6]\n[3, \"k\", [9090, \"k:1\"], null]\n"
      "[4, \"k\", \"\", 2]\n[7]\n");
  seeds->push_back("[4, \"k\", \"\", 1]\n[4, \"k\", \"\", 5]\n[3, \"k\", [1, \"m\"], \"h\"]\n[2, \"stop\"]\n");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const TrackerTable::Time now{};
  TrackerTable table(std::chrono::milliseconds(1000));
  const TrackerTable::Peer watcher = table.connect("w", now);
  std::vector<TrackerTable::Peer> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(table.connect("host", now));
  auto summary = [&] { return table.receive(watcher, "[6]", now)->at(0).text; };
  size_t turn = 0;
  for (size_t begin = 0; begin < size && turn < 32; ++turn) {
    const size_t end = std::min(text.find('\n', begin), size);
    const std::string before = summary();
    auto answers = table.receive(peers[turn % 3], text.substr(begin, end - begin), now);
    if (!answers.ok() && (answers.error().code != ErrorCode::kProtocolError || summary() != before)) __builtin_trap();
    begin = end + 1;
  }
  for (const TrackerTable::Peer peer : peers) table.disconnect(peer);
  if (summary() != "[0, {\"queue_info\": {}, \"server_info\": []}]") __builtin_trap();
  return 0;
}
