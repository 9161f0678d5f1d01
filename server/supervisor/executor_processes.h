#pragma once

#include <cstdint>

#include "base/ids.h"

namespace torpor::server {

// What the controller asks of executors' processes. Thread-safe; no call blocks.
class ExecutorProcesses {
 public:
  virtual ~ExecutorProcesses() = default;
  // Ends the process of this epoch if it still runs. A successor is started, or a spare takes over,
  // without being asked for.
  virtual void Kill(GpuIndex gpu, std::uint64_t epoch) = 0;
  // As Kill, for no fault of the process: the next one starts without a pause.
  virtual void Replace(GpuIndex gpu, std::uint64_t epoch) = 0;
  // Keeps a process at this seat, too, from now on; one is at seat 0 of every GPU anyway.
  virtual void Want(ExecutorSeat seat) = 0;
  // The GPU is served, by an executor that does not own the GPU's memory: keeps a spare from now
  // until it takes over, if spares are wanted.
  virtual void KeepSpare(GpuIndex gpu) = 0;
};

}  // namespace torpor::server
