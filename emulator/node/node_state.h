#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "emulator/node/timeline.h"
#include "emulator/node/topology.h"

// What the processes of an emulated node share. All zero is a node on which nothing has happened,
// but for `memory.mutex`.
namespace torpor::emulator {

inline constexpr unsigned kMaxProcesses = 256;

// Work that took as long as the model says, or longer.
struct ModelledWorkCounters {
  std::atomic<std::uint64_t> count;
  std::atomic<std::int64_t> modelled_ns;
  std::atomic<std::int64_t> real_ns;
};

struct NodeState {
  // One link each, by place or index; a direction is as the host sees it.
  std::array<Timeline, kMaxGpus> gpu_down;
  std::array<Timeline, kMaxGpus> gpu_up;
  std::array<Timeline, kMaxSwitches> switch_down;
  std::array<Timeline, kMaxSwitches> switch_up;
  std::array<std::array<Timeline, kMaxGpus>, kMaxGpus> nvlink;  // [from][to]

  std::array<Timeline, kMaxGpus> kernels;  // modelled ones of a GPU

  ModelledWorkCounters copies_done;
  ModelledWorkCounters kernels_done;

  // Bytes that each process has taken of each GPU. The mutex is a robust one; who dies with it has
  // broken nothing, since each number is one store.
  struct {
    pthread_mutex_t mutex;  // for whoever takes
    std::array<std::array<std::atomic<Bytes>, kMaxProcesses>, kMaxGpus> taken;
  } memory;
};

}  // namespace torpor::emulator
