#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "emulator/node/timeline.h"
#include "emulator/node/topology.h"

// Shared state of the processes of an emulated node. All zero, except `memory.mutex`, is the
// initial state. Standard layout, mapped from a file.
namespace torpor::emulator {

inline constexpr unsigned kMaxProcesses = 256;

// Finished work with a modelled duration.
struct ModelledWorkCounters {
  std::atomic<std::uint64_t> count;
  std::atomic<std::int64_t> modelled_ns;
  std::atomic<std::int64_t> real_ns;
};

struct SharedNodeState {
  // One link each, by place or index; directions are as seen by the host.
  std::array<Timeline, kMaxGpus> gpu_down;
  std::array<Timeline, kMaxGpus> gpu_up;
  std::array<Timeline, kMaxSwitches> switch_down;
  std::array<Timeline, kMaxSwitches> switch_up;
  std::array<std::array<Timeline, kMaxGpus>, kMaxGpus> nvlink;  // [from][to]

  std::array<Timeline, kMaxGpus> kernels;  // modelled ones of a GPU

  // When the node's first process began, in nanoseconds; for the fault plan, as the calls so far
  // that each of its entries counts.
  std::atomic<std::int64_t> began_ns;
  std::array<std::atomic<std::uint64_t>, kMaxCallFaults> counted_calls;

  ModelledWorkCounters copies_done;
  ModelledWorkCounters kernels_done;

  // Bytes that each process has taken of each GPU. The mutex is robust: a process that dies with it
  // held has broken nothing, since each number is one store.
  struct {
    pthread_mutex_t mutex;  // for whoever takes
    std::array<std::array<std::atomic<Bytes>, kMaxProcesses>, kMaxGpus> taken;
  } memory;
};

}  // namespace torpor::emulator
