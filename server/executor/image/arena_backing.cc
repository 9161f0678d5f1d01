#include "server/executor/image/arena_backing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace torpor::executor {

ArenaBacking::~ArenaBacking() { Release({0, ~Bytes{0}}, {}).IgnoreError(); }

memory::Extent ArenaBacking::UnitOf(memory::Extent allocation) const {
  return {RoundDown(allocation.begin, chunk_bytes()), RoundUp(allocation.end, chunk_bytes())};
}

ArenaBacking::Units::const_iterator ArenaBacking::Find(Bytes offset) const {
  const auto after = units_.upper_bound(offset);
  if (after == units_.begin()) return units_.end();
  const auto unit = std::prev(after);
  return offset < unit->second.extent.end ? unit : units_.end();
}

absl::StatusOr<bool> ArenaBacking::IsBacked(memory::Extent extent) const {
  ReaderMutexLock lock(&mutex_);
  const auto next = units_.lower_bound(extent.end);
  if (next == units_.begin()) return false;
  const memory::Extent last = std::prev(next)->second.extent;
  if (last.end <= extent.begin) return false;
  if (last.begin <= extent.begin && extent.end <= last.end) return true;
  return absl::FailedPreconditionError(
      absl::StrFormat("the allocation in [%d, %d) overlaps another one's block, [%d, %d)",
                      extent.begin, extent.end, last.begin, last.end));
}

absl::Status ArenaBacking::Add(memory::Extent extent) {
  TORPOR_ASSIGN_OR_RETURN(ArenaMemory::Place place, memory_.Take(session_, extent.bytes()));
  MutexLock lock(&mutex_);
  units_.emplace(extent.begin, Unit{extent, std::move(place)});
  NoteChange();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<memory::Extent>> ArenaBacking::Back(
    std::span<const memory::Extent> allocations) {
  std::vector<memory::Extent> fresh;
  fresh.reserve(allocations.size());
  absl::Status status;
  for (const memory::Extent& allocation : allocations) {
    const memory::Extent unit = UnitOf(allocation);
    const absl::StatusOr<bool> is_backed = IsBacked(unit);
    status = is_backed.ok() && !*is_backed ? Add(unit) : is_backed.status();
    if (!status.ok()) break;
    if (!*is_backed) fresh.push_back(unit);
  }
  if (status.ok()) return fresh;
  for (const memory::Extent& unit : fresh) Release(unit, {}).IgnoreError();
  return status;
}

absl::Status ArenaBacking::Release(memory::Extent extent, const memory::ExtentSet& live) {
  std::vector<Unit> unused;
  {
    MutexLock lock(&mutex_);
    for (auto unit = units_.begin(); unit != units_.end();) {
      const memory::Extent own = unit->second.extent;
      const bool is_inside = own.begin < extent.end && extent.begin < own.end;
      if (is_inside && live.Within(own).empty()) {
        unused.push_back(std::move(unit->second));
        unit = units_.erase(unit);
      } else {
        ++unit;
      }
    }
    if (!unused.empty()) NoteChange();
  }
  absl::Status status;
  for (const Unit& unit : unused) status.Update(memory_.Give(unit.place));
  return status;
}

bool ArenaBacking::empty() const {
  ReaderMutexLock lock(&mutex_);
  return units_.empty();
}

Bytes ArenaBacking::held_bytes() const {
  Bytes held = 0;
  ReaderMutexLock lock(&mutex_);
  for (const auto& [begin, unit] : units_) held += unit.extent.bytes();
  return held;
}

std::vector<BackedPart> ArenaBacking::PartsOf(memory::Extent extent) const {
  std::vector<BackedPart> parts;
  ReaderMutexLock lock(&mutex_);
  for (auto unit = Find(extent.begin);
       unit != units_.end() && unit->second.extent.begin < extent.end; ++unit) {
    const auto& [own, place] = unit->second;
    const memory::Extent part{std::max(own.begin, extent.begin), std::min(own.end, extent.end)};
    parts.push_back({part, place.address + (part.begin - own.begin)});
  }
  return parts;
}

void ArenaBacking::NoteChange() {
  addresses_.reset();
  version_.fetch_add(1, std::memory_order_release);
}

// Does not use a table: for a single address, rebuilding the table after each change would cost a
// pass over all blocks.
CUdeviceptr ArenaBacking::AddressOf(Bytes offset) const {
  ReaderMutexLock lock(&mutex_);
  const auto unit = Find(offset);
  if (unit == units_.end()) return 0;
  return unit->second.place.address + (offset - unit->second.extent.begin);
}

std::shared_ptr<const AddressTable> ArenaBacking::Addresses() const {
  MutexLock lock(&mutex_);
  if (addresses_ == nullptr) {
    std::vector<BackedPart> blocks;
    blocks.reserve(units_.size());
    for (const auto& [begin, unit] : units_) blocks.push_back({unit.extent, unit.place.address});
    addresses_ = std::make_shared<const AddressTable>(version_.load(), blocks);
  }
  return addresses_;
}

ArenaBacking::Units::iterator ArenaBacking::FindAt(Bytes place) {
  return std::ranges::find_if(units_, [&](const auto& unit) {
    const std::vector<Bytes>& pieces = unit.second.place.pieces;
    return pieces.size() == 1 && pieces.front() == place;
  });
}

absl::StatusOr<bool> ArenaBacking::Move(const memory::Move& move, CUstream stream) {
  {
    ReaderMutexLock lock(&mutex_);
    if (FindAt(move.from) == units_.end()) return false;
  }
  TORPOR_ASSIGN_OR_RETURN(const std::optional<ArenaMemory::Place> place,
                          memory_.BeginMove(move, stream));
  if (!place) return false;
  {
    MutexLock lock(&mutex_);
    FindAt(move.from)->second.place = *place;
    NoteChange();
  }
  memory_.CommitMove(move);
  return true;
}

absl::StatusOr<memory::ExtentSet> ArenaBacking::Import(const memory::ExtentSet& live, ChunkOwner&) {
  if (live.empty()) return memory::ExtentSet();
  return absl::FailedPreconditionError(
      "memory of another GPU needs address_mode: map; this node has translate");
}

absl::StatusOr<CUmemGenericAllocationHandle> ArenaBacking::HandleOf(std::uint64_t chunk) const {
  const memory::Extent extent{chunk * chunk_bytes(), (chunk + 1) * chunk_bytes()};
  const std::vector<BackedPart> parts = PartsOf(extent);
  if (parts.empty() || parts.front().extent != extent) {
    return absl::NotFoundError("the chunk is not resident here");
  }
  return memory_.HandleAt(parts.front().address);
}

}  // namespace torpor::executor
