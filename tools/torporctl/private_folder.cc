#include "tools/torporctl/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace torpor::torporctl {
namespace {

constexpr std::string_view kPrefix = "torpor-run-";

// Returns TMPDIR if absolute and short enough for sockets inside, else /tmp.
std::string TemporaryDirectory() {
  // A socket's path holds 107 bytes; the names inside take about 40.
  constexpr std::size_t kMaxLength = 60;
  const char* const configured = std::getenv("TMPDIR");
  if (configured == nullptr || *configured != '/' || std::strlen(configured) > kMaxLength) {
    return "/tmp";
  }
  return configured;
}

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Returns whether a folder is abandoned: of this user, not brand-new (its maker may not have locked
// it yet), and unlocked.
bool IsAbandoned(const std::string& path) {
  constexpr std::time_t kNewSeconds = 60;
  const UniqueFd folder = OpenFolder(path);
  struct stat status {};
  if (!folder || fstat(folder.get(), &status) != 0) return false;
  return status.st_uid == geteuid() && std::time(nullptr) - status.st_mtime > kNewSeconds &&
         flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

// Removes the folders of runs that were killed. Ignores errors.
void RemoveAbandoned(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> abandoned;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (IsAbandoned(entry.path().string())) abandoned.push_back(entry.path().string());
  }
  for (const std::string& path : abandoned) std::filesystem::remove_all(path, error);
}

}  // namespace

absl::StatusOr<PrivateFolder> PrivateFolder::Create() {
  const std::string directory = TemporaryDirectory();
  RemoveAbandoned(directory);
  std::string path = fmt::format("{}/{}XXXXXX", directory, kPrefix);
  if (mkdtemp(path.data()) == nullptr) {
    return absl::PermissionDeniedError(
        fmt::format("cannot create a folder in {}: {}; name another with TMPDIR", directory,
                    std::strerror(errno)));
  }
  UniqueFd lock = OpenFolder(path);
  flock(lock.get(), LOCK_EX | LOCK_NB);
  return PrivateFolder(std::move(path), std::move(lock));
}

PrivateFolder::~PrivateFolder() {
  if (path_.empty()) return;
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace torpor::torporctl
