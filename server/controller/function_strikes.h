#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_journal.h"
#include "server/controller/model/task_loop.h"
#include "server/controller/model/telemetry.h"

namespace torpor::server {

// Whether the CUDA error, one that ends a context, comes from a function's own code. Memory errors
// of the GPU and failing links do not.
bool IsFunctionsFault(std::int32_t cuda_error);

// Why the function gets no GPU now, for requests: PermissionDenied with RetryAfterSeconds. Nullopt
// if it may have one.
std::optional<absl::Status> WhyRefused(const RegisteredFunction& function, TimePoint now);

// Finds functions that end executors, which costs all others on the GPU, and takes the GPUs away
// from them for a while (StrikeRecord). An executor that was killed from outside is nobody's fault.
// On the controller's thread.
class FunctionStrikes {
 public:
  // Fails the function's requests that wait.
  using OnStruck = std::function<void(const RegisteredFunction&, const absl::Status&)>;

  // The references must outlive the object.
  FunctionStrikes(InstanceTable& instances, SessionJournal& journal, TaskLoop& loop,
                  Telemetry& telemetry, OnStruck on_struck)
      : instances_(instances),
        journal_(journal),
        loop_(loop),
        telemetry_(telemetry),
        on_struck_(std::move(on_struck)) {}

  // Goes on with the strikes that an earlier torpord has recorded.
  void Restore(const LoggedSessions& logged);
  // The session's work has ended the context, with this cudaError_t.
  void OnContextLost(const ClientSession& session, std::int32_t cuda_error,
                     const std::string& what);
  // The session's work on the GPU does not end, and the executor is killed for that.
  void OnEndless(const ClientSession& session);
  // The executor is lost, whose GPU these instances have.
  void OnExecutorLost(std::uint64_t epoch, std::vector<InstanceId> holders);
  // The process was ended by a signal, or exited (0).
  void OnExecutorExited(GpuIndex gpu, std::uint64_t epoch, int signal);

 private:
  void Strike(RegisteredFunction& function, StrikeCause cause, const std::string& why);
  // Tells what follows from the last strike.
  void Tell(const RegisteredFunction& function, StrikeCause cause, const std::string& why);

  InstanceTable& instances_;
  SessionJournal& journal_;
  TaskLoop& loop_;
  Telemetry& telemetry_;
  const OnStruck on_struck_;
  // Who had the GPU of an executor that was lost, by the process's epoch, until its exit is known.
  std::map<std::uint64_t, std::vector<InstanceId>> holders_;
};

}  // namespace torpor::server
