#include "server/controller/controller.h"

#include <spdlog/spdlog.h>

#include <iterator>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "server/controller/scheduler_setup.h"

namespace torpor::server {
namespace {

// An executor whose operation takes longer hangs. Above any swap, and above the time that an
// executor itself waits for a session's work to end.
constexpr Duration kOperationTimeout = std::chrono::seconds(90);
constexpr Duration kWatchPeriod = std::chrono::seconds(1);
// Finished requests that can be explained; under a kilobyte each.
constexpr std::size_t kMaxTraces = 1000;

// As RequestBroker says.
absl::Status WhyRefused(scheduler::Refusal reason) {
  switch (reason) {
    case scheduler::Refusal::kTooLarge:
      return absl::UnavailableError("the function's memory is larger than any GPU of this node");
    case scheduler::Refusal::kSwapFailed:
      return absl::UnavailableError("the function's memory could not be brought to a GPU");
    // Only under policies that never evict, which no daemon may be given.
    case scheduler::Refusal::kNoRoom:
      return absl::UnavailableError("no GPU has room for the function's memory");
    case scheduler::Refusal::kQueueFull:
      return absl::ResourceExhaustedError("as many requests wait for a GPU as may");
    case scheduler::Refusal::kTooLate:
      return absl::OutOfRangeError("it could no longer be answered within its deadline");
  }
  return absl::UnavailableError("");
}

SessionSegments::Options SegmentOptionsOf(const Controller::Options& options) {
  const Config& config = options.config;
  return {.addresses = AddressesOf(config),
          .address_range = config.session.address_range,
          .chunk_bytes = config.device.chunk_bytes,
          .is_apart = config.device.address_mode == AddressMode::kTranslate,
          .host_budget = options.host_budget};
}

SessionOpening::Options OpeningOptionsOf(const Controller::Options& options) {
  return {.anonymous_function = options.config.session.anonymous_function,
          .descriptor_socket = options.descriptor_socket,
          .window_bytes = options.config.session.window_bytes,
          .is_emulated = options.config.is_emulated,
          .hello_timeout = options.hello_timeout,
          .max_sessions = options.config.session.max_sessions};
}

ExecutorRecovery::Options RecoveryOptionsOf(const Config& config) {
  return {.chunk_bytes = config.device.chunk_bytes,
          .is_emulated = config.is_emulated,
          .swaps_from_peers = config.scheduling.swap_from_peers,
          .patience = config.session.resume_patience};
}

}  // namespace

Controller::Controller(const Options& options, TaskLoop& loop, Repository& repository,
                       ExecutorProcesses& processes, Telemetry& telemetry)
    : config_(options.config),
      loop_(loop),
      telemetry_(telemetry),
      session_log_(options.session_log),
      session_keeper_(options.session_keeper),
      journal_(session_log_, session_keeper_),
      feed_(SetupOf(config_), loop, options.record),
      tables_(options.gpus, loop, processes, config_.isolation),
      seats_(options.executors_per_gpu, tables_.domains, tables_.executors, processes,
             tables_.instances, tables_.sessions, feed_, loop,
             [this](GpuExecutor& executor) { recovery_.TellOfSessions(executor); }),
      health_(tables_.instances, tables_.sessions, feed_, loop),
      strikes_(tables_.instances, journal_, loop, telemetry,
               [this](const RegisteredFunction& function, const absl::Status& why) {
                 requests_.FailQueued(function, why);
               }),
      placements_(tables_.instances, feed_.scheduler(), loop),
      host_(
          tables_, feed_.scheduler(), feed_, loop, SegmentOptionsOf(options),
          {.folder = options.spill_folder, .limit = config_.spill_limit, .disk = *options.disk},
          {.after = config_.share_equal_blocks}, session_keeper_,
          [this](const SessionPtr& session, const std::string& why) { LoseMemory(session, why); }),
      images_(tables_, feed_.scheduler(), feed_, host_.room, seats_, telemetry, loop,
              [this] { admin_.Check(); }),
      memory_(tables_, images_, feed_, loop, config_.device.chunk_bytes, host_.segments, host_.room,
              [this](const SessionPtr& session, const StepQueue::Finish& finish) {
                closing_.Finish(session, finish);
              }),
      storage_(config_.session.window_bytes, host_.segments, host_.spills, host_.sharing,
               repository, loop),
      implicit_(tables_.sessions, feed_),
      leases_(tables_.instances, tables_.sessions, tables_.executors, seats_, health_,
              images_.swaps, implicit_, feed_, telemetry, loop,
              {.taken = [this](FunctionInstance& instance) { requests_.RunTaken(instance); },
               .ended = [this](const InstanceLease& lease) { requests_.OnLeaseEnded(lease); },
               .close = [this](const SessionPtr& session,
                               const std::string& why) { closing_.Close(session, why); },
               .endless = [this](const ClientSession& session) { strikes_.OnEndless(session); }}),
      saves_(tables_.sessions, images_.swaps, loop),
      traces_(tables_.instances, feed_.scheduler(), loop, kMaxTraces),
      requests_(tables_.instances, tables_.sessions, tables_.executors, health_, saves_, traces_,
                feed_, loop),
      admin_(tables_.instances, tables_.sessions, tables_.executors, saves_, feed_.scheduler(),
             feed_, loop),
      broken_(tables_.instances, tables_.sessions, requests_, options.lives),
      opening_(OpeningOptionsOf(options), tables_.instances, tables_.sessions, tables_.executors,
               tables_.domains, seats_, health_, memory_.limits, storage_, journal_, telemetry,
               loop,
               [this](const SessionPtr& session, const std::string& why) {
                 closing_.Close(session, why);
               }),
      closing_(tables_.instances, tables_.sessions, tables_.executors, health_, images_.swaps,
               leases_, implicit_, saves_, memory_.shared, storage_, feed_, loop),
      resuming_(tables_.instances, tables_.sessions, tables_.executors, health_, opening_, leases_,
                requests_, telemetry, loop,
                {.close = [this](const SessionPtr& session,
                                 const std::string& why) { closing_.Close(session, why); },
                 .refused = [this](const FunctionInstance& instance,
                                   const std::string& why) { broken_.OnRefused(instance, why); }}),
      restoring_(tables_.instances, tables_.sessions, tables_.domains, storage_, memory_.device,
                 leases_, journal_, resuming_, telemetry),
      recovery_(RecoveryOptionsOf(config_), tables_.executors, tables_.spares, tables_.domains,
                seats_, tables_.sessions, opening_, resuming_, journal_, feed_, loop,
                [this](const SessionPtr& session, const std::string& why) {
                  closing_.Close(session, why);
                }),
      losses_(tables_.executors, tables_.instances, tables_.sessions, images_.swaps, images_.peers,
              leases_, implicit_, requests_, strikes_, seats_, feed_),
      functions_(tables_.instances, tables_.sessions, requests_, closing_, health_, admin_,
                 feed_.scheduler(), feed_, loop, options.lives, config_.scheduling.keep_replicas),
      snapshots_(tables_.domains, tables_.executors, tables_.spares, tables_.instances,
                 tables_.sessions, leases_, requests_, images_.shards, feed_.scheduler(),
                 repository, loop) {
  feed_.SetHandlers(
      {.before =
           [this](const scheduler::Event& event) {
             placements_.Before(event);
             if (const auto* const arrived = std::get_if<scheduler::RequestArrived>(&event)) {
               host_.room.OnArrival(*arrived);
             }
           },
       .decided = [this](const scheduler::Actions& decided) { placements_.After(decided); },
       .apply =
           [this](const scheduler::Action& action) {
             std::visit([this](const auto& a) { Apply(a); }, action);
           },
       .settled =
           [this] {
             admin_.Check();
             functions_.AdvanceSoon();
           }});
  functions_.Apply(options.config, options.tokens);
}

// --- The scheduler's actions ---------------------------------------------------------------------

void Controller::Apply(const scheduler::Grant& action) {
  if (action.joins) return JoinLease(action);
  FunctionInstance& instance = tables_.instances.At(action.instance);
  seats_.NoteUse(tables_.sessions.Of(instance), action.gpu);
  // A request may find no session: its function uses CUDA later or never, or lost its memory for
  // good and answers with an error of its own.
  if (const SessionPtr session = implicit_.SessionOf(action.request)) {
    return leases_.Begin(action, /*is_explicit=*/false, {session});
  }
  // The request may have gone while the decision was on its way here.
  const bool is_gone = !requests_.Has(action.request);
  std::vector<SessionPtr> participants;
  if (!is_gone) {
    requests_.NoteLeased(action.request, instance.id);
    participants = tables_.sessions.AbleOf(instance);
  }
  leases_.Begin(action, /*is_explicit=*/true, participants);
  if (is_gone) return leases_.End(instance);
  if (participants.empty()) requests_.RunTaken(instance);
}

void Controller::JoinLease(const scheduler::Grant& action) {
  FunctionInstance& instance = tables_.instances.At(action.instance);
  // The request may have gone, or the lease ended, while the decision was on its way here.
  if (!requests_.Has(action.request)) return;
  if (!instance.lease) return requests_.Requeue(action.request);
  requests_.NoteLeased(action.request, instance.id);
  traces_.Join(action.request);
  instance.lease->requests.insert(action.request);
  instance.lease->last_request = loop_.Now();
  requests_.RunTaken(instance);
}

void Controller::Apply(const scheduler::Revoke& action) {
  leases_.Revoke(tables_.instances.At(action.instance));
}

void Controller::Apply(const scheduler::Refuse& action) {
  const absl::Status why = WhyRefused(action.reason);
  const SessionPtr session = implicit_.SessionOf(action.request);
  if (!session) return requests_.Fail(action.request, why);
  implicit_.Take(*session);
  leases_.Deny(session, std::string(why.message()));
}

void Controller::Apply(const scheduler::AllowGrowth& action) {
  memory_.device.OnGrowthAnswered(action.growth, /*is_allowed=*/true);
}

void Controller::Apply(const scheduler::RefuseGrowth& action) {
  memory_.device.OnGrowthAnswered(action.growth, /*is_allowed=*/false);
}

void Controller::Apply(const scheduler::WakeUp& action) {
  loop_.RunAt(action.when, [this] { feed_.Feed(scheduler::TimePassed{}); });
}

// --- Messages of sessions ------------------------------------------------------------------------

void Controller::RestoreSessions() {
  if (session_log_) {
    strikes_.Restore(session_log_->state());
    restoring_.Restore(*session_log_, *session_keeper_);
  }
  host_.spills.RemoveUnknown();
  if (session_log_) resuming_.BeginPatience(config_.session.resume_patience);
}

void Controller::OnSessionMessage(const std::shared_ptr<SessionLink>& link,
                                  const wire::ClientMessage& message) {
  using State = ClientSession::State;
  if (has_left_sessions_) return;
  const SessionPtr session = tables_.sessions.OfLink(link);
  if (session->state == State::kClosing) return;
  const bool is_first = session->state == State::kNew;
  const bool is_hello = std::holds_alternative<wire::Hello>(message) ||
                        std::holds_alternative<wire::DeviceHello>(message) ||
                        std::holds_alternative<wire::Inquiry>(message) ||
                        std::holds_alternative<wire::Resume>(message);
  if (is_first != is_hello) {
    return closing_.Close(session, "a session says Hello once, and first");
  }
  const bool is_early =
      session->state == State::kOpening || session->state == State::kAway ||
      session->state == State::kRefused ||
      (session->state == State::kOffered && !std::holds_alternative<wire::HelloAck>(message));
  if (is_early) return closing_.Close(session, "the session spoke before it was open");
  if (resuming_.AnswerAgain(session, message)) return;
  std::visit([&](const auto& m) { Handle(session, m); }, message);
}

void Controller::OnSessionClosed(const std::shared_ptr<SessionLink>& link) {
  const SessionPtr session = tables_.sessions.TakeOfLink(link.get());
  if (!session || has_left_sessions_ || resuming_.OnClosed(session)) return;
  closing_.Close(session, "its process has gone");
}

void Controller::Handle(const SessionPtr& session, const wire::Hello& hello) {
  opening_.Greet(session, hello);
}
void Controller::Handle(const SessionPtr& session, const wire::DeviceHello& hello) {
  opening_.Greet(session, hello);
}
void Controller::Handle(const SessionPtr& session, const wire::Inquiry& inquiry) {
  opening_.Greet(session, inquiry);
}
void Controller::Handle(const SessionPtr& session, const wire::Resume& resume) {
  resuming_.Greet(session, resume);
}
void Controller::Handle(const SessionPtr& session, const wire::HelloAck& ack) {
  opening_.Acknowledge(session, ack);
}
void Controller::Handle(const SessionPtr& session, const wire::LeaseRequest&) {
  leases_.Request(session);
}
void Controller::Handle(const SessionPtr& session, const wire::LeaseAck& ack) {
  leases_.Acknowledge(session, ack);
}
void Controller::Handle(const SessionPtr& session, const wire::LeaseReturned& returned) {
  leases_.Return(session, returned);
}
void Controller::Handle(const SessionPtr& session, const wire::ReplayFailed& failed) {
  LoseMemory(session, "what it did on a GPU that died cannot be replayed: " + failed.reason);
}
void Controller::LoseMemory(const SessionPtr& session, const std::string& why) {
  requests_.OnSessionLost(session->instance, why);
  leases_.OnReplayFailed(session, why);
}
void Controller::Handle(const SessionPtr& session, const wire::SaveMemoryReply& reply) {
  saves_.OnReply(session, reply);
}
void Controller::Handle(const SessionPtr& session, const wire::Malloc& call) {
  memory_.device.Malloc(session, call);
}
void Controller::Handle(const SessionPtr& session, const wire::Free& call) {
  memory_.device.Free(session, call);
}
void Controller::Handle(const SessionPtr& session, const wire::HostAlloc& call) {
  memory_.host.Alloc(session, call);
}
void Controller::Handle(const SessionPtr& session, const wire::HostFree& call) {
  memory_.host.Free(session, call);
}
void Controller::Handle(const SessionPtr& session, const wire::MemGetInfo& call) {
  memory_.device.GetInfo(*session, call);
}
void Controller::Handle(const SessionPtr& session, const wire::ShareMemory& call) {
  memory_.shared.Share(session, call);
}
void Controller::Handle(const SessionPtr& session, const wire::OpenMemory& call) {
  memory_.shared.Open(session, call);
}
void Controller::Handle(const SessionPtr& session, const wire::CloseMemory& call) {
  memory_.shared.Close(session, call);
}

// --- Executors -----------------------------------------------------------------------------------

void Controller::OnExecutorStarting(ExecutorSeat seat, std::uint64_t epoch) {
  LoseExecutor(seat, "a successor is started");
  recovery_.Expect(seat, epoch);
  BeginWatching();
}

void Controller::OnExecutorAdopted(ExecutorSeat seat, std::uint64_t epoch, std::int64_t process) {
  GpuExecutor* executor = tables_.executors.Find(seat);
  if (executor == nullptr) executor = &tables_.executors.AddSeat(seat.gpu);
  executor->OnAdopted(epoch, process);
  BeginWatching();
}

void Controller::BeginWatching() {
  if (phase_ != Phase::kIdle) return;
  phase_ = Phase::kWatching;
  Watch();
}

void Controller::OnExecutorExited(ExecutorSeat seat, std::uint64_t epoch, int signal) {
  if (tables_.executors.At(seat).epoch() == epoch) LoseExecutor(seat, "its process has ended");
  strikes_.OnExecutorExited(seat.gpu, epoch, signal);
}

void Controller::OnSpareStarting(GpuIndex gpu, std::uint64_t epoch) {
  tables_.spares.OnStarting(gpu, epoch);
}

void Controller::OnSpareAdopted(GpuIndex gpu, std::uint64_t epoch, std::int64_t process) {
  tables_.spares.OnAdopted(gpu, epoch, process);
}

void Controller::OnSpareExited(GpuIndex gpu, std::uint64_t epoch) {
  tables_.spares.Take(gpu, epoch);
}

void Controller::OnExecutorClosed(const std::shared_ptr<ExecutorChannel>& link) {
  const GpuExecutor* const executor = tables_.executors.OfLink(link);
  if (!executor) return tables_.spares.OnClosed(link);
  // A process without its stream is useless, even if still running.
  if (phase_ != Phase::kShutDown) tables_.executors.EndProcess(*executor);
  LoseExecutor(executor->seat(), "its stream has ended");
}

void Controller::OnExecutorMessage(const std::shared_ptr<ExecutorChannel>& link,
                                   const v1::ExecutorMessage& message) {
  if (message.has_register_()) return recovery_.Register(link, message.register_());
  GpuExecutor* const executor = tables_.executors.OfLink(link);
  if (!executor && tables_.spares.Has(link)) return;  // answers that the spare lives on
  if (!executor) return link->Close("an executor registers first");
  if (message.has_operation_done())
    executor->OnOperationDone(message.operation_done(), loop_.Now());
  if (message.has_context_lost()) losses_.OnContextLost(executor->gpu(), message.context_lost());
  if (message.has_memory_use()) executor->OnMemory(message.memory_use());
  if (message.has_swap_in_complete()) {
    images_.shards.OnSwapInComplete(executor->gpu(), message.swap_in_complete());
  }
}

void Controller::LoseExecutor(ExecutorSeat seat, const std::string& why) {
  GpuExecutor& executor = tables_.executors.At(seat);
  if (!executor.is_attached()) return;
  if (seats_.IsLeaving(executor)) {
    spdlog::info("GPU {}: the executor of {} has ended", seat.gpu.value,
                 tables_.domains.NameOf(executor.domain()));
  } else if (phase_ != Phase::kShutDown) {
    spdlog::error("GPU {}: executor lost: {}", seat.gpu.value, why);
    telemetry_.OnExecutorLost(seat.gpu);
  }
  losses_.Lose(executor);
}

void Controller::Watch() {
  tables_.executors.KillHanging(kOperationTimeout);
  if (phase_ == Phase::kShutDown) return;
  const TimePoint now = loop_.Now();
  loop_.RunAt(now + kWatchPeriod, [this, now] {
    AccountHostMemory(loop_.Now() - now);
    memory_.freed.GiveBack();
    host_.room.KeepFree();
    host_.sharing.Look();
    broken_.Check();
    seats_.Look();
    Watch();
  });
}

void Controller::AccountHostMemory(Duration passed) {
  for (const auto& [id, session] : tables_.sessions.all()) {
    const auto& files = session->memory.files;
    if (!files) continue;
    const Bytes bytes = files->resident_bytes(wire::SharedMemory::kImage) +
                        files->resident_bytes(wire::SharedMemory::kHostArena) +
                        host_.sharing.ShareOf(*session);
    tables_.instances.Of(*session).totals.host_byte_seconds +=
        static_cast<double>(bytes) * ToSeconds(passed);
  }
}

// --- The router and administrators ---------------------------------------------------------------

void Controller::Acquire(RequestId request, const RequestBroker::Demand& demand,
                         RequestBroker::OnGrant on_grant, RequestBroker::OnLost on_lost) {
  requests_.Acquire(request, demand, std::move(on_grant), std::move(on_lost));
}

void Controller::ConfirmLease(RequestId request, const std::function<void()>& done) {
  requests_.ConfirmLease(request, done);
}

void Controller::Release(RequestId request, scheduler::Ending ending) {
  requests_.Release(request, ending);
}

void Controller::Administer(const AdminRequest& request, AdminRequests::Done done) {
  admin_.Start(request, std::move(done));
}

void Controller::Reconfigure(const Config& config,
                             const std::map<std::string, std::string>& tokens) {
  functions_.Apply(config, tokens);
}

absl::StatusOr<RequestTrace> Controller::Explain(const std::string& request_id) const {
  return traces_.Explain(request_id);
}

NodeSnapshot Controller::Snapshot() const {
  NodeSnapshot node = snapshots_.Take();
  node.policy = config_.scheduling.policy;
  node.addresses = {.mode = std::string(WordOf(config_.device.address_mode)),
                    .fallback = config_.addresses.fallback,
                    .base = host_.segments.addresses().device_base,
                    .bytes = host_.segments.addresses().device_bytes,
                    .free_bytes = host_.segments.free_device_bytes()};
  const HostBudget::Use& host = host_.segments.host_memory();
  node.host_memory = {.budget = host.budget, .used = host.used, .refusals = host.refusals};
  node.spills = host_.spills.figures();
  node.sharing = host_.sharing.figures();
  node.host_image_bytes += node.sharing.stored;
  return node;
}

bool Controller::IsReady() const {
  return !requests_.is_draining() && tables_.executors.IsAnyReady();
}

std::vector<std::string> Controller::ServingUpstreams(const std::string& function) {
  std::vector<std::string> upstreams;
  const RegisteredFunction* const found = tables_.instances.FindFunction(function);
  if (!found) return upstreams;
  for (const InstanceId id : found->instances) {
    const FunctionInstance& instance = tables_.instances.At(id);
    if (instance.standing.health != scheduler::Health::kServing) continue;
    upstreams.push_back(instance.upstream);
  }
  return upstreams;
}

void Controller::Drain(TaskLoop::Task when_idle) {
  opening_.Stop();
  requests_.Drain(std::move(when_idle));
}

void Controller::Shutdown() {
  if (std::exchange(phase_, Phase::kShutDown) == Phase::kShutDown) return;
  opening_.Stop();
  admin_.Shutdown();
  requests_.Shutdown();
  if (has_left_sessions_) return;
  for (auto& [gpu, executor] : tables_.executors) {
    if (!executor.is_attached()) continue;
    v1::DaemonMessage message;
    message.mutable_shutdown();
    executor.link()->Send(message);
  }
  const auto sessions = tables_.sessions.all();
  for (const auto& [id, session] : sessions) {
    TellEnd(*session, "torpord is shutting down");
    session->link->Close("torpord is shutting down");
    journal_.Close(*session);
  }
}

bool Controller::LeaveSessions() {
  if (!session_log_ || std::exchange(has_left_sessions_, true)) return has_left_sessions_;
  // No answer reaches a client from here on, and nothing that happens is recorded.
  for (const auto& [id, session] : tables_.sessions.all()) {
    session->link->Close("torpord is being started anew");
  }
  journal_.Stop();
  return true;
}

}  // namespace torpor::server
