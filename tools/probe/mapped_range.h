#pragma once

#include <cuda.h>

#include "tools/probe/gpu.h"

namespace torpor::probe {

// Properties of memory on the first GPU that descriptors can name.
CUmemAllocationProp HandleProperties(bool can_export = true);

// What lets the first GPU read and write.
CUmemAccessDesc ReadWrite();

// One new handle, mapped and accessible from construction to destruction.
class MappedRange {
 public:
  MappedRange(Report& report, CUdeviceptr address, std::size_t size);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  const CUdeviceptr address_;
  const std::size_t size_;
  CUmemGenericAllocationHandle handle_ = 0;
};

}  // namespace torpor::probe
