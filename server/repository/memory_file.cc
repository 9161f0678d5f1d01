#include "server/repository/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/whole_io.h"

namespace torpor::server {
namespace {

constexpr Bytes kStatBlockBytes = 512;  // the unit of st_blocks, whatever the page size
// Every side may map the whole file once, and never meets SIGBUS.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool IsSealedFile(int descriptor, Bytes bytes) {
  struct stat status = {};
  return fstat(descriptor, &status) == 0 && static_cast<Bytes>(status.st_size) == bytes &&
         fcntl(descriptor, F_GET_SEALS) == kSeals;
}

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create(const char* name, Bytes bytes) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot create shared memory of ", bytes, " bytes (", name, ")"));
  }
  return MemoryFile(name, bytes, std::move(file));
}

absl::StatusOr<MemoryFile> MemoryFile::Adopt(const char* name, Bytes bytes, UniqueFd descriptor) {
  if (descriptor && IsSealedFile(descriptor.get(), bytes)) {
    return MemoryFile(name, bytes, std::move(descriptor));
  }
  return absl::InvalidArgumentError(absl::StrCat(name, " was not kept"));
}

Bytes MemoryFile::resident_bytes() const {
  struct stat status = {};
  if (fstat(descriptor(), &status) != 0) return 0;
  return static_cast<Bytes>(status.st_blocks) * kStatBlockBytes;
}

absl::Status MemoryFile::Read(Bytes offset, std::span<std::uint8_t> into) const {
  if (ReadWhole(descriptor(), offset, into)) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", into.size(), " bytes of ", name_));
}

absl::Status MemoryFile::Write(Bytes offset, std::span<const std::uint8_t> bytes) const {
  if (WriteWhole(descriptor(), offset, bytes)) return absl::OkStatus();
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("cannot write ", bytes.size(), " bytes of ", name_));
}

absl::Status MemoryFile::Clear(memory::Extent extent) const {
  static constexpr std::array<std::uint8_t, 64 * kKiB> kZeros{};
  while (extent.begin < extent.end) {
    const std::span piece(kZeros.data(), std::min<Bytes>(extent.bytes(), kZeros.size()));
    TORPOR_RETURN_IF_ERROR(Write(extent.begin, piece));
    extent.begin += piece.size();
  }
  return absl::OkStatus();
}

absl::Status MemoryFile::GiveBack(memory::Extent extent) const {
  const int result =
      fallocate(descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(extent.begin), static_cast<off_t>(extent.bytes()));
  if (result == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot discard ", extent.bytes(), " bytes of ",
                                                 name_, " at ", extent.begin));
}

absl::StatusOr<memory::ExtentSet> MemoryFile::Written() const {
  memory::ExtentSet written;
  off_t end = 0;
  while (true) {
    const off_t begin = lseek(descriptor(), end, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return written;  // no more data
    if (begin >= 0) end = lseek(descriptor(), begin, SEEK_HOLE);
    if (begin < 0 || end < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot find the pages of ", name_));
    }
    written.Add({static_cast<Bytes>(begin), static_cast<Bytes>(end)});
  }
}

}  // namespace torpor::server
