#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "proto/wire/doorbell.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/image_arrival.h"
#include "server/executor/runtime/pending_work.h"

namespace torpor::executor {

// The streams of a session. All are non-blocking to the driver, so that sessions never wait for
// each other. CUDA's order of a process's legacy default stream (work there waits for the earlier
// work of all blocking streams, and blocking streams for the legacy stream's) is built here with
// events, and costs nothing while only one stream is used. Not thread-safe; call on the thread that
// executes the session's calls.
class StreamSet {
 public:
  // The client's names of the legacy default stream.
  static constexpr std::uint64_t kLegacy = 0;
  static constexpr std::uint64_t kLegacyHandle = 1;

  // With an `arrival`, which must outlive this, work waits for the parts of the image that were
  // announced for the work (ImageTouches). For `lease` see PendingWork.
  explicit StreamSet(const Device& device, ImageArrival* arrival = nullptr,
                     const std::atomic<std::uint64_t>* lease = nullptr)
      : device_(device), arrival_(arrival), pending_(device, lease) {}
  // Discards the streams. All work must be done.
  ~StreamSet();
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  // `flags` and `priority` as in cudaStreamCreateWithPriority.
  CUresult Create(std::uint64_t id, unsigned flags, int priority);
  // Work of the stream goes on, and Synchronize waits for that work too.
  CUresult Destroy(std::uint64_t id);

  // Finds the driver's stream for new work of `id`, in order with the legacy default stream and
  // after the parts of the image that the work needs. CUDA_ERROR_INVALID_HANDLE if there is no
  // such stream.
  CUresult Use(std::uint64_t id, CUstream& stream);

  // Sends the work of all streams to `stream`, in that stream's order only, until the next call;
  // null ends this.
  void Redirect(CUstream stream) { redirected_ = stream; }

  // What of the streams' work may be unfinished. Work of a redirection is not noted here.
  PendingWork& pending() { return pending_; }

  // Waits for the present work of a stream of the driver; has printed texts written.
  CUresult Wait(CUstream stream);
  // Waits for all work of all streams. Asks the driver about streams that have had work since the
  // last call only.
  CUresult Synchronize();
  // As Synchronize, but CUDA_ERROR_TIMEOUT if work is left at `deadline`.
  CUresult SynchronizeUntil(TimePoint deadline);

 private:
  struct Stream {
    CUstream handle = nullptr;
    CUevent joint = nullptr;         // for the other side of Join to wait for
    bool blocking = true;            // takes part in the legacy rules
    bool unjoined = false;           // the legacy stream has not waited for the latest work
    std::uint64_t legacy_epoch = 0;  // legacy work up to here has been waited for
  };

  CUresult Find(std::uint64_t id, CUstream& stream);
  CUresult UseLegacy();
  CUresult WaitForLegacy(Stream& stream);
  CUresult MakeStream(unsigned flags, int priority, Stream& stream);
  void Close(Stream& stream);
  void Discard(const Stream& stream);
  // Makes `waiter` wait for the present work of `from`.
  CUresult Join(Stream& from, CUstream waiter);

  const Device& device_;
  ImageArrival* const arrival_;
  PendingWork pending_;
  wire::AdaptiveSpin spin_;
  absl::flat_hash_map<std::uint64_t, Stream> streams_;
  std::vector<std::uint64_t> unjoined_;  // ids of streams with `unjoined` set
  Stream legacy_;                        // made at the first use
  std::uint64_t legacy_epoch_ = 0;       // grows with every use of the legacy stream
  bool legacy_recorded_ = false;         // legacy_.joint stands for legacy_epoch_
  CUstream redirected_ = nullptr;
  Stream retired_;  // waits for the work of destroyed streams
};

}  // namespace torpor::executor
