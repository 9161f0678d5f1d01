#include "server/daemon/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/status_macros.h"
#include "server/config/function_command.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::server {
namespace {

// Functions of other users find their folder there.
constexpr mode_t kForAll = 0755;
constexpr mode_t kForGroup = 0750;
constexpr mode_t kForOwner = 0700;

// A new folder gets `mode`, whatever the umask.
absl::Status CreateFolder(const std::string& path, mode_t mode, std::string_view setting) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(path, error);
  if (is_new) std::filesystem::permissions(path, std::filesystem::perms(mode), error);
  if (error) {
    return absl::PermissionDeniedError(
        fmt::format("cannot create {} {}: {}; create it, or name another with {}", setting, path,
                    error.message(), setting));
  }
  return absl::OkStatus();
}

// A folder of torpord's, `mode` for others than its owner. Of `group`, if it names one: what is
// created there is the group's, too.
absl::Status SetUpFolder(const std::string& path, mode_t mode, const std::string& group,
                         std::string_view setting) {
  TORPOR_RETURN_IF_ERROR(CreateFolder(path, mode, setting));
  if (!group.empty()) {
    TORPOR_ASSIGN_OR_RETURN(const gid_t id, FindGroup(group));
    mode |= S_ISGID;
    if (chown(path.c_str(), static_cast<uid_t>(-1), id) != 0) {
      return absl::PermissionDeniedError(
          fmt::format("cannot give {} to group {}: {}", path, group, std::strerror(errno)));
    }
  }
  if (chmod(path.c_str(), mode) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("cannot set the mode of {}: {}", path, std::strerror(errno)));
}

constexpr mode_t kWrittenByOthers = S_IWGRP | S_IWOTH;

// Whether others than the folder's owner may replace sockets there.
bool IsOpen(const struct stat& folder) {
  return (folder.st_mode & kWrittenByOthers) != 0 && (folder.st_mode & S_ISVTX) == 0;
}

// Earlier torpords let their group write to run_dir.
void TakeBack(const std::string& run_dir) {
  struct stat status {};
  if (stat(run_dir.c_str(), &status) != 0 || !IsOpen(status)) return;
  const mode_t mode = status.st_mode & 07777 & ~kWrittenByOthers;
  if (chmod(run_dir.c_str(), mode) == 0) {
    spdlog::warn(
        "{} is no longer to be written by others than its owner, who could replace "
        "sockets there",
        run_dir);
  }
}

absl::Status CheckUnwritable(const std::string& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return absl::OkStatus();  // listening says so
  if (!IsOpen(status)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("{} may be written by others than its owner, who could replace sockets there; "
                  "chmod go-w {}",
                  folder, folder));
}

std::string FolderOf(const std::string& socket) {
  const std::string folder = std::filesystem::path(socket).parent_path();
  return folder.empty() ? "." : folder;
}

absl::Status SetUpSocketFolders(const Config& config) {
  TakeBack(config.run_dir);
  TORPOR_RETURN_IF_ERROR(SetUpFolder(GpuFolderOf(config), kForOwner, "", "run_dir"));
  if (FolderOf(config.client_socket) == FunctionFolderOf(config)) {
    TORPOR_RETURN_IF_ERROR(SetUpFolder(FunctionFolderOf(config),
                                       config.socket_group.empty() ? kForAll : kForGroup,
                                       config.socket_group, "run_dir"));
  }
  if (FolderOf(config.admin_socket) == AdminFolderOf(config)) {
    TORPOR_RETURN_IF_ERROR(
        SetUpFolder(AdminFolderOf(config), kForGroup, config.admin_group, "run_dir"));
  }
  for (const std::string& folder :
       {config.run_dir, FolderOf(config.client_socket), FolderOf(config.admin_socket)}) {
    TORPOR_RETURN_IF_ERROR(CheckUnwritable(folder));
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
  TORPOR_RETURN_IF_ERROR(CreateFolder(config.run_dir, kForAll, "run_dir"));
  TORPOR_RETURN_IF_ERROR(CreateFolder(config.state_dir, kForGroup, "state_dir"));
  TORPOR_ASSIGN_OR_RETURN(UniqueFd lock, Lock(config.run_dir));
  TORPOR_RETURN_IF_ERROR(SetUpSocketFolders(config));
  TORPOR_RETURN_IF_ERROR(RemoveStaleSocket(config.client_socket));
  TORPOR_RETURN_IF_ERROR(RemoveStaleSocket(config.admin_socket));
  return RunFolder(std::move(lock));
}

}  // namespace torpor::server
