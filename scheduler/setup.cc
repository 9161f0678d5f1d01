#include "scheduler/setup.h"

#include <array>

namespace torpor::scheduler {
namespace {

QueueFactory Queues(const PolicyConstants& constants) {
  return RrcQueues({.alpha = constants.alpha_start, .period = constants.alpha_period});
}

Setup Torpor(std::uint64_t, const PolicyConstants& constants) {
  return {{MakeSharedQueue(Queues(constants)), MakeInterferenceAwarePlacement(),
           MakeHeavinessEviction()},
          {}};
}

Setup TorporPlus(std::uint64_t, const PolicyConstants&) {
  return {{MakeSharedQueue([] { return MakeLatestStartQueue(); }), MakeLookAheadPlacement(),
           MakeExpectedCostEviction()},
          {.too_late = TooLate::kServeLast}};
}

Setup Fifo(std::uint64_t, const PolicyConstants&) {
  return {
      {MakeSharedQueue(MakeFifoQueue), MakeInterferenceAwarePlacement(), MakeHeavinessEviction()},
      {}};
}

Setup EarliestDeadline(std::uint64_t, const PolicyConstants&) {
  return {{MakeSharedQueue(MakeDeadlineQueue), MakeInterferenceAwarePlacement(),
           MakeHeavinessEviction()},
          {}};
}

Setup Random(std::uint64_t seed, const PolicyConstants& constants) {
  return {{MakeSharedQueue(Queues(constants)), MakeRandomPlacement(seed), MakeHeavinessEviction()},
          {.swaps_from_peers = false}};
}

Setup Lru(std::uint64_t, const PolicyConstants& constants) {
  return {{MakeSharedQueue(Queues(constants)), MakeInterferenceAwarePlacement(), MakeLruEviction()},
          {}};
}

Setup SimpleSwap(std::uint64_t seed, const PolicyConstants&) {
  return {{MakeSharedQueue(MakeFifoQueue), MakeRandomPlacement(seed), MakeLruEviction()},
          {.swaps_from_peers = false}};
}

Setup BoundEarly(std::uint64_t, const PolicyConstants&) {
  return {{MakeSharedQueue(MakeFifoQueue), MakeResidentFirstPlacement(), MakeLruEviction(),
           MakeEarlyBinding()},
          {.evicts = false}};
}

Setup KeepAlive(std::uint64_t, const PolicyConstants&) {
  return {{MakeSharedQueue(MakeFifoQueue), MakeResidentFirstPlacement(), MakeLruEviction(),
           MakeResidentBinding()},
          {.evicts = false}};
}

struct Named {
  std::string_view name;
  Setup (*make)(std::uint64_t seed, const PolicyConstants& constants);
};

constexpr std::array<Named, 10> kSetups = {{
    {"torpor", Torpor},
    {"torpor-plus", TorporPlus},
    {"fifo", Fifo},
    {"edf", EarliestDeadline},
    {"random", Random},
    {"lru", Lru},
    {"simple-swap", SimpleSwap},
    {"native", BoundEarly},
    {"non-swap", BoundEarly},
    {"keep-alive", KeepAlive},
}};

}  // namespace

std::vector<std::string_view> SetupNames() {
  std::vector<std::string_view> names;
  names.reserve(kSetups.size());
  for (const Named& setup : kSetups) names.push_back(setup.name);
  return names;
}

std::optional<Setup> MakeSetup(std::string_view name, std::uint64_t seed,
                               const PolicyConstants& constants) {
  for (const Named& named : kSetups) {
    if (named.name != name) continue;
    Setup setup = named.make(seed, constants);
    setup.options.constants = constants;
    return setup;
  }
  return std::nullopt;
}

}  // namespace torpor::scheduler
