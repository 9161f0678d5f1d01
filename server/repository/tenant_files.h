#pragma once

#include <map>
#include <memory>
#include <string>

#include "server/repository/memory_file.h"
#include "server/repository/session_keeper.h"

namespace torpor::server {

// The tenants' files for equal blocks. On the controller's thread.
class TenantFiles {
 public:
  // A null `keeper` keeps nothing beyond this process; otherwise it must outlive the object.
  // `image_bytes`: as of the sessions' files.
  TenantFiles(SessionKeeper* keeper, Bytes image_bytes)
      : keeper_(keeper), image_bytes_(image_bytes) {}

  // Returns the tenant's file, a new one if there is none, for a new session. Null, with a line in
  // the log, if the file cannot be had or kept.
  std::shared_ptr<const MemoryFile> Of(const std::string& tenant);
  // As Of, for a session of an earlier torpord: a new file would lack the session's bytes. Null if
  // the tenant had none.
  std::shared_ptr<const MemoryFile> OfEarlier(const std::string& tenant);
  // The tenant's last session has ended.
  void Drop(const std::string& tenant);

 private:
  absl::StatusOr<std::shared_ptr<const MemoryFile>> Create(const std::string& tenant);

  SessionKeeper* const keeper_;
  const Bytes image_bytes_;
  std::map<std::string, std::shared_ptr<const MemoryFile>> files_;  // null: has none
};

}  // namespace torpor::server
