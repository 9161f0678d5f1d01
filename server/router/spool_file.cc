#include "server/router/spool_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/whole_io.h"

namespace torpor::server {
namespace {

// The path stays out of the text, which clients see.
absl::Status SpoolError(std::string_view what) {
  return absl::UnavailableError(
      fmt::format("cannot {} spool_dir: {}", what, std::generic_category().message(errno)));
}

// Not every file system has files that never had a name.
UniqueFd OpenNameless(const std::string& folder) {
  constexpr mode_t kOwnerOnly = 0600;
  UniqueFd file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwnerOnly));
  if (file) return file;
  std::string path = folder + "/body-XXXXXX";
  file.Reset(mkostemp(path.data(), O_CLOEXEC));
  if (file) unlink(path.c_str());
  return file;
}

std::string FolderOrDefault(const std::string& folder) {
  if (!folder.empty()) return folder;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : path.string();
}

}  // namespace

absl::Status SpoolFile::Open() {
  const std::string folder = FolderOrDefault(folder_);
  file_ = OpenNameless(folder);
  if (!file_ && errno == ENOENT) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return SpoolError("create");
    file_ = OpenNameless(folder);
  }
  return file_ ? absl::OkStatus() : SpoolError("create a file in");
}

absl::Status SpoolFile::Write(std::uint64_t offset, std::string_view bytes) {
  if (!file_) {
    if (absl::Status status = Open(); !status.ok()) return status;
  }
  return WriteWhole(file_.get(), offset, BytesOf(bytes)) ? absl::OkStatus()
                                                         : SpoolError("write in");
}

absl::Status SpoolFile::Read(std::uint64_t offset, std::string& into) const {
  const std::span bytes(reinterpret_cast<std::uint8_t*>(into.data()), into.size());
  return ReadWhole(file_.get(), offset, bytes) ? absl::OkStatus() : SpoolError("read in");
}

}  // namespace torpor::server
