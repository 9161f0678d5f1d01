#pragma once

#include <cuda.h>

#include "emulator/driver/device/device.h"
#include "emulator/driver/module/module.h"
#include "emulator/driver/process/stream_target.h"

namespace torpor::emulator {

// The shape of a launch, as cuLaunchKernel takes it.
struct LaunchRequest {
  Dim3 grid;
  Dim3 block;
  unsigned dynamic_shared_bytes = 0;
  bool cooperative = false;
  Dim3 cluster = {0, 0, 0};  // in blocks; 0x0x0: as the function says, if anything
};

// The shape that a launch with attributes asks for.
LaunchRequest RequestOf(const CUlaunchConfig& config);

// Queues a kernel. The parameters are copied from `values`, one pointer each, or from `extra`, a
// CU_LAUNCH_PARAM_... list. Compiles the kernel at its first launch.
CUresult Launch(const StreamTarget& target, CUfunction function, const LaunchRequest& request,
                void** values, void** extra);

// Sets `blocks` to the number of blocks of `threads` threads that fit a multiprocessor at once.
CUresult ActiveBlocks(CUfunction function, int threads, size_t dynamic_shared_bytes,
                      const DriverDevice& device, int& blocks);

// Sets `clusters` to the number of clusters of such a launch that fit the device at once.
CUresult ActiveClusters(CUfunction function, const LaunchRequest& request,
                        const DriverDevice& device, int& clusters);

// Sets `blocks` to the size of the largest cluster that such a launch may have, whatever the size
// that the request names.
CUresult LargestCluster(CUfunction function, const LaunchRequest& request,
                        const DriverDevice& device, int& blocks);

// Returns the dynamic shared memory, in bytes, of each block if `blocks` blocks share a
// multiprocessor.
Bytes AvailableDynamicShared(const FunctionObject& function, const DriverDevice& device,
                             int blocks);

}  // namespace torpor::emulator
