#include "server/repository/tenant_blocks.h"

#include <algorithm>
#include <span>

#include "base/status_macros.h"

namespace torpor::server {
namespace {

using memory::BlockOrigin;
using memory::BlockStates;
using memory::EqualRun;

constexpr Bytes kBlockBytes = wire::kImageBlockBytes;

const MemoryFile& ImageOf(const SessionFiles& session) {
  return session.file(wire::SharedMemory::kImage);
}

const MemoryFile& TenantFileOf(const SessionFiles& session) {
  return session.file(wire::SharedMemory::kTenantFile);
}

// Whether the block may get a place in the tenant's file.
bool IsAtRest(const BlockStates& states, std::size_t block) {
  return states.origin(block) == BlockOrigin::kUploaded &&
         !memory::IsTenantHome(states.home(block)) && !states.IsPending(block);
}

void List(const BlockStates& states, std::size_t block, std::size_t number, ImageBlockList& list) {
  std::vector<std::size_t> places;
  states.AppendTenantPlaces(block, places);
  const auto content = states.content(block);
  for (const std::size_t place : places) {
    const bool is_home = states.home(block) == memory::TenantHome(place);
    list.at_tenant.push_back({place, is_home && content ? *content : BlockStates::kNoContent});
  }
  if (content && IsAtRest(states, block)) list.uploaded.push_back({number, *content});
}

// Returns where the block's bytes lie in the image's file; not of a block in the tenant's file.
// `number`: the block's; `block`: as `states` counts.
Bytes OffsetOf(const SessionFiles& session, const BlockStates& states, std::size_t block,
               std::size_t number) {
  const memory::BlockHome home = states.home(block);
  const Bytes begin = memory::IsAnnexHome(home) ? ImageOf(session).size() / 2 : 0;
  return begin + memory::PlaceOfHome(number, home) * kBlockBytes;
}

// Compares blocks of an image with places.
class Comparison {
 public:
  explicit Comparison(const SessionFiles& session) : session_(session) {}

  absl::StatusOr<bool> AreEqual(Bytes offset, std::size_t place) {
    TORPOR_RETURN_IF_ERROR(ImageOf(session_).Read(offset, own_));
    TORPOR_RETURN_IF_ERROR(TenantFileOf(session_).Read(place * kBlockBytes, other_));
    return own_ == other_;
  }

 private:
  const SessionFiles& session_;
  std::vector<std::uint8_t> own_ = std::vector<std::uint8_t>(kBlockBytes);
  std::vector<std::uint8_t> other_ = std::vector<std::uint8_t>(kBlockBytes);
};

void Append(std::vector<EqualRun>& runs, std::size_t block, std::size_t place) {
  const bool goes_on = !runs.empty() && runs.back().block + runs.back().count == block &&
                       runs.back().other + runs.back().count == place;
  if (goes_on) {
    ++runs.back().count;
  } else {
    runs.push_back({block, place, 1});
  }
}

absl::StatusOr<MappedStates> MapStates(const SessionFiles& session, const EqualRun& run) {
  return session.MapStates({run.block * kBlockBytes, (run.block + run.count) * kBlockBytes});
}

// Notes the places of a block that moves to the tenant's file next.
void NoteLeft(const BlockStates& states, std::size_t block, std::size_t number,
              MovedBlocks& moved) {
  const auto extent_of = [](std::size_t place) {
    return memory::Extent{place * kBlockBytes, (place + 1) * kBlockBytes};
  };
  moved.own.Add(extent_of(number));
  const memory::BlockHome home = states.home(block);
  if (memory::IsAnnexHome(home)) moved.annex.Add(extent_of(memory::PlaceOfHome(number, home)));
}

absl::Status MoveRun(const SessionFiles& session, const EqualRun& run, MovedBlocks& moved) {
  TORPOR_ASSIGN_OR_RETURN(MappedStates mapped, MapStates(session, run));
  BlockStates& states = mapped.states();
  Comparison comparison(session);
  for (std::size_t i = 0; i < run.count; ++i) {
    const std::size_t number = run.block + i;
    const std::size_t block = number - mapped.first_block();
    const std::size_t place = run.other + i;
    if (!IsAtRest(states, block)) continue;
    const Bytes offset = OffsetOf(session, states, block, number);
    TORPOR_ASSIGN_OR_RETURN(const bool are_equal, comparison.AreEqual(offset, place));
    if (!are_equal) continue;
    NoteLeft(states, block, number, moved);
    states.Move(block, memory::TenantHome(place));
    Append(moved.runs, number, place);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageBlockList> ListBlocks(const SessionFiles& session,
                                          const std::vector<memory::Extent>& segments) {
  ImageBlockList list;
  for (const memory::Extent& segment : segments) {
    TORPOR_ASSIGN_OR_RETURN(MappedStates mapped, session.MapStates(segment));
    for (std::size_t block = segment.begin / kBlockBytes; block * kBlockBytes < segment.end;
         ++block) {
      List(mapped.states(), block - mapped.first_block(), block, list);
    }
  }
  return list;
}

absl::Status CopyToTenantFile(const SessionFiles& session, const EqualRun& run) {
  TORPOR_ASSIGN_OR_RETURN(MappedStates mapped, MapStates(session, run));
  std::vector<std::uint8_t> bytes(kBlockBytes);
  for (std::size_t i = 0; i < run.count; ++i) {
    const std::size_t block = run.block + i;
    const Bytes offset = OffsetOf(session, mapped.states(), block - mapped.first_block(), block);
    TORPOR_RETURN_IF_ERROR(ImageOf(session).Read(offset, bytes));
    TORPOR_RETURN_IF_ERROR(TenantFileOf(session).Write((run.other + i) * kBlockBytes, bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<MovedBlocks> MoveToTenantFile(const SessionFiles& session,
                                             const std::vector<EqualRun>& runs) {
  MovedBlocks moved;
  for (const EqualRun& run : runs) {
    absl::Status status = MoveRun(session, run, moved);
    // What has been moved counts, whatever could not be read.
    if (!status.ok() && moved.runs.empty()) return status;
  }
  return moved;
}

absl::Status GiveBackLeft(const SessionFiles& session, const MovedBlocks& moved) {
  const Bytes annex = ImageOf(session).size() / 2;
  absl::Status status;
  for (const memory::Extent& extent : moved.own.extents()) {
    status.Update(ImageOf(session).GiveBack(extent));
  }
  for (const memory::Extent& extent : moved.annex.extents()) {
    status.Update(ImageOf(session).GiveBack({annex + extent.begin, annex + extent.end}));
  }
  return status;
}

}  // namespace torpor::server
