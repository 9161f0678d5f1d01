#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "server/executor/session/batch_runner.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// What was seen of a session's memory; see Learned of node.proto.
struct SeenOfMemory {
  std::vector<Bytes> touched;
  std::vector<Bytes> uploaded;
  std::vector<Bytes> address_holders;
  bool looked_at_all = false;
  bool too_many_holders = false;
};

struct SwapOutOptions {
  bool drop = false;             // gives the memory back afterwards
  bool is_shared = false;        // other sessions have had it open, and may have changed it
  bool forgets_changes = false;  // copies nothing; what is there counts as the image's
  bool becomes_source = false;   // stays as it is until it is dropped; see DeviceImage
  bool look_at_all = false;      // for addresses, not only at what has changed since the last time
  Bytes max_bytes = DeviceImage::kAll;  // to look at, without `drop`
};

struct SwappedOut {
  memory::MovedBytes bytes;  // that were copied
  bool has_more = false;     // that may have changed, beyond SwapOutOptions::max_bytes
};

// Told of what happens in sessions outside of torpord's operations. Called by any thread, which may
// be one that may not call the driver.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  // A session's work has cost the CUDA context.
  virtual void OnContextLost(SessionId session, const cuda_api::CallStatus& error) = 0;
  // All that a swap-in copies is there, `duration` after the swap-in began.
  virtual void OnArrival(SessionId session, const ArrivedBytes& bytes, Duration duration) = 0;
};

// What the sessions of an executor share. All outlive the sessions.
struct SessionEnvironment {
  const Device& device;
  ImageMemory& gpu_memory;
  BlockHasher& hasher;
  ModuleLibrary& modules;
  MathLibraries& libraries;
  KernelOutput& output;
  SessionListener& listener;
};

// One client process as this executor knows it. torpord's operations come from one thread at a
// time and block; batches come from the session's stream; both may come at once.
class Session {
 public:
  Session(const SessionEnvironment& environment, SessionIdentity identity,
          std::unique_ptr<SessionMemory> memory);

  const SessionIdentity& identity() const { return identity_; }
  bool has_lease() const { return lease_.load(std::memory_order_acquire) != 0; }

  // Whether a swap-in still copies, or a lease's work may run.
  bool is_active() const { return has_lease() || memory_->image().arrival().is_pending(); }

  // torpord's operations. FailedPrecondition: not in this state of the lease.
  // Brings the image in this order; the copies may still be under way afterwards, but for
  // `is_whole`. A swap-in of a session that has nothing on the GPU leaves nothing there when it
  // fails. `source`, and what is given: see DeviceImage::SwapIn.
  absl::StatusOr<ArrivedBytes> SwapIn(const std::vector<memory::SwapAllocation>& live,
                                      bool is_whole, ChunkOwner* source = nullptr);
  absl::Status ReleaseSource() { return memory_->image().ReleaseSource(); }
  absl::StatusOr<SwappedOut> SwapOut(const SwapOutOptions& options, CUstream stream,
                                     SeenOfMemory& seen);
  absl::Status MapPeer(const memory::ExtentSet& live, ChunkOwner& owner);
  absl::Status Grow(memory::Extent extent, CUstream stream);
  absl::Status Shrink(memory::Extent extent, const memory::ExtentSet& live);
  // Host memory of the image that is about to leave its file. Waits until all work is done;
  // DeadlineExceeded if it is not.
  absl::Status ReleaseImage(memory::Extent extent, TimePoint deadline);
  // Whether blocks of its memory may be moved, as far as that can be told before.
  bool may_be_moved();
  // Moves one, if it may; see ImageBacking::Move. No operation of any session runs meanwhile.
  absl::StatusOr<bool> Move(const memory::Move& move, CUstream stream);
  absl::Status MapHost(memory::Extent extent) { return memory_->MapHost(extent); }
  absl::Status UnmapHost(memory::Extent extent) { return memory_->UnmapHost(extent); }
  // `learn`: EndLease is to tell of all allocations that are used.
  absl::Status BeginLease(LeaseId lease, bool learn = false);
  // Refuses batches from now on and waits until all work is done; DeadlineExceeded if it is not.
  // `is_last`: nobody waits any more for marks that its work would have set; and the lease may have
  // ended already.
  absl::Status EndLease(LeaseId lease, TimePoint deadline, bool is_last = false);
  // What the session has on the device.
  ImageUse device_memory() const { return memory_->image().use(); }
  // What the last lease used, in order.
  std::vector<Bytes> TakeTouched() { return memory_->image().touches().End(); }
  // Ends whatever lease there is, closes the stream, and gives the device memory back.
  absl::Status Close(TimePoint deadline);

  // The stream. One at a time is attached: PermissionDenied for a wrong key, AlreadyExists while
  // another is. `cancel` ends the stream from another thread. After Detach the caller does not
  // touch the session again.
  absl::Status Attach(const wire::Attach& attach, std::function<void()> cancel);
  void Detach();
  // Before the stream's first batch: forgets the objects of an earlier stream, whose values of
  // variables go to the image. The client makes its objects again.
  absl::Status ResetObjects();
  // Executes a frame. An error means that the stream must end.
  absl::Status RunFrame(std::span<const std::uint8_t> frame, ReplySink& replies);

  // The client sees the error at once.
  void SetStickyError(std::uint32_t cuda_error) { memory_->window().SetStickyError(cuda_error); }

 private:
  bool IsMovable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  absl::Status CheckNoLease(const char* operation) const;
  // Makes the host image equal to what the device has changed, objects included.
  absl::StatusOr<DeviceImage::WrittenBack> WriteBack(Bytes max_bytes, CUstream stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  // Enqueues copies of values of variables and texels from an image that comes where only
  // `resident_before` was.
  absl::Status RestoreObjects(const memory::ExtentSet& resident_before, CUstream stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  // Waits for the batch that runs, if one does, and for the GPU.
  absl::Status Drain(TimePoint deadline);
  // The same; then does `work` before another batch can run.
  absl::Status AtRest(TimePoint deadline, const std::function<absl::Status()>& work);

  const SessionEnvironment environment_;
  const SessionIdentity identity_;
  const std::unique_ptr<SessionMemory> memory_;
  std::atomic<std::uint64_t> lease_{0};

  Mutex stream_mutex_;
  bool attached_ ABSL_GUARDED_BY(stream_mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(stream_mutex_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(stream_mutex_);  // while attached

  // Held while a batch runs.
  Mutex run_mutex_;
  std::unique_ptr<BatchRunner> runner_ ABSL_GUARDED_BY(run_mutex_);
  bool is_fresh_ ABSL_GUARDED_BY(run_mutex_) = true;  // no batch has come to runner_ yet
};

}  // namespace torpor::executor
