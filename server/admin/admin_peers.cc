#include "server/admin/admin_peers.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace torpor::server {

bool AdminPeers::Admit(const PeerCredentials& peer) {
  if (!IsAdministrator(peer)) {
    spdlog::warn("process {} of user {} is no administrator, and is sent away from {}",
                 peer.process, peer.user, path_);
    return false;
  }
  const std::pair now(peer.user, peer.process);
  if (std::exchange(last_, now) != now) {
    spdlog::info("process {} of user {} administers", peer.process, peer.user);
  }
  return true;
}

bool AdminPeers::IsAdministrator(const PeerCredentials& peer) const {
  if (peer.user == 0 || peer.user == geteuid()) return true;
  struct stat socket {};
  return stat(path_.c_str(), &socket) == 0 &&
         std::ranges::find(peer.groups, socket.st_gid) != peer.groups.end();
}

}  // namespace torpor::server
