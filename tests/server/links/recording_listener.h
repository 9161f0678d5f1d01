#pragma once

#include <memory>
#include <utility>

#include "base/mailbox.h"
#include "server/links/links.h"

namespace torpor::server {

// Hands what streams say to the test.
class RecordingListener final : public LinkListener {
 public:
  struct SessionEvent {
    std::shared_ptr<SessionLink> link;
    std::optional<wire::ClientMessage> message;  // nothing: closed
    Done done;
  };
  struct ExecutorEvent {
    std::shared_ptr<ExecutorChannel> link;
    std::optional<v1::ExecutorMessage> message;
    Done done;
  };

  void OnSessionMessage(const std::shared_ptr<SessionLink>& link, wire::ClientMessage message,
                        Done done) override {
    sessions_.Send({link, std::move(message), std::move(done)});
  }
  void OnSessionClosed(const std::shared_ptr<SessionLink>& link) override {
    sessions_.Send({link, std::nullopt, nullptr});
  }
  void OnExecutorMessage(const std::shared_ptr<ExecutorChannel>& link, v1::ExecutorMessage message,
                         Done done) override {
    executors_.Send({link, std::move(message), std::move(done)});
  }
  void OnExecutorClosed(const std::shared_ptr<ExecutorChannel>& link) override {
    executors_.Send({link, std::nullopt, nullptr});
  }

  SessionEvent NextSession() { return *sessions_.Receive(); }
  ExecutorEvent NextExecutor() { return *executors_.Receive(); }

 private:
  Mailbox<SessionEvent> sessions_{1024};
  Mailbox<ExecutorEvent> executors_{1024};
};

}  // namespace torpor::server
