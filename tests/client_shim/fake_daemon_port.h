#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "client_shim/core/transport/daemon_port.h"

namespace torpor::shim {

// A daemon without a connection: keeps the messages and answers requests by a function.
// Thread-safe.
class FakeDaemonPort final : public DaemonPort {
 public:
  using Answer = std::function<wire::ServerMessage(std::uint64_t id, const wire::ClientMessage&)>;

  void set_answer(Answer answer) { answer_ = std::move(answer); }
  // What Ask returns; with an error no request is answered.
  void set_failure(cudaError_t failure) { failure_ = failure; }

  void Send(const wire::ClientMessage& message) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
  }
  cudaError_t Ask(std::uint64_t request_id, const wire::ClientMessage& request,
                  wire::ServerMessage& reply) override {
    Send(request);
    if (failure_ != cudaSuccess) return failure_;
    reply = answer_ ? answer_(request_id, request) : wire::MemoryReply{request_id, 0, "", 0};
    return cudaSuccess;
  }

  void Tell(std::uint64_t, const wire::ClientMessage& request) override { Send(request); }

  // The messages of this type so far, in the order of sending.
  template <typename Message>
  std::vector<Message> All() const {
    const std::lock_guard lock(mutex_);
    std::vector<Message> found;
    for (const wire::ClientMessage& message : messages_)
      if (const auto* one = std::get_if<Message>(&message)) found.push_back(*one);
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<wire::ClientMessage> messages_;
  Answer answer_;
  cudaError_t failure_ = cudaSuccess;
};

}  // namespace torpor::shim
