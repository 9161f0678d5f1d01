#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "client_shim/core/transport/daemon_port.h"
#include "client_shim/core/transport/grpc_stream.h"
#include "client_shim/core/transport/unix_socket.h"

namespace torpor::shim {

// The stream to torpord after the handshake. Any thread sends and asks; one thread, the session's
// service thread, calls the functions of the second group, which take the messages that arrive. A
// request outlives the stream: it is kept until it has an answer, of this torpord or the next.
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
  // The stream has ended together with torpord: until Resume requests wait, and messages without an
  // answer are dropped.
  void Suspend();
  // Goes on over the stream to the next torpord, which knows the session: sends every request
  // without an answer again, in the old order.
  void Resume(std::unique_ptr<GrpcStream> stream);
  // Ends the connection: every present and future Ask fails. Repeated calls have no effect.
  void Close(const std::string& why);

 private:
  struct Waiter {
    bool is_done = false;
    cudaError_t error = cudaSuccess;
    wire::ServerMessage reply;
    std::condition_variable changed;
  };

  struct Request {
    std::uint64_t id = 0;
    wire::ClientMessage message;
    Waiter* waiter = nullptr;  // on the caller's stack; null: the answer is dropped
  };

  void SendLocked(const wire::ClientMessage& message);
  void Finish(Waiter& waiter, cudaError_t error);

  const std::function<void()> wake_;
  mutable std::mutex mutex_;            // guards what follows
  std::unique_ptr<GrpcStream> stream_;  // replaced by the service thread, with the mutex held
  std::list<Request> unanswered_;       // in the order of sending
  bool is_lost_ = false;
};

}  // namespace torpor::shim
