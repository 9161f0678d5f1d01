#include "server/daemon/kept_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"

namespace torpor::server {
namespace {

absl::Status Failure(const std::string& path) {
  return absl::UnavailableError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

absl::StatusOr<KeptFile> KeptFile::Write(const std::string& path, const std::string& text) {
  std::error_code ignored;  // the file's own failure says more
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  KeptFile kept(path);
  const UniqueFd file(
      open(kept.temporary().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (file.get() < 0 || !WriteAll(file.get(), text) || fsync(file.get()) != 0) {
    return Failure(kept.temporary());
  }
  return kept;
}

KeptFile::KeptFile(KeptFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}

KeptFile::~KeptFile() {
  if (!path_.empty()) unlink(temporary().c_str());
}

absl::Status KeptFile::Commit() {
  if (std::rename(temporary().c_str(), path_.c_str()) != 0) return Failure(path_);
  const std::string folder = std::filesystem::path(std::exchange(path_, {})).parent_path();
  const UniqueFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.get() >= 0 && fsync(opened.get()) == 0 ? absl::OkStatus() : Failure(folder);
}

}  // namespace torpor::server
