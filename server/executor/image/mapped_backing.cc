#include "server/executor/image/mapped_backing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/executor/gpu/device_mapping.h"

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

std::vector<std::uint64_t> ChunksOf(std::span<const memory::Extent> extents, Bytes chunk_bytes) {
  std::vector<std::uint64_t> indices;
  for (const memory::Extent& extent : extents) {
    for (std::uint64_t i = extent.begin / chunk_bytes; i * chunk_bytes < extent.end; ++i) {
      if (indices.empty() || indices.back() < i) indices.push_back(i);
    }
  }
  return indices;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageBacking>> MappedBacking::Open(const Device& device,
                                                                  PhysicalPool& pool,
                                                                  std::uint64_t base, Bytes bytes) {
  if (bytes == 0 || bytes % pool.chunk_bytes() != 0 || base % pool.chunk_bytes() != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the range %#x of %d bytes is not whole chunks of %d", base, bytes, pool.chunk_bytes()));
  }
  return std::unique_ptr<ImageBacking>(new MappedBacking(device, pool, base, bytes));
}

MappedBacking::~MappedBacking() { Release({0, bytes_}, {}).IgnoreError(); }

absl::StatusOr<std::vector<memory::Extent>> MappedBacking::Back(
    std::span<const memory::Extent> allocations) {
  const std::vector<Index> missing = MissingChunks(allocations);
  TORPOR_ASSIGN_OR_RETURN(const std::vector<CUmemGenericAllocationHandle> taken,
                          pool_.Take(missing.size()));
  {
    MutexLock lock(&mutex_);
    for (std::size_t i = 0; i < missing.size(); ++i) chunks_[missing[i]] = {taken[i], false};
  }
  const auto runs = Runs(missing);
  std::vector<memory::Extent> fresh;
  fresh.reserve(runs.size());
  for (const auto& [first, last] : runs) fresh.push_back(ExtentOf(first, last));
  return fresh;
}

absl::Status MappedBacking::Map(memory::Extent extent) {
  std::vector<Index> mapped;
  for (const Index index : ChunksOf({&extent, 1}, chunk_bytes_)) {
    const auto chunk = chunks_.find(index);
    if (chunk == chunks_.end() || chunk->second.is_mapped) continue;
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemMap(base_ + index * chunk_bytes_, chunk_bytes_, 0,
                                               chunk->second.handle, 0),
                       "cuMemMap"));
    mapped.push_back(index);
    MutexLock lock(&mutex_);
    chunk->second.is_mapped = true;
  }
  return AllowAccess(mapped);
}

absl::Status MappedBacking::Release(memory::Extent extent, const memory::ExtentSet& live) {
  std::vector<Index> unused;
  for (auto chunk = chunks_.lower_bound(extent.begin / chunk_bytes_);
       chunk != chunks_.end() && chunk->first * chunk_bytes_ < extent.end; ++chunk) {
    if (live.Within(ExtentOf(chunk->first, chunk->first)).empty()) unused.push_back(chunk->first);
  }
  return GiveBack(unused);
}

absl::StatusOr<memory::ExtentSet> MappedBacking::Import(const memory::ExtentSet& live,
                                                        ChunkOwner& owner) {
  TORPOR_RETURN_IF_ERROR(Release({0, bytes_}, live));
  const std::vector<Index> missing = MissingChunks(live.extents());
  if (!missing.empty()) {
    TORPOR_ASSIGN_OR_RETURN(const auto fetched, owner.Fetch(missing));
    for (const auto& [index, chunk] : fetched) TORPOR_RETURN_IF_ERROR(ImportChunk(index, chunk));
  }
  memory::ExtentSet reachable;
  for (const auto& [index, chunk] : chunks_) {
    for (const memory::Extent& part : live.Within(ExtentOf(index, index))) reachable.Add(part);
  }
  return reachable;
}

absl::Status MappedBacking::ImportChunk(Index index, const UniqueFd& chunk) {
  TORPOR_RETURN_IF_ERROR(MapImported(device_, chunk, base_ + index * chunk_bytes_, chunk_bytes_));
  {
    MutexLock lock(&mutex_);
    chunks_[index] = {kImported, true};
  }
  return AllowAccess({index});
}

absl::StatusOr<CUmemGenericAllocationHandle> MappedBacking::HandleOf(std::uint64_t chunk) const {
  ReaderMutexLock lock(&mutex_);
  const auto found = chunks_.find(chunk);
  if (found == chunks_.end() || found->second.handle == kImported) {
    return absl::NotFoundError("the chunk is not resident here");
  }
  return found->second.handle;
}

std::vector<MappedBacking::Index> MappedBacking::MissingChunks(
    std::span<const memory::Extent> extents) const {
  std::vector<Index> missing = ChunksOf(extents, chunk_bytes_);
  std::erase_if(missing, [this](Index index) { return chunks_.contains(index); });
  return missing;
}

absl::Status MappedBacking::AllowAccess(const std::vector<Index>& indices) {
  for (const auto& [first, last] : Runs(indices)) {
    TORPOR_RETURN_IF_ERROR(executor::AllowAccess(device_, base_ + first * chunk_bytes_,
                                                 (last - first + 1) * chunk_bytes_));
  }
  return absl::OkStatus();
}

absl::Status MappedBacking::GiveBack(const std::vector<Index>& indices) {
  std::vector<Index> mapped;
  std::vector<Index> unmapped;
  for (const Index index : indices) {
    (chunks_.at(index).is_mapped ? mapped : unmapped).push_back(index);
  }
  for (const std::vector<Index>* const kind : {&mapped, &unmapped}) {
    for (const auto& [first, last] : Runs(*kind)) TORPOR_RETURN_IF_ERROR(GiveBackRun(first, last));
  }
  return absl::OkStatus();
}

absl::Status MappedBacking::GiveBackRun(Index first, Index last) {
  if (chunks_.at(first).is_mapped) {
    const memory::Extent run = ExtentOf(first, last);
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemUnmap(base_ + run.begin, run.bytes()), "cuMemUnmap"));
  }
  std::vector<CUmemGenericAllocationHandle> freed;
  {
    MutexLock lock(&mutex_);
    for (Index index = first; index <= last; ++index) {
      const Chunk chunk = chunks_.extract(index).mapped();
      if (chunk.handle != kImported) freed.push_back(chunk.handle);
    }
  }
  pool_.Return(freed);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ImageBacking>> MappedMemory::Open(SessionId session,
                                                                 std::uint64_t base, Bytes bytes) {
  if (!reserved_.Holds(base, bytes)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("session %d has %d bytes of addresses at %#x; %d are reserved at %#x",
                        session.value, bytes, base, reserved_.bytes, reserved_.begin));
  }
  return MappedBacking::Open(device_, pool_, base, bytes);
}

}  // namespace torpor::executor
