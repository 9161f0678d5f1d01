#include "server/supervisor/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace torpor::server {

absl::StatusOr<Pipe> OpenPipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace torpor::server
