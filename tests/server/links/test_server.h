#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "tests/base/temporary_folder.h"

namespace torpor::server {

// One service on a Unix socket, and channels to it.
class TestServer {
 public:
  explicit TestServer(grpc::Service& service) : address_("unix:" + folder_.path("socket")) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
  }
  ~TestServer() { Stop(); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  // Ends all streams.
  void Stop() { server_->Shutdown(std::chrono::system_clock::now()); }

  std::shared_ptr<grpc::Channel> Dial() const {
    return grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  }

 private:
  TemporaryFolder folder_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace torpor::server
