#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/setup.h"
#include "tests/scheduler/checked_queue.h"

namespace torpor::scheduler {

// A node that obeys the scheduler, in an order chosen by a test or fuzzer, and checks the
// scheduler's promises.
class SchedulerWorld {
 public:
  using Choose = std::function<std::uint32_t()>;

  struct Shape {
    std::string setup = "torpor";
    int gpus = 2;
    Bytes gpu_bytes = 40;
    int instances = 4;            // where there are several GPUs, one of them needs two at a time
    bool keeps_replicas = false;  // of the other instances
    std::string* log = nullptr;   // gets the event log
  };

  // `choose` gives any numbers; they decide what happens next.
  SchedulerWorld(Shape shape, Choose choose);

  // One event of the outside. Empty if all is well, else what the scheduler did wrong.
  std::string Step();

  // No further arrivals, and nobody gives up: does what the scheduler asks for, all of it every
  // turn, and answers what runs. Implicit leases end only where that is asked for. Fails unless
  // every request and growth is answered within a bound (docs/scheduling.md, Bounds).
  std::string Finish();

  std::uint64_t grants() const { return grants_; }

 private:
  struct Lease {
    std::set<GpuIndex> gpus;
    bool is_implicit = false;
    bool is_revoked = false;
    std::set<RequestId> requests;
  };
  struct Request {
    InstanceId instance;  // that was granted it, once one was
    bool is_implicit = false;
    TimePoint arrival;
  };
  struct Image {
    Bytes bytes = 0;
    enum { kComing, kPresent, kLeaving } state = kComing;
  };
  using Place = std::pair<InstanceId, GpuIndex>;

  static Policies PoliciesOf(const Shape& shape, const CheckedQueue::OnFault& on_fault);
  void AddInstance(int number);
  ExecutorUp Up(GpuIndex gpu) const;
  void Tell(const Event& event);
  void Apply(const SwapIn& action);
  void Apply(const SwapOut& action);
  void Apply(const WriteBack& action);
  void Apply(const Grant& action);
  void Apply(const Revoke& action);
  void Apply(const Refuse& action);
  void Apply(const AllowGrowth& action);
  void Apply(const RefuseGrowth& action);
  void Apply(const WakeUp& action);
  void Apply(const RefuseLoad& action);
  void Fail(const std::string& what);
  void CheckCapacity();
  // Whether the scheduler's books are ours.
  void CheckAccounts();
  void CheckAccounts(const Gpu& gpu);
  void CheckWaiting();

  void Arrive();
  void EndSomeRequest();
  void EndRequest(RequestId request, Ending ending);
  void EndSomeLease();
  void EndLease(InstanceId instance);
  // Loses all requests of a lease that ended before them.
  void Lose(const Lease& lease);
  void EndSomeLostRequest();
  void Requeue(RequestId request);
  void GrowOrShrink();
  void SendSomeAdminRequest();
  void ChangeSomeFunction();
  std::vector<Place> MovingImages() const;
  void CompleteSomeSwap();
  void CompleteSwap(const Place& place, bool is_ok);
  void CompleteSomeWriteBack();
  void CompleteWriteBack(const Place& place, bool is_clean);
  // All that is outstanding now.
  void CompleteEverything();
  void BreakOrMendSomeGpu();
  // An instance's executor on a GPU dies, beside others there.
  void LoseSomeDomain();
  void ServeFirstUnserved();
  // The GPU begins anew: whoever was not served may be.
  void Forget(GpuIndex gpu);
  GpuIndex SomeGpu();
  InstanceId SomeLead();
  std::uint32_t Below(std::size_t bound) {
    return static_cast<std::uint32_t>(choose_() % static_cast<std::uint32_t>(bound));
  }

  const Shape shape_;
  Choose choose_;
  const bool keeps_replicas_;  // where instances are not bound
  Scheduler scheduler_;
  TimePoint now_{};
  std::vector<InstanceId> instances_;
  std::vector<InstanceId> shards_;         // they and the secondary shard
  std::map<InstanceId, InstanceId> lead_;  // by shard
  std::map<InstanceId, Bytes> image_bytes_;
  std::vector<FunctionSet> functions_;
  std::map<GpuIndex, bool> is_up_;
  std::map<Place, Image> images_;
  std::set<Place> write_backs_;  // under way
  // From which an image comes to other GPUs, while it stays.
  std::set<Place> unserved_;  // lead shards without their executor
  std::map<Place, std::set<GpuIndex>> readers_;
  std::map<InstanceId, Lease> leases_;
  std::map<RequestId, Request> requests_;  // that are not over
  std::set<RequestId> waiting_;
  std::set<RequestId> lost_;  // neither wait nor run
  std::map<GrowthId, GrowthWanted> growths_;
  std::uint64_t next_id_ = 1;
  std::uint64_t grants_ = 0;
  std::string error_;
};

}  // namespace torpor::scheduler
