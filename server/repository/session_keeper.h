#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "server/repository/session_files.h"

namespace torpor::server {

// Has the sessions' memory files kept beyond this process. Not thread-safe.
class SessionKeeper {
 public:
  virtual ~SessionKeeper() = default;

  // Keeps all files of the session, or none, with the reason.
  virtual absl::Status Keep(SessionId session, const SessionFiles& files) = 0;
  // Lets go of the session's files. Does nothing if none are kept.
  virtual void Remove(SessionId session) = 0;
  // Returns the files that an earlier torpord had kept, which go on being kept. NotFound without
  // them, InvalidArgument for others than expected. Once a session.
  virtual absl::StatusOr<std::shared_ptr<SessionFiles>> Take(SessionId session,
                                                             const SessionFiles::Sizes& sizes) = 0;

  // The same for a tenant's file, by the tenant's name.
  virtual absl::Status KeepTenantFile(const std::string& tenant, const MemoryFile& file) = 0;
  virtual void RemoveTenantFile(const std::string& tenant) = 0;
  // Null without a file, or if it is another than expected. Once a tenant.
  virtual std::shared_ptr<const MemoryFile> TakeTenantFile(const std::string& tenant,
                                                           Bytes image_bytes) = 0;
};

}  // namespace torpor::server
