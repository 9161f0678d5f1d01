#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace torpor::server {

// Who has connected to a Unix socket, as of then (SO_PEERCRED,
// SO_PEERGROUPS).
struct PeerCredentials {
  pid_t process = 0;
  uid_t user = 0;
  std::vector<gid_t> groups{};
};

// Accepts connections of a listening socket on a thread of its own. Without a free
// descriptor the acceptor closes connections at once; accepting goes on when descriptors are free.
class SocketAcceptor {
 public:
  struct Options {
    std::string name{};  // of the socket, for the log
    // How many of the process's last descriptors no connection may take.
    int reserved_descriptors = 0;
    // Whether a peer may connect, called on the acceptor's thread; null: all may.
    std::function<bool(const PeerCredentials&)> admits{};
  };
  // Gets each connection, which does not block, on the acceptor's thread.
  using Take = std::function<void(UniqueFd)>;

  // `listener` does not block. Fails if the system refuses descriptors.
  static absl::StatusOr<std::unique_ptr<SocketAcceptor>> Start(UniqueFd listener, Options options,
                                                               Take take);
  // Accepts nothing any more.
  ~SocketAcceptor();
  SocketAcceptor(const SocketAcceptor&) = delete;
  SocketAcceptor& operator=(const SocketAcceptor&) = delete;

  // Connections refused for want of descriptors. Any thread.
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  SocketAcceptor(UniqueFd listener, UniqueFd stop, UniqueFd spare, Options options, Take take);

  void Serve();
  void Accept();
  void Pass(UniqueFd connection);
  // Closes the next connection, with the descriptor kept for that.
  void RefuseNext();
  void NoteRefused();
  bool HasRoomFor(int descriptor) const;

  const UniqueFd listener_;
  const UniqueFd stop_;
  UniqueFd spare_;
  const Options options_;
  const Take take_;
  TimePoint logged_at_{};  // of the last refusal in the log
  std::atomic<std::uint64_t> refused_{0};
  std::thread thread_;  // the last member: uses all others
};

}  // namespace torpor::server
