#include "server/executor/session/session_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/hardware_errors.h"

namespace torpor::executor {
namespace {

absl::Status UnknownSession(SessionId id) {
  return absl::NotFoundError(absl::StrCat("session ", id.value, " is not open here"));
}

}  // namespace

absl::Status SessionRegistry::Add(std::unique_ptr<Session> session) {
  const SessionId id = session->identity().id;
  MutexLock lock(&mutex_);
  if (sessions_.contains(id)) {
    return absl::AlreadyExistsError(absl::StrCat("session ", id.value, " is open already"));
  }
  sessions_.emplace(id, std::move(session));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Session>> SessionRegistry::Remove(SessionId id) {
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return UnknownSession(id);
  std::unique_ptr<Session> session = std::move(found->second);
  sessions_.erase(found);
  return session;
}

absl::StatusOr<Session*> SessionRegistry::Find(SessionId id) {
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return UnknownSession(id);
  return found->second.get();
}

std::vector<Session*> SessionRegistry::All() {
  std::vector<Session*> all;
  MutexLock lock(&mutex_);
  all.reserve(sessions_.size());
  for (const auto& [id, session] : sessions_) all.push_back(session.get());
  return all;
}

absl::StatusOr<Session*> SessionRegistry::Attach(const wire::Attach& attach,
                                                 std::function<void()> cancel) {
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(SessionId{attach.session_id});
  // The same answer as for a wrong key, so that clients cannot probe for sessions.
  if (found == sessions_.end()) {
    return absl::PermissionDeniedError("no session has this id and key");
  }
  Session* session = found->second.get();
  const absl::Status attached = session->Attach(attach, std::move(cancel));
  if (!attached.ok()) return attached;
  return session;
}

bool SessionRegistry::any_active() {
  MutexLock lock(&mutex_);
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& entry) { return entry.second->is_active(); });
}

SessionId SessionRegistry::Blame(SessionId suspect, std::uint32_t cuda_error) {
  MutexLock lock(&mutex_);
  auto blamed = sessions_.find(suspect);
  if (blamed == sessions_.end() || !blamed->second->has_lease()) {
    for (auto session = sessions_.begin(); session != sessions_.end(); ++session) {
      if (session->second->has_lease()) blamed = session;
    }
  }
  if (blamed == sessions_.end()) return suspect;
  if (!wire::IsHardwareError(static_cast<std::int32_t>(cuda_error))) {
    blamed->second->SetStickyError(cuda_error);
  }
  return blamed->first;
}

}  // namespace torpor::executor
