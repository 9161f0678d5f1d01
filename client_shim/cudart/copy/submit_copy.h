#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/stream/submit.h"

// The way of a checked copy onto a stream.
namespace torpor::shim {

// Submits a copy (stream/submit.h) with a member `wait`. A copy that the caller waits for cannot be
// captured: Send is called, and a capturing stream refuses.
template <typename Copy>
cudaError_t SubmitCopy(cudaStream_t stream, const Copy& copy) {
  return copy.wait == Wait::kNo ? Submit(stream, copy) : copy.Send(stream);
}

// Makes a copy between two ranges by `copy(Wait)`, after fetching managed variables in either
// range. With such variables the copy waits, and a waiting copy fetches again afterwards. Ranges
// may be empty.
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
