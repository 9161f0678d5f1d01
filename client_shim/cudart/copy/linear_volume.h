#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/graph/node_work.h"

namespace torpor::shim {

// A copy of up to three dimensions between addresses: slices of rows.
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

// The volume that the parameters describe, and where its bytes are. cudaErrorNotSupported for
// arrays; the errors of the plain copy for what it would refuse.
cudaError_t ReadCopy(const cudaMemcpy3DParms& parameters, LinearVolume& volume, Route& route);

// Out of the parameters that a program gives, checked as the plain copy checks its own.
cudaError_t MakeCopyWork(const cudaMemcpy3DParms& parameters, NodeWork& work);

}  // namespace torpor::shim
