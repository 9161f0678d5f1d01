#include "server/executor/gpu/device_mapping.h"

#include <cstdint>

#include "base/status_macros.h"

namespace torpor::executor {

absl::Status AllowAccess(const Device& device, CUdeviceptr address, Bytes bytes) {
  CUmemAccessDesc access{};
  access.location = device.location();
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return device.Status(device.driver().MemSetAccess(address, bytes, &access, 1), "cuMemSetAccess");
}

absl::StatusOr<UniqueFd> ExportMemory(const Device& device, CUmemGenericAllocationHandle memory) {
  int fd = -1;
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().MemExportToShareableHandle(
                        &fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                    "cuMemExportToShareableHandle"));
  return UniqueFd(fd);
}

absl::StatusOr<CUmemGenericAllocationHandle> ImportMemory(const Device& device,
                                                          const UniqueFd& descriptor) {
  // The driver takes the descriptor's number as a pointer.
  void* const source = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get()));
  CUmemGenericAllocationHandle handle = 0;
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().MemImportFromShareableHandle(
                        &handle, source, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                    "cuMemImportFromShareableHandle"));
  return handle;
}

absl::Status MapImported(const Device& device, const UniqueFd& descriptor, CUdeviceptr address,
                         Bytes bytes) {
  TORPOR_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle handle,
                          ImportMemory(device, descriptor));
  const CUresult mapped = device.driver().MemMap(address, bytes, 0, handle, 0);
  device.driver().MemRelease(handle);
  return device.Status(mapped, "cuMemMap of a peer's memory");
}

}  // namespace torpor::executor
