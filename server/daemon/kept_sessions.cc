#include "server/daemon/kept_sessions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace torpor::server {
namespace {

const char* WordOf(wire::SharedMemory what) {
  switch (what) {
    case wire::SharedMemory::kWindow:
      return "window";
    case wire::SharedMemory::kHostArena:
      return "host-arena";
    case wire::SharedMemory::kImage:
      return "image";
    case wire::SharedMemory::kBlockStates:
      return "block-states";
    case wire::SharedMemory::kTenantFile:
      return "tenant-file";
  }
  CheckFailed("known kind of shared memory", __FILE__, __LINE__);
}

std::string NameOf(SessionId session, wire::SharedMemory what) {
  return absl::StrCat("session-", session.value, "-", WordOf(what));
}

std::string NameOf(const std::string& tenant) { return absl::StrCat("tenant-", tenant); }

}  // namespace

absl::Status KeptSessions::Keep(SessionId session, const SessionFiles& files) {
  for (const wire::SharedMemory what : SessionFiles::kKinds) {
    absl::Status status = store_.Keep(NameOf(session, what), files.descriptor(what));
    if (status.ok()) continue;
    Remove(session);
    return status;
  }
  return absl::OkStatus();
}

void KeptSessions::Remove(SessionId session) {
  for (const wire::SharedMemory what : SessionFiles::kKinds) {
    store_.Remove(NameOf(session, what));
    kept_.erase(NameOf(session, what));
  }
}

absl::StatusOr<std::shared_ptr<SessionFiles>> KeptSessions::Take(SessionId session,
                                                                 const SessionFiles::Sizes& sizes) {
  std::map<wire::SharedMemory, UniqueFd> descriptors;
  for (const wire::SharedMemory what : SessionFiles::kKinds) {
    auto kept = kept_.extract(NameOf(session, what));
    if (kept) descriptors[what] = std::move(kept.mapped());
  }
  if (descriptors.empty()) return absl::NotFoundError("its memory files were not kept");
  return SessionFiles::Adopt(sizes, std::move(descriptors));
}

absl::Status KeptSessions::KeepTenantFile(const std::string& tenant, const MemoryFile& file) {
  return store_.Keep(NameOf(tenant), file.descriptor());
}

void KeptSessions::RemoveTenantFile(const std::string& tenant) {
  store_.Remove(NameOf(tenant));
  kept_.erase(NameOf(tenant));
}

std::shared_ptr<const MemoryFile> KeptSessions::TakeTenantFile(const std::string& tenant,
                                                               Bytes image_bytes) {
  auto kept = kept_.extract(NameOf(tenant));
  if (!kept) return nullptr;
  auto file = SessionFiles::AdoptTenantFile(image_bytes, std::move(kept.mapped()));
  return file.ok() ? *std::move(file) : nullptr;
}

void KeptSessions::RemoveUntaken() {
  for (const auto& [name, descriptor] : std::exchange(kept_, {})) store_.Remove(name);
}

}  // namespace torpor::server
