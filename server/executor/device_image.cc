#include "server/executor/device_image.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/executor/address_scan.h"

namespace torpor::executor {
namespace {

// Maximal runs of consecutive indices: [first, last].
std::vector<std::pair<std::uint64_t, std::uint64_t>> Runs(
    const std::vector<std::uint64_t>& indices) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  for (const std::uint64_t index : indices) {
    if (!runs.empty() && runs.back().second + 1 == index) {
      runs.back().second = index;
    } else {
      runs.emplace_back(index, index);
    }
  }
  return runs;
}

std::vector<std::uint64_t> ChunksOf(const std::vector<memory::Extent>& extents, Bytes chunk_bytes) {
  std::vector<std::uint64_t> indices;
  for (const memory::Extent& extent : extents) {
    for (std::uint64_t i = extent.begin / chunk_bytes; i * chunk_bytes < extent.end; ++i) {
      if (indices.empty() || indices.back() < i) indices.push_back(i);
    }
  }
  return indices;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceImage>> DeviceImage::Open(
    const Device& device, PhysicalPool& pool, BlockHasher& hasher, std::uint64_t base, Bytes bytes,
    ImageFiles files, const SwapOptions& options) {
  if (bytes == 0 || bytes % pool.chunk_bytes() != 0 || base % pool.chunk_bytes() != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the range %#x of %d bytes is not whole chunks of %d", base, bytes, pool.chunk_bytes()));
  }
  CUdeviceptr reserved = 0;
  TORPOR_RETURN_IF_ERROR(device.Status(
      device.driver().MemAddressReserve(&reserved, bytes, 0, base, 0), "cuMemAddressReserve"));
  if (reserved != base) {
    device.driver().MemAddressFree(reserved, bytes);
    return absl::AlreadyExistsError(
        absl::StrFormat("the driver reserved %#x instead of %#x", reserved, base));
  }
  return std::unique_ptr<DeviceImage>(
      new DeviceImage(device, pool, hasher, base, bytes, std::move(files), options));
}

DeviceImage::DeviceImage(const Device& device, PhysicalPool& pool, BlockHasher& hasher,
                         std::uint64_t base, Bytes bytes, ImageFiles files,
                         const SwapOptions& options)
    : device_(device),
      pool_(pool),
      base_(base),
      bytes_(bytes),
      chunk_bytes_(pool.chunk_bytes()),
      host_image_(std::move(files.image)),
      options_(options),
      // Pinned as it is needed, chunk by chunk: pages that are pinned must stay the file's, and
      // only whole chunks without a live byte ever leave it.
      pinned_(device, host_image_.data(), host_image_.bytes(), chunk_bytes_),
      blocks_(std::move(files.block_states), base, hasher),
      arrival_(device),
      touches_(arrival_, options.wait) {}

DeviceImage::~DeviceImage() {
  Drop().IgnoreError();
  device_.driver().MemAddressFree(base_, bytes_);
}

absl::StatusOr<memory::MovedBytes> DeviceImage::SwapIn(
    const std::vector<memory::SwapAllocation>& live, const ArrivalSteps& steps) {
  if (is_peer_) return absl::FailedPreconditionError("the image is still another GPU's");
  TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  memory::ExtentSet whole;
  std::vector<memory::Extent> allocations;
  for (const memory::SwapAllocation& allocation : live) {
    TORPOR_RETURN_IF_ERROR(CheckInside(allocation.extent));
    whole.Add(allocation.extent);
    allocations.push_back(allocation.extent);
  }
  const std::vector<std::uint64_t> missing = MissingChunks(whole.extents());
  const memory::ExtentSet resident_before = resident();
  const std::vector<memory::SwapGroup> groups = GroupsOf(live, resident_before);
  TORPOR_RETURN_IF_ERROR(MapChunks(missing));
  SetResident(whole);
  touches_.Reset(allocations);
  const absl::Status begun = arrival_.Begin(live, groups);
  absl::StatusOr<memory::MovedBytes> copied =
      begun.ok() ? EnqueueArrival(groups, missing, whole, steps) : begun;
  if (!copied.ok()) {
    arrival_.Wait().IgnoreError();
    SetResident(resident_before);
    UnmapChunks(missing).IgnoreError();
  }
  return copied;
}

std::vector<memory::SwapGroup> DeviceImage::GroupsOf(
    const std::vector<memory::SwapAllocation>& live,
    const memory::ExtentSet& resident_before) const {
  std::vector<memory::Extent> absent;
  for (const memory::SwapAllocation& allocation : live) {
    for (const memory::Extent& gap : resident_before.Gaps(allocation.extent)) absent.push_back(gap);
  }
  switch (options_.pipeline) {
    case SwapPipeline::kNone:
      return memory::GroupBySize(absent, bytes_);
    case SwapPipeline::kParameter:
      return memory::GroupEach(absent);
    case SwapPipeline::kGroup:
      break;
  }
  return memory::GroupBySize(absent, options_.group_bytes);
}

absl::StatusOr<memory::MovedBytes> DeviceImage::EnqueueArrival(
    const std::vector<memory::SwapGroup>& groups, const std::vector<std::uint64_t>& new_chunks,
    const memory::ExtentSet& live, const ArrivalSteps& steps) {
  TORPOR_RETURN_IF_ERROR(ClearOutside(new_chunks, live, arrival_.stream()));
  TORPOR_RETURN_IF_ERROR(arrival_.EndStep());
  memory::MovedBytes copied;
  for (const memory::SwapGroup& group : groups) {
    for (const memory::Extent& piece : group) {
      TORPOR_ASSIGN_OR_RETURN(const memory::MovedBytes moved, Bring(piece, arrival_.stream()));
      copied += moved;
    }
    TORPOR_RETURN_IF_ERROR(arrival_.EndStep());
  }
  if (steps.enqueue_last) TORPOR_RETURN_IF_ERROR(steps.enqueue_last(arrival_.stream()));
  TORPOR_RETURN_IF_ERROR(arrival_.Finish([done = steps.on_complete, copied] {
    if (done) done(copied);
  }));
  return copied;
}

absl::StatusOr<DeviceImage::WrittenBack> DeviceImage::WriteBack(CUstream stream) {
  if (!dirty()) return WrittenBack();
  TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  TORPOR_ASSIGN_OR_RETURN(const memory::WriteBackPlan plan,
                          blocks_.PlanWriteBack(resident(), stream));
  WrittenBack copied;
  for (const memory::Extent& extent : plan.copies) {
    TORPOR_RETURN_IF_ERROR(CopyOut(extent, stream));
    copied.bytes += blocks_.ByOrigin(extent);
    copied.extents.Add(extent);
  }
  TORPOR_RETURN_IF_ERROR(Wait(stream));
  blocks_.OnWrittenBack(plan);
  dirty_.store(false, std::memory_order_relaxed);
  return copied;
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
  // To look at what nobody has written would make the system give it memory.
  return std::ranges::any_of(blocks_.Written(extent), [this](memory::Extent part) {
    return HoldsAddress({host_image_.data() + part.begin, part.bytes()}, part.begin, base_, bytes_);
  });
}

absl::Status DeviceImage::Drop() {
  // A copy into memory that is unmapped would cost the context.
  absl::Status status = arrival_.Wait();
  SetResident({});
  is_peer_ = false;
  std::vector<std::uint64_t> all;
  all.reserve(chunks_.size());
  for (const auto& [index, chunk] : chunks_) all.push_back(index);
  status.Update(UnmapChunks(all));
  return status;
}

absl::Status DeviceImage::Grow(memory::Extent extent, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(CheckInside(extent));
  // What is swapped in may, where it was told of whole chunks, lie over the new allocation, and
  // what is cleared around it does.
  TORPOR_RETURN_IF_ERROR(resident().Within(extent).empty() ? arrival_.AwaitPreparation(stream)
                                                           : arrival_.Wait());
  const std::vector<std::uint64_t> missing = MissingChunks({extent});
  TORPOR_RETURN_IF_ERROR(MapChunks(missing));
  blocks_.Forget(extent);
  absl::Status status = ClearOutside(missing, {}, stream);
  // What lies in chunks that were there already: another allocation may have left bytes there.
  memory::ExtentSet cleared;
  for (const std::uint64_t index : missing) {
    cleared.Add({index * chunk_bytes_, (index + 1) * chunk_bytes_});
  }
  for (const memory::Extent& old : cleared.Gaps(extent)) {
    if (status.ok()) status = Clear(old, stream);
  }
  status.Update(Wait(stream));
  if (!status.ok()) {
    UnmapChunks(missing).IgnoreError();
    return status;
  }
  MarkDirty();
  touches_.Add(extent);
  MutexLock lock(&mutex_);
  resident_.Add(extent);
  return absl::OkStatus();
}

absl::Status DeviceImage::MapPeer(const memory::ExtentSet& live, ChunkOwner& owner) {
  if (!is_peer_ && !chunks_.empty()) {
    return absl::FailedPreconditionError("the image is resident on this GPU itself");
  }
  const std::vector<memory::Extent> extents = live.extents();
  for (const memory::Extent& extent : extents) TORPOR_RETURN_IF_ERROR(CheckInside(extent));
  is_peer_ = !extents.empty();
  const std::vector<std::uint64_t> wanted = ChunksOf(extents, chunk_bytes_);
  std::vector<std::uint64_t> unused;
  for (const auto& [index, chunk] : chunks_) {
    if (!std::binary_search(wanted.begin(), wanted.end(), index)) unused.push_back(index);
  }
  {
    MutexLock lock(&mutex_);
    for (const std::uint64_t index : unused) {
      resident_.Remove({index * chunk_bytes_, (index + 1) * chunk_bytes_});
    }
  }
  TORPOR_RETURN_IF_ERROR(UnmapChunks(unused));
  const std::vector<std::uint64_t> missing = MissingChunks(extents);
  if (!missing.empty()) {
    TORPOR_ASSIGN_OR_RETURN(const auto fetched, owner.Fetch(missing));
    for (const auto& [index, chunk] : fetched) TORPOR_RETURN_IF_ERROR(ImportChunk(index, chunk));
  }
  memory::ExtentSet reachable;
  for (const auto& [index, chunk] : chunks_) {
    const memory::Extent whole{index * chunk_bytes_, (index + 1) * chunk_bytes_};
    for (const memory::Extent& part : live.Within(whole)) reachable.Add(part);
  }
  SetResident(std::move(reachable));
  return absl::OkStatus();
}

absl::Status DeviceImage::ImportChunk(std::uint64_t index, const UniqueFd& chunk) {
  const CudaDriver& driver = device_.driver();
  // The driver takes the descriptor as if it were a pointer.
  void* const source = reinterpret_cast<void*>(static_cast<std::intptr_t>(chunk.get()));
  CUmemGenericAllocationHandle handle = 0;
  TORPOR_RETURN_IF_ERROR(
      device_.Status(driver.MemImportFromShareableHandle(&handle, source,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                     "cuMemImportFromShareableHandle"));
  const CUresult mapped = driver.MemMap(base_ + index * chunk_bytes_, chunk_bytes_, 0, handle, 0);
  driver.MemRelease(handle);
  TORPOR_RETURN_IF_ERROR(device_.Status(mapped, "cuMemMap of a peer's memory"));
  {
    MutexLock lock(&mutex_);
    chunks_.emplace(index, kImported);
  }
  return AllowAccess({index});
}

absl::StatusOr<UniqueFd> DeviceImage::Export(std::uint64_t chunk) {
  // Others know nothing of what has not arrived yet.
  TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  MutexLock lock(&mutex_);
  const auto found = chunks_.find(chunk);
  if (found == chunks_.end() || found->second == kImported) {
    return absl::NotFoundError("the chunk is not resident here");
  }
  int fd = -1;
  TORPOR_RETURN_IF_ERROR(
      device_.Status(device_.driver().MemExportToShareableHandle(
                         &fd, found->second, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                     "cuMemExportToShareableHandle"));
  is_exported_ = true;
  return UniqueFd(fd);
}

absl::Status DeviceImage::Shrink(memory::Extent extent, const memory::ExtentSet& live) {
  TORPOR_RETURN_IF_ERROR(CheckInside(extent));
  TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  touches_.Remove(extent);
  {
    MutexLock lock(&mutex_);
    resident_.Remove(extent);
  }
  std::vector<std::uint64_t> unused;
  for (const std::uint64_t index : ChunksOf({extent}, chunk_bytes_)) {
    const memory::Extent chunk{index * chunk_bytes_, (index + 1) * chunk_bytes_};
    if (chunks_.contains(index) && live.Within(chunk).empty()) unused.push_back(index);
  }
  return UnmapChunks(unused);
}

absl::Status DeviceImage::ReleaseHost(memory::Extent extent) {
  TORPOR_RETURN_IF_ERROR(CheckInside(extent));
  TORPOR_RETURN_IF_ERROR(arrival_.Wait());
  return pinned_.UnregisterOverlapping(extent);
}

bool DeviceImage::Contains(std::uint64_t address, Bytes bytes) const {
  const std::uint64_t begin = address - base_;
  if (address < base_ || begin > bytes_ || bytes > bytes_ - begin) return false;
  ReaderMutexLock lock(&mutex_);
  return resident_.Contains({begin, begin + bytes});
}

void DeviceImage::NoteUpload(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  if (!Contains(address, bytes.size())) return;
  const Bytes begin = address - base_;
  const memory::Extent extent{begin, begin + bytes.size()};
  touches_.Upload(extent);
  // Later it is looked for when the image leaves (AddressHolders).
  if (arrival_.is_pending() && HoldsAddress(bytes, address, base_, bytes_)) {
    arrival_.NoteAddresses(extent);
  }
}

void DeviceImage::NoteUnseenUpload(std::uint64_t address, Bytes bytes) {
  if (!Contains(address, bytes)) return;
  const Bytes begin = address - base_;
  touches_.Upload({begin, begin + bytes});
  if (arrival_.is_pending()) arrival_.NoteAddresses({begin, begin + bytes});
}

absl::Status DeviceImage::SaveRange(std::uint64_t address, Bytes bytes, CUstream stream) {
  const Bytes begin = address - base_;
  const memory::Extent extent{begin, begin + bytes};
  blocks_.OnUpload(extent);
  return CopyOut(extent, stream);
}

memory::ExtentSet DeviceImage::resident() const {
  ReaderMutexLock lock(&mutex_);
  return resident_;
}

ImageUse DeviceImage::use() const {
  ReaderMutexLock lock(&mutex_);
  if (is_peer_) return {};
  return {resident_.total_bytes(), chunks_.size() * chunk_bytes_};
}

absl::Status DeviceImage::CheckInside(memory::Extent extent) const {
  if (extent.begin < extent.end && extent.end <= bytes_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("extent [", extent.begin, ", ", extent.end,
                                                 ") is not inside the session's ", bytes_,
                                                 " bytes of addresses"));
}

std::vector<std::uint64_t> DeviceImage::MissingChunks(
    const std::vector<memory::Extent>& extents) const {
  std::vector<std::uint64_t> missing = ChunksOf(extents, chunk_bytes_);
  std::erase_if(missing, [this](std::uint64_t index) { return chunks_.contains(index); });
  return missing;
}

absl::Status DeviceImage::MapChunks(const std::vector<std::uint64_t>& indices) {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<CUmemGenericAllocationHandle> taken,
                          pool_.Take(indices.size()));
  absl::Status status;
  std::size_t mapped = 0;
  for (; mapped < indices.size(); ++mapped) {
    status = device_.Status(device_.driver().MemMap(base_ + indices[mapped] * chunk_bytes_,
                                                    chunk_bytes_, 0, taken[mapped], 0),
                            "cuMemMap");
    if (!status.ok()) break;
    MutexLock lock(&mutex_);
    chunks_.emplace(indices[mapped], taken[mapped]);
  }
  if (status.ok()) status = AllowAccess(indices);
  if (status.ok()) return status;
  pool_.Return(std::span(taken).subspan(mapped));
  UnmapChunks({indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(mapped)})
      .IgnoreError();
  return status;
}

absl::Status DeviceImage::AllowAccess(const std::vector<std::uint64_t>& indices) {
  CUmemAccessDesc access{};
  access.location = device_.location();
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (const auto& [first, last] : Runs(indices)) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemSetAccess(base_ + first * chunk_bytes_,
                                                     (last - first + 1) * chunk_bytes_, &access, 1),
                       "cuMemSetAccess"));
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::UnmapChunks(const std::vector<std::uint64_t>& indices) {
  for (const auto& [first, last] : Runs(indices)) {
    TORPOR_RETURN_IF_ERROR(device_.Status(
        device_.driver().MemUnmap(base_ + first * chunk_bytes_, (last - first + 1) * chunk_bytes_),
        "cuMemUnmap"));
    std::vector<CUmemGenericAllocationHandle> freed;
    const auto begin = chunks_.find(first);
    const auto end = chunks_.upper_bound(last);
    for (auto chunk = begin; chunk != end; ++chunk) {
      if (chunk->second != kImported) freed.push_back(chunk->second);
    }
    {
      MutexLock lock(&mutex_);
      chunks_.erase(begin, end);
    }
    pool_.Return(freed);
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::ClearOutside(const std::vector<std::uint64_t>& indices,
                                       const memory::ExtentSet& keep, CUstream stream) {
  for (const auto& [first, last] : Runs(indices)) {
    for (const memory::Extent& gap : keep.Gaps({first * chunk_bytes_, (last + 1) * chunk_bytes_})) {
      TORPOR_RETURN_IF_ERROR(Clear(gap, stream));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<memory::MovedBytes> DeviceImage::Bring(memory::Extent extent, CUstream stream) {
  memory::MovedBytes copied;
  Bytes cleared_to = extent.begin;
  for (const memory::Extent& written : blocks_.Written(extent)) {
    TORPOR_RETURN_IF_ERROR(Clear({cleared_to, written.begin}, stream));
    TORPOR_RETURN_IF_ERROR(CopyIn(written, stream));
    copied += blocks_.ByOrigin(written);
    cleared_to = written.end;
  }
  TORPOR_RETURN_IF_ERROR(Clear({cleared_to, extent.end}, stream));
  return copied;
}

absl::Status DeviceImage::Clear(memory::Extent extent, CUstream stream) {
  if (extent.bytes() == 0) return absl::OkStatus();
  return device_.Status(
      device_.driver().MemsetD8Async(base_ + extent.begin, 0, extent.bytes(), stream),
      "cuMemsetD8");
}

absl::Status DeviceImage::CopyIn(memory::Extent extent, CUstream stream) {
  if (options_.pinned) TORPOR_RETURN_IF_ERROR(pinned_.Ensure(extent));
  for (const memory::Extent& part : pinned_.Split(extent)) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemcpyHtoDAsync(base_ + part.begin, pinned_.at(part.begin),
                                                        part.bytes(), stream),
                       "copying the image to the GPU"));
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::CopyOut(memory::Extent extent, CUstream stream) {
  if (options_.pinned) TORPOR_RETURN_IF_ERROR(pinned_.Ensure(extent));
  for (const memory::Extent& part : pinned_.Split(extent)) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemcpyDtoHAsync(pinned_.at(part.begin), base_ + part.begin,
                                                        part.bytes(), stream),
                       "copying the image from the GPU"));
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::Wait(CUstream stream) const {
  return device_.Status(device_.driver().StreamSynchronize(stream), "cuStreamSynchronize");
}

void DeviceImage::SetResident(memory::ExtentSet resident) {
  MutexLock lock(&mutex_);
  resident_ = std::move(resident);
}

}  // namespace torpor::executor
