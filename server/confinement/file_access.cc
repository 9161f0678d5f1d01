#include "server/confinement/file_access.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace torpor::server {
namespace {

constexpr std::uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr std::uint64_t kRead = kReadFile | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWriteFile = kReadFile | LANDLOCK_ACCESS_FS_WRITE_FILE;
constexpr std::uint64_t kWrite = kRead | kWriteFile | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK;
constexpr std::uint64_t kHandled = kWrite | LANDLOCK_ACCESS_FS_EXECUTE |
                                   LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                                   LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM;

// The C library has no functions for these.
UniqueFd CreateRuleset() {
  const landlock_ruleset_attr attributes = {.handled_access_fs = kHandled};
  return UniqueFd(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
}

absl::Status Allow(const UniqueFd& ruleset, const std::string& path, bool is_writable) {
  const UniqueFd at(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!at && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return absl::OkStatus();
  struct stat what {};
  if (!at || fstat(at.get(), &what) != 0) return absl::ErrnoToStatus(errno, path);
  const bool is_folder = S_ISDIR(what.st_mode);
  const landlock_path_beneath_attr rule = {
      .allowed_access =
          is_writable ? (is_folder ? kWrite : kWriteFile) : (is_folder ? kRead : kReadFile),
      .parent_fd = at.get(),
  };
  if (syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, path);
}

}  // namespace

absl::Status RestrictFiles(const std::vector<std::string>& readable,
                           const std::vector<std::string>& writable) {
  const UniqueFd ruleset = CreateRuleset();
  if (!ruleset) {
    return absl::UnavailableError("the kernel has no Landlock, or a container's filter forbids it");
  }
  for (const std::string& path : readable) {
    TORPOR_RETURN_IF_ERROR(Allow(ruleset, path, /*is_writable=*/false));
  }
  for (const std::string& path : writable) {
    TORPOR_RETURN_IF_ERROR(Allow(ruleset, path, /*is_writable=*/true));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "Landlock");
}

}  // namespace torpor::server
