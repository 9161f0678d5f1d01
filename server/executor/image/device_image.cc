#include "server/executor/image/device_image.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::executor {
namespace {

// Plans the groups of the missing allocations.
std::vector<memory::SwapGroup> GroupsOf(const std::vector<memory::SwapAllocation>& live,
                                        const memory::ExtentSet& resident_before,
                                        const SwapOptions& options) {
  std::vector<memory::Extent> absent;
  for (const memory::SwapAllocation& allocation : live) {
    for (const memory::Extent& gap : resident_before.Gaps(allocation.extent)) absent.push_back(gap);
  }
  switch (options.pipeline) {
    case SwapPipeline::kNone:
      return memory::GroupAll(absent);
    case SwapPipeline::kParameter:
      return memory::GroupEach(absent);
    case SwapPipeline::kGroup:
      break;
  }
  return memory::GroupBySize(absent, options.group_bytes);
}

// Returns the chunks with written bytes, in the order of arrival.
std::vector<std::uint64_t> WrittenChunks(const std::vector<memory::SwapGroup>& groups,
                                         const ImageBlocks& blocks, Bytes chunk_bytes) {
  std::vector<std::uint64_t> chunks;
  absl::flat_hash_set<std::uint64_t> known;
  const auto add = [&](memory::Extent extent) {
    for (Bytes i = extent.begin / chunk_bytes; i * chunk_bytes < extent.end; ++i) {
      if (known.insert(i).second) chunks.push_back(i);
    }
  };
  for (const memory::SwapGroup& group : groups) {
    for (const memory::Extent& piece : group) {
      for (const memory::Extent& written : blocks.Written(piece)) add(written);
    }
  }
  return chunks;
}

absl::Status Synchronize(const Device& device, CUstream stream) {
  return device.Status(device.driver().StreamSynchronize(stream), "cuStreamSynchronize");
}

absl::Status CheckInside(memory::Extent extent, Bytes bytes) {
  if (extent.begin < extent.end && extent.end <= bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("extent [", extent.begin, ", ", extent.end,
                                                 ") is not inside the session's ", bytes,
                                                 " bytes of addresses"));
}

std::vector<memory::Extent> ExtentsOf(const std::vector<memory::SwapAllocation>& allocations) {
  std::vector<memory::Extent> extents;
  extents.reserve(allocations.size());
  for (const memory::SwapAllocation& allocation : allocations) extents.push_back(allocation.extent);
  return extents;
}

}  // namespace

DeviceImage::DeviceImage(const Device& device, std::unique_ptr<ImageBacking> backing,
                         BlockHasher& hasher, std::uint64_t base, Bytes bytes, ImageFiles files,
                         const SwapOptions& options)
    : device_(device),
      backing_(std::move(backing)),
      options_(options),
      addresses_(*backing_, base, bytes),
      blocks_(std::move(files.blocks), options.keeps_checkpoints, *backing_, hasher),
      host_(device, {std::move(files.image), std::move(files.annex), std::move(files.tenant)},
            blocks_.states(), options.pinned),
      copies_(device, *backing_, host_),
      arrival_(device),
      touches_(arrival_, options.wait),
      uploads_({addresses_, arrival_, touches_, blocks_, host_, copies_}) {}

DeviceImage::~DeviceImage() { Drop().IgnoreError(); }

absl::StatusOr<ArrivedBytes> DeviceImage::SwapIn(const std::vector<memory::SwapAllocation>& live,
                                                 const ArrivalSteps& steps,
                                                 std::unique_ptr<PeerCopy> source) {
  TORPOR_RETURN_IF_ERROR(OpenSwapIn(live, steps, std::move(source)));
  absl::StatusOr<ArrivedBytes> copied = FinishSwapIn();
  if (copied.ok()) {
    AdmitWork(live);
  } else {
    UndoSwapIn();
  }
  return copied;
}

absl::Status DeviceImage::BeginSwapIn(const std::vector<memory::SwapAllocation>& live,
                                      const ArrivalSteps& steps) {
  TORPOR_RETURN_IF_ERROR(OpenSwapIn(live, steps, nullptr));
  absl::Status begun = arrival_.EnqueueGroup().status();
  if (begun.ok()) {
    AdmitWork(live);
  } else {
    UndoSwapIn();
  }
  return begun;
}

absl::Status DeviceImage::ContinueSwapIn() {
  while (true) {
    TORPOR_ASSIGN_OR_RETURN(const bool has_more, arrival_.EnqueueGroup());
    if (!has_more) return absl::OkStatus();
  }
}

absl::StatusOr<ArrivedBytes> DeviceImage::FinishSwapIn() {
  TORPOR_RETURN_IF_ERROR(arrival_.EnqueueAll());
  return arriving_.copied;
}

absl::Status DeviceImage::OpenSwapIn(const std::vector<memory::SwapAllocation>& live,
                                     const ArrivalSteps& steps, std::unique_ptr<PeerCopy> source) {
  if (is_peer_) return absl::FailedPreconditionError("the image is still another GPU's");
  TORPOR_RETURN_IF_ERROR(ReleaseSource());
  memory::ExtentSet whole;
  for (const memory::SwapAllocation& allocation : live) {
    TORPOR_RETURN_IF_ERROR(CheckInside(allocation.extent, bytes()));
    whole.Add(allocation.extent);
  }
  for (const memory::Extent& extent : whole.extents()) TORPOR_RETURN_IF_ERROR(MapHostPart(extent));
  if (!has_unsaved()) TORPOR_RETURN_IF_ERROR(ReturnToCheckpoint());
  arriving_ = {
      .live = whole, .resident_before = resident(), .fresh = {}, .unprepared = {}, .copied = {}};
  std::vector<memory::Extent> in_place = ExtentsOf(live);
  std::ranges::sort(in_place, {}, &memory::Extent::begin);
  TORPOR_ASSIGN_OR_RETURN(arriving_.fresh, backing_->Back(in_place));
  for (const memory::Extent& extent : arriving_.fresh) arriving_.unprepared.Add(extent);
  SetResident(std::move(whole));
  std::vector<memory::SwapGroup> groups = GroupsOf(live, arriving_.resident_before, options_);
  if (source != nullptr) OpenSource(std::move(source), groups);
  absl::Status begun = arrival_.Begin(
      live, std::move(groups),
      {.enqueue_group = [this](const memory::SwapGroup& group) { return EnqueueGroup(group); },
       .enqueue_last = [this, steps] { return EnqueueLast(steps); },
       .on_complete =
           [this, done = steps.on_complete] {
             if (done) done(arriving_.copied);
           }});
  if (!begun.ok()) UndoSwapIn();
  return begun;
}

void DeviceImage::AdmitWork(const std::vector<memory::SwapAllocation>& live) {
  const bool was_kept = is_kept_in_place_ && !arriving_.resident_before.empty();
  is_kept_in_place_ =
      was_kept || std::ranges::any_of(live, &memory::SwapAllocation::holds_addresses);
  touches_.Reset(ExtentsOf(live));
  if (!dirty()) uploads_.fresh().Reset();
}

void DeviceImage::UndoSwapIn() {
  arrival_.Abandon();
  ReleaseSource().IgnoreError();
  SetResident(arriving_.resident_before);
  Undo(arriving_.fresh);
}

// A new home may hold another block's former bytes, and an allocation that comes while the image is
// on no GPU expects zeros.
absl::Status DeviceImage::ClearGaps(const memory::WriteBackPlan& plan,
                                    const memory::ExtentSet& live) {
  for (const memory::HashedBlock& block : plan.stale) {
    const Bytes begin = block.block * wire::kImageBlockBytes;
    for (const memory::Extent& gap : live.Gaps({begin, begin + wire::kImageBlockBytes})) {
      TORPOR_RETURN_IF_ERROR(host_.Clear(gap));
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::ReturnToCheckpoint() {
  for (const std::size_t block : blocks_.RollBack()) {
    const Bytes begin = block * wire::kImageBlockBytes;
    TORPOR_RETURN_IF_ERROR(host_.Clear({begin, begin + wire::kImageBlockBytes}));
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::ForgetStale() {
  if (has_unsaved()) {
    return absl::FailedPreconditionError("the image has changes of its own");
  }
  TORPOR_RETURN_IF_ERROR(ReleaseSource());
  is_source_ = false;
  memory::ExtentSet kept = resident();
  // Others may have written to exported memory.
  const memory::ExtentSet stale = is_exported_ ? kept : blocks_.Stale(kept);
  for (const memory::Extent& extent : stale.extents()) kept.Remove(extent);
  SetResident(std::move(kept));
  return absl::OkStatus();
}

absl::Status DeviceImage::ReleaseSource() {
  absl::Status arrived = arrival_.Wait();
  source_.reset();
  return arrived;
}

void DeviceImage::OpenSource(std::unique_ptr<PeerCopy> copy,
                             const std::vector<memory::SwapGroup>& groups) {
  std::vector<std::uint64_t> chunks = WrittenChunks(groups, blocks_, backing_->chunk_bytes());
  if (chunks.empty()) return;
  source_ =
      std::make_unique<PeerSource>(std::move(copy), std::move(chunks), backing_->chunk_bytes());
}

absl::Status DeviceImage::EnqueueGroup(const memory::SwapGroup& group) {
  for (const memory::Extent& piece : group) {
    TORPOR_RETURN_IF_ERROR(Prepare(piece));
    TORPOR_RETURN_IF_ERROR(Bring(piece));
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::EnqueueLast(const ArrivalSteps& steps) {
  // The rest of blocks that are larger than their allocations.
  const memory::ExtentSet rests = arriving_.unprepared;
  for (const memory::Extent& rest : rests.extents()) TORPOR_RETURN_IF_ERROR(Prepare(rest));
  return steps.enqueue_last ? steps.enqueue_last(arrival_.stream()) : absl::OkStatus();
}

absl::Status DeviceImage::Prepare(memory::Extent piece) {
  const Bytes unit = backing_->chunk_bytes();
  const memory::Extent chunks{RoundDown(piece.begin, unit), RoundUp(piece.end, unit)};
  for (const memory::Extent& part : arriving_.unprepared.Within(chunks)) {
    TORPOR_RETURN_IF_ERROR(backing_->Map(part));
    TORPOR_RETURN_IF_ERROR(copies_.ClearOutside({part}, arriving_.live, arrival_.stream()));
    arrival_.NotePrepared(part);
    arriving_.unprepared.Remove(part);
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceImage::WrittenBack> DeviceImage::WriteBack(CUstream stream, Bytes max_bytes) {
  if (!dirty()) return WrittenBack();
  TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  const memory::WriteBackPart part = memory::FirstPart(
      resident(), unsaved_from(), is_exported_ ? kAll : max_bytes, wire::kImageBlockBytes);
  TORPOR_ASSIGN_OR_RETURN(const memory::WriteBackPlan plan,
                          blocks_.BeginWriteBack(part.live, stream));
  TORPOR_RETURN_IF_ERROR(ClearGaps(plan, part.live));
  WrittenBack copied;
  for (const memory::Extent& extent : plan.copies) {
    TORPOR_RETURN_IF_ERROR(copies_.Out(extent, stream));
    copied.bytes += blocks_.ByOrigin(extent);
    copied.extents.Add(extent);
  }
  TORPOR_RETURN_IF_ERROR(Synchronize(device_, stream));
  blocks_.OnWrittenBack(plan);
  unsaved_from_.store(part.end, std::memory_order_relaxed);
  return copied;
}

void DeviceImage::CommitCheckpoint(std::uint64_t command) {
  if (has_unsaved()) return;
  blocks_.Commit(command);
  uploads_.fresh().Reset();
}

std::vector<Bytes> DeviceImage::AddressHolders(const memory::ExtentSet& where) const {
  std::vector<Bytes> holders;
  for (const memory::Extent& allocation : touches_.allocations()) {
    const std::vector<memory::Extent> parts = where.Within(allocation);
    if (std::ranges::any_of(parts, [this](memory::Extent part) { return HoldsAddressIn(part); })) {
      holders.push_back(allocation.begin);
    }
  }
  return holders;
}

bool DeviceImage::HoldsAddressIn(memory::Extent extent) const {
  // Reading unwritten pages would make the system allocate memory.
  return std::ranges::any_of(blocks_.Written(extent), [this](memory::Extent part) {
    const auto homes = host_.PartsOf(part);
    return !homes.ok() || std::ranges::any_of(*homes, [this](const HostImage::Part& home) {
      const std::span<const std::uint8_t> bytes(home.data, home.extent.bytes());
      return addresses_.AreAnyPointersIn(bytes, base() + home.extent.begin);
    });
  });
}

std::uint64_t DeviceImage::HostWord(std::uint64_t address) const {
  std::uint64_t word = 0;
  const Bytes begin = address - base();
  if (!host_.Holds(begin, sizeof word)) return 0;
  // Reading unwritten pages would make the system allocate memory.
  if (blocks_.Written({begin, begin + sizeof word}).empty()) return 0;
  const auto homes = host_.PartsOf({begin, begin + sizeof word});
  if (!homes.ok()) return 0;
  for (const HostImage::Part& home : *homes) {
    std::memcpy(reinterpret_cast<std::uint8_t*>(&word) + (home.extent.begin - begin), home.data,
                home.extent.bytes());
  }
  return word;
}

bool DeviceImage::may_be_moved() const {
  return !is_source_ && addresses_.is_translating() && !is_kept_in_place_ && !is_peer_ &&
         !dirty() && !arrival_.is_pending() && !touches_.has_uploaded();
}

absl::Status DeviceImage::Drop() {
  // A copy into unmapped memory would lose the context.
  absl::Status status = ReleaseSource();
  SetResident({});
  is_peer_ = false;
  is_source_ = false;
  status.Update(backing_->Release({0, bytes()}, {}));
  return status;
}

absl::Status DeviceImage::Grow(memory::Extent extent, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(MapHostPart(extent));
  // Copies of whole chunks that still arrive may overlap the new allocation, and clearing around
  // the copies does.
  TORPOR_RETURN_IF_ERROR(resident().Within(extent).empty()
                             ? arrival_.AwaitPreparation(extent, stream)
                             : arrival_.Wait());
  TORPOR_ASSIGN_OR_RETURN(const std::vector<memory::Extent> fresh, backing_->Back({&extent, 1}));
  blocks_.Forget(extent);
  absl::Status status = backing_->Map(extent);
  if (status.ok()) status = copies_.ClearOutside(fresh, {}, stream);
  // Clears the parts in units that existed before, where an earlier allocation may have left bytes.
  memory::ExtentSet cleared;
  for (const memory::Extent& unit : fresh) cleared.Add(unit);
  for (const memory::Extent& old : cleared.Gaps(extent)) {
    if (status.ok()) status = copies_.Clear(old, stream);
  }
  status.Update(Synchronize(device_, stream));
  if (!status.ok()) {
    Undo(fresh);
    return status;
  }
  MarkDirty();
  touches_.Add(extent);
  uploads_.fresh().Add(extent);
  MutexLock lock(&mutex_);
  resident_.Add(extent);
  return absl::OkStatus();
}

absl::Status DeviceImage::MapPeer(const memory::ExtentSet& live, ChunkOwner& owner) {
  if (!is_peer_ && !backing_->empty()) {
    return absl::FailedPreconditionError("the image is resident on this GPU itself");
  }
  for (const memory::Extent& extent : live.extents()) TORPOR_RETURN_IF_ERROR(MapHostPart(extent));
  is_peer_ = !live.empty();
  memory::ExtentSet kept;
  for (const memory::Extent& extent : resident().extents()) {
    for (const memory::Extent& part : live.Within(extent)) kept.Add(part);
  }
  SetResident(std::move(kept));
  TORPOR_ASSIGN_OR_RETURN(memory::ExtentSet reachable, backing_->Import(live, owner));
  SetResident(std::move(reachable));
  return absl::OkStatus();
}

absl::StatusOr<CUmemGenericAllocationHandle> DeviceImage::ShareChunk(std::uint64_t chunk) {
  // Other executors do not know which bytes are still in flight.
  TORPOR_RETURN_IF_ERROR(arrival_.WaitForOthers());
  TORPOR_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle handle, backing_->HandleOf(chunk));
  is_exported_ = true;
  return handle;
}

absl::StatusOr<CUmemGenericAllocationHandle> DeviceImage::ChunkForCopy(std::uint64_t chunk) {
  if (!is_source_) return absl::FailedPreconditionError("the image is no source");
  if (dirty()) return absl::FailedPreconditionError("the image has changes of its own");
  TORPOR_RETURN_IF_ERROR(arrival_.WaitForOthers());
  return backing_->HandleOf(chunk);
}

absl::Status DeviceImage::Shrink(memory::Extent extent, const memory::ExtentSet& live) {
  removals_.fetch_add(1, std::memory_order_relaxed);
  TORPOR_RETURN_IF_ERROR(CheckInside(extent, bytes()));
  TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  touches_.Remove(extent);
  {
    MutexLock lock(&mutex_);
    resident_.Remove(extent);
  }
  return backing_->Release(extent, live);
}

absl::StatusOr<bool> DeviceImage::PinNext() {
  return host_.PinNext([this] { return blocks_.AllWritten(); });
}

absl::Status DeviceImage::ReleaseHost(memory::Extent extent, HostPlaces places) {
  TORPOR_RETURN_IF_ERROR(CheckInside(extent, bytes()));
  if (places != HostPlaces::kTenantFile) TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  return host_.Release(extent, places);
}

CUdeviceptr DeviceImage::Resolve(std::uint64_t address, Bytes bytes) const {
  if (!addresses_.Contains(address, bytes)) return 0;
  const Bytes begin = address - base();
  ReaderMutexLock lock(&mutex_);
  return resident_.Contains({begin, begin + bytes}) ? backing_->AddressOf(begin) : 0;
}

memory::ExtentSet DeviceImage::resident() const {
  ReaderMutexLock lock(&mutex_);
  return resident_;
}

ImageUse DeviceImage::use() const {
  ReaderMutexLock lock(&mutex_);
  if (is_peer_) return {};
  return {resident_.total_bytes(), backing_->held_bytes()};
}

absl::Status DeviceImage::MapHostPart(memory::Extent extent) {
  TORPOR_RETURN_IF_ERROR(CheckInside(extent, bytes()));
  TORPOR_RETURN_IF_ERROR(host_.Map(extent));
  TORPOR_RETURN_IF_ERROR(blocks_.MapStates(extent));
  addresses_.NoteAllocation(extent);
  return absl::OkStatus();
}

void DeviceImage::Undo(const std::vector<memory::Extent>& fresh) {
  for (const memory::Extent& extent : fresh) backing_->Release(extent, {}).IgnoreError();
}

absl::Status DeviceImage::Bring(memory::Extent extent) {
  const CUstream stream = arrival_.stream();
  Bytes cleared_to = extent.begin;
  blocks_.OnArriving(extent);
  for (const memory::Extent& written : blocks_.Written(extent)) {
    TORPOR_RETURN_IF_ERROR(copies_.Clear({cleared_to, written.begin}, stream));
    const std::vector<BackedPart> source =
        source_ ? source_->Reach(written) : std::vector<BackedPart>();
    TORPOR_RETURN_IF_ERROR(source.empty() ? copies_.In(written, stream)
                                          : copies_.From(source, stream));
    ArrivedBytes& copied = arriving_.copied;
    (source.empty() ? copied.from_host : copied.from_peer) += blocks_.ByOrigin(written);
    cleared_to = written.end;
  }
  return copies_.Clear({cleared_to, extent.end}, stream);
}

void DeviceImage::SetResident(memory::ExtentSet resident) {
  MutexLock lock(&mutex_);
  resident_ = std::move(resident);
}

}  // namespace torpor::executor
