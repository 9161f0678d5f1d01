#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/instance_table.h"
#include "server/links/links.h"

namespace torpor::server {

// All sessions until they are forgotten, with look-ups by process, shard and peers. On the
// controller's thread.
class SessionTable {
 public:
  // `instances` must outlive the table.
  explicit SessionTable(const InstanceTable& instances) : instances_(instances) {}
  // Drops pending steps: steps hold their sessions.
  ~SessionTable();
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  // The session of the stream, created if the stream has none.
  SessionPtr OfLink(const std::shared_ptr<SessionLink>& link);
  // Detaches an ended stream from its session. Returns null if the stream has none.
  SessionPtr TakeOfLink(const SessionLink* link);
  void Forget(const ClientSession& session);

  // --- Sessions of an earlier torpord ---
  // Ids below `next` are not given out any more.
  void BeginIdsAt(SessionId next) { next_id_ = next.value; }
  // Adds a session whose client is not connected. The id was given out before.
  SessionPtr Add(SessionId id);
  // `newcomer`, the session of a stream, turns out to be the client of `session`: the stream is
  // that session's from now on, and the newcomer is forgotten.
  void MoveLink(const SessionPtr& newcomer, const SessionPtr& session);
  // The session's client is not connected any more.
  void DropLink(const SessionPtr& session);

  // Returns null if the session is unknown or forgotten.
  SessionPtr Find(SessionId id) const;
  const std::map<SessionId, SessionPtr>& all() const { return sessions_; }

  // Sessions with memory.
  std::vector<SessionPtr> Of(const FunctionInstance& instance) const;
  std::vector<SessionPtr> Of(const Shard& shard) const;
  // Sessions of the instance that can take a lease.
  std::vector<SessionPtr> AbleOf(const FunctionInstance& instance) const;

  // The other sessions of the same process, by id.
  std::vector<SessionPtr> SiblingsOf(const ClientSession& session) const;
  // The sessions whose memory `session` may use: its siblings, and all sessions of a function whose
  // processes share memory.
  std::vector<SessionPtr> PeersOf(const ClientSession& session) const;
  // The sessions whose memory the process of `session` has open, repeated for each open block.
  std::vector<SessionPtr> OwnersOpenedBy(const ClientSession& session) const;

 private:
  const InstanceTable& instances_;
  std::map<SessionId, SessionPtr> sessions_;
  std::map<const SessionLink*, SessionPtr> by_link_;
  std::uint64_t next_id_ = 1;
};

}  // namespace torpor::server
