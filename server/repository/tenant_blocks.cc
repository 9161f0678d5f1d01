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
         states.home(block) == memory::kOwnPlace && !states.IsPending(block);
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

bool AreEqual(const SessionFiles& session, std::size_t block, std::size_t place,
              absl::Status& status) {
  static thread_local std::vector<std::uint8_t> own(kBlockBytes);
  static thread_local std::vector<std::uint8_t> other(kBlockBytes);
  status.Update(ImageOf(session).Read(block * kBlockBytes, own));
  status.Update(TenantFileOf(session).Read(place * kBlockBytes, other));
  return status.ok() && std::ranges::equal(own, other);
}

void Append(std::vector<EqualRun>& runs, std::size_t block, std::size_t place) {
  const bool goes_on = !runs.empty() && runs.back().block + runs.back().count == block &&
                       runs.back().other + runs.back().count == place;
  if (goes_on) {
    ++runs.back().count;
  } else {
    runs.push_back({block, place, 1});
  }
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
  std::vector<std::uint8_t> bytes(kBlockBytes);
  for (std::size_t i = 0; i < run.count; ++i) {
    TORPOR_RETURN_IF_ERROR(ImageOf(session).Read((run.block + i) * kBlockBytes, bytes));
    TORPOR_RETURN_IF_ERROR(TenantFileOf(session).Write((run.other + i) * kBlockBytes, bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EqualRun>> MoveToTenantFile(const SessionFiles& session,
                                                       const std::vector<EqualRun>& runs) {
  std::vector<EqualRun> moved;
  absl::Status status;
  for (const EqualRun& run : runs) {
    TORPOR_ASSIGN_OR_RETURN(
        MappedStates mapped,
        session.MapStates({run.block * kBlockBytes, (run.block + run.count) * kBlockBytes}));
    BlockStates& states = mapped.states();
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::size_t block = run.block + i;
      const std::size_t index = block - mapped.first_block();
      const std::size_t place = run.other + i;
      if (!IsAtRest(states, index) || !AreEqual(session, block, place, status)) continue;
      states.Move(index, memory::TenantHome(place));
      Append(moved, block, place);
    }
  }
  // What has been moved counts, whatever could not be read.
  if (moved.empty()) TORPOR_RETURN_IF_ERROR(status);
  return moved;
}

}  // namespace torpor::server
