#include "tools/probe/mapped_range.h"

namespace torpor::probe {

CUmemAllocationProp HandleProperties(bool can_export) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  if (can_export) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUmemAccessDesc ReadWrite() {
  CUmemAccessDesc access{};
  access.location = HandleProperties().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

MappedRange::MappedRange(Report& report, CUdeviceptr address, std::size_t size)
    : address_(address), size_(size) {
  const CUmemAllocationProp properties = HandleProperties(/*can_export=*/false);
  const CUmemAccessDesc access = ReadWrite();
  Need(report, cuMemCreate(&handle_, size, &properties, 0), "cuMemCreate");
  Need(report, cuMemMap(address, size, 0, handle_, 0), "cuMemMap");
  Need(report, cuMemSetAccess(address, size, &access, 1), "cuMemSetAccess");
}

MappedRange::~MappedRange() {
  cuMemUnmap(address_, size_);
  cuMemRelease(handle_);
}

}  // namespace torpor::probe
