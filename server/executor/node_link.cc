#include "server/executor/node_link.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

namespace torpor::executor {
namespace {

constexpr auto kFinishGrace = std::chrono::milliseconds(500);

}  // namespace

NodeLink::NodeLink(const std::string& socket_path)
    : stub_(v1::Node::NewStub(
          grpc::CreateChannel("unix:" + socket_path, grpc::InsecureChannelCredentials()))) {}

NodeLink::~NodeLink() {
  context_.TryCancel();
  if (listener_.joinable()) listener_.join();
}

void NodeLink::Start(const v1::ExecutorMessage& registration, ExecutorLoop& loop) {
  stream_ = stub_->Attach(&context_);
  stream_->Write(registration);
  listener_ = std::thread([this, &loop] {
    v1::DaemonMessage message;
    while (stream_->Read(&message)) loop.Post(std::move(message));
    ended_ = true;
    ended_.notify_all();
    loop.Post(DaemonGone{"the node stream has ended"});
  });
}

void NodeLink::Send(const v1::ExecutorMessage& message) { stream_->Write(message); }

void NodeLink::Finish() {
  stream_->WritesDone();
  // torpord answers the end of the stream with an end; if torpord does not, cancelling ends the
  // wait.
  std::thread impatient([this] {
    const auto deadline = std::chrono::steady_clock::now() + kFinishGrace;
    while (!ended_ && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    context_.TryCancel();
  });
  ended_.wait(false);
  impatient.join();
}

}  // namespace torpor::executor
