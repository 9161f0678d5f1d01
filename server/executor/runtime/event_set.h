#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/wire/batch.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// The events of a session. An event that completed on another GPU is known here by the time of
// completion (CLOCK_MONOTONIC). Not thread-safe; call on the thread that executes the session's
// calls. CUDA_ERROR_INVALID_HANDLE: the session has no such event.
class EventSet {
 public:
  explicit EventSet(const Device& device) : device_(device) {}
  ~EventSet();
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  // `flags` as in cudaEventCreateWithFlags.
  CUresult Create(std::uint64_t id, unsigned flags);
  CUresult Destroy(std::uint64_t id);
  // Makes the event an event that completed at `completed_ns` on another GPU.
  CUresult Import(std::uint64_t id, std::int64_t completed_ns);
  CUresult Record(std::uint64_t id, CUstream stream);
  CUresult Wait(std::uint64_t id, CUstream stream);
  CUresult Synchronize(std::uint64_t id);
  CUresult ElapsedTime(std::uint64_t start, std::uint64_t end, float& milliseconds);

  // Appends the completion times of all events that were recorded since the last call. All of the
  // session's work must be done.
  CUresult TakeCompleted(std::vector<wire::EventTime>& times);

 private:
  enum class State { kNeverRecorded, kRecorded, kImported };
  struct Event {
    CUevent handle = nullptr;
    bool timed = true;
    bool reported = true;  // recorded and reported by TakeCompleted
    State state = State::kNeverRecorded;
    std::int64_t completed_ns = 0;  // of kImported
  };

  Event* Find(std::uint64_t id);
  // Finds when the complete `event` completed.
  CUresult CompletedAt(const Event& event, std::int64_t& ns);
  // Makes reference_ an event that has just completed, at reference_ns_.
  CUresult SetReference();

  const Device& device_;
  absl::flat_hash_map<std::uint64_t, Event> events_;
  std::vector<std::uint64_t> unreported_;
  CUstream reference_stream_ = nullptr;  // made at first use, like the event
  CUevent reference_ = nullptr;
  std::int64_t reference_ns_ = 0;
};

}  // namespace torpor::executor
