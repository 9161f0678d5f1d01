#include "server/daemon/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "run-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    config_.run_dir = name + "/run";
    config_.state_dir = name + "/state/deep";
    config_.client_socket = config_.run_dir + "/torpor.sock";
    config_.admin_socket = config_.run_dir + "/admin.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static UniqueFd Listen(const std::string& path) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(socket.get(), 1), 0);
    return socket;
  }

  static mode_t ModeOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  std::filesystem::path folder_;
  Config config_;
};

TEST_F(RunFolderTest, FoldersAreCreated) {
  ASSERT_TRUE(RunFolder::Claim(config_).ok());
  EXPECT_TRUE(std::filesystem::is_directory(config_.run_dir));
  EXPECT_TRUE(std::filesystem::is_directory(config_.state_dir));
}

TEST_F(RunFolderTest, FunctionsAndAdministratorsHaveFoldersOfTheirOwn) {
  config_.client_socket = FunctionFolderOf(config_) + "/torpor.sock";
  config_.admin_socket = AdminFolderOf(config_) + "/admin.sock";
  ASSERT_TRUE(RunFolder::Claim(config_).ok());
  EXPECT_EQ(ModeOf(FunctionFolderOf(config_)), 0755u);
  EXPECT_EQ(ModeOf(AdminFolderOf(config_)), 0750u);
  config_.socket_group = config_.admin_group = std::to_string(getegid());
  ASSERT_TRUE(RunFolder::Claim(config_).ok());
  EXPECT_EQ(ModeOf(FunctionFolderOf(config_)), 02750u) << "sockets there belong to the group";
  EXPECT_EQ(ModeOf(AdminFolderOf(config_)), 02750u);
}

TEST_F(RunFolderTest, AGroupThatIsNotThereIsNamed) {
  config_.client_socket = FunctionFolderOf(config_) + "/torpor.sock";
  config_.socket_group = "no-such-group";
  EXPECT_THAT(std::string(RunFolder::Claim(config_).status().message()),
              HasSubstr("no-such-group"));
}

TEST_F(RunFolderTest, NewFoldersHaveTheirModesWhateverTheUmask) {
  for (const mode_t mask : {0000, 0077}) {
    const mode_t before = umask(mask);
    const auto claimed = RunFolder::Claim(config_);
    umask(before);
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    EXPECT_EQ(ModeOf(config_.run_dir), 0755u);
    EXPECT_EQ(ModeOf(config_.state_dir), 0750u);
    std::filesystem::remove_all(config_.run_dir);
    std::filesystem::remove_all(config_.state_dir);
  }
}

TEST_F(RunFolderTest, TheFolderOfAnEarlierTorpordIsItsOwnersAlone) {
  std::filesystem::create_directories(config_.run_dir);
  chmod(config_.run_dir.c_str(), 0770);
  EXPECT_TRUE(RunFolder::Claim(config_).ok());
  EXPECT_EQ(ModeOf(config_.run_dir), 0750u);
}

TEST_F(RunFolderTest, AnotherFolderThatOthersMayWriteToIsRefused) {
  const std::string shared = folder_ / "shared";
  std::filesystem::create_directories(shared);
  chmod(shared.c_str(), 0775);
  config_.client_socket = shared + "/torpor.sock";
  const auto claimed = RunFolder::Claim(config_);
  ASSERT_EQ(claimed.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(claimed.status().message()), HasSubstr("chmod go-w " + shared));
  chmod(shared.c_str(), 01777);
  EXPECT_TRUE(RunFolder::Claim(config_).ok()) << "as /tmp is";
}

TEST_F(RunFolderTest, OnlyOneDaemonLivesInAFolder) {
  {
    const auto first = RunFolder::Claim(config_);
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = RunFolder::Claim(config_);
    ASSERT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(second.status().message()),
                HasSubstr("another torpord (process " + std::to_string(getpid()) + ") lives in"));
  }
  EXPECT_TRUE(RunFolder::Claim(config_).ok());
}

TEST_F(RunFolderTest, TheSocketsOfADeadDaemonAreRemoved) {
  std::filesystem::create_directory(config_.run_dir);
  Listen(config_.client_socket).Reset();
  Listen(config_.admin_socket).Reset();
  ASSERT_TRUE(RunFolder::Claim(config_).ok());
  EXPECT_FALSE(std::filesystem::exists(config_.client_socket));
  EXPECT_FALSE(std::filesystem::exists(config_.admin_socket));
}

TEST_F(RunFolderTest, ASocketThatSomebodyServesStays) {
  std::filesystem::create_directory(config_.run_dir);
  const UniqueFd listener = Listen(config_.admin_socket);
  EXPECT_THAT(std::string(RunFolder::Claim(config_).status().message()),
              HasSubstr("another process listens on " + config_.admin_socket));
}

TEST_F(RunFolderTest, WhatIsNoSocketStays) {
  std::filesystem::create_directory(config_.run_dir);
  std::ofstream(config_.client_socket) << "precious";
  EXPECT_THAT(std::string(RunFolder::Claim(config_).status().message()),
              HasSubstr("is not a socket"));
  EXPECT_TRUE(std::filesystem::exists(config_.client_socket));
}

TEST_F(RunFolderTest, AFolderThatCannotBeMadeIsNamed) {
  config_.run_dir = "/proc/torpor";
  EXPECT_THAT(std::string(RunFolder::Claim(config_).status().message()),
              HasSubstr("cannot create run_dir /proc/torpor"));
}

}  // namespace
}  // namespace torpor::server
