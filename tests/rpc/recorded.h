// SPDX-License-Identifier: Apache-2.0
// What was recorded between programs of the classic stack: chunks of bytes, in the order they were sent.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test_folders.h"

namespace tilewright::rpc::testing {

struct Chunk {
  bool to_listener;  // from whoever connected
  std::string bytes;
};

inline std::vector<Chunk> recorded(const std::string& name) {
  std::ifstream file(TW_TEST_DATA "/rpc/" + name);
  std::vector<Chunk> chunks;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    const std::string hex = row["hex"].get<std::string>();
    Chunk chunk{row["dir"] == ">", {}};
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      chunk.bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

}  // namespace tilewright::rpc::testing
