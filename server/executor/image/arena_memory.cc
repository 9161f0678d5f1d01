#include "server/executor/image/arena_memory.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/thread_name.h"
#include "memory/tiered_placement.h"
#include "server/executor/gpu/device_mapping.h"
#include "server/executor/image/arena_backing.h"

namespace torpor::executor {
namespace {

// Bytes that the thread maps between pauses for other users of the mutex.
constexpr Bytes kStep = 64 * kMiB;
// A small GPU has at least so many partitions.
constexpr Bytes kMinPartitions = 16;

absl::StatusOr<memory::PartitionSizes> SizesFor(
    Bytes pool_bytes, Bytes chunk_bytes, const std::optional<std::vector<Bytes>>& slot_sizes) {
  memory::PartitionSizes sizes;
  const Bytes share = std::bit_floor(std::max(pool_bytes / kMinPartitions, chunk_bytes));
  sizes.partition_bytes = std::max(std::min(sizes.partition_bytes, share), chunk_bytes);
  sizes.buddy_unit_bytes = chunk_bytes;
  const auto is_unfit = [&](Bytes slot) { return !sizes.MayHaveSlotsOf(slot); };
  if (!slot_sizes) {
    std::erase_if(sizes.fixed_sizes, is_unfit);
    return sizes;
  }
  if (const auto unfit = std::ranges::find_if(*slot_sizes, is_unfit); unfit != slot_sizes->end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("partition_sizes: ", *unfit, " bytes do not fit this GPU, whose arena of ",
                     pool_bytes, " bytes has partitions of ", sizes.partition_bytes,
                     " in chunks of ", chunk_bytes, "; leave that size out, or write auto"));
  }
  sizes.fixed_sizes = *slot_sizes;
  std::ranges::sort(sizes.fixed_sizes);
  return sizes;
}

Bytes LeftOverOf(const memory::PartitionSizes& sizes) {
  Bytes max_rest = 0;
  for (const Bytes slot : sizes.fixed_sizes)
    max_rest = std::max(max_rest, sizes.partition_bytes % slot);
  return max_rest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArenaMemory>> ArenaMemory::Create(
    const Device& device, PhysicalPool& pool, const std::optional<std::vector<Bytes>>& slot_sizes) {
  if (!std::has_single_bit(pool.chunk_bytes())) {
    return absl::InvalidArgumentError(
        absl::StrCat("address_mode translate wants chunks of a power of two, not ",
                     pool.chunk_bytes(), " bytes; set chunk_bytes"));
  }
  TORPOR_ASSIGN_OR_RETURN(const memory::PartitionSizes sizes,
                          SizesFor(pool.pool_bytes(), pool.chunk_bytes(), slot_sizes));
  std::unique_ptr<ArenaMemory> memory(new ArenaMemory(device, pool, sizes));
  TORPOR_RETURN_IF_ERROR(memory->Reserve());
  return memory;
}

ArenaMemory::ArenaMemory(const Device& device, PhysicalPool& pool,
                         const memory::PartitionSizes& sizes)
    : device_(device),
      pool_(pool),
      chunk_bytes_(pool.chunk_bytes()),
      allocator_(std::make_unique<memory::TieredPlacement>(pool.pool_bytes(), sizes)),
      behind_(0) {
  arena_bytes_ = allocator_.use().capacity;
  capacity_ = arena_bytes_ - arena_bytes_ / sizes.partition_bytes * LeftOverOf(sizes);
  behind_.Add({arena_bytes_, arena_bytes_});
}

absl::Status ArenaMemory::Reserve() {
  return device_.Status(device_.driver().MemAddressReserve(&base_, 2 * arena_bytes_, 0, 0, 0),
                        "cuMemAddressReserve of the arena");
}

ArenaMemory::~ArenaMemory() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  if (mapper_.joinable()) mapper_.join();
  MutexLock lock(&mutex_);
  TORPOR_CHECK(allocator_.block_count() == 0);
  if (base_ == 0) return;
  if (!chunks_.empty()) device_.driver().MemUnmap(base_, chunks_.size() * chunk_bytes_);
  device_.driver().MemAddressFree(base_, 2 * arena_bytes_);
  pool_.Return(chunks_);
}

void ArenaMemory::StartMapping() {
  mapper_ = std::thread([this] { MapAll(); });
}

void ArenaMemory::MapAll() {
  NameThread("arena");
  absl::Status status = device_.MakeCurrent();
  for (Bytes end = kStep; status.ok(); end += kStep) {
    MutexLock lock(&mutex_);
    if (is_stopping_) return;
    status = MapThrough(std::min(end, arena_bytes_));
    if (end >= arena_bytes_) break;
  }
  if (!status.ok()) spdlog::error("not all of the arena has memory: {}", status.ToString());
}

absl::StatusOr<std::unique_ptr<ImageBacking>> ArenaMemory::Open(SessionId session, std::uint64_t,
                                                                Bytes) {
  return std::make_unique<ArenaBacking>(*this, session);
}

memory::ArenaUse ArenaMemory::use() const {
  MutexLock lock(&mutex_);
  return allocator_.use();
}

Bytes ArenaMemory::free_bytes() const {
  MutexLock lock(&mutex_);
  const Bytes used = allocator_.use().used;
  return capacity_ - std::min(capacity_, used);
}

Bytes ArenaMemory::fragmented_bytes() const {
  const Bytes free = free_bytes();
  return free - std::min(free, use().largest_request);
}

absl::StatusOr<ArenaMemory::Place> ArenaMemory::Take(SessionId session, Bytes bytes) {
  MutexLock lock(&mutex_);
  const std::optional<Bytes> offset = allocator_.Allocate(session, bytes, chunk_bytes_);
  if (!offset) return PieceTogether(session, bytes);
  if (absl::Status mapped = MapThrough(*offset + bytes); !mapped.ok()) {
    allocator_.Free(*offset);
    return mapped;
  }
  return Place{base_ + *offset, bytes, {*offset}};
}

absl::StatusOr<ArenaMemory::Place> ArenaMemory::PieceTogether(SessionId session, Bytes bytes) {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<memory::Block> pieces, TakePieces(session, bytes));
  const std::optional<memory::Block> addresses = behind_.Take(bytes, chunk_bytes_);
  // There are as many as the arena has memory.
  absl::Status status = addresses ? MapPieces(base_ + addresses->offset, pieces)
                                  : absl::ResourceExhaustedError("no addresses behind the arena");
  if (!status.ok()) {
    if (addresses) behind_.Add(*addresses);
    FreePieces(pieces);
    return status;
  }
  Place place{base_ + addresses->offset, bytes, {}};
  place.pieces.reserve(pieces.size());
  for (const memory::Block& piece : pieces) place.pieces.push_back(piece.offset);
  pieces_.insert(place.pieces.begin(), place.pieces.end());
  return place;
}

absl::StatusOr<std::vector<memory::Block>> ArenaMemory::TakePieces(SessionId session, Bytes bytes) {
  std::vector<memory::Block> pieces;
  for (Bytes left = bytes; left > 0;) {
    const Bytes piece = std::min(left, RoundDown(allocator_.use().largest_request, chunk_bytes_));
    const std::optional<Bytes> offset =
        piece > 0 ? allocator_.Allocate(session, piece, chunk_bytes_) : std::nullopt;
    if (!offset) {
      FreePieces(pieces);
      return absl::ResourceExhaustedError(
          absl::StrCat("the GPU's arena lacks ", left, " of ", bytes, " bytes that are needed"));
    }
    pieces.push_back({*offset, piece});
    left -= piece;
  }
  return pieces;
}

absl::Status ArenaMemory::MapPieces(CUdeviceptr address, const std::vector<memory::Block>& pieces) {
  const CudaDriver& driver = device_.driver();
  CUdeviceptr at = address;
  absl::Status status;
  for (const memory::Block& piece : pieces) {
    if (status.ok()) status = MapThrough(piece.end());
    for (Bytes offset = piece.offset; offset < piece.end() && status.ok(); offset += chunk_bytes_) {
      status = device_.Status(driver.MemMap(at, chunk_bytes_, 0, chunks_[offset / chunk_bytes_], 0),
                              "cuMemMap");
      if (status.ok()) at += chunk_bytes_;
    }
  }
  if (status.ok()) status = AllowAccess(device_, address, at - address);
  if (!status.ok() && at > address) driver.MemUnmap(address, at - address);
  return status;
}

void ArenaMemory::FreePieces(const std::vector<memory::Block>& pieces) {
  for (const memory::Block& piece : pieces) allocator_.Free(piece.offset);
}

absl::Status ArenaMemory::Give(const Place& place) {
  // Unmap before freeing the addresses for the next block, and while others may take places.
  if (IsBehindArena(place.address)) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().MemUnmap(place.address, place.bytes), "cuMemUnmap"));
  }
  MutexLock lock(&mutex_);
  if (IsBehindArena(place.address)) behind_.Add({place.address - base_, place.bytes});
  for (const Bytes piece : place.pieces) {
    pieces_.erase(piece);
    TORPOR_CHECK(allocator_.Free(piece));
  }
  return absl::OkStatus();
}

std::vector<memory::Move> ArenaMemory::PlanMoves(const std::set<SessionId>& sessions,
                                                 Bytes max_bytes) {
  MutexLock lock(&mutex_);
  const auto may_move =
      [&](const memory::PlacedBlock& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return sessions.contains(block.request.owner) && !pieces_.contains(block.place.offset);
      };
  return allocator_.PlanMoves(max_bytes, may_move);
}

absl::StatusOr<std::optional<ArenaMemory::Place>> ArenaMemory::BeginMove(const memory::Move& move,
                                                                         CUstream stream) {
  {
    MutexLock lock(&mutex_);
    // Mapping would take longer than the copy.
    const bool is_mapped = move.to + move.bytes <= chunks_.size() * chunk_bytes_;
    if (!is_mapped || !allocator_.BeginMove(move)) return std::nullopt;
  }
  const CudaDriver& driver = device_.driver();
  absl::Status status =
      device_.Status(driver.MemcpyDtoDAsync(base_ + move.to, base_ + move.from, move.bytes, stream),
                     "moving a block");
  status.Update(device_.Status(driver.StreamSynchronize(stream), "cuStreamSynchronize"));
  if (status.ok()) return Place{base_ + move.to, move.bytes, {move.to}};
  MutexLock lock(&mutex_);
  allocator_.AbandonMove(move.from);
  return status;
}

void ArenaMemory::CommitMove(const memory::Move& move) {
  MutexLock lock(&mutex_);
  TORPOR_CHECK(allocator_.CommitMove(move.from));
}

absl::Status ArenaMemory::MapThrough(Bytes end) {
  const Bytes begin = chunks_.size() * chunk_bytes_;
  absl::Status status;
  while (chunks_.size() * chunk_bytes_ < end && status.ok()) {
    TORPOR_ASSIGN_OR_RETURN(const std::vector<CUmemGenericAllocationHandle> chunk, pool_.Take(1));
    status = device_.Status(device_.driver().MemMap(base_ + chunks_.size() * chunk_bytes_,
                                                    chunk_bytes_, 0, chunk.front(), 0),
                            "cuMemMap of the arena");
    if (status.ok()) {
      chunks_.push_back(chunk.front());
    } else {
      pool_.Return(chunk);
    }
  }
  const Bytes mapped = chunks_.size() * chunk_bytes_ - begin;
  if (mapped > 0) status.Update(AllowAccess(device_, base_ + begin, mapped));
  return status;
}

absl::StatusOr<CUmemGenericAllocationHandle> ArenaMemory::HandleAt(CUdeviceptr address) const {
  const Bytes offset = address - base_;
  if (offset >= arena_bytes_) {
    return absl::NotFoundError("what is pieced together is not given to other GPUs");
  }
  MutexLock lock(&mutex_);
  return chunks_[offset / chunk_bytes_];
}

}  // namespace torpor::executor
