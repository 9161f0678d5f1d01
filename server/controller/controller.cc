#include "server/controller/controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "server/controller/cuda_errors.h"
#include "server/controller/scheduler_setup.h"

namespace torpor::server {
namespace {

// Requests that can be explained once they are over; under a kilobyte each.
constexpr std::size_t kStories = 1000;

// As RequestBroker says.
absl::Status WhyRefused(scheduler::Refusal reason) {
  switch (reason) {
    case scheduler::Refusal::kTooLarge:
      return absl::UnavailableError("the function's memory is larger than any GPU of this node");
    case scheduler::Refusal::kSwapFailed:
      return absl::UnavailableError("the function's memory could not be brought to a GPU");
    // Of policies that never evict, which no daemon may be given.
    case scheduler::Refusal::kNoRoom:
      return absl::UnavailableError("no GPU has room for the function's memory");
    case scheduler::Refusal::kQueueFull:
      return absl::ResourceExhaustedError("as many requests wait for a GPU as may");
    case scheduler::Refusal::kTooLate:
      return absl::OutOfRangeError("it could no longer be answered within its deadline");
  }
  return absl::UnavailableError("");
}

scheduler::Scheduler MakeScheduler(const Config& config) {
  scheduler::Setup setup = SetupOf(config);
  return scheduler::Scheduler(std::move(setup.policies), setup.options);
}

EvictionReason ReasonOf(const scheduler::SwapOut& action) {
  switch (action.reason) {
    case scheduler::SwapOutReason::kMemoryFull:
      return EvictionReason::kMemoryFull;
    case scheduler::SwapOutReason::kMove:
      return EvictionReason::kMove;
    case scheduler::SwapOutReason::kRequested:
      return EvictionReason::kRequested;
    case scheduler::SwapOutReason::kKeepAliveOver:
      return EvictionReason::kKeepAlive;
  }
  return EvictionReason::kMemoryFull;
}

}  // namespace

Controller::Controller(Options options, TaskLoop& loop, Repository& repository,
                       ExecutorKiller& killer, Telemetry& telemetry)
    : options_(std::move(options)),
      loop_(loop),
      repository_(repository),
      killer_(killer),
      telemetry_(telemetry),
      scheduler_(MakeScheduler(options_.config)),
      addresses_(options_.config.session.address_base),
      history_(kStories) {
  for (const GpuIndex gpu : options_.gpus) executors_.try_emplace(gpu, gpu);
  std::uint64_t next_instance = 1;
  for (const auto& [name, function] : options_.config.functions) {
    const InstanceId id{next_instance++};
    Instance& instance = instances_[id];
    instance.id = id;
    instance.config = function;
  }
  for (const auto& [name, tenant] : options_.config.tenants) {
    Feed(scheduler::TenantSet{.tenant = TenantOf(name), .weight = tenant.weight});
  }
  for (auto& [id, instance] : instances_) {
    FeedFunction(instance);
    scheduler::InstanceAdded added{.instance = id,
                                   .max_in_flight = instance.config.max_in_flight,
                                   .function = FunctionOf(instance)};
    for (int gpu = 1; gpu < instance.config.gpus; ++gpu) {
      added.secondary_shards.push_back(InstanceId{next_instance++});
    }
    instance.parts = added.secondary_shards;
    instance.parts.insert(instance.parts.begin(), id);
    for (const InstanceId part : instance.parts) parts_[part] = id;
    Feed(added);
  }
}

Controller::~Controller() {
  // Steps hold their sessions, which hold the steps.
  for (const auto& [id, session] : sessions_) {
    session->steps.Clear();
    session->mallocs.Clear();
    session->on_arrival.clear();
  }
}

void Controller::Feed(const scheduler::Event& event) {
  const TimePoint now = loop_.Now();
  ForgetOccupants(event);
  const scheduler::Actions decided = scheduler_.OnEvent(event, now);
  if (options_.record) options_.record(now, event, decided);
  actions_.insert(actions_.end(), decided.begin(), decided.end());
  NotePlacements();
  NoteDecisions(decided);
  // What an action leads to may come back here: its own actions wait their turn.
  if (std::exchange(is_acting_, true)) return;
  while (!actions_.empty()) {
    const scheduler::Action action = actions_.front();
    actions_.pop_front();
    std::visit([this](const auto& a) { Obey(a); }, action);
  }
  is_acting_ = false;
  AnswerHints();
}

scheduler::FunctionId Controller::FunctionOf(const Instance& instance) {
  return scheduler::FunctionId{instance.id.value};
}

scheduler::TenantId Controller::TenantOf(const std::string& name) const {
  const auto& tenants = options_.config.tenants;
  const auto found = tenants.find(name);
  if (found == tenants.end()) return {};
  return scheduler::TenantId{1 + static_cast<std::uint64_t>(std::distance(tenants.begin(), found))};
}

void Controller::FeedFunction(const Instance& instance) {
  const FunctionConfig& config = instance.config;
  Feed(scheduler::FunctionSet{
      .function = FunctionOf(instance),
      .objective = {.deadline = config.deadline, .percentile = config.percentile},
      .priority = config.priority,
      .max_waiting = static_cast<std::size_t>(config.max_waiting),
      .tenant = TenantOf(config.tenant),
      .keep_alive = config.keep_alive});
}

void Controller::ForgetOccupants(const scheduler::Event& event) {
  InstanceId ended;
  if (const auto* const lease = std::get_if<scheduler::LeaseEnded>(&event)) {
    ended = lease->instance;
  } else if (const auto* const executor = std::get_if<scheduler::ExecutorDown>(&event)) {
    const auto occupant = occupants_.find(executor->gpu);
    if (occupant != occupants_.end() && occupant->second) ended = parts_.at(occupant->second);
  }
  if (!ended) return;
  for (auto& [gpu, occupant] : occupants_) {
    if (occupant && parts_.at(occupant) == ended) occupant = {};
  }
}

void Controller::NotePlacements() {
  for (const auto& [id, gpu] : scheduler_.node().gpus) {
    InstanceId& occupant = occupants_[id];
    if (occupant == gpu.tenant) continue;
    occupant = gpu.tenant;
    if (!occupant) continue;
    Instance& instance = *PartOf(occupant).instance;
    instance.placement = {.since = loop_.Now(),
                          .wait = scheduler_.node().instances.at(instance.id).wait,
                          .loading_nearby = LoadingNear(id)};
  }
}

void Controller::NoteDecisions(const scheduler::Actions& decided) {
  const auto placing_on = [this](GpuIndex gpu) -> Placement* {
    const InstanceId occupant = scheduler_.node().gpus.at(gpu).tenant;
    const bool is_placing = occupant && scheduler_.node().instances.at(occupant).tenancy.phase ==
                                            scheduler::Phase::kPlacing;
    return is_placing ? &PartOf(occupant).instance->placement : nullptr;
  };
  for (const scheduler::Action& action : decided) {
    if (const auto* const out = std::get_if<scheduler::SwapOut>(&action)) {
      Placement* const placement = placing_on(out->gpu);
      const bool is_for_room = out->reason == scheduler::SwapOutReason::kMemoryFull;
      if (!placement || !is_for_room) continue;
      placement->evicted.push_back(PartOf(out->instance).instance->config.name);
    } else if (const auto* const in = std::get_if<scheduler::SwapIn>(&action)) {
      if (scheduler_.node().gpus.at(in->gpu).tenant != in->instance) continue;
      Placement& placement = PartOf(in->instance).instance->placement;
      placement.swap_in = loop_.Now();
      placement.peer = in->source;
    }
  }
}

std::vector<Placement::Neighbour> Controller::LoadingNear(GpuIndex gpu) const {
  std::vector<Placement::Neighbour> neighbours;
  const auto& gpus = scheduler_.node().gpus;
  const std::optional<int> pcie_switch = gpus.at(gpu).pcie_switch;
  for (const auto& [id, other] : gpus) {
    const bool is_near = pcie_switch && other.pcie_switch == pcie_switch && id != gpu;
    if (!is_near || !other.loading) continue;
    neighbours.push_back({id, instances_.at(parts_.at(other.loading)).config.name});
  }
  return neighbours;
}

void Controller::Obey(const scheduler::SwapIn& action) {
  const Part part = PartOf(action.instance);
  Instance& instance = *part.instance;
  instance.placement.source = SwapSource::kHost;
  ++instance.swaps_in;
  ++swaps_in_;
  struct Outcome {
    std::size_t open = 0;
    bool is_lost = false;
    absl::Status status;
  };
  const std::vector<SessionPtr> sessions = SessionsOf(part);
  auto outcome = std::make_shared<Outcome>();
  outcome->open = sessions.size() + 1;
  const auto one_done = [this, action, outcome](const OperationResult& result) {
    outcome->is_lost |= result.is_executor_lost;
    outcome->status.Update(result.status);
    if (result.from_peer.total() > 0) {
      PartOf(action.instance).instance->placement.source = SwapSource::kPeer;
    }
    if (--outcome->open > 0 || outcome->is_lost) return;
    if (outcome->status.ok()) {
      Feed(scheduler::SwapInDone{action.instance, action.gpu, true});
      return NoteArrival(action.instance, action.gpu);
    }
    spdlog::error("GPU {}: swap-in of {} failed: {}", action.gpu.value,
                  PartOf(action.instance).instance->config.name, outcome->status.ToString());
    // Sessions of the instance that did get in must not stay: their room is somebody else's.
    auto left = std::make_shared<std::size_t>(1);
    const auto one_out = [this, action, left](const OperationResult& out) {
      if (out.is_executor_lost || --*left > 0) return;
      Feed(scheduler::SwapInDone{action.instance, action.gpu, false});
    };
    for (const SessionPtr& session : SessionsOf(PartOf(action.instance))) {
      ++*left;
      SwapOutSession(session, action.gpu, WriteBackReason::kEviction, one_out);
    }
    one_out({});
  };
  if (!action.source) {
    for (const SessionPtr& session : sessions) SwapInSession(session, action.gpu, one_done);
    return one_done({});
  }
  ++swaps_out_;
  telemetry_.OnEviction(instance.config.name, *action.source, EvictionReason::kMove);
  const Executor::OnDone one_left = WhenLeft(action.instance, *action.source, sessions.size() + 1);
  for (const SessionPtr& session : sessions) {
    MoveSession(session, *action.source, action.gpu, one_done, one_left);
  }
  one_left({});
  one_done({});
}

void Controller::Obey(const scheduler::SwapOut& action) {
  const Part part = PartOf(action.instance);
  const Instance& instance = *part.instance;
  ++swaps_out_;
  telemetry_.OnEviction(instance.config.name, action.gpu, ReasonOf(action));
  const WriteBackReason reason = action.reason == scheduler::SwapOutReason::kMove
                                     ? WriteBackReason::kMove
                                     : WriteBackReason::kEviction;
  const std::vector<SessionPtr> sessions = SessionsOf(part);
  const Executor::OnDone one_left = WhenLeft(action.instance, action.gpu, sessions.size() + 1);
  for (const SessionPtr& session : sessions) SwapOutSession(session, action.gpu, reason, one_left);
  one_left({});
}

Executor::OnDone Controller::WhenLeft(InstanceId part, GpuIndex gpu, std::size_t sessions) {
  auto open = std::make_shared<std::size_t>(sessions);
  return [this, part, gpu, open](const OperationResult& result) {
    if (result.is_executor_lost || !result.status.ok()) return;
    if (--*open == 0) Feed(scheduler::SwapOutDone{part, gpu});
  };
}

void Controller::Obey(const scheduler::Grant& action) {
  Instance& instance = instances_.at(action.instance);
  const auto implicit = implicit_requests_.find(action.request);
  const auto request = requests_.find(action.request);
  const bool is_implicit = implicit != implicit_requests_.end();
  // It may have gone, or the lease ended, while the decision was on its way here.
  const bool is_gone = !is_implicit && request == requests_.end();
  if (action.joins && is_gone) return;
  if (action.joins && !instance.lease) return Requeue(action.request);
  if (!is_implicit && !is_gone) request->second.state = Request::State::kLeased;
  if (action.joins) {
    request->second.story.joined = loop_.Now();
    instance.lease->requests.insert(action.request);
    return FlushGrants(instance);
  }
  // A request may find no session: its function comes to CUDA while it serves it, or never, or it
  // has lost its memory for good and answers with its own error.
  std::vector<SessionPtr> members;
  if (is_implicit) {
    members.push_back(sessions_.at(implicit->second));
  } else if (!is_gone) {
    members = AbleSessionsOf(instance);
  }
  TORPOR_CHECK(!instance.lease);
  Lease& lease = instance.lease.emplace();
  lease.id = LeaseId{next_lease_++};
  lease.gpus = action.secondary_gpus;
  lease.gpus.insert(lease.gpus.begin(), action.gpu);
  lease.is_explicit = !is_implicit;
  lease.since = loop_.Now();
  lease.source = instance.placement.source;
  lease.requests = {action.request};
  for (const SessionPtr& session : members) lease.members[session->id] = MemberState::kPreparing;
  if (is_gone) return EndLease(instance);
  if (members.empty()) return FlushGrants(instance);
  for (const SessionPtr& session : members) AddMember(instance, session);
}

void Controller::Obey(const scheduler::Revoke& action) {
  Instance& instance = instances_.at(action.instance);
  if (!instance.lease) return;
  instance.lease->is_revoked = true;
  if (instance.lease->members.empty()) return EndLease(instance);
  for (const SessionPtr& session : SessionsOf(instance)) {
    if (instance.lease->members.count(session->id)) RevokeMember(session, *instance.lease);
  }
}

void Controller::Obey(const scheduler::Refuse& action) {
  const absl::Status why = WhyRefused(action.reason);
  const auto implicit = implicit_requests_.find(action.request);
  if (implicit == implicit_requests_.end()) return FailRequest(action.request, why);
  const SessionPtr session = FindSession(implicit->second);
  implicit_requests_.erase(implicit);
  if (!session) return;
  session->implicit_request = {};
  DenyLease(session, std::string(why.message()));
}

void Controller::Obey(const scheduler::AllowGrowth& action) {
  const auto growth = growths_.extract(action.growth);
  growth.mapped()(true);
}

void Controller::Obey(const scheduler::RefuseGrowth& action) {
  const auto growth = growths_.extract(action.growth);
  growth.mapped()(false);
}

void Controller::Obey(const scheduler::WakeUp& action) {
  loop_.RunAt(action.when, [this] { Feed(scheduler::TimePassed{}); });
}

void Controller::Obey(const scheduler::RefuseLoad& action) {
  load_refusals_[action.instance] = action.reason;
}

Controller::Part Controller::PartOf(InstanceId part) {
  Instance& instance = instances_.at(parts_.at(part));
  const auto found = std::find(instance.parts.begin(), instance.parts.end(), part);
  return {&instance, static_cast<int>(found - instance.parts.begin())};
}

InstanceId Controller::PartOf(const Session& session) const {
  return instances_.at(session.instance).parts.at(static_cast<std::size_t>(session.device_index));
}

Controller::Instance* Controller::InstanceOf(const std::string& function) {
  for (auto& [id, instance] : instances_) {
    if (instance.config.name == function) return &instance;
  }
  return nullptr;
}

Controller::SessionPtr Controller::FindSession(SessionId id) const {
  const auto session = sessions_.find(id);
  return session == sessions_.end() ? nullptr : session->second;
}

std::vector<Controller::SessionPtr> Controller::SessionsOf(const Instance& instance) const {
  std::vector<SessionPtr> sessions;
  for (const SessionId id : instance.sessions) sessions.push_back(sessions_.at(id));
  return sessions;
}

std::vector<Controller::SessionPtr> Controller::SessionsOf(const Part& part) const {
  std::vector<SessionPtr> sessions = SessionsOf(*part.instance);
  std::erase_if(sessions, [&](const SessionPtr& session) {
    return session->device_index != part.device_index;
  });
  return sessions;
}

std::vector<Controller::SessionPtr> Controller::AbleSessionsOf(const Instance& instance) const {
  std::vector<SessionPtr> sessions = SessionsOf(instance);
  std::erase_if(sessions, [](const SessionPtr& session) { return !session->is_able(); });
  return sessions;
}

}  // namespace torpor::server
