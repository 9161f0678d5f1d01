#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proto/torpor/v1/node.pb.h"
#include "proto/wire/control_messages.h"

// The controller's side of the streams to client processes and executors, without gRPC.
namespace torpor::server {

// A Control stream: the link to a client process. Thread-safe, never blocks.
class SessionLink {
 public:
  virtual ~SessionLink() = default;

  // Queues a message. Ends the stream if too many messages wait for the client.
  virtual void Send(const wire::ServerMessage& message) = 0;
  // Ends the stream after the queued messages; OnSessionClosed follows.
  virtual void Close(const std::string& reason) = 0;
};

// A Node stream: the link to an executor. Thread-safe, never blocks.
class ExecutorChannel {
 public:
  virtual ~ExecutorChannel() = default;

  virtual void Send(const v1::DaemonMessage& message) = 0;
  // Ends the stream after the queued messages; OnExecutorClosed follows.
  virtual void Close(const std::string& reason) = 0;
};

// Receives the messages of all streams. The calls of one stream come one after another, on any
// thread; On…Closed is the last call of a stream. Call `done` once, on any thread, to let the
// stream read the next message: so no peer sends faster than the listener works.
class LinkListener {
 public:
  using Done = std::function<void()>;

  virtual ~LinkListener() = default;

  virtual void OnSessionMessage(const std::shared_ptr<SessionLink>& link,
                                wire::ClientMessage message, Done done) = 0;
  virtual void OnSessionClosed(const std::shared_ptr<SessionLink>& link) = 0;
  virtual void OnExecutorMessage(const std::shared_ptr<ExecutorChannel>& link,
                                 v1::ExecutorMessage message, Done done) = 0;
  virtual void OnExecutorClosed(const std::shared_ptr<ExecutorChannel>& link) = 0;
};

}  // namespace torpor::server
