#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client_shim/core/commands/command_channel.h"
#include "client_shim/core/session/service_thread.h"
#include "client_shim/core/transport/daemon_connection.h"

namespace torpor::shim {

// The work of a session's service thread: takes the daemon's messages, and serves those sockets and
// timers of the command channel that no calling thread serves.
class SessionService final : public ServiceThread::Work {
 public:
  // All must outlive this object. `socket` is the daemon's, for messages to people.
  SessionService(DaemonConnection& daemon, CommandChannel& channel, SessionHealth& health,
                 const Log& log, std::string socket);

  std::optional<ServiceThread::Time> Prepare(std::vector<pollfd>& fds) override;
  void OnReady(std::span<const pollfd> fds) override;

 private:
  void ReadDaemon();
  void OnMessage(wire::ServerMessage message);
  void LoseDaemon(const std::string& why);

  DaemonConnection& daemon_;
  CommandChannel& channel_;
  SessionHealth& health_;
  const Log& log_;
  const std::string socket_;
  bool has_daemon_ = true;
  std::vector<CommandChannel::Watched> links_;  // of the present poll
};

}  // namespace torpor::shim
