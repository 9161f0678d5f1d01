#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client_shim/core/commands/command_channel.h"
#include "client_shim/core/session/service_thread.h"
#include "client_shim/core/transport/daemon_connection.h"
#include "client_shim/core/transport/reconnection.h"

namespace torpor::shim {

// The work of a session's service thread: takes the daemon's messages, serves those sockets and
// timers of the command channel that no calling thread serves, and finds the next torpord when the
// session's has gone.
class SessionService final : public ServiceThread::Work {
 public:
  // All must outlive this object.
  SessionService(DaemonConnection& daemon, CommandChannel& channel, SessionHealth& health,
                 const Log& log, ReconnectOptions reconnect);

  std::optional<ServiceThread::Time> Prepare(std::vector<pollfd>& fds) override;
  void OnReady(std::span<const pollfd> fds) override;

 private:
  void ServeDaemon(bool has_events);
  void TakeMessages();
  void OnMessage(wire::ServerMessage message);
  void OnDaemonEnd(const std::string& why);
  void Reconnect();
  void GoOn();
  void Tell(const std::string& message) const;
  void LoseDaemon(cudaError_t error, const std::string& why);

  DaemonConnection& daemon_;
  CommandChannel& channel_;
  SessionHealth& health_;
  const Log& log_;
  const ReconnectOptions reconnect_;
  bool has_daemon_ = true;                      // false once the session is lost
  bool was_told_an_end_ = false;                // the daemon has given the session up
  std::optional<Reconnection> reconnection_;    // while the session is without a torpord
  ServiceThread::Time gone_since_;              // while there is a reconnection
  std::vector<CommandChannel::Watched> links_;  // of the present poll
};

}  // namespace torpor::shim
