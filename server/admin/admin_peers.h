#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "server/unix_socket/socket_acceptor.h"

namespace torpor::server {

// Who may speak to the admin socket: root, torpord's own user, and members of the socket's group.
// The socket's mode says the same; a wider mode, given by mistake, lets nobody else in. For one
// thread.
class AdminPeers {
 public:
  // `path`: of the socket.
  explicit AdminPeers(std::string path) : path_(std::move(path)) {}

  // Whether the peer may speak. Logs peers that may not, and each administrator that differs from
  // the last.
  bool Admit(const PeerCredentials& peer);

 private:
  bool IsAdministrator(const PeerCredentials& peer) const;

  const std::string path_;
  std::pair<uid_t, pid_t> last_{0, 0};  // that was admitted
};

}  // namespace torpor::server
