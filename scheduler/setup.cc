#include "scheduler/setup.h"

#include <array>

namespace torpor::scheduler {
namespace {

Setup Torpor(std::uint64_t) {
  return {{MakeSharedQueue(RrcQueues()), MakeInterferenceAwarePlacement(), MakeHeavinessEviction()},
          {}};
}

Setup TorporPlus(std::uint64_t) {
  return {{MakeSharedQueue([] { return MakeLatestStartQueue(); }), MakeLookAheadPlacement(),
           MakeExpectedCostEviction()},
          {.too_late = TooLate::kServeLast}};
}

Setup Fifo(std::uint64_t) {
  return {
      {MakeSharedQueue(MakeFifoQueue), MakeInterferenceAwarePlacement(), MakeHeavinessEviction()},
      {}};
}

Setup EarliestDeadline(std::uint64_t) {
  return {{MakeSharedQueue(MakeDeadlineQueue), MakeInterferenceAwarePlacement(),
           MakeHeavinessEviction()},
          {}};
}

Setup Random(std::uint64_t seed) {
  return {{MakeSharedQueue(RrcQueues()), MakeRandomPlacement(seed), MakeHeavinessEviction()},
          {.swaps_from_peers = false}};
}

Setup Lru(std::uint64_t) {
  return {{MakeSharedQueue(RrcQueues()), MakeInterferenceAwarePlacement(), MakeLruEviction()}, {}};
}

Setup SimpleSwap(std::uint64_t seed) {
  return {{MakeSharedQueue(MakeFifoQueue), MakeRandomPlacement(seed), MakeLruEviction()},
          {.swaps_from_peers = false}};
}

Setup BoundEarly(std::uint64_t) {
  return {{MakeSharedQueue(MakeFifoQueue), MakeResidentFirstPlacement(), MakeLruEviction(),
           MakeEarlyBinding()},
          {.evicts = false}};
}

Setup KeepAlive(std::uint64_t) {
  return {{MakeSharedQueue(MakeFifoQueue), MakeResidentFirstPlacement(), MakeLruEviction(),
           MakeResidentBinding()},
          {.evicts = false}};
}

struct Named {
  std::string_view name;
  Setup (*make)(std::uint64_t seed);
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

std::optional<Setup> MakeSetup(std::string_view name, std::uint64_t seed) {
  for (const Named& setup : kSetups) {
    if (setup.name == name) return setup.make(seed);
  }
  return std::nullopt;
}

}  // namespace torpor::scheduler
