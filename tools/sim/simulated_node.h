#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "scheduler/scheduler.h"
#include "tools/sim/block_cache.h"
#include "tools/sim/decision_hash.h"
#include "tools/sim/model_profile.h"
#include "tools/sim/node_model.h"
#include "tools/sim/outcome.h"
#include "tools/sim/simulated_switch.h"
#include "tools/sim/systems.h"
#include "tools/sim/timers.h"

namespace torpor::sim {

// A function: model, deadline and keep-alive, the same on every node.
struct FunctionSpec {
  std::size_t model = 0;  // index in the profiles
  Duration deadline{};
  Duration keep_alive{};  // used by keep-alive systems only
};

// A node's GPUs and links in simulated time under a real scheduler: carries out actions and tells
// the scheduler the outcomes. Not thread-safe; nodes of different simulations are independent.
//
// A request executes pipelined with the transfer of the image, if any (ExecutionEnd). Alone on the
// profiles' links a request takes the profile's time.
class SimulatedNode {
 public:
  // Called at the end of every request.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnServed(RequestId request, std::size_t gpu, Path path, TimePoint now) = 0;
    virtual void OnRefused(RequestId request) = 0;
  };

  struct Setting {
    std::uint16_t index = 0;  // the node's index, for timers
    const NodeModel* model = nullptr;
    const Profiles* profiles = nullptr;
    const std::vector<FunctionSpec>* functions = nullptr;
    System system;
    std::uint64_t seed = 1;
    bool keeps_replicas = true;  // a peer swap leaves the source's copy in place
  };

  // `timers` and `observer` must outlive the node.
  SimulatedNode(const Setting& setting, Timers& timers, Observer& observer);

  // Adds the function with an instance of its own. `function`: index in Setting::functions.
  void AddFunction(std::size_t function, TimePoint now);
  // A request for a function of this node. Ends with a call of the observer, unless the simulation
  // ends first.
  void Arrive(RequestId request, std::size_t function, TimePoint now);
  // A timer of this node is due.
  void Expire(const Timer& timer);

  // Starts the measured load: from now on containers start cold and GPU time counts.
  void BeginMeasurement(TimePoint now);
  // Time since BeginMeasurement for which the GPU has had a request. Valid up to `now`, the
  // present.
  Duration BusyTime(std::size_t gpu, TimePoint now) const;

  std::size_t outstanding() const { return outstanding_; }  // requests that have not ended
  // Events that the scheduler was told, and a hash of them and of all actions.
  std::uint64_t scheduler_events() const { return scheduler_events_; }
  std::uint64_t hash() const { return hash_.value(); }
  const scheduler::Scheduler& scheduler() const { return *scheduler_; }

 private:
  // An image coming to a GPU, or there and not used yet.
  struct Image {
    std::uint64_t key = 0;  // unique, with the GPU in the low bits
    std::size_t function = 0;
    Path path = Path::kHost;
    std::optional<std::size_t> source;  // the GPU that a peer swap copies from
    bool drops_source = false;          // the source loses the image on arrival
    bool has_arrived = false;
    TimePoint begun;  // start of the transfer
  };
  struct Execution {
    RequestId request;  // invalid: nothing runs
    std::size_t function = 0;
    TimePoint granted;
    Path path = Path::kResident;
    bool waits_for_image = false;  // the end is known when the last byte has come
  };
  struct Gpu {
    Execution execution;
    std::vector<Image> images;
    Duration busy{};
    std::optional<BlockCache> block_cache;  // only with a single pool
  };
  struct Switch {
    SimulatedSwitch links;
    std::uint64_t generation = 0;  // of the end's timer; older timers are void
  };
  // A model's times alone on the profiles' reference links.
  struct ModelTimes {
    Duration resident{};
    Duration host_transfer{};
    Duration host_rest{};
    Duration peer_transfer{};
    Duration peer_rest{};
  };

  void AddGpus(TimePoint now);
  void AddModels();

  // Feeds the scheduler and carries out actions until no event is left.
  void Tell(scheduler::Event event, TimePoint now);
  void Do(const scheduler::SwapIn& action, TimePoint now);
  void Do(const scheduler::SwapOut& action, TimePoint now);
  void Do(const scheduler::WriteBack& action, TimePoint now);
  void Do(const scheduler::Grant& action, TimePoint now);
  void Do(const scheduler::Revoke& action, TimePoint now);
  void Do(const scheduler::Refuse& action, TimePoint now);
  void Do(const scheduler::AllowGrowth&, TimePoint) {}
  void Do(const scheduler::RefuseGrowth&, TimePoint) {}
  void Do(const scheduler::RefuseLoad&, TimePoint) {}
  void Do(const scheduler::WakeUp& action, TimePoint now);

  // A swap-in of a native system: a container that can serve after the model's cold start.
  void StartContainer(const scheduler::SwapIn& action, TimePoint now);
  // Starts the transfer over the NVLink or through the PCIe switch.
  void BeginTransfer(std::size_t gpu, Image& image, TimePoint now);
  // Sets the timer of the switch's next end anew; the one before is void.
  void SetSwitchTimer(std::size_t place, TimePoint now);
  void EndTransfer(std::size_t place, TimePoint now);
  void ImageHasArrived(std::size_t gpu, std::uint64_t key, TimePoint now);
  // When an execution ends whose image has come completely at `now`.
  TimePoint EndAfterTransfer(const Execution& execution, const Image& image, TimePoint now) const;
  void FinishAt(std::size_t gpu, TimePoint at);
  void EndExecution(std::size_t gpu, TimePoint now);

  const ModelProfile& ModelOf(std::size_t function) const;
  const ModelTimes& TimesOf(std::size_t function) const;
  void SetTimer(TimePoint at, Timer::Kind kind, std::size_t place, std::uint64_t key);

  const Setting setting_;
  Timers& timers_;
  Observer& observer_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::vector<ModelTimes> times_;  // by model
  std::vector<Gpu> gpus_;
  std::vector<Switch> switches_;
  std::vector<scheduler::Event> untold_;  // events that actions led to, in order
  bool is_telling_ = false;
  bool is_measuring_ = false;
  std::uint64_t next_key_ = 1;
  std::size_t outstanding_ = 0;
  std::uint64_t scheduler_events_ = 0;
  DecisionHash hash_;
};

}  // namespace torpor::sim
