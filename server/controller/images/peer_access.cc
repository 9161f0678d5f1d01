#include "server/controller/images/peer_access.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/controller/model/extents.h"
#include "server/controller/model/join.h"

namespace torpor::server {

void PeerAccess::Map(const ClientSession& session, GpuIndex gpu, Keep keep,
                     const GpuExecutor::OnDone& then) {
  v1::DaemonMessage message;
  v1::DaemonMessage::MapPeer& what = *message.mutable_map_peer();
  what.set_session_id(session.id.value);
  if (keep == Keep::kLive) {
    SetLive(*what.mutable_live(), *session.memory.device, session.memory.growth);
    what.set_socket_path(
        executors_.RegistrationOf(session.On(*session.image.gpu())).peer_socket_path());
  }
  executors_.Run(session.On(gpu), std::move(message), then);
}

void PeerAccess::Share(const SessionPtr& session, const Then& then) {
  Join join(then);
  const auto share = [&](const SessionPtr& owner, GpuIndex holder) {
    owner->image.AddPeerHolder(holder);
    join.Add();
    Map(*owner, holder, Keep::kLive,
        [join](const OperationResult& result) { join.Done(result.status_unless_lost()); });
  };
  const std::vector<SessionPtr> peers =
      executors_.HasPeerAccess() ? sessions_.PeersOf(*session) : std::vector<SessionPtr>();
  for (const SessionPtr& peer : peers) {
    // Images on the same GPU are mapped there already; images on their way are shared on arrival.
    const bool is_elsewhere =
        peer->image.is_shareable() && peer->image.gpu() != session->image.gpu();
    if (!is_elsewhere || !peer->is_announced) continue;
    share(session, *peer->image.gpu());
    share(peer, *session->image.gpu());
  }
  join.Done();
}

void PeerAccess::Update(const SessionPtr& session, const Then& then) {
  Join join(then);
  for (const GpuIndex holder : session->image.peer_holders()) {
    join.Add();
    Map(*session, holder, Keep::kLive,
        [join](const OperationResult& result) { join.Done(result.status_unless_lost()); });
  }
  join.Done();
}

void PeerAccess::Withdraw(const SessionPtr& session, Keep keep, const Task& then) {
  Join join([then](const absl::Status&) { then(); });
  const std::set<GpuIndex> holders = session->image.peer_holders();
  if (keep == Keep::kNothing) session->image.RemoveAllPeerHolders();
  for (const GpuIndex holder : holders) {
    join.Add();
    Map(*session, holder, keep, [this, session, holder, join](const OperationResult& result) {
      if (result.status_unless_lost().ok()) return join.Done();
      // The executor would keep reaching memory that soon belongs to another function.
      executors_.KillAndAwait(
          session->On(holder),
          absl::StrCat("it does not let go of a peer's memory: ", result.status.ToString()),
          [join](const OperationResult&) { join.Done(); });
    });
  }
  join.Done();
}

void PeerAccess::ForgetPeersAt(const SessionPtr& session, GpuIndex gpu, const Task& then) {
  Join join([then](const absl::Status&) { then(); });
  for (const SessionPtr& peer : sessions_.PeersOf(*session)) {
    if (!peer->image.RemovePeerHolder(gpu)) continue;
    join.Add();
    Map(*peer, gpu, Keep::kNothing, [join](const OperationResult&) { join.Done(); });
  }
  join.Done();
}

}  // namespace torpor::server
