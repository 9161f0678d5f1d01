#pragma once

#include <cuda.h>

#include "emulator/driver/device/device.h"
#include "emulator/driver/module/module.h"
#include "emulator/driver/process/stream_target.h"

namespace torpor::emulator {

struct LaunchRequest {
  Dim3 grid;
  Dim3 block;
  unsigned dynamic_shared_bytes = 0;
  bool cooperative = false;
};

// Queues a kernel. Takes the parameters from `values`, one pointer each, or from `extra`, a
// CU_LAUNCH_PARAM_... list.
CUresult Launch(const StreamTarget& target, CUfunction function, const LaunchRequest& request,
                void** values, void** extra);

// How many blocks of `threads` run on a multiprocessor at once.
CUresult ActiveBlocks(CUfunction function, int threads, size_t dynamic_shared_bytes,
                      const Device& device, int& blocks);

// How much dynamic shared memory each of `blocks` blocks may have that share a multiprocessor.
Bytes AvailableDynamicShared(const Function& function, const Device& device, int blocks);

}  // namespace torpor::emulator
