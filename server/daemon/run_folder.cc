#include "server/daemon/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/status_macros.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::server {
namespace {

absl::Status CreateFolder(const std::string& path, std::string_view setting) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return absl::PermissionDeniedError(
        fmt::format("cannot create {} {}: {}; create it, or name another with {}", setting, path,
                    error.message(), setting));
  }
  return absl::OkStatus();
}

// The holder of the lock wrote its process id into the file.
std::string HolderOf(int lock) {
  char text[32] = {};
  const ssize_t bytes = pread(lock, text, sizeof text - 1, 0);
  return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : "unknown";
}

absl::StatusOr<UniqueFd> Lock(const std::string& run_dir) {
  const std::string path = run_dir + "/torpord.lock";
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!lock) {
    return absl::PermissionDeniedError(
        fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(
        fmt::format("another torpord (process {}) lives in {}; stop it, or choose another run_dir",
                    HolderOf(lock.get()), run_dir));
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return absl::ResourceExhaustedError(
        fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
  return lock;
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return absl::OkStatus();
  if (!S_ISSOCK(status.st_mode)) {
    return absl::AlreadyExistsError(
        fmt::format("{} is not a socket; move it away, or choose another path", path));
  }
  if (IsListening(path)) {
    return absl::AlreadyExistsError(
        fmt::format("another process listens on {}; stop it, or choose another path", path));
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunFolder> RunFolder::Claim(const Config& config) {
  TORPOR_RETURN_IF_ERROR(CreateFolder(config.run_dir, "run_dir"));
  TORPOR_RETURN_IF_ERROR(CreateFolder(config.state_dir, "state_dir"));
  TORPOR_ASSIGN_OR_RETURN(UniqueFd lock, Lock(config.run_dir));
  TORPOR_RETURN_IF_ERROR(RemoveStaleSocket(config.client_socket));
  TORPOR_RETURN_IF_ERROR(RemoveStaleSocket(config.admin_socket));
  return RunFolder(std::move(lock));
}

}  // namespace torpor::server
