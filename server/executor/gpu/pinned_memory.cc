#include "server/executor/gpu/pinned_memory.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

// Registering blocks the machine's other CUDA calls for about 0.1 s per GiB; pieces of 64 MiB keep
// the pauses short.
constexpr Bytes kLargestPiece = 64 * kMiB;

}  // namespace

PinnedMemory::PinnedMemory(const Device& device, std::uint8_t* base, Bytes bytes, Bytes unit)
    : device_(device), base_(base), bytes_(bytes), unit_(unit) {}

PinnedMemory::~PinnedMemory() {
  for (const auto& [begin, end] : pieces_) device_.driver().MemHostUnregister(base_ + begin);
}

absl::Status PinnedMemory::RegisterLocked(memory::Extent piece) {
  if (piece.begin >= piece.end || piece.end > bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", piece.begin, ", ", piece.end, ") is not inside ", bytes_, " bytes of host memory"));
  }
  if (!pinned_.Within(piece).empty()) {
    return absl::AlreadyExistsError(
        absl::StrCat("host memory [", piece.begin, ", ", piece.end, ") is already registered"));
  }
  TORPOR_RETURN_IF_ERROR(device_.Status(
      device_.driver().MemHostRegister(base_ + piece.begin, piece.bytes(),
                                       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
      "cuMemHostRegister"));
  pieces_.emplace(piece.begin, piece.end);
  pinned_.Add(piece);
  return absl::OkStatus();
}

absl::Status PinnedMemory::Register(memory::Extent piece) {
  MutexLock lock(&mutex_);
  return RegisterLocked(piece);
}

absl::Status PinnedMemory::Unregister(memory::Extent piece) {
  MutexLock lock(&mutex_);
  const auto found = pieces_.find(piece.begin);
  if (found == pieces_.end() || found->second != piece.end) {
    return absl::NotFoundError(
        absl::StrCat("host memory [", piece.begin, ", ", piece.end, ") is not registered"));
  }
  return UnregisterLocked(found);
}

absl::Status PinnedMemory::UnregisterLocked(Pieces::const_iterator piece) {
  const memory::Extent extent{piece->first, piece->second};
  TORPOR_RETURN_IF_ERROR(device_.Status(device_.driver().MemHostUnregister(base_ + extent.begin),
                                        "cuMemHostUnregister"));
  pieces_.erase(piece);
  pinned_.Remove(extent);
  return absl::OkStatus();
}

absl::Status PinnedMemory::UnregisterOverlapping(memory::Extent extent) {
  MutexLock lock(&mutex_);
  auto next = pieces_.upper_bound(extent.begin);
  if (next != pieces_.begin() && std::prev(next)->second > extent.begin) --next;
  while (next != pieces_.end() && next->first < extent.end) {
    const auto piece = next++;
    TORPOR_RETURN_IF_ERROR(UnregisterLocked(piece));
  }
  return absl::OkStatus();
}

bool PinnedMemory::Contains(memory::Extent extent) const {
  MutexLock lock(&mutex_);
  const auto after = pieces_.upper_bound(extent.begin);
  return after != pieces_.begin() && extent.end <= std::prev(after)->second;
}

absl::Status PinnedMemory::Ensure(memory::Extent extent) {
  MutexLock lock(&mutex_);
  if (pinned_.Contains(extent)) return absl::OkStatus();
  const memory::Extent whole{RoundDown(extent.begin, unit_),
                             std::min(RoundUp(extent.end, unit_), bytes_)};
  for (const memory::Extent& gap : pinned_.Gaps(whole)) {
    for (Bytes begin = gap.begin; begin < gap.end; begin += kLargestPiece) {
      TORPOR_RETURN_IF_ERROR(RegisterLocked({begin, std::min(begin + kLargestPiece, gap.end)}));
    }
  }
  return absl::OkStatus();
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
