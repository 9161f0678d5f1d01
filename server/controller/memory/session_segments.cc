#include "server/controller/memory/session_segments.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::server {
namespace {

using memory::Block;
using memory::RangeAllocator;

// Chunks of pinned memory mean nothing but the border of small allocations.
constexpr Bytes kHostChunkBytes = 2 * kMiB;
static_assert(kHostSegmentBytes % kHostChunkBytes == 0);

Bytes Total(const std::vector<Block>& blocks) {
  Bytes bytes = 0;
  for (const Block& block : blocks) bytes += block.bytes;
  return bytes;
}

// Takes segments with room for `needed` bytes behind the last ones or, in a piece of their own,
// elsewhere. Such pieces grow with what the session has, up to `most`, so that few allocations find
// too little room at the end of each.
std::optional<Block> TakeSegments(SessionAddresses& from, const std::vector<Block>& owned,
                                  Bytes needed, Bytes most) {
  if (!owned.empty()) {
    if (const auto block = from.TakeBehind(owned.back().end(), needed)) return block;
    const Bytes generous = std::min(most, Total(owned) / 2);
    if (generous > needed) {
      if (const auto block = from.Take(generous)) return block;
    }
  }
  return from.Take(needed);
}

// Adds addresses with room for an allocation of `bytes`. `limit`: bytes that the session may own.
absl::Status Grow(SessionAddresses& from, std::vector<Block>& owned, RangeAllocator& allocator,
                  Bytes bytes, Bytes limit) {
  const Bytes needed = RoundUp(allocator.RoomFor(bytes), from.segment_bytes());
  const Bytes has = Total(owned);
  if (needed > limit || has > limit - needed) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes,
                     " bytes: no piece of the session's addresses has room, and with ", has,
                     " bytes it has as many as it may (", limit, ")"));
  }
  const std::optional<Block> block = TakeSegments(from, owned, needed, limit - has);
  if (!block) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes: all sessions together leave ",
                     from.free_bytes(), " of the node's ", from.total_bytes(),
                     " bytes of addresses, and too few in one piece; close some sessions, or raise "
                     "address_space"));
  }
  allocator.AddRange(*block);
  if (!owned.empty() && owned.back().end() == block->offset) {
    owned.back().bytes += block->bytes;
  } else {
    owned.push_back(*block);
  }
  return absl::OkStatus();
}

absl::StatusOr<Block> Allocate(SessionAddresses& from, std::vector<Block>& owned,
                               RangeAllocator& allocator, Bytes bytes, Bytes limit) {
  if (const auto block = allocator.Allocate(bytes)) return *block;
  TORPOR_RETURN_IF_ERROR(Grow(from, owned, allocator, bytes, limit));
  if (const auto block = allocator.Allocate(bytes)) return *block;
  return absl::InternalError(absl::StrCat("new addresses have no room for ", bytes, " bytes"));
}

// Takes the segments and pieces that a session had. False if one is not free.
bool TakeAsLogged(SessionAddresses& from, std::vector<Block>& owned, RangeAllocator& allocator,
                  const LoggedMemory& logged) {
  for (const Block& segment : logged.segments) {
    if (!from.TakeAt(segment)) return false;
    owned.push_back(segment);
    allocator.AddRange(segment);
  }
  return std::all_of(logged.pieces.begin(), logged.pieces.end(), [&](const auto& piece) {
    return allocator.AllocateAt({piece.first, piece.second.bytes});
  });
}

void ReleaseAll(SessionAddresses& to, std::vector<Block>& owned) {
  for (const Block& block : owned) to.Release(block);
  owned.clear();
}

}  // namespace

SessionSegments::SessionSegments(const Options& options)
    : options_(options),
      device_(options.addresses.device_bytes, DeviceSegmentBytes(options.chunk_bytes)),
      host_(options.addresses.host_bytes, kHostSegmentBytes),
      budget_(options.host_budget) {}

absl::Status SessionSegments::Begin(ClientSession& session, Bytes memory_limit) {
  // Room for fragmentation, so that a program can allocate all of its limit. Chunks that lie apart
  // take up to twice their bytes of addresses.
  const Bytes room = 2 * memory_limit + memory_limit / 4;
  Prepare(session, RoundUp(std::max(options_.address_range, room), device_.segment_bytes()));
  TORPOR_RETURN_IF_ERROR(budget_.Admit(session));
  SessionAllocations& memory = session.memory;
  absl::Status status =
      Grow(device_, memory.device_segments, *memory.device, 1, memory.address_limit);
  if (!status.ok()) budget_.Forget(session);
  return status;
}

void SessionSegments::Prepare(ClientSession& session, Bytes address_limit) {
  using Layout = RangeAllocator::Layout;
  SessionAllocations& memory = session.memory;
  memory.device_base = options_.addresses.device_base;
  memory.host_base = options_.addresses.host_base;
  memory.address_limit = address_limit;
  memory.device.emplace(options_.chunk_bytes, options_.is_apart ? Layout::kApart : Layout::kDense);
  if (session.has_arena()) memory.host.emplace(kHostChunkBytes);
}

bool SessionSegments::IsAsLogged(const SessionOpened& opened) const {
  return opened.device_base == options_.addresses.device_base &&
         opened.host_base == options_.addresses.host_base &&
         opened.image_bytes == options_.addresses.device_bytes &&
         opened.host_arena_bytes == options_.addresses.host_bytes &&
         opened.chunk_bytes == options_.chunk_bytes && opened.is_apart == options_.is_apart;
}

absl::Status SessionSegments::Restore(ClientSession& session, const LoggedSession& logged) {
  if (!IsAsLogged(logged.opened)) {
    return absl::FailedPreconditionError(
        "the node's addresses, or the size of its chunks, are others than they were");
  }
  Prepare(session, logged.opened.address_limit);
  SessionAllocations& memory = session.memory;
  const bool is_restored =
      TakeAsLogged(device_, memory.device_segments, *memory.device, logged.device) &&
      TakeAsLogged(host_, memory.host_segments, *memory.host, logged.host);
  if (!is_restored) {
    Release(session);
    return absl::FailedPreconditionError("its addresses are not free");
  }
  for (const auto& [offset, piece] : logged.host.pieces) memory.host_blocks[offset] = piece.bytes;
  // Whatever the budget is now: what a session has stays.
  budget_.Settle(session);
  return absl::OkStatus();
}

absl::StatusOr<Block> SessionSegments::AllocateDevice(ClientSession& session, Bytes bytes) {
  SessionAllocations& memory = session.memory;
  TORPOR_ASSIGN_OR_RETURN(const Block block, Allocate(device_, memory.device_segments,
                                                      *memory.device, bytes, memory.address_limit));
  return Admitted(session, *memory.device, block);
}

absl::StatusOr<Block> SessionSegments::AllocateHost(ClientSession& session, Bytes bytes) {
  SessionAllocations& memory = session.memory;
  TORPOR_ASSIGN_OR_RETURN(const Block block, Allocate(host_, memory.host_segments, *memory.host,
                                                      bytes, kHostArenaBytes));
  return Admitted(session, *memory.host, block);
}

absl::StatusOr<Block> SessionSegments::Admitted(ClientSession& session, RangeAllocator& allocator,
                                                Block block) {
  const absl::Status status = budget_.Admit(session);
  if (status.ok()) return block;
  allocator.Free(block.offset);
  return status;
}

void SessionSegments::Release(ClientSession& session) {
  ReleaseAll(device_, session.memory.device_segments);
  ReleaseAll(host_, session.memory.host_segments);
  budget_.Forget(session);
}

}  // namespace torpor::server
