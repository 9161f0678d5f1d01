#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/units.h"
#include "memory/checkpoint.h"
#include "memory/extent_set.h"
#include "memory/moved_bytes.h"
#include "memory/swap_history.h"
#include "memory/swap_planner.h"
#include "memory/write_back_plan.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/shared_mapping.h"
#include "server/executor/image/host_image.h"
#include "server/executor/image/image_addresses.h"
#include "server/executor/image/image_arrival.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/image/image_blocks.h"
#include "server/executor/image/image_copies.h"
#include "server/executor/image/image_touches.h"
#include "server/executor/image/image_uploads.h"
#include "server/executor/image/peer_source.h"
#include "server/executor/image/swap_options.h"
#include "server/executor/image/tenant_memory.h"

namespace torpor::executor {

// A session's memory files behind the image, mapped.
struct ImageFiles {
  SharedMapping image;
  SharedMapping annex;  // as large
  ImageBlocks::Files blocks;
  std::shared_ptr<TenantMemory> tenant;  // null: no block lies in the tenant's file
};

// Bytes that a swap-in has copied.
struct ArrivedBytes {
  memory::MovedBytes from_host;
  memory::MovedBytes from_peer;

  Bytes total() const { return from_host.total() + from_peer.total(); }
};

// How much of the GPU's memory an image takes.
struct ImageUse {
  Bytes used = 0;  // its allocations
  Bytes held = 0;  // the physical memory behind the allocations
};

// A session's device memory on this GPU: its part of a range of addresses, the memory behind them,
// and the host image to copy from and back to. Extents are bytes from the range's begin; addresses
// are the client's. Other sessions may own other parts of the range; the session's are those that
// allocations have named, and the host image is mapped there.
//
// Swapping, growing and shrinking come from one thread at a time and block, except that a swap-in's
// copies go on after the call, and ContinueSwapIn runs beside the session's work. Meanwhile the
// thread that executes the session's calls may call
// `Resolve`, `Contains` and `MarkDirty`, and use addresses(), touches() and uploads(); any thread
// may call `ShareChunk` and `ChunkForCopy`.
class DeviceImage {
 public:
  static constexpr Bytes kAll = memory::WriteBackPart::kEndOfAll;

  // For client's addresses in [base, base + bytes); `backing` and `files` cover the same range.
  DeviceImage(const Device& device, std::unique_ptr<ImageBacking> backing, BlockHasher& hasher,
              std::uint64_t base, Bytes bytes, ImageFiles files, const SwapOptions& options = {});
  // No work of the session runs. Changes that were not written back are lost.
  ~DeviceImage();
  DeviceImage(const DeviceImage&) = delete;
  DeviceImage& operator=(const DeviceImage&) = delete;

  // Further steps of a swap-in. Either may be empty.
  struct ArrivalSteps {
    // Enqueues work behind the copies, on the copies' stream, with `live` resident.
    std::function<absl::Status(CUstream)> enqueue_last;
    // Called with the copied bytes; see ImageArrival::Steps.
    std::function<void(const ArrivedBytes&)> on_complete;
  };
  // Makes exactly `live` (disjoint) resident: copies missing allocations from the host, in this
  // order. Returns the bytes to copy as soon as the copies are enqueued; from then on work must
  // announce the memory to use (touches()) before being enqueued. No work of the session runs.
  // A `source` is another GPU's copy, equal to the host image: chunks come from there as far as the
  // owner gives them. The source is kept until ReleaseSource.
  // An error (ResourceExhausted, for example) leaves everything unchanged. FailedPrecondition: the
  // image is resident on another GPU and imported here.
  absl::StatusOr<ArrivedBytes> SwapIn(const std::vector<memory::SwapAllocation>& live,
                                      const ArrivalSteps& steps = {},
                                      std::unique_ptr<PeerCopy> source = nullptr);
  // The same in three parts. BeginSwapIn returns when the first copies are enqueued, and may fail
  // as SwapIn does. From then on the session works; what needs memory whose copy is not enqueued
  // yet enqueues up to there. ContinueSwapIn enqueues all copies, and FinishSwapIn, while no
  // command of the session is executed, what goes behind. An error of the latter two is as bad as a
  // lost context: work may use the memory.
  absl::Status BeginSwapIn(const std::vector<memory::SwapAllocation>& live,
                           const ArrivalSteps& steps);
  absl::Status ContinueSwapIn();
  absl::StatusOr<ArrivedBytes> FinishSwapIn();
  // Call before SwapIn of an image that another GPU has had since it was last in step here: parts
  // that have changed in the host image count as missing from now on. FailedPrecondition if the GPU
  // has changes that were not written back.
  absl::Status ForgetStale();
  // Waits for the copies and lets go of the source.
  absl::Status ReleaseSource();
  // Bytes and extents that a write-back has copied.
  struct WrittenBack {
    memory::MovedBytes bytes;
    memory::ExtentSet extents;
  };
  // Makes the host image equal to the device's: copies the blocks that have changed, if any may
  // have. Looks at `max_bytes` at most, rounded up to blocks, or at all of an exported image. The
  // next write-back goes on from there; the image stays dirty until a write-back reaches the end.
  // CommitCheckpoint follows the last.
  absl::StatusOr<WrittenBack> WriteBack(CUstream stream, Bytes max_bytes = kAll);
  // Notes that the host image is as of the session's command with this number, unless a write-back
  // is still to come.
  void CommitCheckpoint(std::uint64_t command);
  // As of which command the host image is.
  memory::Checkpoint checkpoint() const { return blocks_.checkpoint(); }
  // Returns the offsets of allocations whose host image holds addresses of the session's memory,
  // the client's or the GPU's. Looks only into the extents `where`.
  std::vector<Bytes> AddressHolders(const memory::ExtentSet& where) const;
  // Gives back all memory. No work on the session's addresses is pending.
  absl::Status Drop();

  // Forbids moves: the memory holds addresses of the session's memory, which would go stale.
  void KeepInPlace() { is_kept_in_place_.store(true, std::memory_order_relaxed); }
  // Whether blocks may be moved on this GPU while no work is pending: the whole image has been
  // scanned, and no address was found.
  bool may_be_moved() const;
  // Moves a block; see ImageBacking::Move.
  absl::StatusOr<bool> Move(const memory::Move& move, CUstream stream) {
    return backing_->Move(move, stream);
  }

  // Adds a new allocation, zeroed.
  absl::Status Grow(memory::Extent extent, CUstream stream);
  // For an image that is resident on another GPU: maps the chunks of exactly `live` here, as far as
  // `owner` has backed them. An empty `live` unmaps all, without asking `owner`. FailedPrecondition
  // if the image is resident here.
  absl::Status MapPeer(const memory::ExtentSet& live, ChunkOwner& owner);
  // Returns the chunk for another executor, which may change the image from now on. NotFound if the
  // chunk is not resident. Waits for a swap-in's copies. Any thread.
  absl::StatusOr<CUmemGenericAllocationHandle> ShareChunk(std::uint64_t chunk);
  // Lets other GPUs copy from this image, which is not moved from now on, until Drop.
  void BecomeSource() { is_source_.store(true); }
  // As ShareChunk, for an executor that only reads the chunk, until Drop. FailedPrecondition if the
  // image is no source, or may differ from the host image.
  absl::StatusOr<CUmemGenericAllocationHandle> ChunkForCopy(std::uint64_t chunk);

  // Removes an allocation, and gives back chunks without bytes of `live`.
  absl::Status Shrink(memory::Extent extent, const memory::ExtentSet& live);
  // Grows with every removed allocation: ranges that were resident before may be no more. Any
  // thread.
  std::uint64_t removals() const { return removals_.load(std::memory_order_relaxed); }

  // Pins a piece of the host image ahead of its copy, wherever written and by whichever executor.
  // Returns whether one was left to pin. Requires that no operation of the session runs.
  absl::StatusOr<bool> PinNext();

  // Unpins pages of the host image, as HostImage::Release.
  absl::Status ReleaseHost(memory::Extent extent, HostPlaces places = HostPlaces::kOwn);

  // Returns the GPU's address of [address, address + bytes); 0 if the range is not resident memory
  // of the session. Takes any numbers.
  CUdeviceptr Resolve(std::uint64_t address, Bytes bytes) const;
  bool Contains(std::uint64_t address, Bytes bytes) const { return Resolve(address, bytes) != 0; }
  // Returns the host image's double word at `address`; 0 if never written, or not the session's.
  std::uint64_t HostWord(std::uint64_t address) const;
  // Notes that the device may now differ from the host image.
  void MarkDirty() { unsaved_from_.store(0, std::memory_order_relaxed); }
  // Drops the device's changes: the next write-back copies nothing.
  void ForgetChanges() { unsaved_from_.store(kAll, std::memory_order_relaxed); }
  std::uint64_t base() const { return addresses_.base(); }
  Bytes bytes() const { return addresses_.bytes(); }
  memory::ExtentSet resident() const;
  // Returns the memory in use on this GPU, without imported memory of another GPU. Any thread.
  ImageUse use() const;
  ImageAddresses& addresses() { return addresses_; }
  ImageArrival& arrival() { return arrival_; }
  ImageTouches& touches() { return touches_; }
  // For uploads to memory that the image Contains.
  ImageUploads& uploads() { return uploads_; }
  const SwapOptions& options() const { return options_; }
  bool dirty() const { return unsaved_from() < kAll; }
  // Whether a write-back of a part has already been here since the device last changed.
  bool is_partly_saved() const { return dirty() && unsaved_from() > 0; }

 private:
  // Other executors may write to exported memory at any time.
  Bytes unsaved_from() const {
    return is_exported_.load() ? 0 : unsaved_from_.load(std::memory_order_relaxed);
  }
  // Whether changes are known that no write-back has reached.
  bool has_unsaved() const { return unsaved_from_.load(std::memory_order_relaxed) < kAll; }
  // Zeroes the bytes of the plan's blocks that are not live, in the blocks' homes.
  absl::Status ClearGaps(const memory::WriteBackPlan& plan, const memory::ExtentSet& live);
  // Undoes what another executor wrote back and could not complete.
  absl::Status ReturnToCheckpoint();
  bool HoldsAddressIn(memory::Extent extent) const;
  // Prepares the host's side for an allocation, which makes the extent the session's.
  absl::Status MapHostPart(memory::Extent extent);
  // Gives back `fresh` after an error, newly backed in vain.
  void Undo(const std::vector<memory::Extent>& fresh);
  // Backs `live` and begins the arrival; enqueues nothing yet.
  absl::Status OpenSwapIn(const std::vector<memory::SwapAllocation>& live,
                          const ArrivalSteps& steps, std::unique_ptr<PeerCopy> source);
  // Work that uses `live` is about to come.
  void AdmitWork(const std::vector<memory::SwapAllocation>& live);
  // After an error before AdmitWork: as before OpenSwapIn.
  void UndoSwapIn();
  absl::Status EnqueueGroup(const memory::SwapGroup& group);
  absl::Status EnqueueLast(const ArrivalSteps& steps);
  // Maps what is unprepared in the chunks of `piece`, and enqueues the clearing around live bytes.
  // The GPU copies while later chunks are still being mapped.
  absl::Status Prepare(memory::Extent piece);
  // Opens source_ for what has been written of the groups.
  void OpenSource(std::unique_ptr<PeerCopy> copy, const std::vector<memory::SwapGroup>& groups);
  // Never-written parts are cleared in place of copied.
  absl::Status Bring(memory::Extent extent);
  void SetResident(memory::ExtentSet resident) ABSL_LOCKS_EXCLUDED(mutex_);

  // The latest swap-in.
  struct Arriving {
    memory::ExtentSet live;
    memory::ExtentSet resident_before;
    std::vector<memory::Extent> fresh;  // newly backed
    memory::ExtentSet unprepared;       // of `fresh`
    ArrivedBytes copied;                // so far
  };

  const Device& device_;
  const std::unique_ptr<ImageBacking> backing_;
  const SwapOptions options_;
  ImageAddresses addresses_;
  ImageBlocks blocks_;
  HostImage host_;
  const ImageCopies copies_;
  std::atomic<Bytes> unsaved_from_{kAll};  // begin of possible differences from the host
  std::atomic<std::uint64_t> removals_{0};
  std::atomic<bool> is_exported_{false};
  std::atomic<bool> is_kept_in_place_{false};
  std::atomic<bool> is_source_{false};  // another GPU may be copying from here
  std::atomic<bool> is_peer_{false};    // the mapped memory is another GPU's

  mutable Mutex mutex_;
  memory::ExtentSet resident_ ABSL_GUARDED_BY(mutex_);
  ImageArrival arrival_;
  ImageTouches touches_;
  ImageUploads uploads_;
  Arriving arriving_;                   // of the thread that enqueues for arrival_
  std::unique_ptr<PeerSource> source_;  // likewise
};

}  // namespace torpor::executor
