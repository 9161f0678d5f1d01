#pragma once

#include <map>
#include <string>

#include "base/unique_fd.h"
#include "server/daemon/descriptor_store.h"
#include "server/repository/session_keeper.h"

namespace torpor::server {

// Has torpord's service manager keep the sessions' files, as session-ID-image, session-ID-window
// and so on, and tenants' files as tenant-NAME.
class KeptSessions final : public SessionKeeper {
 public:
  // `kept`: what DescriptorStore::TakeKept has returned.
  explicit KeptSessions(std::map<std::string, UniqueFd> kept)
      : store_(kept), kept_(std::move(kept)) {}

  // Whether a service manager keeps descriptors.
  bool is_available() const { return store_.is_available(); }

  absl::Status Keep(SessionId session, const SessionFiles& files) override;
  void Remove(SessionId session) override;
  absl::StatusOr<std::shared_ptr<SessionFiles>> Take(SessionId session,
                                                     const SessionFiles::Sizes& sizes) override;
  absl::Status KeepTenantFile(const std::string& tenant, const MemoryFile& file) override;
  void RemoveTenantFile(const std::string& tenant) override;
  std::shared_ptr<const MemoryFile> TakeTenantFile(const std::string& tenant,
                                                   Bytes image_bytes) override;

  // Lets go of what was kept and not taken.
  void RemoveUntaken();

 private:
  DescriptorStore store_;
  std::map<std::string, UniqueFd> kept_;  // and not taken
};

}  // namespace torpor::server
