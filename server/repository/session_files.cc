#include "server/repository/session_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/whole_io.h"
#include "memory/block_states.h"

namespace torpor::server {
namespace {

using memory::BlockStates;

constexpr Bytes kStatBlockBytes = 512;  // the unit of st_blocks, whatever the page size
constexpr Bytes kPageBytes = 4 * kKiB;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

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
  }
  CheckFailed("known kind of shared memory", __FILE__, __LINE__);
}

bool IsSealedFile(int descriptor, Bytes bytes) {
  struct stat status = {};
  return fstat(descriptor, &status) == 0 && static_cast<Bytes>(status.st_size) == bytes &&
         fcntl(descriptor, F_GET_SEALS) == kSeals;
}

absl::Status WriteZeros(int file, Bytes offset, Bytes bytes) {
  static constexpr std::array<std::uint8_t, 64 * kKiB> kZeros{};
  for (const Bytes end = offset + bytes; offset < end; offset += kZeros.size()) {
    const std::span piece(kZeros.data(), std::min<Bytes>(end - offset, kZeros.size()));
    if (WriteWhole(file, offset, piece)) continue;
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot clear ", piece.size(), " bytes at ", offset));
  }
  return absl::OkStatus();
}

// Returns where bytes of the extent lie in the annex, of blocks only partly inside: blocks wholly
// inside leave the annex. `records` begin with the block at `first`.
std::vector<memory::Extent> AnnexPartsOf(std::span<memory::BlockRecord> records, Bytes first,
                                         memory::Extent extent) {
  constexpr Bytes kUnit = wire::kImageBlockBytes;
  memory::CheckpointRecord none;
  const BlockStates states(records, none, kUnit);
  std::vector<memory::Extent> parts;
  for (const Bytes begin : {RoundDown(extent.begin, kUnit), RoundDown(extent.end - 1, kUnit)}) {
    const memory::Extent part{std::max(begin, extent.begin), std::min(begin + kUnit, extent.end)};
    if (part.bytes() == kUnit) continue;
    std::vector<std::size_t> places;
    states.AppendAnnexPlaces((begin - first) / kUnit, places);
    for (const std::size_t place : places) {
      parts.push_back({place * kUnit + part.begin - begin, place * kUnit + part.end - begin});
    }
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionFiles>> SessionFiles::Create(const Sizes& sizes) {
  std::unique_ptr<SessionFiles> memory(new SessionFiles());
  for (const wire::SharedMemory what : kKinds) {
    TORPOR_ASSIGN_OR_RETURN(memory->file(what), CreateFile(NameOf(what), SizeOf(what, sizes)));
  }
  TORPOR_RETURN_IF_ERROR(memory->MapCheckpoint(sizes));
  return memory;
}

absl::StatusOr<std::unique_ptr<SessionFiles>> SessionFiles::Adopt(
    const Sizes& sizes, std::map<wire::SharedMemory, UniqueFd> descriptors) {
  std::unique_ptr<SessionFiles> memory(new SessionFiles());
  for (const wire::SharedMemory what : kKinds) {
    const Bytes bytes = SizeOf(what, sizes);
    UniqueFd& descriptor = descriptors[what];
    if (!descriptor || !IsSealedFile(descriptor.get(), bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("of the session's files, ", NameOf(what), " was not kept"));
    }
    memory->file(what) = {std::move(descriptor), bytes};
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
      return memory::LayoutOfBlockStates(sizes.image, wire::kImageBlockBytes).total;
  }
  CheckFailed("known kind of shared memory", __FILE__, __LINE__);
}

absl::Status SessionFiles::MapCheckpoint(const Sizes& sizes) {
  const memory::BlockStatesLayout states =
      memory::LayoutOfBlockStates(sizes.image, wire::kImageBlockBytes);
  void* const record =
      mmap(nullptr, memory::kCheckpointPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
           block_states_.fd.get(), static_cast<off_t>(states.checkpoint));
  if (record == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot map a session's checkpoint");
  checkpoint_ = static_cast<memory::CheckpointRecord*>(record);
  return absl::OkStatus();
}

SessionFiles::~SessionFiles() {
  if (checkpoint_ != nullptr) munmap(checkpoint_, memory::kCheckpointPageBytes);
}

absl::StatusOr<SessionFiles::File> SessionFiles::CreateFile(const char* name, Bytes bytes) {
  File file = {UniqueFd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes};
  // The seals let every side map the whole file once and never meet SIGBUS.
  if (!file.fd || ftruncate(file.fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot create shared memory of ", bytes, " bytes (", name, ")"));
  }
  return file;
}

const SessionFiles::File& SessionFiles::file(wire::SharedMemory what) const {
  switch (what) {
    case wire::SharedMemory::kWindow:
      return window_;
    case wire::SharedMemory::kHostArena:
      return host_arena_;
    case wire::SharedMemory::kImage:
      return image_;
    case wire::SharedMemory::kBlockStates:
      return block_states_;
  }
  CheckFailed("known kind of shared memory", __FILE__, __LINE__);
}

SessionFiles::File& SessionFiles::file(wire::SharedMemory what) {
  return const_cast<File&>(std::as_const(*this).file(what));
}

int SessionFiles::descriptor(wire::SharedMemory what) const { return file(what).fd.get(); }
Bytes SessionFiles::size(wire::SharedMemory what) const { return file(what).bytes; }

absl::Status SessionFiles::NoteZeros(wire::SharedMemory what, Bytes offset, Bytes bytes) const {
  if (what != wire::SharedMemory::kImage || bytes == 0) return absl::OkStatus();
  // A map of all states would take gigabytes of addresses a session.
  constexpr Bytes kImageBytesPerPage =
      kPageBytes / BlockStates::kBytesPerBlock * wire::kImageBlockBytes;
  const Bytes begin = RoundDown(offset, kImageBytesPerPage);
  const memory::Extent states =
      BlockStates::StatesOf({begin, offset + bytes}, wire::kImageBlockBytes);
  void* const records = mmap(nullptr, states.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                             block_states_.fd.get(), static_cast<off_t>(states.begin));
  if (records == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot map the states of blocks");
  const std::span<memory::BlockRecord> blocks(static_cast<memory::BlockRecord*>(records),
                                              states.bytes() / BlockStates::kBytesPerBlock);
  absl::Status status;
  for (const memory::Extent& part : AnnexPartsOf(blocks, begin, {offset, offset + bytes})) {
    status.Update(WriteZeros(image_.fd.get(), image_.bytes / 2 + part.begin, part.bytes()));
  }
  memory::ResetBlocks(blocks, {offset - begin, offset + bytes - begin}, wire::kImageBlockBytes);
  munmap(records, states.bytes());
  return status;
}

absl::Status SessionFiles::PunchHole(wire::SharedMemory what, Bytes offset, Bytes bytes) const {
  const int result = fallocate(descriptor(what), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot discard ", bytes, " bytes at ", offset));
}

absl::Status SessionFiles::Discard(wire::SharedMemory what, Bytes offset, Bytes bytes) {
  TORPOR_RETURN_IF_ERROR(NoteZeros(what, offset, bytes));
  return PunchHole(what, offset, bytes);
}

absl::Status SessionFiles::Clear(wire::SharedMemory what, Bytes offset, Bytes bytes) {
  TORPOR_RETURN_IF_ERROR(NoteZeros(what, offset, bytes));
  return WriteZeros(descriptor(what), offset, bytes);
}

absl::StatusOr<memory::ExtentSet> SessionFiles::WrittenExtents(wire::SharedMemory what) const {
  memory::ExtentSet written;
  off_t end = 0;
  while (true) {
    const off_t begin = lseek(descriptor(what), end, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return written;  // no more data
    if (begin >= 0) end = lseek(descriptor(what), begin, SEEK_HOLE);
    if (begin < 0 || end < 0) return absl::ErrnoToStatus(errno, "cannot find a file's pages");
    written.Add({static_cast<Bytes>(begin), static_cast<Bytes>(end)});
  }
}

absl::Status SessionFiles::Read(wire::SharedMemory what, Bytes offset,
                                std::span<std::uint8_t> into) const {
  if (ReadWhole(descriptor(what), offset, into)) return absl::OkStatus();
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("cannot read ", into.size(), " bytes of ", NameOf(what)));
}

absl::Status SessionFiles::Write(wire::SharedMemory what, Bytes offset,
                                 std::span<const std::uint8_t> bytes) const {
  if (WriteWhole(descriptor(what), offset, bytes)) return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot write ", bytes.size(), " bytes of ", NameOf(what)));
}

absl::Status SessionFiles::GiveBackPages(wire::SharedMemory what) const {
  return PunchHole(what, 0, size(what));
}

Bytes SessionFiles::resident_bytes(wire::SharedMemory what) const {
  struct stat status = {};
  if (fstat(descriptor(what), &status) != 0) return 0;
  return static_cast<Bytes>(status.st_blocks) * kStatBlockBytes;
}

}  // namespace torpor::server
