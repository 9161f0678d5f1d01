#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "emulator/driver/memory/address_space.h"
#include "emulator/driver/process/stream_target.h"
#include "emulator/driver/texture/array.h"

namespace torpor::emulator {

// A copy of memory: `depth` slices of `height` rows of `width` bytes, with pitches in bytes.
struct CopyRequest {
  CopyEnd to;
  CopyEnd from;
  Bytes width = 0;
  Bytes height = 1;
  Bytes depth = 1;
  Bytes to_pitch = 0;
  Bytes from_pitch = 0;
  Bytes to_slice = 0;  // bytes from one slice to the next
  Bytes from_slice = 0;
  // Set if the end lies in an array: keeps the array's memory alive during the copy.
  std::shared_ptr<ArrayMemory> to_array = nullptr;
  std::shared_ptr<ArrayMemory> from_array = nullptr;

  Bytes bytes() const { return width * height * depth; }
};

struct FillRequest {
  std::uint64_t address = 0;
  std::uint32_t value = 0;
  Bytes unit = 1;   // bytes of `value` that count
  Bytes width = 0;  // in units
  Bytes height = 1;
  Bytes pitch = 0;
};

// Copies in stream order and waits.
CUresult CopyNow(const StreamTarget& target, const CopyRequest& request);
// Copies in stream order without waiting. As in CUDA, a copy from or to pageable memory is done
// with the caller's buffer on return.
CUresult CopyInStream(const StreamTarget& target, const CopyRequest& request);

// As CopyNow and CopyInStream.
CUresult FillNow(const StreamTarget& target, const FillRequest& request);
CUresult FillInStream(const StreamTarget& target, const FillRequest& request);

}  // namespace torpor::emulator
