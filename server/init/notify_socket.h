#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::init {

// The socket on which a service manager hears of its program. Not thread-safe.
class NotifySocket {
 public:
  struct Datagram {
    pid_t sender = 0;  // as the kernel vouches for
    std::string text;
    std::vector<UniqueFd> descriptors;  // close-on-exec
    bool is_cut = false;  // text or descriptors are missing: too many, or no room for them here
  };

  // Opens a socket with an abstract name of the kernel's choice.
  static absl::StatusOr<NotifySocket> Open();

  // What NOTIFY_SOCKET has to be.
  const std::string& name() const { return name_; }
  // Becomes readable when a message comes.
  int descriptor() const { return socket_.get(); }

  // The next message; nullopt if none has come. Does not block.
  std::optional<Datagram> Receive();

 private:
  NotifySocket(UniqueFd socket, std::string name)
      : socket_(std::move(socket)), name_(std::move(name)) {}

  UniqueFd socket_;
  std::string name_;
};

}  // namespace torpor::init
