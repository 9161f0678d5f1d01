#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/event_pool.h"

namespace torpor::executor {

// The work of a session on the GPU that is not known to be done: on which streams, and how much, by
// events between. Bounds how much of a session's work waits in the driver (QueueRoom). A piece is
// what a single call enqueues. Not thread-safe; call with the device current.
class PendingWork {
 public:
  // Both must outlive this. `lease` is the session's lease as other threads set it; null: no lease
  // ever ends.
  explicit PendingWork(const Device& device, const std::atomic<std::uint64_t>* lease = nullptr)
      : device_(device), lease_(lease), events_(device) {}
  ~PendingWork() { Clear(); }
  PendingWork(const PendingWork&) = delete;
  PendingWork& operator=(const PendingWork&) = delete;

  // Notes pieces of work that are about to be enqueued on `stream`.
  void Note(CUstream stream, std::size_t pieces = 1);
  // Notes further pieces of the work that was noted last.
  void NoteMore(std::size_t pieces);
  // Counts the work of `from`, which will be destroyed, as work of `to`, which waits for it.
  void Move(CUstream from, CUstream to);

  // Whether there is room for further work. Asks the driver only when the room known of is used up;
  // then there is none until half of it is free.
  bool HasRoom();
  // Waits until there is room. False if the lease has ended before.
  bool AwaitRoom();
  // Sets the lease under which the following work comes.
  void SetLease(LeaseId lease) { own_lease_ = lease.value; }

  // Returns the streams that have had work since the last Clear.
  std::vector<CUstream> Streams() const;
  // Notes that all work is done.
  void Clear();

  // Returns the pieces that may be unfinished, as far as known.
  std::size_t pieces() const { return pieces_; }

 private:
  struct Stream {
    CUstream handle = nullptr;
    std::size_t unmarked = 0;  // pieces since the latest mark
  };
  struct Mark {
    CUevent event = nullptr;
    std::size_t pieces = 0;  // done once the event is
  };

  Stream& StreamOf(CUstream handle);
  // Records an event behind the stream's work so far, if the driver can.
  void SetMark(Stream& stream);
  // Drops the marks that have been reached.
  void Look();

  const Device& device_;
  const std::atomic<std::uint64_t>* const lease_;
  std::uint64_t own_lease_ = 0;
  EventPool events_;
  std::vector<Stream> streams_;
  absl::flat_hash_map<CUstream, std::size_t> places_;  // in streams_
  std::size_t latest_ = 0;                             // place of the stream noted last
  std::vector<Mark> marks_;
  std::size_t pieces_ = 0;
  bool is_full_ = false;
  bool is_in_room_ = false;  // has entered the device's QueueRoom
};

}  // namespace torpor::executor
