#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "server/controller/controller.h"
#include "server/controller/extents.h"

// Families: the sessions of one process for its several devices, which reach each other's memory
// and wait for each other's work.
namespace torpor::server {
namespace {

// Calls `then` with the first failure when as many parts as were added, and the whole, are done.
class Gathering {
 public:
  explicit Gathering(std::function<void(absl::Status)> then) : then_(std::move(then)) {}

  void Add() { ++open_; }
  void Done(const absl::Status& status) {
    status_.Update(status);
    if (--open_ == 0) then_(status_);
  }

 private:
  const std::function<void(absl::Status)> then_;
  std::size_t open_ = 1;
  absl::Status status_;
};

absl::Status StatusOf(const OperationResult& result) {
  return result.is_executor_lost ? absl::OkStatus() : result.status;
}

}  // namespace

absl::Status Controller::JoinFamily(Session& session, const wire::DeviceHello& hello) {
  const Instance& instance = instances_.at(session.instance);
  const SessionPtr first = FindSession(SessionId{hello.first_session});
  // The first one's HelloAck may still be on its way: it comes by another stream.
  const bool is_known =
      first && first->instance == session.instance && first->has_arena() &&
      (first->state == Session::State::kOffered || first->state == Session::State::kOpen) &&
      SecretsEqual(first->key, hello.first_key);
  if (!is_known) {
    return absl::PermissionDeniedError("no open session of this function has that id and key");
  }
  if (hello.device < 1 || static_cast<std::size_t>(hello.device) >= instance.parts.size()) {
    return absl::OutOfRangeError(absl::StrCat("function ", instance.config.name, " sees ",
                                              instance.parts.size(), " devices, not device ",
                                              hello.device, "; raise its gpus"));
  }
  for (const SessionPtr& member : FamilyOf(*first)) {
    if (member->device_index == hello.device) {
      return absl::AlreadyExistsError("the process has a session for this device already");
    }
  }
  session.first = first->id;
  session.device_index = hello.device;
  return absl::OkStatus();
}

std::vector<Controller::SessionPtr> Controller::FamilyOf(const Session& session) const {
  std::vector<SessionPtr> family;
  const auto instance = instances_.find(session.instance);
  if (instance == instances_.end() || instance->second.parts.size() == 1) return family;
  for (const auto& [id, member] : sessions_) {
    if (member->instance == session.instance && member->first == session.first &&
        id != session.id) {
      family.push_back(member);
    }
  }
  return family;
}

std::vector<Controller::SessionPtr> Controller::PeersOf(const Session& session) const {
  const auto instance = instances_.find(session.instance);
  if (instance == instances_.end() || !instance->second.is_sharing) return FamilyOf(session);
  std::vector<SessionPtr> peers = SessionsOf(instance->second);
  std::erase_if(peers, [&](const SessionPtr& peer) { return peer->id == session.id; });
  return peers;
}

bool Controller::HasPeerAccess() const {
  const auto reaches_all = [this](const Executor& executor) {
    const auto& peers = executor.registration().peers();
    return std::all_of(executors_.begin(), executors_.end(), [&](const auto& other) {
      const bool is_known = other.second.registration().pool_bytes() > 0;
      return !is_known || other.first == executor.gpu() ||
             std::find(peers.begin(), peers.end(), other.first.value) != peers.end();
    });
  };
  return std::all_of(executors_.begin(), executors_.end(), [&](const auto& executor) {
    return executor.second.registration().pool_bytes() == 0 || reaches_all(executor.second);
  });
}

void Controller::MapPeer(const Session& session, GpuIndex gpu, bool nothing,
                         const Executor::OnDone& then) {
  v1::DaemonMessage message;
  v1::DaemonMessage::MapPeer& what = *message.mutable_map_peer();
  what.set_session_id(session.id.value);
  if (!nothing) {
    SetLive(*what.mutable_live(), *session.device);
    what.set_socket_path(ExecutorOf(*session.resident)->registration().peer_socket_path());
  }
  Run(gpu, message, then);
}

void Controller::ShareWithPeers(const SessionPtr& session,
                                const std::function<void(absl::Status)>& then) {
  const auto gathering = std::make_shared<Gathering>(then);
  const auto share = [&](const SessionPtr& owner, GpuIndex holder) {
    owner->peer_holders.insert(holder);
    gathering->Add();
    MapPeer(*owner, holder, /*nothing=*/false,
            [gathering](const OperationResult& result) { gathering->Done(StatusOf(result)); });
  };
  const std::vector<SessionPtr> peers =
      HasPeerAccess() ? PeersOf(*session) : std::vector<SessionPtr>();
  for (const SessionPtr& peer : peers) {
    // What is on the same GPU is mapped there already; what is on its way is shared when it
    // arrives.
    const bool is_elsewhere =
        peer->resident && peer->resident != session->resident && !peer->is_source_only();
    if (!is_elsewhere || peer->is_leaving || !peer->is_announced) continue;
    share(session, *peer->resident);
    share(peer, *session->resident);
  }
  gathering->Done(absl::OkStatus());
}

void Controller::UpdatePeers(const SessionPtr& session,
                             const std::function<void(absl::Status)>& then) {
  const auto gathering = std::make_shared<Gathering>(then);
  for (const GpuIndex holder : session->peer_holders) {
    gathering->Add();
    MapPeer(*session, holder, /*nothing=*/false,
            [gathering](const OperationResult& result) { gathering->Done(StatusOf(result)); });
  }
  gathering->Done(absl::OkStatus());
}

void Controller::WithdrawFromPeers(const SessionPtr& session, bool nothing,
                                   const TaskLoop::Task& then) {
  const auto gathering = std::make_shared<Gathering>([then](const absl::Status&) { then(); });
  const std::set<GpuIndex> holders = session->peer_holders;
  if (nothing) session->peer_holders.clear();
  for (const GpuIndex holder : holders) {
    gathering->Add();
    MapPeer(*session, holder, nothing, [this, holder, gathering](const OperationResult& result) {
      if (StatusOf(result).ok()) return gathering->Done(absl::OkStatus());
      // It would go on to reach memory that is another function's soon.
      Executor& stuck = *ExecutorOf(holder);
      Condemn(stuck,
              absl::StrCat("it does not let go of a peer's memory: ", result.status.ToString()));
      stuck.AwaitLoss(loop_.Now(),
                      [gathering](const OperationResult&) { gathering->Done(absl::OkStatus()); });
    });
  }
  gathering->Done(absl::OkStatus());
}

void Controller::ForgetPeersAt(const SessionPtr& session, GpuIndex gpu,
                               const TaskLoop::Task& then) {
  const auto gathering = std::make_shared<Gathering>([then](const absl::Status&) { then(); });
  for (const SessionPtr& peer : PeersOf(*session)) {
    if (peer->peer_holders.erase(gpu) == 0) continue;
    gathering->Add();
    MapPeer(*peer, gpu, /*nothing=*/true,
            [gathering](const OperationResult&) { gathering->Done(absl::OkStatus()); });
  }
  gathering->Done(absl::OkStatus());
}

void Controller::ReleasePeersOf(const SessionPtr& session) {
  WithdrawFromPeers(session, /*nothing=*/true, [] {});
}

void Controller::QuiesceFamily(const SessionPtr& session, const TaskLoop::Task& then) {
  const auto gathering = std::make_shared<Gathering>([then](const absl::Status&) { then(); });
  std::vector<SessionPtr> family = FamilyOf(*session);
  if (!family.empty() || IsOpenedByOthers(*session)) family.push_back(session);
  for (const SessionPtr& member : family) {
    Lease* const lease = LeaseOf(*member, member->lease);
    if (!lease) continue;
    const GpuIndex gpu = GpuOf(*lease, *member);
    v1::DaemonMessage message;
    message.mutable_end_lease()->set_lease_id(lease->id.value);
    message.mutable_end_lease()->set_session_id(member->id.value);
    message.mutable_end_lease()->set_is_last(true);
    gathering->Add();
    // It may have ended already, or not have begun.
    Run(gpu, message, [this, gpu, gathering](const OperationResult& result) {
      if (!absl::IsDeadlineExceeded(result.status)) return gathering->Done(absl::OkStatus());
      Executor& stuck = *ExecutorOf(gpu);
      Condemn(stuck, absl::StrCat("a session does not end: ", result.status.ToString()));
      stuck.AwaitLoss(loop_.Now(),
                      [gathering](const OperationResult&) { gathering->Done(absl::OkStatus()); });
    });
  }
  gathering->Done(absl::OkStatus());
}

void Controller::SwapInPeers(const SessionPtr& session, const Lease& lease,
                             const TaskLoop::Task& then) {
  const auto gathering = std::make_shared<Gathering>([then](const absl::Status&) { then(); });
  std::vector<SessionPtr> peers = PeersOf(*session);
  peers.push_back(session);
  for (const SessionPtr& peer : peers) {
    gathering->Add();
    SwapInSession(peer, GpuOf(lease, *peer),
                  [gathering](const OperationResult& result) { gathering->Done(result.status); });
  }
  gathering->Done(absl::OkStatus());
}

}  // namespace torpor::server
