#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "memory/moved_bytes.h"
#include "memory/swap_history.h"
#include "memory/swap_planner.h"
#include "memory/write_back_plan.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/pinned_memory.h"
#include "server/executor/gpu/shared_mapping.h"
#include "server/executor/image/image_arrival.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/image/image_blocks.h"
#include "server/executor/image/image_touches.h"
#include "server/executor/image/peer_source.h"
#include "server/executor/image/swap_options.h"

namespace torpor::executor {

// A session's memory files of its image, mapped.
struct ImageFiles {
  SharedMapping image;
  SharedMapping block_states;
};

// What a swap-in has copied.
struct ArrivedBytes {
  memory::MovedBytes from_host;
  memory::MovedBytes from_peer;

  Bytes total() const { return from_host.total() + from_peer.total(); }
};

// How much of the GPU's memory an image takes.
struct ImageUse {
  Bytes used = 0;  // its allocations
  Bytes held = 0;  // the physical memory that is kept for them
};

// A session's device memory on this GPU: its range of addresses, the memory behind them, and the
// host image to copy from and back to. Extents are bytes from the range's begin; addresses are the
// client's.
//
// Swapping, growing and shrinking come from one thread at a time and block, but for a swap-in's
// copies, which go on after it; `Resolve`, `Contains`, `RefreshAddresses`, `Translate`,
// `MarkDirty`, `SaveRange`, touches() and what notes uploads may be called meanwhile by the thread
// that executes the session's calls, `Export` and `TranslateForSibling` by any.
class DeviceImage {
 public:
  static constexpr Bytes kAll = memory::WriteBackPart::kEndOfAll;

  // Of the client's addresses [base, base + bytes), which `backing` is for; `files` are as large.
  DeviceImage(const Device& device, std::unique_ptr<ImageBacking> backing, BlockHasher& hasher,
              std::uint64_t base, Bytes bytes, ImageFiles files, const SwapOptions& options = {});
  // Nothing of the session runs any more; what was not written back is lost.
  ~DeviceImage();
  DeviceImage(const DeviceImage&) = delete;
  DeviceImage& operator=(const DeviceImage&) = delete;

  // What else a swap-in does. Either may be empty.
  struct ArrivalSteps {
    // Enqueues, with `live` resident, what is to follow the copies on their stream.
    std::function<absl::Status(CUstream)> enqueue_last;
    // Gets the bytes that were copied; see ImageArrival::Finish.
    std::function<void(const ArrivedBytes&)> on_complete;
  };
  // Makes exactly `live` (apart) resident: what is not there yet is copied from the host, in this
  // order. Returns as soon as the copies are enqueued: from then on work must say what it uses
  // (touches()) before it is enqueued. Nothing of the session runs. Gives what is copied.
  // With a `source`, another GPU's copy that equals the host image, it is copied from there as far
  // as that gives its memory, which it keeps until ReleaseSource.
  // Any error leaves everything as it was, ResourceExhausted for example;
  // FailedPrecondition: it is reachable as another GPU's.
  absl::StatusOr<ArrivedBytes> SwapIn(const std::vector<memory::SwapAllocation>& live,
                                      const ArrivalSteps& steps = {}, ChunkOwner* source = nullptr);
  // Waits for the copies and lets go of the source's memory.
  absl::Status ReleaseSource();
  // What a write-back has copied.
  struct WrittenBack {
    memory::MovedBytes bytes;
    memory::ExtentSet extents;
  };
  // Makes the host image equal to the device's if that may have changed: copies the blocks that
  // have. Looks at `max_bytes` at most, rounded up to blocks (of an image that is reachable from
  // elsewhere, at all): the next one goes on there, and the image stays dirty until one has come to
  // the end.
  absl::StatusOr<WrittenBack> WriteBack(CUstream stream, Bytes max_bytes = kAll);
  // Those of the allocations, by offset, in whose host image there are addresses of the session's
  // memory, be it as the client or as the GPU knows it, `where` they are looked for.
  std::vector<Bytes> AddressHolders(const memory::ExtentSet& where) const;
  // Gives all memory back. No work on the session's addresses is pending.
  absl::Status Drop();

  // Its memory holds addresses of the session's memory, which a move would make stale.
  void KeepInPlace() { is_kept_in_place_.store(true, std::memory_order_relaxed); }
  // Whether its blocks may be moved on this GPU while no work is pending: all of it has been looked
  // through, and none of it holds addresses.
  bool may_be_moved() const;
  // Moves one of them; see ImageBacking::Move.
  absl::StatusOr<bool> Move(const memory::Move& move, CUstream stream) {
    return backing_->Move(move, stream);
  }

  // A new allocation, zeroed.
  absl::Status Grow(memory::Extent extent, CUstream stream);
  // The image is resident on another GPU: makes the chunks of exactly `live` reachable from this
  // one, where their owner has them yet. With nothing live lets go of all; then `owner` is not
  // asked. FailedPrecondition if it is resident here.
  absl::Status MapPeer(const memory::ExtentSet& live, ChunkOwner& owner);
  // A descriptor of the chunk for another executor, the caller's; NotFound if it is not resident.
  // Any thread. From now on others may change the image.
  absl::StatusOr<UniqueFd> Export(std::uint64_t chunk);
  // Until it is dropped, other GPUs may copy from it, and it stays where it is.
  void BecomeSource() { is_source_.store(true); }
  // As Export, for one that only reads it until this image is dropped; FailedPrecondition if it is
  // no source, or may differ from the host image.
  absl::StatusOr<UniqueFd> ExportForCopy(std::uint64_t chunk);

  // An allocation is gone; chunks that hold nothing of `live` are given back.
  absl::Status Shrink(memory::Extent extent, const memory::ExtentSet& live);

  // The host image's bytes there, whole chunks that hold nothing live, are about to leave the file:
  // nothing here keeps their pages any more. No copy of the session is pending.
  absl::Status ReleaseHost(memory::Extent extent);

  // Where the GPU finds [address, address + bytes); 0 if that is not resident memory of the
  // session. For any numbers.
  CUdeviceptr Resolve(std::uint64_t address, Bytes bytes) const;
  bool Contains(std::uint64_t address, Bytes bytes) const { return Resolve(address, bytes) != 0; }
  // The double word at `address`, all of it inside the range, as the host image has it: 0 where
  // nobody has written.
  std::uint64_t HostWord(std::uint64_t address) const;
  // The device may now differ from the host image.
  void MarkDirty() { unsaved_from_.store(0, std::memory_order_relaxed); }
  // Whatever it has changed does not matter.
  void ForgetChanges() { unsaved_from_.store(kAll, std::memory_order_relaxed); }
  // `bytes` are about to be uploaded there, or at another place than in the image. Whether they are
  // known to hold addresses of the session's memory: looked for where that matters.
  bool NoteUpload(std::uint64_t address, std::span<const std::uint8_t> bytes);
  // The same of an upload at which nobody looks: `bytes` from `address` on.
  void NoteUnseenUpload(std::uint64_t address, Bytes bytes);
  // Enqueues a copy of [address, address + bytes), which the stream has just written, to the host
  // image, so that uploaded bytes survive this process.
  absl::Status SaveRange(std::uint64_t address, Bytes bytes, CUstream stream);

  // Whether the GPU knows the memory by other addresses than the client; then where it found, when
  // RefreshAddresses was called last, what the client's pointer points to, 0 if that is none to
  // memory here; see AddressTable. For the thread that executes the session's calls.
  bool is_translating() const { return is_translating_; }
  void RefreshAddresses();
  CUdeviceptr Translate(std::uint64_t address) const { return TranslateBy(*addresses_, address); }
  // The same as it is now, for any thread.
  CUdeviceptr TranslateForSibling(std::uint64_t address) const {
    return TranslateBy(*backing_->Addresses(), address);
  }

  std::uint64_t base() const { return base_; }
  Bytes bytes() const { return bytes_; }
  memory::ExtentSet resident() const;
  // What it takes of this GPU; nothing of what it reaches of another's. Any thread.
  ImageUse use() const;
  ImageArrival& arrival() { return arrival_; }
  ImageTouches& touches() { return touches_; }
  const SwapOptions& options() const { return options_; }
  bool dirty() const { return unsaved_from() < kAll; }
  // Whether a write-back of a part has already been here since the device last changed.
  bool is_partly_saved() const { return dirty() && unsaved_from() > 0; }

 private:
  // Others may write at any time to what is exported.
  Bytes unsaved_from() const {
    return is_exported_.load() ? 0 : unsaved_from_.load(std::memory_order_relaxed);
  }
  bool HoldsAddressIn(memory::Extent extent) const;
  CUdeviceptr TranslateBy(const AddressTable& table, std::uint64_t address) const {
    return address - base_ < bytes_ ? table.Translate(address - base_) : 0;
  }
  absl::Status CheckInside(memory::Extent extent) const;
  // Zeroes what `keep` does not cover of the extents: they may hold another function's bytes.
  absl::Status ClearOutside(const std::vector<memory::Extent>& extents,
                            const memory::ExtentSet& keep, CUstream stream);
  // What was backed for nothing.
  void Undo(const std::vector<memory::Extent>& fresh);
  // Groups of what is not there yet.
  std::vector<memory::SwapGroup> GroupsOf(const std::vector<memory::SwapAllocation>& live,
                                          const memory::ExtentSet& resident_before) const;
  // Gives what is copied.
  absl::StatusOr<ArrivedBytes> EnqueueArrival(const std::vector<memory::SwapGroup>& groups,
                                              const std::vector<memory::Extent>& fresh,
                                              const memory::ExtentSet& live,
                                              const ArrivalSteps& steps);
  // Those with bytes that somebody has written, in the order in which they come.
  std::vector<std::uint64_t> WrittenChunks(const std::vector<memory::SwapGroup>& groups) const;
  // Where that fails all comes from the host.
  void OpenSource(ChunkOwner& owner, const std::vector<memory::SwapGroup>& groups);
  // Adds what is copied to `arrived`; what nobody has written is cleared instead.
  absl::Status Bring(memory::Extent extent, CUstream stream, ArrivedBytes& arrived);
  absl::Status CopyIn(memory::Extent extent, CUstream stream);
  // From where the GPU has the bytes of `extent` a second time.
  absl::Status CopyFrom(CUdeviceptr source, memory::Extent extent, CUstream stream);
  absl::Status Clear(memory::Extent extent, CUstream stream);
  absl::Status CopyOut(memory::Extent extent, CUstream stream);
  absl::Status Wait(CUstream stream) const;
  void SetResident(memory::ExtentSet resident) ABSL_LOCKS_EXCLUDED(mutex_);

  const Device& device_;
  const std::unique_ptr<ImageBacking> backing_;
  const bool is_translating_;
  const std::uint64_t base_;
  const Bytes bytes_;
  const SharedMapping host_image_;
  const SwapOptions options_;
  PinnedMemory pinned_;
  ImageBlocks blocks_;
  std::atomic<Bytes> unsaved_from_{kAll};  // from there on the device may differ from the host
  std::atomic<bool> is_exported_{false};
  std::atomic<bool> is_kept_in_place_{false};
  std::atomic<bool> is_source_{false};  // another GPU may be copying from it
  std::atomic<bool> is_peer_{false};    // what is reachable is another GPU's

  mutable Mutex mutex_;
  memory::ExtentSet resident_ ABSL_GUARDED_BY(mutex_);
  ImageArrival arrival_;
  ImageTouches touches_;
  std::unique_ptr<PeerSource> source_;             // of the arrival; of the swapping thread
  std::shared_ptr<const AddressTable> addresses_;  // of the thread that executes the calls
};

}  // namespace torpor::executor
