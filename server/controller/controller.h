#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "server/config/config.h"
#include "server/config/settings.h"
#include "server/controller/executor.h"
#include "server/controller/executor_killer.h"
#include "server/controller/hint.h"
#include "server/controller/lease.h"
#include "server/controller/node_snapshot.h"
#include "server/controller/request_broker.h"
#include "server/controller/request_history.h"
#include "server/controller/session.h"
#include "server/controller/task_loop.h"
#include "server/controller/telemetry.h"
#include "server/links/links.h"
#include "server/repository/repository.h"
#include "server/repository/session_addresses.h"

namespace torpor::server {

// The node's global view: sessions, executors, leases, requests. Feeds the scheduler and carries
// out what it decides. Everything runs on the loop's thread; nothing blocks.
class Controller {
 public:
  struct Options {
    Config config;
    std::map<std::string, std::string> tokens;  // function -> secret
    std::vector<GpuIndex> gpus;
    std::string descriptor_socket;
    // Gets what the scheduler is told and decides; null: nothing does.
    std::function<void(TimePoint, const scheduler::Event&, const scheduler::Actions&)> record;
    Duration hello_timeout{std::chrono::seconds(30)};  // a session waits for the first executor
  };

  // All must outlive the controller.
  Controller(Options options, TaskLoop& loop, Repository& repository, ExecutorKiller& killer,
             Telemetry& telemetry);
  ~Controller();

  // From the sessions' streams.
  void OnSessionMessage(const std::shared_ptr<SessionLink>& link, wire::ClientMessage message);
  void OnSessionClosed(const std::shared_ptr<SessionLink>& link);

  // From the executors' streams.
  void OnExecutorMessage(const std::shared_ptr<ExecutorLink>& link,
                         const v1::ExecutorMessage& message);
  void OnExecutorClosed(const std::shared_ptr<ExecutorLink>& link);

  // From the supervisor: before a process is started, and after it has gone.
  void OnExecutorStarting(GpuIndex gpu, std::uint64_t epoch);
  void OnExecutorExited(GpuIndex gpu, std::uint64_t epoch);

  // As RequestBroker's functions; `request` is the caller's, unique.
  void Acquire(RequestId request, const RequestBroker::Demand& demand,
               RequestBroker::OnGrant on_grant, RequestBroker::OnLost on_lost);
  void ConfirmLease(RequestId request, const std::function<void()>& done);
  void Release(RequestId request, scheduler::Ending ending);

  // `done` gets the outcome, exactly once: OK when it is as asked for; NotFound, InvalidArgument,
  // FailedPrecondition: why it cannot be; DeadlineExceeded: not yet, and only a load is still
  // tried.
  void Advise(const Hint& hint, std::function<void(absl::Status)> done);

  // Until the daemon ends. NotFound, InvalidArgument; then nothing is changed.
  absl::Status Change(const std::string& function, std::span<const SettingText> changes);

  // How a request came to run where it did, by its caller's name: one that is not over, or of the
  // last ones that are. NotFound.
  absl::StatusOr<RequestStory> Explain(const std::string& request_id) const;

  NodeSnapshot Snapshot() const;
  bool IsReady() const;

  // Refuses new requests and sessions; `when_idle` is called once no request is left.
  void Drain(TaskLoop::Task when_idle);
  // Answers whoever waits, ends all sessions, tells the executors to finish.
  void Shutdown();

 private:
  struct Instance {
    InstanceId id;
    // How the scheduler knows its image on each of its devices; the first is `id`.
    std::vector<InstanceId> parts;
    FunctionConfig config;
    // As which its devices are described, to all its programs alike: the first that were ready.
    std::vector<GpuIndex> described_as;
    std::set<SessionId> sessions;  // all that are not gone altogether, those that close included
    // Its processes share memory: all of them must be on the GPU for one to run.
    bool is_sharing = false;
    std::optional<Lease> lease;
    Placement placement;  // of the GPU that it was given last
    std::uint64_t requests = 0;
    std::uint64_t errors = 0;
    std::uint64_t swaps_in = 0;
    double gpu_seconds = 0;
    double host_byte_seconds = 0;
  };

  struct Request {
    enum class State { kQueued, kLeased, kRunning };  // by the scheduler; by the caller too
    InstanceId instance;
    State state = State::kQueued;
    TimePoint arrival;
    RequestStory story;
    TimePoint give_up;
    RequestBroker::OnGrant on_grant;
    RequestBroker::OnLost on_lost;
    LeaseId lost_lease;  // under which it ran when the executor died
    std::vector<SessionId> lost_sessions;
  };

  using SessionPtr = std::shared_ptr<Session>;

  // An allocation that has its address, but not its memory yet.
  struct Allocation {
    SessionPtr session;
    std::uint64_t request = 0;
    memory::Block block;
    StepQueue::Finish finish;
  };

  // controller.cc: between the scheduler and the rest.
  void Feed(const scheduler::Event& event);
  void NotePlacements();
  // Of a tenancy that ends with the event: the same instance may have the GPUs again at once, by
  // a placement of its own.
  void ForgetOccupants(const scheduler::Event& event);
  // What the placements of those who wait for room or their images have led to.
  void NoteDecisions(const scheduler::Actions& decided);
  std::vector<Placement::Neighbour> LoadingNear(GpuIndex gpu) const;
  // A function has one instance.
  static scheduler::FunctionId FunctionOf(const Instance& instance);
  // None where the configuration has no tenant of this name.
  scheduler::TenantId TenantOf(const std::string& name) const;
  // Tells what of its configuration matters to the scheduler.
  void FeedFunction(const Instance& instance);
  void Obey(const scheduler::SwapIn& action);
  void Obey(const scheduler::SwapOut& action);
  void Obey(const scheduler::WriteBack& action);
  void Obey(const scheduler::Grant& action);
  void Obey(const scheduler::Revoke& action);
  void Obey(const scheduler::Refuse& action);
  void Obey(const scheduler::AllowGrowth& action);
  void Obey(const scheduler::RefuseGrowth& action);
  void Obey(const scheduler::WakeUp& action);
  void Obey(const scheduler::RefuseLoad& action);
  // Tells the scheduler, called as often as `sessions` says, that nothing is there any more.
  Executor::OnDone WhenLeft(InstanceId part, GpuIndex gpu, std::size_t sessions);
  // A part of an instance, by the scheduler's name for it.
  struct Part {
    Instance* instance = nullptr;
    int device_index = 0;
  };
  Part PartOf(InstanceId part);
  InstanceId PartOf(const Session& session) const;
  Instance* InstanceOf(const std::string& function);
  SessionPtr FindSession(SessionId id) const;
  std::vector<SessionPtr> SessionsOf(const Instance& instance) const;
  std::vector<SessionPtr> SessionsOf(const Part& part) const;
  std::vector<SessionPtr> AbleSessionsOf(const Instance& instance) const;

  // controller_sessions.cc: a session's life.
  void Handle(const SessionPtr& session, const wire::Hello& hello);
  void Handle(const SessionPtr& session, const wire::DeviceHello& hello);
  void Handle(const SessionPtr& session, const wire::Inquiry& inquiry);
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
  // `further`: null for a process's first session.
  void Greet(const SessionPtr& session, const wire::Hello& hello, const wire::DeviceHello* further);
  Instance* InstanceForToken(const std::string& token);
  // Makes it a member of the family that it names; why that cannot be, else.
  absl::Status JoinFamily(Session& session, const wire::DeviceHello& hello);
  void Refuse(const SessionPtr& session, std::int32_t error, const std::string& message);
  void OpenWaitingSessions();
  void Open(const SessionPtr& session);
  void AnswerInquiry(const SessionPtr& session);
  absl::Status CreateMemory(Session& session, const Instance& instance);
  void ReleaseAddresses(const Session& session);
  void OfferHello(const SessionPtr& session);
  void CloseSession(const SessionPtr& session, const std::string& reason);
  // The last steps: executors let go of it, and it is forgotten.
  void FinishClosing(const SessionPtr& session, const StepQueue::Finish& finish);
  // `then` comes when no executor holds anything of it any more.
  void CloseOnExecutors(const SessionPtr& session, const TaskLoop::Task& then);
  void ForgetSession(const SessionPtr& session);
  v1::DaemonMessage OpenSessionMessage(const Session& session) const;
  // Settles as which its devices are described. False: too few GPUs have been ready so far.
  bool SettleDescription(Instance& instance) const;
  std::vector<wire::DeviceDescription> DescribeDevices(const Instance& instance) const;

  // controller_families.cc: sessions of one process, for several devices.
  std::vector<SessionPtr> FamilyOf(const Session& session) const;
  // Whether devices of this node reach each other's memory.
  bool HasPeerAccess() const;
  // The sessions whose memory this one may use: its family, and all of a function that shares
  // memory among its processes.
  std::vector<SessionPtr> PeersOf(const Session& session) const;
  // Sends `message`, whose map_peer is filled in here, to the executor of `gpu`.
  void MapPeer(const Session& session, GpuIndex gpu, bool nothing, const Executor::OnDone& then);
  // The image has become resident: its peers reach it, and it them. `then` gets the first failure.
  void ShareWithPeers(const SessionPtr& session, const std::function<void(absl::Status)>& then);
  // The image has grown: those that reach it reach all of it.
  void UpdatePeers(const SessionPtr& session, const std::function<void(absl::Status)>& then);
  // The image is about to lose chunks: with `nothing` all, else those that are live no more. An
  // executor that does not let go of them is ended first.
  void WithdrawFromPeers(const SessionPtr& session, bool nothing, const TaskLoop::Task& then);
  // What it has mapped of its peers there, which it leaves.
  void ForgetPeersAt(const SessionPtr& session, GpuIndex gpu, const TaskLoop::Task& then);
  // The executor on which the image was has died; what others keep of it holds the GPU's memory.
  void ReleasePeersOf(const SessionPtr& session);
  // Ends the work of all the family, which may use the memory of each; of a lone session only if
  // others have its memory open.
  void QuiesceFamily(const SessionPtr& session, const TaskLoop::Task& then);
  // Brings it and every peer to its GPU.
  void SwapInPeers(const SessionPtr& session, const Lease& lease, const TaskLoop::Task& then);

  // controller_shared_memory.cc: what processes of a function have open of each other.
  // The block that `call` names, with its session; nothing if `session` may not open it.
  struct Shared {
    SessionPtr owner;
    Bytes offset = 0;
  };
  std::optional<Shared> FindShared(const Session& session, const wire::OpenMemory& call) const;
  // `then`: the peers' GPUs reach the owner's image, if the function has a lease.
  void MakeReachable(const SessionPtr& owner, const std::function<void(absl::Status)>& then);
  static bool IsOpenedByOthers(const Session& session);
  // What its owner's freeing of a block leads to: as long as others have it open it stays.
  enum class FreeTime { kNow, kWhenClosed, kFreedAlready };
  static FreeTime NoteFree(Session& session, Bytes offset);
  // `opener` closes the block.
  void CloseShared(SessionId owner, Bytes offset, SessionId opener);
  void CloseAllShared(Session& opener);
  // The sessions whose memory the process of `session` has open.
  std::vector<SessionPtr> OwnersOpenedBy(const Session& session) const;

  // controller_memory.cc
  Bytes MemoryLimit(const Instance& instance) const;
  // Of all processes together, on one of its devices.
  Bytes LiveBytes(const Instance& instance, int device_index) const;
  Bytes FreeBytes(const Instance& instance, int device_index) const;
  void MallocNow(const SessionPtr& session, const wire::Malloc& call,
                 const StepQueue::Finish& finish);
  void Grow(const Allocation& what);
  // `uncharged`: what the scheduler has not set aside of it.
  void UndoMalloc(const Allocation& what, Bytes uncharged, const std::string& message);
  static Bytes FreeBlock(Session& session, Bytes offset);
  // `then` gets whether there is a block there.
  void FreeNow(const SessionPtr& session, Bytes offset, const std::function<void(bool)>& then);
  // `emptied`: the chunks of the image in which `block` was the last.
  void DiscardImage(const SessionPtr& session, memory::Block block, memory::Block emptied,
                    const TaskLoop::Task& then);
  // Makes `block` read as zero; gives `unused`, which nobody keeps pages of, back to the system.
  void Discard(const SessionPtr& session, wire::SharedMemory what, memory::Block block,
               memory::Block unused, TaskLoop::Task then);
  void HostAllocNow(const SessionPtr& session, const wire::HostAlloc& call,
                    const StepQueue::Finish& finish);
  void HostFreeNow(const SessionPtr& session, const wire::HostFree& call,
                   const StepQueue::Finish& finish);
  static void Reply(Session& session, std::uint64_t request, std::int32_t error,
                    const std::string& message, std::uint64_t address);
  // A step that is only for the executor that the GPU has now, not for its successors.
  void AddSwap(const SessionPtr& session, GpuIndex gpu, const Executor::OnDone& then,
               const StepQueue::Step& swap);
  // Nothing to do, and no error, where the image is or is not there already.
  void SwapInSession(const SessionPtr& session, GpuIndex gpu, const Executor::OnDone& then);
  void OnSwapInComplete(const Executor& executor, const v1::ExecutorMessage::SwapInComplete& what);
  static void LearnFromSwapOut(Session& session, const v1::Learned& learned);
  // Nothing is copied to a GPU any more.
  void OnArrived(Session& session);
  // Tells the scheduler if it waits for that: all of the image is on the GPU.
  void NoteArrival(InstanceId part, GpuIndex gpu);
  // Whether the image leaves the GPU follows from why it is written back.
  void SwapOutSession(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
                      const Executor::OnDone& then);
  // The rest of a step; without `drop` the image stays, if only to be copied from.
  void WriteBack(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason, bool drop,
                 const Executor::OnDone& then, const StepQueue::Finish& finish);
  // All that it has changed until now has been written back.
  static void OnSaved(Session& session, LeaseId unsaved_before);
  // A session of which a part can be written back now; null if nothing of them needs to be.
  SessionPtr UnsavedSessionOf(const Part& part, GpuIndex gpu) const;
  // The rest of the step in which the image leaves.
  void Leave(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
             const Executor::OnDone& then, const StepQueue::Finish& finish);

  // controller_moves.cc: from one GPU to another, over a fast link between them.
  // `arrived`: as of SwapInSession; then `left`: nothing of it is at `from` any more.
  void MoveSession(const SessionPtr& session, GpuIndex from, GpuIndex to,
                   const Executor::OnDone& arrived, const Executor::OnDone& left);
  // Makes the image there a source, if it is there; if it cannot be one it leaves.
  void PrepareSource(const SessionPtr& session, GpuIndex gpu);
  void LeaveSource(const SessionPtr& session, GpuIndex from, GpuIndex to,
                   const Executor::OnDone& left);
  // All has arrived: the source is dropped once `to` has let go of it.
  void ReleaseSource(const SessionPtr& session, GpuIndex from, GpuIndex to,
                     const Executor::OnDone& left);
  void DropSource(const SessionPtr& session, GpuIndex gpu, const Executor::OnDone& left);
  std::vector<GpuIndex> ImageSourcesOf(const Executor& executor) const;

  // controller_leases.cc
  void AddMember(Instance& instance, const SessionPtr& session);
  // Whether its image, and what it has open of others, is where the lease is.
  bool HasItsMemory(const Session& session, const Lease& lease) const;
  void PrepareMember(const SessionPtr& session, LeaseId lease, GpuIndex gpu,
                     const StepQueue::Finish& finish);
  void OfferLease(const SessionPtr& session, Lease& lease);
  // The session's image may be changed under the lease.
  static void NoteChanges(Session& session, const Lease& lease);
  void RevokeMember(const SessionPtr& session, Lease& lease);
  // In which order it has used the session's memory.
  void LearnFromLease(Session& session, LeaseId id, const OperationResult& result);
  void CloseUnless(SessionId session, LeaseId lease, MemberState passed, const char* reason);
  void EndMember(const SessionPtr& session, LeaseId lease);
  void EndLease(Instance& instance);
  // The lease's executor has died. Requests whose caller does not run yet are `requeued`.
  void LoseLease(Instance& instance, std::vector<RequestId>& requeued);
  // A member whose own executor lives has its lease ended there.
  void EndLeaseOnSurvivors(const Instance& instance, const Lease& lease);
  bool LosesState(const Session& session) const;
  // Whether what was not written back of it need not be when it leaves its GPU.
  bool ForgetsChanges(const Session& session) const;
  void LoseMember(const SessionPtr& session, MemberState state, const Lease& lease);
  void AccountLease(Instance& instance, const Lease& lease);
  static GpuIndex GpuOf(const Lease& lease, const Session& session);
  void RequestImplicitLease(const SessionPtr& session);
  void WithdrawImplicitRequest(Session& session);
  // A session whose wish for a lease was not met by the one that has ended.
  void RequestLeaseAgain(const SessionPtr& session);
  // The client's calls wait for a lease that it will never get; an error ends the wait.
  void DenyLease(const SessionPtr& session, const std::string& why);
  // Tells the session of an error that it never recovers from. It is left out of leases and swaps
  // from now on; its process may still serve what needs no GPU.
  void LoseSession(const SessionPtr& session, const wire::LeaseLost& lost);
  // The instance's lease, if it is this one.
  Lease* LeaseOf(const Session& session, LeaseId lease);

  // controller_executors.cc
  Executor* ExecutorOf(GpuIndex gpu);
  // Sends to one executor; to those of some, or of all, that are attached, when `then` gets the
  // first failure.
  void Run(GpuIndex gpu, v1::DaemonMessage operation, Executor::OnDone done);
  void RunOn(const std::set<GpuIndex>& gpus, const v1::DaemonMessage& operation,
             std::function<void(absl::Status)> then);
  void RunOnAll(const v1::DaemonMessage& operation, std::function<void(absl::Status)> then);
  void OnRegister(const std::shared_ptr<ExecutorLink>& link,
                  const v1::ExecutorMessage::Register& what);
  void Recover(Executor& executor);
  void OnRecovered(Executor& executor);
  void OnContextLost(Executor& executor, const v1::ExecutorMessage::ContextLost& what);
  void LoseExecutor(Executor& executor, const std::string& why);
  void LoseResidents(GpuIndex gpu);
  void Requeue(RequestId request);
  void Watch();  // once a second
  void AccountHostMemory(Duration passed);
  // Ends the executor's process, which is lost a little later.
  void Condemn(Executor& executor, const std::string& why);
  Bytes LargestPool() const;
  Bytes ChunkBytes() const { return options_.config.device.chunk_bytes; }

  // controller_requests.cc
  void FlushGrants(Instance& instance);
  void FailRequest(RequestId request, const absl::Status& status);
  // `why`: it was not answered.
  void FinishRequest(RequestId request, scheduler::Ending ending, const std::string& why);
  void CheckIdle();
  bool IsAnyReady() const;  // of the executors

  // controller_stories.cc: what is told of requests afterwards.
  // What has kept the request from a GPU, until that was decided or now.
  void NoteDelay(RequestId id, Request& request) const;
  Duration WaitForOwnLease(const Request& request, const scheduler::Wait& wait,
                           TimePoint until) const;
  // Who had GPUs first.
  void AddOthers(RequestStory& story) const;

  // controller_hints.cc: an administrator's hints.
  // Nothing as long as it has not come to an end.
  using HintOutcome = std::function<std::optional<absl::Status>()>;
  struct PendingHint {
    TimePoint give_up;
    std::function<std::string()> late;  // what is said then
    HintOutcome outcome;
    std::function<void(absl::Status)> done;
  };
  // A lease that is ending already is waited for: a request's answer comes before its end.
  HintOutcome FollowAfterRevoked(const Hint& hint, InstanceId id);
  absl::StatusOr<HintOutcome> Follow(const Hint& hint, const Instance& instance);
  absl::StatusOr<HintOutcome> FollowLoad(const Instance& instance, std::optional<GpuIndex> gpu);
  absl::StatusOr<HintOutcome> FollowEvict(const Instance& instance);
  // Why it was not loaded.
  absl::Status LoadFailure(const Instance& instance, std::optional<GpuIndex> gpu) const;
  // Who is in the way of a load that waits.
  std::string WhatRuns(std::optional<GpuIndex> gpu) const;
  HintOutcome FollowCheckpoint(InstanceId id);
  void AnswerHints();

  // controller_snapshot.cc
  GpuSnapshot SnapshotOf(const Executor& executor) const;
  FunctionSnapshot SnapshotOf(const Instance& instance) const;
  ObjectiveSnapshot ObjectiveOf(const Instance& instance) const;

  const Options options_;
  TaskLoop& loop_;
  Repository& repository_;
  ExecutorKiller& killer_;
  Telemetry& telemetry_;
  scheduler::Scheduler scheduler_;
  std::deque<scheduler::Action> actions_;
  bool is_acting_ = false;

  SessionAddresses addresses_;
  std::map<GpuIndex, Executor> executors_;
  std::map<const ExecutorLink*, GpuIndex> executor_links_;
  std::map<InstanceId, Instance> instances_;
  std::map<InstanceId, InstanceId> parts_;  // the instance of each part
  std::map<SessionId, SessionPtr> sessions_;
  std::map<const SessionLink*, SessionPtr> session_links_;
  std::map<RequestId, Request> requests_;
  RequestHistory history_;
  std::map<RequestId, SessionId> implicit_requests_;
  std::map<scheduler::GrowthId, std::function<void(bool is_allowed)>> growths_;
  std::vector<PendingHint> hints_;
  std::map<InstanceId, scheduler::LoadRefusal> load_refusals_;  // the last one's reason
  std::map<GpuIndex, InstanceId> occupants_;  // parts of instances, as far as that is noted
  std::map<GpuIndex, double> busy_seconds_;

  std::uint64_t next_session_ = 1;
  std::uint64_t next_lease_ = 1;
  std::uint64_t next_growth_ = 1;
  // Requests of the router count from 1, ours from above any of theirs.
  std::uint64_t next_implicit_request_ = std::uint64_t{1} << 63;
  std::uint64_t swaps_in_ = 0;
  std::uint64_t swaps_out_ = 0;
  bool is_draining_ = false;
  bool is_shut_down_ = false;
  bool is_watching_ = false;
  TaskLoop::Task when_idle_;
};

}  // namespace torpor::server
