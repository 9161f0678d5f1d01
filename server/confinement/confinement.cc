#include "server/confinement/confinement.h"

#include <cap-ng.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/confinement/file_access.h"
#include "server/confinement/system_calls.h"

namespace torpor::server {
namespace {

absl::Status ForgoNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "prctl");
}

// Root without capabilities is like others, but for files that are root's.
absl::Status DropCapabilities() {
  capng_clear(CAPNG_SELECT_ALL);
  // Only who has CAP_SETPCAP can shrink the bounding set, which matters to programs alone that
  // no_new_privs covers anyway.
  const bool has_set = capng_apply(CAPNG_SELECT_CAPS) == 0;
  if (has_set) return absl::OkStatus();
  return absl::PermissionDeniedError("capset refuses");
}

// A dump would have functions' memory.
absl::Status ForgoDumps() {
  const rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "setrlimit");
}

}  // namespace

std::vector<std::string> Confine(const Confinement& confinement) {
  std::vector<std::string> missing;
  const auto note = [&missing](const char* what, const absl::Status& status) {
    if (!status.ok()) missing.push_back(absl::StrCat(what, ": ", status.message()));
  };
  note("memory dumps", ForgoDumps());
  note("capabilities", DropCapabilities());
  note("no_new_privs", ForgoNewPrivileges());
  if (confinement.seccomp == Seccomp::kEnforce) {
    note("files", RestrictFiles(confinement.readable, confinement.writable));
  } else {
    note("files", absl::FailedPreconditionError("needs seccomp: enforce"));
  }
  note("system calls", RestrictSystemCalls(confinement.seccomp));
  return missing;
}

}  // namespace torpor::server
