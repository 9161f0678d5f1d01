#include "server/controller/model/session_table.h"

#include <algorithm>
#include <string>
#include <utility>

namespace torpor::server {
namespace {

// In place of the link to a client that is not connected. Such a client is told all that matters
// when it is.
class AbsentClient final : public SessionLink {
 public:
  void Send(const wire::ServerMessage&) override {}
  void Close(const std::string&) override {}
};

}  // namespace

SessionTable::~SessionTable() {
  for (const auto& [id, session] : sessions_) {
    session->steps.Clear();
    session->memory.mallocs.Clear();
    (void)session->image.EndArrival();
  }
}

SessionPtr SessionTable::OfLink(const std::shared_ptr<SessionLink>& link) {
  SessionPtr& session = by_link_[link.get()];
  if (!session) {
    session = std::make_shared<ClientSession>();
    session->id = SessionId{next_id_++};
    session->link = link;
    sessions_[session->id] = session;
  }
  return session;
}

SessionPtr SessionTable::TakeOfLink(const SessionLink* link) {
  const auto entry = by_link_.extract(link);
  return entry.empty() ? nullptr : entry.mapped();
}

void SessionTable::Forget(const ClientSession& session) {
  by_link_.erase(session.link.get());
  sessions_.erase(session.id);
}

SessionPtr SessionTable::Add(SessionId id) {
  SessionPtr& session = sessions_[id];
  session = std::make_shared<ClientSession>();
  session->id = id;
  session->link = std::make_shared<AbsentClient>();
  return session;
}

void SessionTable::MoveLink(const SessionPtr& newcomer, const SessionPtr& session) {
  by_link_.erase(session->link.get());
  session->link = newcomer->link;
  by_link_[session->link.get()] = session;
  sessions_.erase(newcomer->id);
}

void SessionTable::DropLink(const SessionPtr& session) {
  by_link_.erase(session->link.get());
  session->link = std::make_shared<AbsentClient>();
}

SessionPtr SessionTable::Find(SessionId id) const {
  const auto session = sessions_.find(id);
  return session == sessions_.end() ? nullptr : session->second;
}

std::vector<SessionPtr> SessionTable::Of(const FunctionInstance& instance) const {
  std::vector<SessionPtr> sessions;
  sessions.reserve(instance.sessions.size());
  for (const SessionId id : instance.sessions) sessions.push_back(sessions_.at(id));
  return sessions;
}

std::vector<SessionPtr> SessionTable::Of(const Shard& shard) const {
  std::vector<SessionPtr> sessions = Of(*shard.instance);
  std::erase_if(sessions, [&](const SessionPtr& session) {
    return session->device_index != shard.device_index;
  });
  return sessions;
}

std::vector<SessionPtr> SessionTable::AbleOf(const FunctionInstance& instance) const {
  std::vector<SessionPtr> sessions = Of(instance);
  std::erase_if(sessions, [](const SessionPtr& session) { return !session->is_able(); });
  return sessions;
}

std::vector<SessionPtr> SessionTable::SiblingsOf(const ClientSession& session) const {
  std::vector<SessionPtr> siblings;
  if (!session.instance || instances_.Of(session).shards.size() == 1) return siblings;
  for (const auto& [id, other] : sessions_) {
    if (other->instance == session.instance && other->primary == session.primary &&
        id != session.id) {
      siblings.push_back(other);
    }
  }
  return siblings;
}

std::vector<SessionPtr> SessionTable::PeersOf(const ClientSession& session) const {
  if (!session.instance || !instances_.Of(session).is_sharing) return SiblingsOf(session);
  std::vector<SessionPtr> peers = Of(instances_.Of(session));
  std::erase_if(peers, [&](const SessionPtr& peer) { return peer->id == session.id; });
  return peers;
}

std::vector<SessionPtr> SessionTable::OwnersOpenedBy(const ClientSession& session) const {
  std::vector<SessionPtr> owners;
  const SessionPtr primary = Find(session.primary);
  if (!primary) return owners;
  for (const auto& [owner, offset] : primary->opened_blocks) owners.push_back(Find(owner));
  return owners;
}

}  // namespace torpor::server
