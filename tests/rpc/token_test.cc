// SPDX-License-Identifier: Apache-2.0
// Tokens: their file, what follows from them, and what does not.
#include "rpc/token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/work_folder.h"

namespace tilewright::rpc {
namespace {

constexpr int64_t kNow = 1'700'000'000;

class TokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = WorkFolder::temporary("token_test");
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<WorkFolder>(std::move(*folder));
    root_ = *new_token();
  }
  std::string path(const char* name) const { return folder_->path() + "/" + name; }
  std::unique_ptr<WorkFolder> folder_;
  Token root_;
};

TEST_F(TokenTest, AFileIsReadAsItWasWritten) {
  const Token derived = *derive_token(*derive_token(root_, "role=client"), "until=1800000000");
  for (const Token& token : {root_, derived}) {
    const std::string file = path(token.name.size() > 16 ? "deep/er/derived" : "root");
    ASSERT_TRUE(write_token(file, token).ok());
    auto read = read_token(file);
    ASSERT_TRUE(read.ok()) << read.error().str();
    EXPECT_EQ(read->name, token.name);
    EXPECT_EQ(read->secret, token.secret);
    struct stat facts {};
    ASSERT_EQ(::stat(file.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u);
    EXPECT_EQ(write_token(file, root_).error().code, ErrorCode::kCannotWrite);  // never over another
  }
  EXPECT_NE(new_token()->secret, root_.secret);
}

TEST_F(TokenTest, WhatOthersMayReadIsNoSecret) {
  ASSERT_TRUE(write_token(path("t"), root_).ok());
  for (const mode_t mode : {0640u, 0604u, 0660u}) {
    ::chmod(path("t").c_str(), mode);
    EXPECT_EQ(read_token(path("t")).error().code, ErrorCode::kInvalidArgument);
  }
}

TEST_F(TokenTest, DamagedFilesAreRefused) {
  const std::string good = token_text(root_);
  EXPECT_TRUE(parse_token(good).ok());
  for (size_t length = 0; length + 1 < good.size(); ++length) EXPECT_FALSE(parse_token(good.substr(0, length)).ok());
  for (size_t at = 0; at + 1 < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] = 'Z';
    EXPECT_FALSE(parse_token(damaged).ok()) << at;
  }
  EXPECT_FALSE(parse_token(good + good).ok());
  EXPECT_EQ(read_token(path("none")).error().code, ErrorCode::kFileNotFound);
  EXPECT_EQ(read_token(folder_->path()).error().code, ErrorCode::kInvalidArgument);  // a folder
}

TEST_F(TokenTest, TheFirstKnowsAllThatFollow) {
  const Token guest = *derive_token(*derive_token(root_, "role=client"), "until=1800000000");
  auto found = follow_token(root_, guest.name, kNow);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->secret, guest.secret);
  EXPECT_EQ(session_key(*found), session_key(guest));
  EXPECT_TRUE(is_client_only(*found));
  EXPECT_FALSE(is_client_only(root_));
  EXPECT_EQ(follow_token(root_, guest.name, 1800000001).error().code, kTokenRefused);  // its time is over
  EXPECT_TRUE(follow_token(guest, guest.name, kNow).ok());  // who has the second only knows what follows from it
  EXPECT_EQ(follow_token(guest, root_.name, kNow).error().code, kTokenRefused);
  EXPECT_EQ(follow_token(*new_token(), guest.name, kNow).error().code, kTokenRefused);
}

TEST_F(TokenTest, ConditionsCannotBeTakenOffOrChanged) {
  const Token guest = *derive_token(root_, "until=1700000001");
  for (const std::string& name : {root_.name, root_.name + "/until=1800000000", guest.name + "/role=client"}) {
    auto claimed = follow_token(root_, name, kNow);
    ASSERT_TRUE(claimed.ok());
    EXPECT_NE(session_key(*claimed), session_key(guest)) << name;
  }
  for (const char* wrong :
       {"role=admin", "until=", "until=x", "until=-1", "until=1 ", "", "a/b", "role=client/until=1"})
    EXPECT_EQ(derive_token(root_, wrong).error().code, ErrorCode::kInvalidArgument) << wrong;
  for (const std::string& name :
       {root_.name + "/", root_.name + "/role=admin", root_.name + "x", std::string(), std::string(600, 'a')})
    EXPECT_EQ(follow_token(root_, name, kNow).error().code, kTokenRefused) << name;
}

TEST_F(TokenTest, TheUsersOwnIsMadeOnce) {
  ::setenv("TILEWRIGHT_TOKEN", path("own/token").c_str(), 1);
  auto first = load_token(""), second = load_token("");
  ::unsetenv("TILEWRIGHT_TOKEN");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->secret, second->secret);
  EXPECT_EQ(load_token(path("another")).error().code, ErrorCode::kFileNotFound);  // a named one is not made up
}

}  // namespace
}  // namespace tilewright::rpc
