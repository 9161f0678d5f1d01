#pragma once

#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

namespace torpor::server {

// A folder of the test's own, gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/torpor-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// One service on a Unix socket, and channels to it.
class TestServer {
 public:
  explicit TestServer(grpc::Service& service) : address_("unix:" + folder_.path("socket")) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
  }
  ~TestServer() { server_->Shutdown(std::chrono::system_clock::now()); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::shared_ptr<grpc::Channel> Dial() const {
    return grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  }

 private:
  TemporaryFolder folder_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace torpor::server
