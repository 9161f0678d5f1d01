#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "proto/wire/doorbell.h"
#include "proto/wire/record_reader.h"
#include "proto/wire/ring_file.h"
#include "server/executor/gpu/device.h"
#include "server/executor/session/session_registry.h"

namespace torpor::executor {

// Serves one session over rings, on a thread of its own, as ExecutionService::Run does over gRPC:
// executes the batches and writes the replies. The client may write anything into the rings at any
// time; a session with a broken ring ends, with a warning in the log and a notice to the client.
class RingSession final : public ReplySink {
 public:
  // Makes the memory file and starts the thread, which answers `request` on `connection` first.
  // `device` and `registry` must outlive the session; `on_finished` is called on the thread, last.
  static absl::StatusOr<std::unique_ptr<RingSession>> Start(UniqueFd connection,
                                                            const wire::RingRequest& request,
                                                            const Device& device,
                                                            SessionRegistry& registry,
                                                            std::function<void()> on_finished);
  // Waits for the thread.
  ~RingSession() override;

  // The client is gone or must go: the session ends after the present batch. Wakes the thread; a
  // hostile client can undo one wake-up, so repeat the call until is_finished(). Thread-safe.
  void End();
  bool is_finished() const { return is_finished_.load(std::memory_order_acquire); }
  // For poll: POLLHUP or POLLRDHUP says that the client is gone.
  int connection() const { return connection_.get(); }

  // ReplySink, for the session's thread. Waits for room while the client lives.
  void Send(std::span<const std::uint8_t> reply) override;

 private:
  RingSession(UniqueFd connection, UniqueFd file, std::unique_ptr<wire::RingFile> rings,
              const wire::RingRequest& request, const Device& device, SessionRegistry& registry,
              std::function<void()> on_finished);

  wire::RingPage& page() const { return rings_->page(); }
  void Cancel();
  void Run();
  absl::Status Serve();
  absl::Status ServeBatches(Session& session);
  absl::Status Answer(int error) const;
  void AwaitRecord();
  void AwaitRoom(std::size_t bytes);
  void OfferRoom();
  void WakeClient();
  void Notify(wire::RingNotice notice, std::string_view text) const;

  const UniqueFd connection_;
  UniqueFd file_;
  const std::unique_ptr<wire::RingFile> rings_;
  const wire::RingRequest request_;
  const Device& device_;
  SessionRegistry& registry_;
  const std::function<void()> on_finished_;
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> is_finished_{false};

  // Of the thread.
  wire::RecordReader requests_;
  wire::RingWriter replies_;
  wire::AdaptiveSpin spin_;
  std::vector<std::uint8_t> record_;  // a reply behind its length; reused

  std::thread thread_;
};

}  // namespace torpor::executor
