#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "proto/torpor/v1/admin.grpc.pb.h"
#include "server/unix_socket/grpc_server.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

class UnixSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "socket-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = name + "/a.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // 0 for what is no socket.
  mode_t SocketMode() const {
    struct stat status {};
    EXPECT_EQ(stat(path_.c_str(), &status), 0);
    return S_ISSOCK(status.st_mode) ? status.st_mode & 0777 : 0;
  }
  auto Serve(const std::string& path, mode_t mode) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    return UnixGrpcServer::Start(builder, path, {.mode = mode});
  }

  static grpc::Status AskOver(const std::string& path) {
    const auto channel = grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    v1::NodeStatus status;
    return v1::Admin::NewStub(channel)->GetStatus(&context, {}, &status);
  }

  std::filesystem::path folder_;
  std::string path_;
  v1::Admin::Service service_;  // any: a server of gRPC has one
};

TEST_F(UnixSocketTest, ServersAndListenersHaveTheModeAskedFor) {
  {
    const auto server = Serve(path_, 0620);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(SocketMode(), 0620u);
  }
  const auto listener = ListenOnUnixSocket(path_, SOCK_SEQPACKET, 0666);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(SocketMode(), 0666u);
}

TEST_F(UnixSocketTest, WhatIsThereIsReplaced) {
  std::ofstream(path_) << "stale";
  ASSERT_TRUE(Serve(path_, 0600).ok());
  std::ofstream(path_) << "stale";
  ASSERT_TRUE(ListenOnUnixSocket(path_, SOCK_STREAM, 0600).ok());
  EXPECT_EQ(SocketMode(), 0600u);
}

TEST_F(UnixSocketTest, APathThatIsTooLongIsRefused) {
  const std::string path = folder_ / std::string(108, 'x');
  EXPECT_EQ(Serve(path, 0600).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ListenOnUnixSocket(path, SOCK_STREAM, 0600).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(UnixSocketTest, AServerAnswersAndEndsWithItsSocket) {
  const auto server = Serve(path_, 0600);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(AskOver(path_).error_code(), grpc::StatusCode::UNIMPLEMENTED) << "of the service";
  (*server)->Shutdown(std::chrono::system_clock::now());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(AskOver(path_).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(UnixSocketTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(std::string(Serve("/nowhere/a.sock", 0600).status().message()),
              HasSubstr("/nowhere/a.sock"));
}

}  // namespace
}  // namespace torpor::server
