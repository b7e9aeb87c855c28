// SPDX-License-Identifier: Apache-2.0
// Who gets which device; and the recorded conversations of a tracker of the classic stack, byte for byte.
#include "rpc/tracker_table.h"

#include <gtest/gtest.h>

#include <random>

#include "rpc/recorded.h"

namespace tilewright::rpc {
namespace {

using std::chrono::milliseconds;

class TrackerTableTest : public ::testing::Test {
 protected:
  std::vector<TrackerTable::Answer> send(TrackerTable::Peer peer, const std::string& message) {
    auto answers = table_.receive(peer, message, now_);
    EXPECT_TRUE(answers.ok()) << message << ": " << answers.error().str();
    return answers.ok() ? *answers : std::vector<TrackerTable::Answer>{};
  }
  TrackerTable::Peer peer() { return table_.connect("127.0.0.1", now_); }
  void put(TrackerTable::Peer server, const std::string& key) {
    EXPECT_EQ(send(server, R"([3, "board", [9090, ")" + key + R"("], null])")[0].text, "0");
  }
  void expect_refused(TrackerTable::Peer from, const std::string& message) {
    auto answers = table_.receive(from, message, now_);
    ASSERT_FALSE(answers.ok()) << message;
    EXPECT_EQ(answers.error().code, ErrorCode::kProtocolError) << message;
  }
  TrackerTable::Time now_ = std::chrono::steady_clock::now();
  TrackerTable table_{milliseconds(10'000)};
};

// Requests and answers of a recording, without magic numbers and lengths.
std::vector<testing::Chunk> messages(const char* name) {
  std::vector<testing::Chunk> out;
  for (testing::Chunk& chunk : testing::recorded(name))
    if (chunk.bytes[0] == '[' || chunk.bytes == "0") out.push_back(std::move(chunk));
  return out;
}

TEST_F(TrackerTableTest, AnswersAsRecorded) {
  const auto of_server = messages("tracker_server_side.jsonl"), of_client = messages("tracker_client_side.jsonl");
  ASSERT_EQ(of_server.size(), 12u);
  ASSERT_EQ(of_client.size(), 6u);
  const auto server = peer(), client = peer();
  auto replay = [&](TrackerTable::Peer from, const std::vector<testing::Chunk>& chunks, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += 2) {
      ASSERT_TRUE(chunks[i].to_listener);
      const auto answers = send(from, chunks[i].bytes);
      ASSERT_EQ(answers.size(), 1u);
      EXPECT_EQ(answers[0].text, chunks[i + 1].bytes);
    }
  };
  replay(server, of_server, 0, 10);   // information, an offer, three looks at what is still offered
  replay(client, of_client, 0, 4);    // a summary, a request
  replay(server, of_server, 10, 12);  // the next offer
  replay(client, of_client, 4, 6);    // a summary
}

TEST_F(TrackerTableTest, PriorityThenOrderAndEachTicketOnce) {
  const auto server = peer(), slow = peer(), first = peer(), second = peer(), urgent = peer();
  EXPECT_TRUE(send(slow, R"([4, "board", "", 0])").empty());
  EXPECT_TRUE(send(first, R"([4, "board", "", 1])").empty());
  EXPECT_TRUE(send(second, R"([4, "board", "", 1])").empty());
  EXPECT_TRUE(send(urgent, R"([4, "board", "", 2])").empty());
  const TrackerTable::Peer order[] = {urgent, first, second, slow};
  for (int i = 0; i < 4; ++i) {
    const std::string key = "board:" + std::to_string(i);
    const auto answers = send(server, R"([3, "board", [9090, ")" + key + R"("], "10.0.0.7"])");
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[1].to, order[i]);
    EXPECT_EQ(answers[1].text, R"([0, ["10.0.0.7", 9090, ")" + key + R"("]])");
  }
  EXPECT_EQ(send(server, "[7]")[0].text, "[]");
}

TEST_F(TrackerTableTest, AnotherKeyIsAnotherQueue) {
  const auto server = peer(), client = peer();
  put(server, "a");
  EXPECT_TRUE(send(client, R"([4, "other", "", 1])").empty());
  EXPECT_EQ(send(server, "[7]")[0].text, R"(["a"])");
}

TEST_F(TrackerTableTest, WhoGoesTakesTicketsAndRequestsAlong) {
  auto server = peer(), client = peer(), other = peer();
  put(server, "a");
  table_.disconnect(server);
  EXPECT_TRUE(send(client, R"([4, "board", "", 5])").empty());
  EXPECT_TRUE(send(other, R"([4, "board", "", 1])").empty());
  table_.disconnect(client);
  server = peer();
  const auto answers = send(server, R"([3, "board", [9090, "b"], null])");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1].to, other);
}

TEST_F(TrackerTableTest, SilentServersLoseTheirTickets) {
  const auto silent = peer(), lively = peer(), client = peer();
  put(silent, "a");
  put(lively, "b");
  now_ += milliseconds(9'000);
  EXPECT_EQ(send(lively, "[7]")[0].text, R"(["b"])");
  now_ += milliseconds(2'000);
  table_.expire(now_);
  EXPECT_EQ(send(client, R"([4, "board", "", 1])")[0].text, R"([0, ["127.0.0.1", 9090, "b"]])");
  EXPECT_EQ(send(silent, "[7]")[0].text, "[]");  // it may offer itself again
  put(silent, "c");
}

TEST_F(TrackerTableTest, RefusesWhatIsNoMessageAndStaysAsItWas) {
  const auto server = peer(), waiting = peer();
  put(server, "a");
  const std::string before = send(server, "[6]")[0].text;
  for (const char* message : {"",
                              "[",
                              "{}",
                              "[]",
                              "[\"1\"]",
                              "[1.5]",
                              "[99]",
                              "[3]",
                              "[3, \"board\"]",
                              "[3, \"board\", [0, \"x\"], null]",
                              "[3, \"board\", [70000, \"x\"], null]",
                              "[3, \"board\", [1, 2], null]",
                              "[3, \"board\", [9090, \"a\"], null]",
                              "[3, \"board\", [9090, \"x\"], 7]",
                              "[4, \"board\"]",
                              "[4, \"board\", \"\", \"high\"]",
                              "[4, 4, \"\", 1]",
                              "[5]",
                              "[5, {}]",
                              "[5, {\"key\": \"k\", \"addr\": [1, 2]}]",
                              "[5, {\"key\": 1, \"addr\": [null, 2]}]",
                              "[3, \"\xff\", [9090, \"x\"], null]"})
    expect_refused(server, message);
  expect_refused(server, "[1, \"" + std::string(kMaxTrackerMessage, 'x') + "\"]");
  expect_refused(server, "[3, \"" + std::string(300, 'x') + "\", [9090, \"x\"], null]");
  expect_refused(server, std::string(60'000, '['));
  EXPECT_EQ(send(server, "[6]")[0].text, before);
  EXPECT_TRUE(send(waiting, R"([4, "other", "", 1])").empty());
  expect_refused(waiting, "[1]");  // it has an answer to wait for
}

// Any order of offers, requests and ends: no ticket is given twice, and nobody waits while there is one.
TEST_F(TrackerTableTest, RandomConversationsLoseNothing) {
  std::mt19937 random(7);
  std::vector<TrackerTable::Peer> servers, idle;
  size_t offered = 0, given = 0, lost = 0;
  std::map<TrackerTable::Peer, size_t> free_of;
  for (int step = 0; step < 5000; ++step) {
    std::vector<TrackerTable::Answer> answers;
    if (servers.empty() || random() % 8 == 0) servers.push_back(peer());
    const auto server = servers[random() % servers.size()];
    switch (random() % 4) {
      case 0: {
        answers = send(server, R"([3, "board", [9090, "m)" + std::to_string(offered++) + R"("], null])");
        break;
      }
      case 1:
      case 2:
        answers = send(peer(), R"([4, "board", "", )" + std::to_string(random() % 3) + "]");
        break;
      default: {
        const std::string held = send(server, "[7]")[0].text;
        lost += static_cast<size_t>(std::count(held.begin(), held.end(), 'm'));
        table_.disconnect(server);
        std::erase(servers, server);
      }
    }
    for (const auto& answer : answers) given += answer.text.find("\"m") != std::string::npos;
    const std::string now = send(peer(), "[6]")[0].text;
    EXPECT_TRUE(now.find("\"free\": 0") != std::string::npos || now.find("\"pending\": 0") != std::string::npos ||
                now.find("\"board\"") == std::string::npos)
        << now;
  }
  size_t left = 0;
  for (const auto server : servers) {
    const std::string held = send(server, "[7]")[0].text;
    left += static_cast<size_t>(std::count(held.begin(), held.end(), 'm'));
  }
  EXPECT_EQ(given + lost + left, offered);
  EXPECT_GT(given, 500u);
}

}  // namespace
}  // namespace tilewright::rpc
