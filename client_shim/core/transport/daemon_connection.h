#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "client_shim/core/transport/daemon_port.h"
#include "client_shim/core/transport/grpc_stream.h"
#include "client_shim/core/transport/unix_socket.h"

namespace torpor::shim {

// The stream to torpord after the handshake. Any thread sends and asks; one thread, the session's
// service thread, calls the functions of the second group, which take the messages that arrive.
class DaemonConnection final : public DaemonPort {
 public:
  // `wake` makes the service thread look at EventsToWatch again; called on any thread.
  DaemonConnection(std::unique_ptr<GrpcStream> stream, std::function<void()> wake);
  ~DaemonConnection() override;
  DaemonConnection(const DaemonConnection&) = delete;
  DaemonConnection& operator=(const DaemonConnection&) = delete;

  void Send(const wire::ClientMessage& message) override;
  cudaError_t Ask(std::uint64_t request_id, const wire::ClientMessage& request,
                  wire::ServerMessage& reply) override;
  void Tell(std::uint64_t request_id, const wire::ClientMessage& request) override;

  int fd() const { return stream_->fd(); }
  // Poll events that concern the socket.
  short EventsToWatch() const;
  // Whether the stream has ended, and why (for people).
  bool IsClosed(std::string& why) const;
  // Moves bytes to and from the socket without waiting.
  void Transfer();
  enum class Step { kMessage, kNothing, kMalformed };
  // Takes the next message that has arrived.
  Step Next(wire::ServerMessage& message);
  // Hands an answer to the call of Ask that waits. False if `message` is no answer to a request.
  bool Answer(wire::ServerMessage message);
  // Waits until torpord ends the stream, or until the deadline; only before the service thread
  // starts. A connection that ends with a message unread may take the message along.
  void AwaitEnd(Deadline deadline);
  // Ends the connection: every present and future Ask fails. Repeated calls have no effect.
  void Close(const std::string& why);

 private:
  struct Waiter {
    bool is_done = false;
    cudaError_t error = cudaSuccess;
    wire::ServerMessage reply;
    std::condition_variable changed;
  };

  void SendLocked(const wire::ClientMessage& message);
  void Finish(Waiter& waiter, cudaError_t error);

  const std::function<void()> wake_;
  mutable std::mutex mutex_;  // guards what follows
  const std::unique_ptr<GrpcStream> stream_;
  std::unordered_map<std::uint64_t, Waiter*> waiters_;  // by request; on the callers' stacks
  std::unordered_set<std::uint64_t> told_;              // requests whose answers are dropped
  bool is_lost_ = false;
};

}  // namespace torpor::shim
