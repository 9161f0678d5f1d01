#include "server/executor/image/holder_process.h"

#include <sys/socket.h>

extern "C" {
#include <sys/pidfd.h>  // of glibc 2.36: has no linkage of its own
}

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace torpor::executor {

absl::StatusOr<UniqueFd> OpenHolderProcess(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::ErrnoToStatus(errno, "cannot ask whose connection this is");
  }
  UniqueFd process(pidfd_open(peer.pid, 0));
  if (process) return process;
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch process ", peer.pid));
}

}  // namespace torpor::executor
