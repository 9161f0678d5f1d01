#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/isolation_domains.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Gives isolation domains executors of their own. A domain gets a seat on each GPU when its first
// session opens, as long as a GPU has seats, and keeps it. Beyond that, a domain that needs a GPU
// takes the seat of the domain that has not used the GPU for the longest time: the images of that
// domain leave, its process ends, and the next one, or the spare, serves the other domain. No
// process ever serves two domains. On the controller's thread.
class DomainSeats {
 public:
  // Cancelled: the GPU is down, as the scheduler knows.
  using Then = std::function<void(const absl::Status&)>;
  // Tells an attached executor, just assigned, of its domain's sessions; then the executor is
  // ready.
  using Tell = std::function<void(GpuExecutor&)>;

  // `per_gpu`: the maximum of seats. The references must outlive the object.
  DomainSeats(int per_gpu, const IsolationDomains& domains, ExecutorTable& executors,
              ExecutorProcesses& processes, InstanceTable& instances, const SessionTable& sessions,
              EventSink& events, TaskLoop& loop, Tell tell)
      : per_gpu_(static_cast<std::size_t>(per_gpu)),
        domains_(domains),
        executors_(executors),
        processes_(processes),
        instances_(instances),
        sessions_(sessions),
        events_(events),
        loop_(loop),
        tell_(std::move(tell)) {}

  // A session of the domain opens: gives the domain seats where some are free.
  void StartAhead(DomainId domain);
  // Calls `then` once the domain's executor on the GPU is ready, at once if it is. DeadlineExceeded
  // if it does not become ready in time.
  void Ensure(ExecutorKey key, const Then& then);

  // Returns whether the executor is ready. If not, has it started, and tells the scheduler that the
  // domain's instances cannot have the GPU until then: a GPU is not held for a process's start.
  bool Require(ExecutorKey key);
  // The sessions have a lease on the GPU.
  void NoteUse(const std::vector<SessionPtr>& sessions, GpuIndex gpu);

  // An executor has learned of its domain's sessions, or has no domain yet.
  void OnReady(GpuExecutor& executor);
  // An image has left the GPU.
  void OnImageLeft(GpuIndex gpu) { LeaveIfEmpty(gpu); }
  // The GPU has no executor any more.
  void OnGpuDown(GpuIndex gpu);
  // To be called once a second: looks again at whoever waits. A domain stays if nobody waits for
  // its seat any more.
  void Look();

  // Returns the instances with sessions of the domain.
  std::set<InstanceId> InstancesOf(DomainId domain) const;
  // Whether the domain is about to lose its seat on the GPU.
  bool IsLeaving(const GpuExecutor& executor) const;

 private:
  struct Waiting {
    ExecutorKey key;
    TimePoint until;
    Then then;
  };

  bool IsReady(ExecutorKey key) const;
  bool IsWaitedFor(ExecutorKey key) const;
  // Tells the scheduler that the domain's instances may have the GPU.
  void TellServed(ExecutorKey key);
  // Returns the first domain that waits for a seat on the GPU.
  std::optional<DomainId> DomainWaitingAt(GpuIndex gpu) const;
  // The same, or a domain with sessions that has no seat there.
  std::optional<DomainId> DomainInNeed(GpuIndex gpu) const;
  // Gives the domain a seat that no domain has; false if there is none.
  bool TakeFreeSeat(ExecutorKey key);
  void Give(GpuExecutor& executor, DomainId domain);
  // Makes the domain that has not used the GPU for longest leave to `next`, unless one leaves
  // already.
  void Vacate(ExecutorKey next);
  GpuExecutor* LeastUsed(GpuIndex gpu);
  bool IsInUse(ExecutorKey key) const;
  bool HasImages(ExecutorKey key) const;
  void AskImagesToLeave(ExecutorKey key);
  void LeaveIfEmpty(GpuIndex gpu);
  // The process at the seat has ended, or has never served: the seat is the next domain's.
  void PassOn(ExecutorSeat seat);
  // Gives seats to all who wait for some on the GPU.
  void Serve(GpuIndex gpu);
  // Takes out who waits, and matches, and answers them.
  void Answer(const std::function<bool(const Waiting&)>& matches, const absl::Status& status);

  struct Leaving {
    ExecutorSeat seat;
    DomainId next;           // if nobody waits any more
    bool is_ending = false;  // the process is being ended
  };

  const std::size_t per_gpu_;
  const IsolationDomains& domains_;
  ExecutorTable& executors_;
  ExecutorProcesses& processes_;
  InstanceTable& instances_;
  const SessionTable& sessions_;
  EventSink& events_;
  TaskLoop& loop_;
  const Tell tell_;
  std::vector<Waiting> waiting_;  // in order
  std::map<ExecutorKey, TimePoint> last_used_;
  std::map<GpuIndex, Leaving> leaving_;
};

}  // namespace torpor::server
