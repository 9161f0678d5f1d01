#include "server/repository/session_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "memory/block_states.h"
#include "server/repository/mapped_states.h"

namespace torpor::server {
namespace {

using memory::BlockStates;
constexpr Bytes kUnit = wire::kImageBlockBytes;

const char* NameOf(wire::SharedMemory what) {
  switch (what) {
    case wire::SharedMemory::kWindow:
      return "torpor-window";
    case wire::SharedMemory::kHostArena:
      return "torpor-host";
    case wire::SharedMemory::kImage:
      return "torpor-image";
    case wire::SharedMemory::kBlockStates:
      return "torpor-blocks";
    case wire::SharedMemory::kTenantFile:
      return "torpor-tenant";
  }
  CheckFailed("known kind of shared memory", __FILE__, __LINE__);
}

// Returns the parts of the extent in blocks only partly inside: one at each end, at most.
std::vector<memory::Extent> PartialBlocksOf(memory::Extent extent) {
  std::vector<memory::Extent> parts;
  const std::set<Bytes> ends = {RoundDown(extent.begin, kUnit), RoundDown(extent.end - 1, kUnit)};
  for (const Bytes begin : ends) {
    const memory::Extent part{std::max(begin, extent.begin), std::min(begin + kUnit, extent.end)};
    if (part.bytes() < kUnit) parts.push_back(part);
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionFiles>> SessionFiles::Create(const Sizes& sizes) {
  std::unique_ptr<SessionFiles> memory(new SessionFiles());
  for (const wire::SharedMemory what : kKinds) {
    TORPOR_ASSIGN_OR_RETURN(memory->files_[what],
                            MemoryFile::Create(NameOf(what), SizeOf(what, sizes)));
  }
  TORPOR_RETURN_IF_ERROR(memory->MapCheckpoint(sizes));
  return memory;
}

absl::StatusOr<std::unique_ptr<SessionFiles>> SessionFiles::Adopt(
    const Sizes& sizes, std::map<wire::SharedMemory, UniqueFd> descriptors) {
  std::unique_ptr<SessionFiles> memory(new SessionFiles());
  for (const wire::SharedMemory what : kKinds) {
    TORPOR_ASSIGN_OR_RETURN(
        memory->files_[what],
        MemoryFile::Adopt(NameOf(what), SizeOf(what, sizes), std::move(descriptors[what])));
  }
  TORPOR_RETURN_IF_ERROR(memory->MapCheckpoint(sizes));
  return memory;
}

Bytes SessionFiles::SizeOf(wire::SharedMemory what, const Sizes& sizes) {
  switch (what) {
    case wire::SharedMemory::kWindow:
      return sizes.window;
    case wire::SharedMemory::kHostArena:
      return sizes.host_arena;
    case wire::SharedMemory::kImage:
      return 2 * sizes.image;
    case wire::SharedMemory::kBlockStates:
      return memory::LayoutOfBlockStates(sizes.image, kUnit).total;
    case wire::SharedMemory::kTenantFile:
      return sizes.image;
  }
  CheckFailed("known kind of shared memory", __FILE__, __LINE__);
}

absl::StatusOr<std::shared_ptr<MemoryFile>> SessionFiles::CreateTenantFile(Bytes image_bytes) {
  TORPOR_ASSIGN_OR_RETURN(MemoryFile file,
                          MemoryFile::Create(NameOf(wire::SharedMemory::kTenantFile), image_bytes));
  return std::make_shared<MemoryFile>(std::move(file));
}

absl::StatusOr<std::shared_ptr<MemoryFile>> SessionFiles::AdoptTenantFile(Bytes image_bytes,
                                                                          UniqueFd descriptor) {
  TORPOR_ASSIGN_OR_RETURN(MemoryFile file,
                          MemoryFile::Adopt(NameOf(wire::SharedMemory::kTenantFile), image_bytes,
                                            std::move(descriptor)));
  return std::make_shared<MemoryFile>(std::move(file));
}

absl::Status SessionFiles::MapCheckpoint(const Sizes& sizes) {
  const memory::BlockStatesLayout states = memory::LayoutOfBlockStates(sizes.image, kUnit);
  void* const record =
      mmap(nullptr, memory::kCheckpointPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
           descriptor(wire::SharedMemory::kBlockStates), static_cast<off_t>(states.checkpoint));
  if (record == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot map a session's checkpoint");
  checkpoint_ = static_cast<memory::CheckpointRecord*>(record);
  return absl::OkStatus();
}

SessionFiles::~SessionFiles() {
  if (checkpoint_ != nullptr) munmap(checkpoint_, memory::kCheckpointPageBytes);
}

const MemoryFile& SessionFiles::file(wire::SharedMemory what) const {
  static const MemoryFile kNone;
  if (what == wire::SharedMemory::kTenantFile) return tenant_file_ ? *tenant_file_ : kNone;
  return files_.at(what);
}

absl::Status SessionFiles::ClearPartly(BlockStates& states, std::size_t block,
                                       memory::Extent part) const {
  const MemoryFile& image = file(wire::SharedMemory::kImage);
  const Bytes begin = RoundDown(part.begin, kUnit);
  std::vector<std::size_t> places;
  states.AppendAnnexPlaces(block, places);
  for (const std::size_t place : places) {
    const Bytes at = image.size() / 2 + place * kUnit + part.begin - begin;
    TORPOR_RETURN_IF_ERROR(image.Clear({at, at + part.bytes()}));
  }
  const memory::BlockHome home = states.home(block);
  if (!memory::IsTenantHome(home)) return absl::OkStatus();
  // The caller clears the part in the own place next.
  std::vector<std::uint8_t> bytes(kUnit);
  TORPOR_RETURN_IF_ERROR(
      file(wire::SharedMemory::kTenantFile).Read(memory::PlaceOfHome(block, home) * kUnit, bytes));
  TORPOR_RETURN_IF_ERROR(image.Write(begin, bytes));
  states.Move(block, memory::kOwnPlace);
  return absl::OkStatus();
}

absl::Status SessionFiles::NoteZeros(wire::SharedMemory what, Bytes offset, Bytes bytes) const {
  if (what != wire::SharedMemory::kImage || bytes == 0) return absl::OkStatus();
  TORPOR_ASSIGN_OR_RETURN(MappedStates mapped, MapStates({offset, offset + bytes}));
  absl::Status status;
  for (const memory::Extent& part : PartialBlocksOf({offset, offset + bytes})) {
    status.Update(ClearPartly(mapped.states(), part.begin / kUnit - mapped.first_block(), part));
  }
  const Bytes begin = mapped.first_block() * kUnit;
  memory::ResetBlocks(mapped.records(), {offset - begin, offset + bytes - begin}, kUnit);
  return status;
}

absl::StatusOr<MappedStates> SessionFiles::MapStates(memory::Extent extent) const {
  return MappedStates::Map(file(wire::SharedMemory::kBlockStates), *checkpoint_, extent);
}

absl::Status SessionFiles::Discard(wire::SharedMemory what, Bytes offset, Bytes bytes) {
  TORPOR_RETURN_IF_ERROR(NoteZeros(what, offset, bytes));
  return file(what).GiveBack({offset, offset + bytes});
}

absl::Status SessionFiles::Clear(wire::SharedMemory what, Bytes offset, Bytes bytes) {
  TORPOR_RETURN_IF_ERROR(NoteZeros(what, offset, bytes));
  return file(what).Clear({offset, offset + bytes});
}

}  // namespace torpor::server
