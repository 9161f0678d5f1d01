#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "server/broker/request_broker.h"
#include "server/config/config.h"
#include "server/controller/admin_requests.h"
#include "server/controller/broken_instances.h"
#include "server/controller/domain_seats.h"
#include "server/controller/executor_losses.h"
#include "server/controller/executor_recovery.h"
#include "server/controller/function_changes.h"
#include "server/controller/function_strikes.h"
#include "server/controller/implicit_requests.h"
#include "server/controller/instance_health.h"
#include "server/controller/lease_service.h"
#include "server/controller/node_snapshots.h"
#include "server/controller/placement_log.h"
#include "server/controller/request_traces.h"
#include "server/controller/requests.h"
#include "server/controller/scheduler_feed.h"
#include "server/controller/services.h"
#include "server/controller/session_closing.h"
#include "server/controller/session_opening.h"
#include "server/controller/session_restoring.h"
#include "server/controller/session_resuming.h"
#include "server/controller/session_saves.h"
#include "server/controller/session_storage.h"

namespace torpor::server {

// The node's single authority: dispatches messages of sessions and executors, the router's requests
// and the scheduler's actions to its parts, and wires these parts. Everything runs on the loop's
// thread; nothing blocks.
class Controller {
 public:
  struct Options {
    Config config;
    std::map<std::string, std::string> tokens;  // by FullNameOf of the instance
    std::vector<GpuIndex> gpus;
    int executors_per_gpu = 1;  // at most, at a time
    std::string descriptor_socket;
    SchedulerFeed::Record record;                      // may be null
    Bytes host_budget = HostBudget::kUnlimited;        // for sessions' memory in the host
    std::string spill_folder;                          // of images that leave host memory
    Files* disk = &SystemFiles();                      // of the folder; outlives the controller
    Duration hello_timeout{std::chrono::seconds(30)};  // a session waits for the first executor
    // Keep sessions for the next torpord. Both null: sessions end with this torpord.
    SessionLog* session_log = nullptr;
    SessionKeeper* session_keeper = nullptr;
    InstanceLives* lives = nullptr;  // of instances' processes; may be null
  };

  // All must outlive the controller.
  Controller(const Options& options, TaskLoop& loop, Repository& repository,
             ExecutorProcesses& processes, Telemetry& telemetry);

  // Goes on with the sessions of an earlier torpord. Before anything else.
  void RestoreSessions();

  // --- From the sessions' streams ---
  void OnSessionMessage(const std::shared_ptr<SessionLink>& link,
                        const wire::ClientMessage& message);
  void OnSessionClosed(const std::shared_ptr<SessionLink>& link);

  // --- From the executors' streams ---
  void OnExecutorMessage(const std::shared_ptr<ExecutorChannel>& link,
                         const v1::ExecutorMessage& message);
  void OnExecutorClosed(const std::shared_ptr<ExecutorChannel>& link);

  // --- From the supervisor: before a process is started, and after it has gone ---
  void OnExecutorStarting(ExecutorSeat seat, std::uint64_t epoch);
  void OnExecutorAdopted(ExecutorSeat seat, std::uint64_t epoch, std::int64_t process);
  // `signal`: ended the process; 0 if no signal did, or nobody knows.
  void OnExecutorExited(ExecutorSeat seat, std::uint64_t epoch, int signal = 0);
  // A process that is to wait for the executor's death; OnExecutorStarting says that it takes over.
  void OnSpareStarting(GpuIndex gpu, std::uint64_t epoch);
  void OnSpareAdopted(GpuIndex gpu, std::uint64_t epoch, std::int64_t process);
  void OnSpareExited(GpuIndex gpu, std::uint64_t epoch);

  // --- As RequestBroker's functions; `request` is the caller's, unique ---
  void Acquire(RequestId request, const RequestBroker::Demand& demand,
               RequestBroker::OnGrant on_grant, RequestBroker::OnLost on_lost);
  void ConfirmLease(RequestId request, const std::function<void()>& done);
  void Save(RequestId request, const std::function<void()>& done) { requests_.Save(request, done); }
  void AskAgain(RequestId request) { requests_.AskAgain(request); }
  void Release(RequestId request, scheduler::Ending ending);

  // --- For administrators ---
  // As AdminRequests::Start.
  void Administer(const AdminRequest& request, AdminRequests::Done done);
  // As FunctionChanges::Apply.
  void Reconfigure(const Config& config, const std::map<std::string, std::string>& tokens);
  // As RequestTraces::Explain.
  absl::StatusOr<RequestTrace> Explain(const std::string& request_id) const;
  NodeSnapshot Snapshot() const;
  // Whether an executor serves and the node is not draining.
  bool IsReady() const;
  // Returns the upstreams of the function's instances that can serve; empty for unknown functions.
  std::vector<std::string> ServingUpstreams(const std::string& function);

  // --- Ends ---
  // Refuses new requests and sessions; calls `when_idle` once no request is left.
  void Drain(TaskLoop::Task when_idle);
  // Answers waiting requests, ends all sessions, tells the executors to finish. Idempotent.
  void Shutdown();
  // Before Shutdown, for a restart: cuts the sessions' streams, and leaves the sessions as they are
  // to the next torpord, if they are recorded, and so executors. Returns whether they are.
  bool LeaveSessions();

 private:
  void Apply(const scheduler::SwapIn& action) { images_.shards.Apply(action); }
  void Apply(const scheduler::SwapOut& action) { images_.shards.Apply(action); }
  void Apply(const scheduler::WriteBack& action) { images_.shards.Apply(action); }
  void Apply(const scheduler::Grant& action);
  void Apply(const scheduler::Revoke& action);
  void Apply(const scheduler::Refuse& action);
  void Apply(const scheduler::AllowGrowth& action);
  void Apply(const scheduler::RefuseGrowth& action);
  void Apply(const scheduler::WakeUp& action);
  void Apply(const scheduler::RefuseLoad& action) { admin_.OnLoadRefused(action); }
  // Lets the request run under the present lease of its instance.
  void JoinLease(const scheduler::Grant& action);

  void Handle(const SessionPtr& session, const wire::Hello& hello);
  void Handle(const SessionPtr& session, const wire::DeviceHello& hello);
  void Handle(const SessionPtr& session, const wire::Inquiry& inquiry);
  void Handle(const SessionPtr& session, const wire::Resume& resume);
  void Handle(const SessionPtr& session, const wire::HelloAck& ack);
  void Handle(const SessionPtr& session, const wire::LeaseRequest& request);
  void Handle(const SessionPtr& session, const wire::LeaseAck& ack);
  void Handle(const SessionPtr& session, const wire::LeaseReturned& returned);
  void Handle(const SessionPtr& session, const wire::Malloc& call);
  void Handle(const SessionPtr& session, const wire::Free& call);
  void Handle(const SessionPtr& session, const wire::HostAlloc& call);
  void Handle(const SessionPtr& session, const wire::HostFree& call);
  void Handle(const SessionPtr& session, const wire::MemGetInfo& call);
  void Handle(const SessionPtr& session, const wire::ShareMemory& call);
  void Handle(const SessionPtr& session, const wire::OpenMemory& call);
  void Handle(const SessionPtr& session, const wire::CloseMemory& call);
  void Handle(const SessionPtr& session, const wire::ReplayFailed& failed);
  void Handle(const SessionPtr& session, const wire::SaveMemoryReply& reply);

  void LoseExecutor(ExecutorSeat seat, const std::string& why);
  // The session's memory can be had no more.
  void LoseMemory(const SessionPtr& session, const std::string& why);
  void BeginWatching();
  // Runs once a second: kills executors that hang, accounts for host memory, gives freed pages
  // back.
  void Watch();
  void AccountHostMemory(Duration passed);

  const Config config_;
  TaskLoop& loop_;
  Telemetry& telemetry_;
  SessionLog* const session_log_;
  SessionKeeper* const session_keeper_;
  SessionJournal journal_;
  SchedulerFeed feed_;
  NodeTables tables_;
  DomainSeats seats_;
  InstanceHealth health_;
  FunctionStrikes strikes_;
  PlacementLog placements_;
  HostServices host_;
  ImageServices images_;
  MemoryServices memory_;
  SessionStorage storage_;
  ImplicitRequests implicit_;
  LeaseService leases_;
  SessionSaves saves_;
  RequestTraces traces_;
  Requests requests_;
  AdminRequests admin_;
  BrokenInstances broken_;
  SessionOpening opening_;
  SessionClosing closing_;
  SessionResuming resuming_;
  SessionRestoring restoring_;
  ExecutorRecovery recovery_;
  ExecutorLosses losses_;
  FunctionChanges functions_;
  NodeSnapshots snapshots_;
  enum class Phase { kIdle, kWatching, kShutDown } phase_ = Phase::kIdle;
  bool has_left_sessions_ = false;
};

}  // namespace torpor::server
