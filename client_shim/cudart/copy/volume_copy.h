#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/stream/stream.h"
#include "client_shim/cudart/texture/arrays.h"

// Copies of up to three dimensions between arrays, device memory and host memory.
namespace torpor::shim {

// The begin of one side of a copy: a place in an array, or linear memory.
struct CopyPlace {
  ClientArrayPtr array;  // null: linear memory
  std::uint64_t x = 0;   // in the array, in bytes
  std::uint64_t y = 0;
  std::uint64_t z = 0;
  std::uint8_t* memory = nullptr;  // the first byte to copy
  std::uint64_t pitch = 0;         // bytes from row to row
  std::uint64_t rows = 0;          // of a slice
};

struct CopyVolume {
  std::uint64_t width = 0;  // in bytes
  std::uint64_t height = 1;
  std::uint64_t depth = 1;

  std::uint64_t bytes() const { return width * height * depth; }
};

// A place checked to have room for the whole volume.
struct LocatedPlace {
  CopyPlace place;
  Side side = Side::kPageable;
  int device = 0;  // for device memory and arrays
};

// Copies between located sides in the order of `stream`. A copy between a device and pageable
// memory waits, regardless of `wait`.
cudaError_t CopyVolumeOn(const ClientStream& stream, const LocatedPlace& to,
                         const LocatedPlace& from, const CopyVolume& volume, Wait wait);

// Checks and makes a copy; an empty volume is a success. cudaErrorInvalidValue if a side lacks room
// or rows overlap, cudaErrorNotSupported if an array is of another device than the copying one.
cudaError_t CopyVolumes(CopyPlace to, CopyPlace from, const CopyVolume& volume, cudaMemcpyKind kind,
                        cudaStream_t stream, Wait wait);

}  // namespace torpor::shim
