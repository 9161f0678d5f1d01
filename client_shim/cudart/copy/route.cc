#include "client_shim/cudart/copy/route.h"

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {
namespace {

// Whether `kind` allows the direction. Device-to-device copies allow any (unified addressing).
bool KindAllows(cudaMemcpyKind kind, bool from_device, bool to_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !from_device && !to_device;
    case cudaMemcpyHostToDevice:
      return !from_device && to_device;
    case cudaMemcpyDeviceToHost:
      return from_device && !to_device;
    case cudaMemcpyDeviceToDevice:
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

}  // namespace

cudaError_t CheckDirection(cudaMemcpyKind kind, Side from, Side to) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  const bool from_device = from == Side::kDevice;
  const bool to_device = to == Side::kDevice;
  // CUDA accepts pinned memory as host or device memory.
  const bool allowed = KindAllows(kind, from_device, to_device) ||
                       (from == Side::kArena && KindAllows(kind, true, to_device)) ||
                       (to == Side::kArena && KindAllows(kind, from_device, true));
  const bool device_of_pageable =
      kind == cudaMemcpyDeviceToDevice && (from == Side::kPageable || to == Side::kPageable);
  return allowed && !device_of_pageable ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t FindRoute(void* to, std::uint64_t to_bytes, const void* from, std::uint64_t from_bytes,
                      cudaMemcpyKind kind, CopyRoute& route) {
  if (!to || !from) return cudaErrorInvalidValue;
  const Place target = PlaceOf(to);
  const Place source = PlaceOf(from);
  if (to_bytes > target.room || from_bytes > source.room) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckDirection(kind, source.side, target.side));
  route = {source.side, target.side, source.device, target.device};
  return cudaSuccess;
}

}  // namespace torpor::shim
