#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/units.h"
#include "server/controller/images/spill_store.h"
#include "server/controller/memory/block_sharing.h"
#include "server/controller/memory/session_segments.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/task_loop.h"
#include "server/repository/logged_sessions.h"
#include "server/repository/repository.h"

namespace torpor::server {

// Gives sessions their addresses and files, and takes both back. On the controller's thread.
class SessionStorage {
 public:
  // The references must outlive the object.
  SessionStorage(Bytes window_bytes, SessionSegments& segments, SpillStore& spills,
                 BlockSharing& sharing, Repository& repository, TaskLoop& loop)
      : window_bytes_(window_bytes),
        segments_(segments),
        spills_(spills),
        sharing_(sharing),
        repository_(repository),
        loop_(loop) {}

  // `memory_limit`: bytes of device memory that the client may allocate; `tenant`: of the session's
  // function. ResourceExhausted if no addresses are left.
  absl::Status Create(ClientSession& session, Bytes memory_limit, const std::string& tenant);
  // Gives a session of an earlier torpord what it had. Says in the error why that cannot be.
  absl::Status Restore(ClientSession& session, const LoggedSession& logged,
                       std::shared_ptr<SessionFiles> files, const std::string& tenant);
  // No executor and no client uses the session's memory any more. The files are freed in the
  // background.
  void Remove(ClientSession& session);

  SessionFiles::Sizes SizesOf(const ClientSession& session) const;
  // Returns the node's addresses, within which all sessions' memory lies.
  const NodeAddresses& addresses() const { return segments_.addresses(); }

 private:
  const Bytes window_bytes_;
  SessionSegments& segments_;
  SpillStore& spills_;
  BlockSharing& sharing_;
  Repository& repository_;
  TaskLoop& loop_;
};

}  // namespace torpor::server
