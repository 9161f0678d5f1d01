#include "client_shim/cudart/copy/linear_volume.h"

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/host_register.h"

namespace torpor::shim {
namespace {

// Bytes from the begin of the first row to the end of the last; returns false on overflow.
bool FindLength(const LinearVolume& volume, std::uint64_t pitch, std::uint64_t slice,
                std::uint64_t& bytes) {
  std::uint64_t rows = 0;
  std::uint64_t slices = 0;
  return !__builtin_mul_overflow(volume.height - 1, pitch, &rows) &&
         !__builtin_mul_overflow(volume.depth - 1, slice, &slices) &&
         !__builtin_add_overflow(rows, slices, &bytes) &&
         !__builtin_add_overflow(bytes, volume.width, &bytes);
}

// Bytes from the begin of a volume to a position; x in bytes, y in rows, z in slices.
std::uint64_t Offset(const cudaPos& position, std::uint64_t pitch, std::uint64_t slice) {
  return position.z * slice + position.y * pitch + position.x;
}

}  // namespace

cudaError_t ReadCopy(const cudaMemcpy3DParms& parameters, LinearVolume& volume, CopyRoute& route) {
  if (parameters.srcArray || parameters.dstArray) {
    Core().WarnOnce("graph array", "copies of arrays in graphs are not supported");
    return cudaErrorNotSupported;
  }
  const cudaPitchedPtr& to = parameters.dstPtr;
  const cudaPitchedPtr& from = parameters.srcPtr;
  if (!to.ptr || !from.ptr) return cudaErrorInvalidValue;
  volume.width = parameters.extent.width;
  volume.height = parameters.extent.height;
  volume.depth = parameters.extent.depth;
  if (volume.width == 0 || volume.height == 0 || volume.depth == 0) return cudaErrorInvalidValue;
  // A single row needs no pitch; a single slice needs no height.
  volume.to_pitch = volume.height == 1 && volume.depth == 1 ? volume.width : to.pitch;
  volume.from_pitch = volume.height == 1 && volume.depth == 1 ? volume.width : from.pitch;
  if (volume.width > volume.to_pitch || volume.width > volume.from_pitch)
    return cudaErrorInvalidPitchValue;
  volume.to_slice = volume.depth == 1 ? 0 : volume.to_pitch * to.ysize;
  volume.from_slice = volume.depth == 1 ? 0 : volume.from_pitch * from.ysize;
  volume.to =
      static_cast<std::uint8_t*>(to.ptr) + Offset(parameters.dstPos, to.pitch, to.pitch * to.ysize);
  volume.from = static_cast<const std::uint8_t*>(from.ptr) +
                Offset(parameters.srcPos, from.pitch, from.pitch * from.ysize);
  std::uint64_t to_bytes = 0;
  std::uint64_t from_bytes = 0;
  if (!FindLength(volume, volume.to_pitch, volume.to_slice, to_bytes) ||
      !FindLength(volume, volume.from_pitch, volume.from_slice, from_bytes))
    return cudaErrorInvalidValue;
  volume.to = static_cast<std::uint8_t*>(const_cast<void*>(ArenaAlias(volume.to)));
  volume.from = static_cast<const std::uint8_t*>(ArenaAlias(volume.from));
  TORPOR_TRY(RefuseManagedVariables(volume.to, to_bytes));
  TORPOR_TRY(RefuseManagedVariables(volume.from, from_bytes));
  return FindRoute(volume.to, to_bytes, volume.from, from_bytes, parameters.kind, route);
}

cudaError_t MakeCopyWork(const cudaMemcpy3DParms& parameters, NodeWork& work) {
  TORPOR_TRY(Begin());
  LinearVolume volume;
  CopyRoute route;
  TORPOR_TRY(ReadCopy(parameters, volume, route));
  work = CopyWork{parameters};
  return cudaSuccess;
}

}  // namespace torpor::shim
