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

// Observations on a session's memory, as offsets of allocations; see Learned of node.proto.
struct MemoryFindings {
  std::vector<Bytes> touched;
  std::vector<Bytes> uploaded;
  std::vector<Bytes> address_holders;
  bool searched_whole_image = false;
  bool too_many_holders = false;
};

// How to write an image back, and whether to leave the GPU.
struct SwapOutOptions {
  bool drop = false;       // releases the GPU memory afterwards
  bool is_shared = false;  // other sessions have mapped the image, and may have changed memory
  bool forgets_changes = false;         // copies nothing; the host image counts as current
  bool becomes_source = false;          // stays in place as source until dropped; see DeviceImage
  bool searches_whole_image = false;    // for addresses, not only what has changed
  Bytes max_bytes = DeviceImage::kAll;  // to examine; ignored with `drop`
};

// Result of Session::SwapOut.
struct SwappedOut {
  memory::MovedBytes bytes;  // copied bytes
  bool has_more = false;     // bytes beyond SwapOutOptions::max_bytes may have changed
};

// Receives events of sessions that are no results of torpord's operations. Thread-safe; may be
// called on a thread that must not call the driver.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  // A session's work has cost the CUDA context.
  virtual void OnContextLost(SessionId session, const cuda_api::CallStatus& error) = 0;
  // All bytes of a swap-in have arrived, `duration` after the swap-in began.
  virtual void OnArrival(SessionId session, const ArrivedBytes& bytes, Duration duration) = 0;
};

// Objects shared by the sessions of an executor. All must outlive the sessions.
struct SessionEnvironment {
  const Device& device;
  ImageMemory& gpu_memory;
  BlockHasher& hasher;
  ModuleLibrary& modules;
  MathLibraries& libraries;
  KernelOutput& output;
  SessionListener& listener;
};

// One client session on the executor: its memory, CUDA objects, lease and stream. torpord's
// operations come from one thread at a time and block; batches come from the session's stream;
// operations and batches may overlap.
class Session {
 public:
  Session(const SessionEnvironment& environment, SessionIdentity identity,
          std::unique_ptr<SessionMemory> memory);

  const SessionIdentity& identity() const { return identity_; }
  bool has_lease() const { return lease_.load(std::memory_order_acquire) != 0; }

  // Whether a swap-in still copies, or a lease's work may run.
  bool is_active() const { return has_lease() || memory_->image().arrival().is_pending(); }

  // torpord's operations. FailedPrecondition if the state of the lease does not allow the
  // operation. Brings the image to the GPU in the order of `live`; copies may still be in flight on
  // return, unless `is_whole`. If the session had nothing on the GPU, a failed swap-in leaves
  // nothing there. For `source` and the result see DeviceImage::SwapIn. `refreshes`: of an older
  // copy on the GPU, parts that the host image has otherwise by now come anew. `on_begun`, unless
  // null, is called when a lease may begin, if that is earlier than the return; after an error
  // later than that the context is as good as lost.
  absl::StatusOr<ArrivedBytes> SwapIn(const std::vector<memory::SwapAllocation>& live,
                                      bool is_whole, std::unique_ptr<PeerCopy> source = nullptr,
                                      bool refreshes = false,
                                      const std::function<void()>& on_begun = nullptr);
  absl::Status ReleaseSource() { return memory_->image().ReleaseSource(); }
  absl::StatusOr<SwappedOut> SwapOut(const SwapOutOptions& options, CUstream stream,
                                     MemoryFindings& findings);
  absl::Status MapPeer(const memory::ExtentSet& live, ChunkOwner& owner);
  // `is_replica`: the new memory counts as no change.
  absl::Status Grow(memory::Extent extent, CUstream stream, bool is_replica = false);
  absl::Status Shrink(memory::Extent extent, const memory::ExtentSet& live);
  // As DeviceImage::ReleaseHost. But for kTenantFile, waits until all work is done;
  // DeadlineExceeded otherwise.
  absl::Status ReleaseImage(memory::Extent extent, HostPlaces places, TimePoint deadline);
  // Whether blocks of the session's memory may be moved, as far as known in advance.
  bool may_be_moved();
  // Moves one block if allowed; see ImageBacking::Move. Requires that no operation of any session
  // runs meanwhile.
  absl::StatusOr<bool> Move(const memory::Move& move, CUstream stream);
  // Pins a piece of the image's host memory ahead of need; see DeviceImage::PinNext.
  absl::StatusOr<bool> PinNext() { return memory_->image().PinNext(); }
  absl::Status MapHost(memory::Extent extent) { return memory_->MapHost(extent); }
  absl::Status UnmapHost(memory::Extent extent) { return memory_->UnmapHost(extent); }
  // `learn` makes TakeTouched report all used allocations.
  absl::Status BeginLease(LeaseId lease, bool learn = false);
  // Refuses batches from now on and waits until all work is done; DeadlineExceeded otherwise.
  // `is_last` releases every wait for marks of the session's window, and accepts a lease that has
  // already ended.
  absl::Status EndLease(LeaseId lease, TimePoint deadline, bool is_last = false);
  // Memory of the session on the GPU.
  ImageUse device_memory() const { return memory_->image().use(); }
  // Returns the allocations used in the last lease, in the order of first use.
  std::vector<Bytes> TakeTouched() { return memory_->image().touches().End(); }
  // Ends the lease if there is a lease, closes the stream, and releases the GPU memory.
  absl::Status Close(TimePoint deadline);

  // The stream, attached one at a time. PermissionDenied for a wrong key; AlreadyExists while
  // another stream is attached. `cancel` ends the stream from another thread. The caller must not
  // use the session after Detach.
  absl::Status Attach(const wire::Attach& attach, std::function<void()> cancel);
  void Detach();
  // Call before the stream's first batch: drops the objects of an earlier stream, after saving
  // values of variables to the image. The client creates its objects again.
  absl::Status ResetObjects();
  // Executes a frame. After an error the stream must end.
  absl::Status RunFrame(std::span<const std::uint8_t> frame, ReplySink& replies);

  // Shows the error to the client without a reply.
  void SetStickyError(std::uint32_t cuda_error) { memory_->window().SetStickyError(cuda_error); }

 private:
  absl::Status CheckLease(const ReceivedBatch& batch) const;
  // Executes as many of the batch's commands as there is room for on the GPU.
  absl::Status RunSome(ReceivedBatch& batch, ReplySink& replies);
  std::unique_ptr<BatchRunner> MakeRunner() const;
  bool IsMovable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  absl::Status CheckNoLease(const char* operation) const;
  std::unique_ptr<BatchRunner> MakeRunner();
  DeviceImage::ArrivalSteps StepsOfArrival();
  // A swap-in without anything beside; `waits` for the last copy.
  absl::StatusOr<ArrivedBytes> SwapInAtOnce(const std::vector<memory::SwapAllocation>& live,
                                            const DeviceImage::ArrivalSteps& steps,
                                            std::unique_ptr<PeerCopy> source, bool waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  // A checkpoint in a lease, on the thread of the running batch.
  absl::Status SaveInLease(std::uint64_t last_command) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Makes the host image equal to the device's memory, values of objects included.
  absl::StatusOr<DeviceImage::WrittenBack> WriteBack(Bytes max_bytes, CUstream stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  // Enqueues copies of variables' values and texels from an image of which only `resident_before`
  // was resident.
  absl::Status RestoreObjects(const memory::ExtentSet& resident_before, CUstream stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_mutex_);
  // Waits for the running batch, if any, and for the GPU.
  absl::Status Drain(TimePoint deadline);
  // Like Drain, then runs `work` before another batch can run.
  absl::Status AtRest(TimePoint deadline, const std::function<absl::Status()>& work);

  const SessionEnvironment environment_;
  const SessionIdentity identity_;
  const std::unique_ptr<SessionMemory> memory_;
  std::atomic<std::uint64_t> lease_{0};

  Mutex stream_mutex_;
  bool attached_ ABSL_GUARDED_BY(stream_mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(stream_mutex_) = false;
  absl::CondVar detached_;                                       // attached_ is false again
  std::function<void()> cancel_ ABSL_GUARDED_BY(stream_mutex_);  // while attached

  // Held while commands run, and not while they wait for room.
  TimedMutex run_mutex_;
  std::unique_ptr<BatchRunner> runner_ ABSL_GUARDED_BY(run_mutex_);
  // The last command of all runners. Less than the session's last, if another executor had it.
  std::uint64_t last_command_ ABSL_GUARDED_BY(run_mutex_) = 0;
  // Written back by checkpoints in leases, and not scanned for addresses yet.
  memory::ExtentSet unscanned_ ABSL_GUARDED_BY(run_mutex_);
  // Held by whoever grows or shrinks the image, or writes it back in a lease; after run_mutex_.
  Mutex growth_mutex_;
  bool is_fresh_ ABSL_GUARDED_BY(run_mutex_) = true;  // no batch has reached runner_ yet
};

}  // namespace torpor::executor
