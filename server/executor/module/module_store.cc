#include "server/executor/module/module_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace torpor::executor {
namespace {

absl::Status ReadAll(int file, std::vector<std::uint8_t>& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "read");
    if (count == 0) return absl::DataLossError("the file ends early");
    done += static_cast<std::size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status WriteAll(int file, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ModuleStore::PathOf(const Sha256Digest& digest) const {
  return absl::StrCat(directory_, "/", ToHex(digest));
}

absl::StatusOr<std::vector<std::uint8_t>> ModuleStore::Read(const Sha256Digest& digest) const {
  const std::string path = PathOf(digest);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open module ", path));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
  const absl::Status read = ReadAll(file.get(), bytes);
  if (!read.ok() || Sha256(bytes.data(), bytes.size()) != digest) {
    unlink(path.c_str());
    return absl::NotFoundError(absl::StrCat("module ", path, " is damaged; removed"));
  }
  return bytes;
}

absl::Status ModuleStore::Write(const Sha256Digest& digest,
                                std::span<const std::uint8_t> bytes) const {
  const Sha256Digest actual = Sha256(bytes.data(), bytes.size());
  if (actual != digest) {
    return absl::InvalidArgumentError(
        absl::StrCat("the uploaded module has SHA-256 ", ToHex(actual), ", not ", ToHex(digest)));
  }
  const std::string path = PathOf(digest);
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const UniqueFd file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write a module to ", directory_));
  }
  absl::Status status = WriteAll(file.get(), bytes);
  // Sync before renaming, so that a visible name always means a complete module, even after a
  // crash.
  if (status.ok() && fsync(file.get()) != 0) status = absl::ErrnoToStatus(errno, "fsync");
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, "rename");
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::StatusOr<bool> ModuleUploadBuffer::Add(const Sha256Digest& digest, std::uint64_t total_bytes,
                                             std::uint64_t at,
                                             std::span<const std::uint8_t> piece) {
  if (at == 0) {
    if (total_bytes > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a module of ", total_bytes, " bytes is larger than ", kMaxBytes));
    }
    *this = {};
    digest_ = digest;
    total_bytes_ = total_bytes;
  }
  if (digest != digest_ || total_bytes != total_bytes_ || at != bytes_.size() ||
      piece.size() > total_bytes_ - bytes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("piece [", at, ", +", piece.size(),
                                                   ") does not continue an upload that has ",
                                                   bytes_.size(), " of ", total_bytes_, " bytes"));
  }
  bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  return bytes_.size() == total_bytes_;
}

}  // namespace torpor::executor
