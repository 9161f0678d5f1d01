#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/image_arrival.h"

namespace torpor::executor {

// The streams of one session. All are non-blocking for the driver, so that sessions never wait
// for each other; what CUDA promises about a process's legacy default stream (work there waits
// for the earlier work of all blocking streams, and they for it) is built here with events, and
// costs nothing while only one stream is used. Of the thread that executes the session's calls.
class StreamSet {
 public:
  // The client's names of the legacy default stream.
  static constexpr std::uint64_t kLegacy = 0;
  static constexpr std::uint64_t kLegacyHandle = 1;

  // With an arrival, work waits for what it was said to need of it; that outlives this.
  explicit StreamSet(const Device& device, ImageArrival* arrival = nullptr)
      : device_(device), arrival_(arrival) {}
  ~StreamSet();
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  // `flags` as cudaStreamCreateWithPriority.
  CUresult Create(std::uint64_t id, unsigned flags, int priority);
  // Work that the stream still has goes on, and Synchronize waits for it.
  CUresult Destroy(std::uint64_t id);

  // The driver's stream for new work of `id`, in the right order with the legacy default stream
  // and after what the work needs of the image.
  // CUDA_ERROR_INVALID_HANDLE if there is no such stream.
  CUresult Use(std::uint64_t id, CUstream& stream);

  // Until the next call all work goes to `stream`, whichever it was meant for, and in no other
  // order than that stream's; with null, where it belongs again.
  void Redirect(CUstream stream) { redirected_ = stream; }

  // Waits for all work of all streams.
  CUresult Synchronize();
  // The same, but CUDA_ERROR_TIMEOUT if there is still work at `deadline`.
  CUresult SynchronizeUntil(TimePoint deadline);

 private:
  struct Stream {
    CUstream handle = nullptr;
    CUevent joint = nullptr;         // recorded where the other side must wait
    bool blocking = true;            // takes part in the legacy rules
    bool unjoined = false;           // has work that the legacy stream has not waited for
    std::uint64_t legacy_epoch = 0;  // the legacy work that it has waited for
  };

  CUresult Find(std::uint64_t id, CUstream& stream);
  CUresult UseLegacy();
  CUresult WaitForLegacy(Stream& stream);
  CUresult MakeStream(unsigned flags, int priority, Stream& stream);
  void Close(Stream& stream);
  // Makes `waiter` wait for all the work that `from` has now.
  CUresult Join(Stream& from, CUstream waiter);
  std::vector<CUstream> All() const;

  const Device& device_;
  ImageArrival* const arrival_;
  absl::flat_hash_map<std::uint64_t, Stream> streams_;
  std::vector<std::uint64_t> unjoined_;  // ids of streams with `unjoined` set
  Stream legacy_;                        // made at its first use
  std::uint64_t legacy_epoch_ = 0;       // grows with every use of the legacy stream
  bool legacy_recorded_ = false;         // legacy_.joint stands for legacy_epoch_
  CUstream redirected_ = nullptr;
  Stream retired_;  // waits for what destroyed streams still had to do
};

}  // namespace torpor::executor
