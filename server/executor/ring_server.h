#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "server/executor/gpu/device.h"
#include "server/executor/ring_session.h"
#include "server/executor/session/session_registry.h"

namespace torpor::executor {

// Accepts clients that want rings, each for a RingSession, and notices on a thread of its own when
// a client is gone.
class RingServer {
 public:
  // Listens at `path`, with the file's mode. `device` and `registry` must outlive the server.
  static absl::StatusOr<std::unique_ptr<RingServer>> Start(const std::string& path, mode_t mode,
                                                           const Device& device,
                                                           SessionRegistry& registry);
  // Ends all sessions and waits for their present batches.
  ~RingServer();
  RingServer(const RingServer&) = delete;
  RingServer& operator=(const RingServer&) = delete;

  // Ends all sessions; waits for their present batches, at most for `grace`.
  void Shutdown(Duration grace);

 private:
  RingServer(UniqueFd listener, UniqueFd wake, const Device& device, SessionRegistry& registry);

  void Serve();
  // Waits for events, and handles them.
  void ServeOnce();
  void Accept();
  // Takes a new connection's request. Returns false while there is none.
  bool TakeRequest(UniqueFd& connection);

  const UniqueFd listener_;
  const UniqueFd wake_;
  const Device& device_;
  SessionRegistry& registry_;
  std::atomic<bool> is_stopping_{false};

  // Of the thread.
  std::vector<UniqueFd> fresh_;  // connections without a request so far
  std::vector<std::unique_ptr<RingSession>> sessions_;
  std::vector<std::unique_ptr<RingSession>> ending_;
  bool cannot_accept_ = false;  // for want of descriptors

  std::promise<void> stopped_;
  std::future<void> has_stopped_ = stopped_.get_future();
  std::thread thread_;
};

}  // namespace torpor::executor
