#include "server/executor/served_domain.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace torpor::executor {

absl::Status ServedDomain::Enter(const std::string& name) {
  MutexLock lock(&mutex_);
  if (!name_) {
    on_entered_(name);
    name_ = name;
  }
  if (*name_ == name) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the executor serves ", *name_, ", and no session of ", name));
}

bool IsIsolated(const std::string& domain) { return !domain.empty() && domain != "shared"; }

std::uint64_t NumberOf(const std::string& domain) {
  if (!IsIsolated(domain)) return 0;
  const Sha256Digest digest = Sha256(domain.data(), domain.size());
  std::uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof number);
  return number == 0 ? 1 : number;
}

}  // namespace torpor::executor
