#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/scheduler.h"
#include "server/controller/admin_request.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/session_saves.h"

namespace torpor::server {

// Carries out administrators' requests (load, evict, pin, checkpoint) and answers when the outcome
// is certain. On the controller's thread.
class AdminRequests {
 public:
  using Done = std::function<void(absl::Status)>;

  // The arguments must outlive the object.
  AdminRequests(InstanceTable& instances, const SessionTable& sessions,
                const ExecutorTable& executors, SessionSaves& saves,
                const scheduler::Scheduler& scheduler, EventSink& events, TaskLoop& loop)
      : instances_(instances),
        sessions_(sessions),
        executors_(executors),
        saves_(saves),
        scheduler_(scheduler),
        events_(events),
        loop_(loop) {}

  // Calls `done` exactly once: OK on success; NotFound, InvalidArgument, FailedPrecondition if
  // impossible; Aborted if an executor died; DeadlineExceeded after half a minute (a load is still
  // tried); Unavailable if the node shuts down.
  void Start(const AdminRequest& request, Done done);
  // The scheduler has refused a load.
  void OnLoadRefused(const scheduler::RefuseLoad& action);
  // Answers requests whose outcome is certain by now. Call after any change that could matter.
  void Check();
  // Answers pending requests about an instance that is removed.
  void Abandon(const FunctionInstance& instance);
  // Answers all pending and later requests.
  void Shutdown();

 private:
  // Returns nullopt while the request is pending.
  using Outcome = std::function<std::optional<absl::Status>()>;
  struct Pending {
    InstanceId instance;
    TimePoint give_up;
    std::function<std::string()> late;  // the message of DeadlineExceeded
    Outcome outcome;
    Done done;
  };

  void StartOn(const FunctionInstance& instance, const AdminRequest& request, Done done);
  // Begins the request once no lease is ending: the router's answer precedes the lease's end.
  Outcome BeginAfterRevoked(const AdminRequest& request, InstanceId id);
  absl::StatusOr<Outcome> Begin(const AdminRequest& request, const FunctionInstance& instance);
  absl::StatusOr<Outcome> BeginLoad(const FunctionInstance& instance, std::optional<GpuIndex> gpu);
  absl::Status CheckLoad(const FunctionInstance& instance, std::optional<GpuIndex> gpu) const;
  std::optional<absl::Status> OutcomeOfLoad(const FunctionInstance& instance,
                                            std::optional<GpuIndex> gpu) const;
  absl::StatusOr<Outcome> BeginEviction(const FunctionInstance& instance);
  Outcome BeginCheckpoint(InstanceId id);
  void Checkpoint(const FunctionInstance& instance, const Done& then);
  // Why the image was not loaded.
  absl::Status LoadFailure(const FunctionInstance& instance, std::optional<GpuIndex> gpu) const;
  // Names the functions that hold GPUs wanted by a waiting load.
  std::string WhatRuns(std::optional<GpuIndex> gpu) const;

  InstanceTable& instances_;
  const SessionTable& sessions_;
  const ExecutorTable& executors_;
  SessionSaves& saves_;
  const scheduler::Scheduler& scheduler_;
  EventSink& events_;
  TaskLoop& loop_;
  std::vector<Pending> pending_;
  std::map<InstanceId, scheduler::LoadRefusal> load_refusals_;  // the last reason for each
  bool is_shut_down_ = false;
};

}  // namespace torpor::server
