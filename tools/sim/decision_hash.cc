#include "tools/sim/decision_hash.h"

#include <variant>

namespace torpor::sim {
namespace {

using namespace scheduler;  // NOLINT: names of nearly all its events follow

// What two events or actions of one kind can differ by in a simulation.
class Words {
 public:
  explicit Words(DecisionHash& hash) : hash_(hash) {}

  void operator()(const ExecutorUp& e) { Put(e.gpu, e.capacity, e.sources.size()); }
  void operator()(const ExecutorDown& e) { Put(e.gpu); }
  void operator()(const FunctionSet& e) {
    Put(e.function, e.objective.deadline.count(), e.keep_alive.count());
  }
  void operator()(const InstanceAdded& e) { Put(e.instance, e.function); }
  void operator()(const RequestArrived& e) { Put(e.request, e.instance, e.function); }
  void operator()(const RequestGone& e) { Put(e.request, e.is_served); }
  void operator()(const SwapInDone& e) { Put(e.instance, e.gpu, e.ok); }
  void operator()(const ImageArrived& e) { Put(e.instance, e.gpu); }
  void operator()(const SwapOutDone& e) { Put(e.instance, e.gpu); }
  void operator()(const WriteBackDone& e) { Put(e.instance, e.gpu, e.is_clean); }
  void operator()(const LeaseEnded& e) { Put(e.instance); }
  void operator()(const GrowthWanted& e) { Put(e.growth, e.instance, e.bytes); }
  void operator()(const ImageShrunk& e) { Put(e.instance, e.bytes); }
  void operator()(const LoadWanted& e) { Put(e.instance, e.gpu.value_or(GpuIndex{})); }
  void operator()(const EvictionWanted& e) { Put(e.instance); }
  void operator()(const PinChanged& e) { Put(e.instance, e.is_pinned); }
  void operator()(const TimePassed&) {}

  void operator()(const SwapIn& a) {
    Put(a.instance, a.gpu, a.source.value_or(GpuIndex{}), a.keeps_source);
  }
  void operator()(const SwapOut& a) { Put(a.instance, a.gpu, static_cast<int>(a.reason)); }
  void operator()(const WriteBack& a) { Put(a.instance, a.gpu); }
  void operator()(const Grant& a) { Put(a.request, a.instance, a.gpu, a.joins); }
  void operator()(const Revoke& a) { Put(a.instance); }
  void operator()(const Refuse& a) { Put(a.request, static_cast<int>(a.reason)); }
  void operator()(const AllowGrowth& a) { Put(a.growth); }
  void operator()(const RefuseGrowth& a) { Put(a.growth); }
  void operator()(const WakeUp& a) { Put(a.when.time_since_epoch().count()); }

 private:
  template <typename... T>
  void Put(const T&... values) {
    (Word(values), ...);
  }
  template <typename Tag>
  void Word(Id<Tag> id) {
    hash_.Add(id.value);
  }
  void Word(GpuIndex gpu) { hash_.Add(static_cast<std::uint64_t>(gpu.value)); }
  template <typename T>
  void Word(T number) {
    hash_.Add(static_cast<std::uint64_t>(number));
  }

  DecisionHash& hash_;
};

}  // namespace

void DecisionHash::Add(const scheduler::Event& event, TimePoint now) {
  Add(event.index());
  Add(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  std::visit(Words(*this), event);
}

void DecisionHash::Add(const scheduler::Action& action) {
  Add(action.index());
  std::visit(Words(*this), action);
}

}  // namespace torpor::sim
