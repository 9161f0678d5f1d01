#include "server/executor/device_image.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

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

absl::StatusOr<std::unique_ptr<DeviceImage>> DeviceImage::Open(const Device& device,
                                                               PhysicalPool& pool,
                                                               std::uint64_t base, Bytes bytes,
                                                               SharedMapping host_image) {
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
      new DeviceImage(device, pool, base, bytes, std::move(host_image)));
}

DeviceImage::DeviceImage(const Device& device, PhysicalPool& pool, std::uint64_t base, Bytes bytes,
                         SharedMapping host_image)
    : device_(device),
      pool_(pool),
      base_(base),
      bytes_(bytes),
      chunk_bytes_(pool.chunk_bytes()),
      host_image_(std::move(host_image)),
      // Pinned as it is needed, chunk by chunk: pages that are pinned must stay the file's, and
      // only whole chunks without a live byte ever leave it.
      pinned_(device, host_image_.data(), host_image_.bytes(), chunk_bytes_) {}

DeviceImage::~DeviceImage() {
  Drop().IgnoreError();
  device_.driver().MemAddressFree(base_, bytes_);
}

absl::StatusOr<Bytes> DeviceImage::SwapIn(const memory::ExtentSet& live, CUstream stream) {
  if (is_peer_) return absl::FailedPreconditionError("the image is still another GPU's");
  const std::vector<memory::Extent> extents = live.extents();
  for (const memory::Extent& extent : extents) TORPOR_RETURN_IF_ERROR(CheckInside(extent));
  const std::vector<std::uint64_t> missing = MissingChunks(extents);
  TORPOR_RETURN_IF_ERROR(MapChunks(missing));

  const memory::ExtentSet resident_before = resident();
  absl::Status status = ClearOutside(missing, live, stream);
  Bytes copied = 0;
  for (const memory::Extent& extent : extents) {
    for (const memory::Extent& absent : resident_before.Gaps(extent)) {
      if (status.ok()) status = CopyIn(absent, stream);
      copied += absent.bytes();
    }
  }
  status.Update(Wait(stream));
  if (!status.ok()) {
    UnmapChunks(missing).IgnoreError();
    return status;
  }
  SetResident(live);
  return copied;
}

absl::StatusOr<Bytes> DeviceImage::WriteBack(CUstream stream) {
  if (!dirty()) return Bytes{0};
  Bytes copied = 0;
  for (const memory::Extent& extent : resident().extents()) {
    TORPOR_RETURN_IF_ERROR(CopyOut(extent, stream));
    copied += extent.bytes();
  }
  TORPOR_RETURN_IF_ERROR(Wait(stream));
  dirty_.store(false, std::memory_order_relaxed);
  return copied;
}

absl::Status DeviceImage::Drop() {
  SetResident({});
  is_peer_ = false;
  std::vector<std::uint64_t> all;
  all.reserve(chunks_.size());
  for (const auto& [index, chunk] : chunks_) all.push_back(index);
  return UnmapChunks(all);
}

absl::Status DeviceImage::Grow(memory::Extent extent, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(CheckInside(extent));
  const std::vector<std::uint64_t> missing = MissingChunks({extent});
  TORPOR_RETURN_IF_ERROR(MapChunks(missing));
  absl::Status status = ClearOutside(missing, {}, stream);
  // What lies in chunks that were there already: another allocation may have left bytes there.
  memory::ExtentSet cleared;
  for (const std::uint64_t index : missing) {
    cleared.Add({index * chunk_bytes_, (index + 1) * chunk_bytes_});
  }
  for (const memory::Extent& old : cleared.Gaps(extent)) {
    if (!status.ok()) break;
    status = device_.Status(
        device_.driver().MemsetD8Async(base_ + old.begin, 0, old.bytes(), stream), "cuMemsetD8");
  }
  status.Update(Wait(stream));
  if (!status.ok()) {
    UnmapChunks(missing).IgnoreError();
    return status;
  }
  MarkDirty();
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
  return pinned_.UnregisterOverlapping(extent);
}

bool DeviceImage::Contains(std::uint64_t address, Bytes bytes) const {
  const std::uint64_t begin = address - base_;
  if (address < base_ || begin > bytes_ || bytes > bytes_ - begin) return false;
  ReaderMutexLock lock(&mutex_);
  return resident_.Contains({begin, begin + bytes});
}

absl::Status DeviceImage::SaveRange(std::uint64_t address, Bytes bytes, CUstream stream) {
  const Bytes begin = address - base_;
  return CopyOut({begin, begin + bytes}, stream);
}

memory::ExtentSet DeviceImage::resident() const {
  ReaderMutexLock lock(&mutex_);
  return resident_;
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
      TORPOR_RETURN_IF_ERROR(device_.Status(
          device_.driver().MemsetD8Async(base_ + gap.begin, 0, gap.bytes(), stream), "cuMemsetD8"));
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::CopyIn(memory::Extent extent, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(pinned_.Ensure(extent));
  for (const memory::Extent& part : pinned_.Split(extent)) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemcpyHtoDAsync(base_ + part.begin, pinned_.at(part.begin),
                                                        part.bytes(), stream),
                       "copying the image to the GPU"));
  }
  return absl::OkStatus();
}

absl::Status DeviceImage::CopyOut(memory::Extent extent, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(pinned_.Ensure(extent));
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
