#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/graph/node_work.h"

namespace torpor::shim {

// A copy of up to three dimensions between addresses, as slices of rows, for nodes of graphs.
struct LinearVolume {
  std::uint8_t* to = nullptr;
  const std::uint8_t* from = nullptr;
  std::uint64_t to_pitch = 0;  // bytes from row to row
  std::uint64_t from_pitch = 0;
  std::uint64_t to_slice = 0;  // bytes from slice to slice
  std::uint64_t from_slice = 0;
  std::uint64_t width = 0;  // in bytes
  std::uint64_t height = 0;
  std::uint64_t depth = 0;
};

// Reads and checks the volume and the route of a copy. cudaErrorNotSupported for arrays and managed
// variables; otherwise the errors of the plain copy.
cudaError_t ReadCopy(const cudaMemcpy3DParms& parameters, LinearVolume& volume, CopyRoute& route);

// Makes the work of a copy node; checked like a plain copy, but an empty volume is an error.
cudaError_t MakeCopyWork(const cudaMemcpy3DParms& parameters, NodeWork& work);

}  // namespace torpor::shim
