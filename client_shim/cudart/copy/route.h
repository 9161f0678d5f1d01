#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/memory/places.h"

// The memory that a copy's two sides lie in, and the direction that follows.
namespace torpor::shim {

// Whether the call returns only when a copy from or to pinned memory is done.
enum class Wait { kNo, kYes };

// Whether `kind` fits what the two places are; cudaErrorInvalidMemcpyDirection if it is no kind at
// all, cudaErrorInvalidValue if it is another.
cudaError_t CheckDirection(cudaMemcpyKind kind, Side from, Side to);

// The direction that `kind` and the two places allow; cudaErrorInvalidMemcpyDirection or
// cudaErrorInvalidValue where they contradict each other or a range ends outside its allocation.
struct Route {
  Side from = Side::kPageable;
  Side to = Side::kPageable;
  int from_device = 0;
  int to_device = 0;
};
cudaError_t FindRoute(void* to, std::uint64_t to_bytes, const void* from, std::uint64_t from_bytes,
                      cudaMemcpyKind kind, Route& route);

}  // namespace torpor::shim
