#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/managed/managed_variables.h"

namespace torpor::shim {

// Makes a copy between two ranges, of which either may be empty, by `copy(Wait)`.
template <typename Copy>
cudaError_t CopyBesideVariables(const void* to, std::uint64_t to_bytes, const void* from,
                                std::uint64_t from_bytes, Wait wait, const Copy& copy) {
  bool meets_one = false;
  cudaError_t error = FetchManagedVariablesAt(to, to_bytes, meets_one);
  if (error == cudaSuccess) error = FetchManagedVariablesAt(from, from_bytes, meets_one);
  if (error == cudaSuccess) error = copy(meets_one ? Wait::kYes : wait);
  if (error != cudaSuccess || wait == Wait::kNo) return error;
  return FetchManagedVariables();
}

}  // namespace torpor::shim
