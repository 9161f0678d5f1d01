#include "server/executor/gpu/pinned_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

// A thread fills small pages at 3 GB/s (an H100's host), a third of what a swap-out copies.
constexpr Bytes kPopulatedByAThread = 8 * kMiB;
constexpr unsigned kPopulatingThreads = 8;

// Has the system provide the pages, which the driver would otherwise do under locks of its own,
// while other calls wait. A kernel before 5.14 leaves the pages to the driver.
void Populate(std::uint8_t* begin, Bytes bytes) {
  const Bytes most =
      std::min(kPopulatingThreads, std::max(1U, std::thread::hardware_concurrency() / 2));
  const Bytes threads = std::clamp<Bytes>(bytes / kPopulatedByAThread, 1, most);
  const Bytes share = RoundUp((bytes + threads - 1) / threads, kPopulatedByAThread);
  std::vector<std::jthread> others;
  for (Bytes at = share; at < bytes; at += share) {
    others.emplace_back(
        [=] { madvise(begin + at, std::min(share, bytes - at), MADV_POPULATE_WRITE); });
  }
  madvise(begin, std::min(share, bytes), MADV_POPULATE_WRITE);
}

}  // namespace

PinnedMemory::PinnedMemory(const Device& device, std::uint8_t* base, Bytes bytes, Bytes unit)
    : device_(device), base_(base), bytes_(bytes), unit_(unit) {}

PinnedMemory::~PinnedMemory() {
  for (const auto& [begin, end] : pieces_) device_.driver().MemHostUnregister(base_ + begin);
}

absl::Status PinnedMemory::CheckInside(memory::Extent piece) const {
  if (piece.begin < piece.end && piece.end <= bytes_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "[", piece.begin, ", ", piece.end, ") is not inside ", bytes_, " bytes of host memory"));
}

absl::Status PinnedMemory::Register(memory::Extent piece) {
  TORPOR_RETURN_IF_ERROR(CheckInside(piece));
  {
    MutexLock lock(&mutex_);
    if (!pinned_.Within(piece).empty() || !claimed_.Within(piece).empty()) {
      return absl::AlreadyExistsError(
          absl::StrCat("host memory [", piece.begin, ", ", piece.end, ") is already registered"));
    }
    claimed_.Add(piece);
  }
  return RegisterClaimed(piece);
}

absl::Status PinnedMemory::RegisterClaimed(memory::Extent piece) {
  Populate(base_ + piece.begin, piece.bytes());
  absl::Status registered = device_.Status(
      device_.driver().MemHostRegister(base_ + piece.begin, piece.bytes(),
                                       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
      "cuMemHostRegister");
  MutexLock lock(&mutex_);
  claimed_.Remove(piece);
  settled_.SignalAll();
  if (!registered.ok()) return registered;
  pieces_.emplace(piece.begin, piece.end);
  pinned_.Add(piece);
  return absl::OkStatus();
}

absl::Status PinnedMemory::Unregister(memory::Extent piece) {
  {
    MutexLock lock(&mutex_);
    const auto found = pieces_.find(piece.begin);
    if (found == pieces_.end() || found->second != piece.end) {
      return absl::NotFoundError(
          absl::StrCat("host memory [", piece.begin, ", ", piece.end, ") is not registered"));
    }
    Claim(found);
  }
  return UnregisterClaimed(piece);
}

memory::Extent PinnedMemory::Claim(Pieces::const_iterator piece) {
  const memory::Extent extent{piece->first, piece->second};
  pieces_.erase(piece);
  pinned_.Remove(extent);
  claimed_.Add(extent);
  return extent;
}

absl::Status PinnedMemory::UnregisterClaimed(memory::Extent piece) {
  absl::Status unregistered = device_.Status(
      device_.driver().MemHostUnregister(base_ + piece.begin), "cuMemHostUnregister");
  MutexLock lock(&mutex_);
  claimed_.Remove(piece);
  settled_.SignalAll();
  if (unregistered.ok()) return unregistered;
  pieces_.emplace(piece.begin, piece.end);
  pinned_.Add(piece);
  return unregistered;
}

absl::Status PinnedMemory::UnregisterOverlapping(memory::Extent extent) {
  while (true) {
    memory::Extent piece;
    {
      MutexLock lock(&mutex_);
      AwaitClaimsWithin(extent);
      auto next = pieces_.upper_bound(extent.begin);
      if (next != pieces_.begin() && std::prev(next)->second > extent.begin) --next;
      if (next == pieces_.end() || next->first >= extent.end) return absl::OkStatus();
      piece = Claim(next);
    }
    TORPOR_RETURN_IF_ERROR(UnregisterClaimed(piece));
  }
}

void PinnedMemory::AwaitClaimsWithin(memory::Extent extent) {
  while (!claimed_.Within(extent).empty()) mutex_.WaitFor(settled_, absl::Seconds(1));
}

bool PinnedMemory::Contains(memory::Extent extent) const {
  MutexLock lock(&mutex_);
  const auto after = pieces_.upper_bound(extent.begin);
  return after != pieces_.begin() && extent.end <= std::prev(after)->second;
}

absl::Status PinnedMemory::Ensure(memory::Extent extent) {
  while (true) {
    TORPOR_ASSIGN_OR_RETURN(const bool has_registered, RegisterNext(extent));
    if (!has_registered) return absl::OkStatus();
  }
}

absl::StatusOr<bool> PinnedMemory::RegisterNext(memory::Extent extent) {
  memory::Extent piece;
  {
    MutexLock lock(&mutex_);
    if (pinned_.Contains(extent)) return false;
    const memory::Extent whole{RoundDown(extent.begin, unit_),
                               std::min(RoundUp(extent.end, unit_), bytes_)};
    TORPOR_RETURN_IF_ERROR(CheckInside(whole));
    AwaitClaimsWithin(whole);
    const std::vector<memory::Extent> gaps = pinned_.Gaps(whole);
    if (gaps.empty()) return false;
    const Bytes slot_end = RoundDown(gaps.front().begin, kSlotBytes) + kSlotBytes;
    piece = {gaps.front().begin, std::min(slot_end, gaps.front().end)};
    claimed_.Add(piece);
  }
  TORPOR_RETURN_IF_ERROR(RegisterClaimed(piece));
  return true;
}

std::vector<memory::Extent> PinnedMemory::Split(memory::Extent extent) const {
  MutexLock lock(&mutex_);
  std::vector<memory::Extent> parts;
  Bytes begin = extent.begin;
  auto next = pieces_.upper_bound(begin);
  if (next != pieces_.begin()) --next;
  while (begin < extent.end) {
    // Skips all registrations that end at or before `begin`; the bytes in between are one part.
    while (next != pieces_.end() && next->second <= begin) ++next;
    Bytes end = extent.end;
    if (next != pieces_.end()) {
      end = std::min(end, next->first > begin ? next->first : next->second);
    }
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

}  // namespace torpor::executor
