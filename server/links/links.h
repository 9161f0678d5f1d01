#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proto/torpor/v1/node.pb.h"
#include "proto/wire/control_messages.h"

// How the controller speaks with sessions and executors, whatever carries it.
namespace torpor::server {

// One Control stream: a client process. Thread-safe, never blocks.
class SessionLink {
 public:
  virtual ~SessionLink() = default;

  // Queues a message. A client that lets too many pile up is cut off.
  virtual void Send(const wire::ServerMessage& message) = 0;
  // Ends the stream; OnSessionClosed follows.
  virtual void Close(const std::string& reason) = 0;
};

// One Node stream: an executor. Thread-safe, never blocks.
class ExecutorLink {
 public:
  virtual ~ExecutorLink() = default;

  virtual void Send(const v1::DaemonMessage& message) = 0;
  // Ends the stream; OnExecutorClosed follows.
  virtual void Close(const std::string& reason) = 0;
};

// Who listens to the streams. Each stream's calls come one after another, but on any thread;
// OnClosed is the last one of a stream. `done` lets the stream read its next message: to be
// called once, on any thread, so that nobody sends faster than he is served.
class LinkListener {
 public:
  using Done = std::function<void()>;

  virtual ~LinkListener() = default;

  virtual void OnSessionMessage(const std::shared_ptr<SessionLink>& link,
                                wire::ClientMessage message, Done done) = 0;
  virtual void OnSessionClosed(const std::shared_ptr<SessionLink>& link) = 0;
  virtual void OnExecutorMessage(const std::shared_ptr<ExecutorLink>& link,
                                 v1::ExecutorMessage message, Done done) = 0;
  virtual void OnExecutorClosed(const std::shared_ptr<ExecutorLink>& link) = 0;
};

}  // namespace torpor::server
