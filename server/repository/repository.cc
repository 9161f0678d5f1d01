#include "server/repository/repository.h"

#include <sys/random.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/secret.h"
#include "base/status_macros.h"

namespace torpor::server {
SessionKey NewSessionKey() {
  SessionKey key{};
  TORPOR_CHECK(getrandom(key.data(), key.size(), 0) == static_cast<ssize_t>(key.size()));
  return key;
}

absl::StatusOr<std::shared_ptr<SessionFiles>> Repository::Create(SessionId session,
                                                                 const SessionKey& key,
                                                                 const SessionFiles::Sizes& sizes) {
  TORPOR_ASSIGN_OR_RETURN(std::shared_ptr<SessionFiles> memory, SessionFiles::Create(sizes));
  MutexLock lock(&mutex_);
  entries_[session] = {key, memory};
  return memory;
}

void Repository::Adopt(SessionId session, const SessionKey& key,
                       std::shared_ptr<SessionFiles> files) {
  MutexLock lock(&mutex_);
  entries_[session] = {key, std::move(files)};
}

void Repository::Remove(SessionId session) {
  MutexLock lock(&mutex_);
  entries_.erase(session);
}

absl::StatusOr<std::shared_ptr<SessionFiles>> Repository::Find(SessionId session,
                                                               const SessionKey& key) const {
  MutexLock lock(&mutex_);
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) {
    return absl::NotFoundError(absl::StrCat("no session ", session.value));
  }
  if (!SecretsEqual(entry->second.key, key)) {
    return absl::PermissionDeniedError(absl::StrCat("wrong key for session ", session.value));
  }
  return entry->second.memory;
}

Bytes Repository::image_bytes() const {
  std::vector<std::shared_ptr<SessionFiles>> memories;
  {
    MutexLock lock(&mutex_);
    for (const auto& [session, entry] : entries_) memories.push_back(entry.memory);
  }
  Bytes bytes = 0;
  for (const auto& memory : memories) bytes += memory->resident_bytes(wire::SharedMemory::kImage);
  return bytes;
}

}  // namespace torpor::server
