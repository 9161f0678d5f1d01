#include "emulator/blas/handle.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

namespace torpor::emulator {
namespace {

using Work = std::function<void()>;

void RunWork(void* data) {
  const std::unique_ptr<Work> work(static_cast<Work*>(data));
  try {
    (*work)();
  } catch (const std::exception& error) {  // too little host memory for a conversion
    std::fprintf(stderr, "torpor-emulator: cuBLAS: %s\n", error.what());
  }
}

// The mapping that holds `address`: where it ends, and whether it may be read and written. False
// for an address that the driver does not know.
bool FindMapping(const DriverCalls& driver, std::uint64_t address, std::uint64_t& end,
                 unsigned& access) {
  CUdeviceptr base = 0;
  std::size_t size = 0;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                      CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                                      CU_POINTER_ATTRIBUTE_ACCESS_FLAGS};
  void* values[] = {&base, &size, &access};
  if (driver.pointer_get_attributes(3, attributes, values, address) != CUDA_SUCCESS) return false;
  end = base + size;
  return size != 0;
}

}  // namespace

Extent VectorExtent(const void* address, std::int64_t count, std::int64_t stride,
                    std::size_t element_bytes, bool written) {
  if (count <= 0) return {};
  const auto step = static_cast<std::uint64_t>(stride < 0 ? -stride : stride);
  return {address, ((static_cast<std::uint64_t>(count) - 1) * step + 1) * element_bytes, written};
}

Extent MatrixExtent(const void* address, std::int64_t rows, std::int64_t columns,
                    std::int64_t leading, std::size_t element_bytes, bool written,
                    std::int64_t batch_stride, std::int64_t count) {
  if (rows <= 0 || columns <= 0 || count <= 0) return {};
  const std::int64_t one = (columns - 1) * leading + rows;
  const std::int64_t before = (count - 1) * batch_stride;
  if (before < 0) {  // the last matrix lies lowest
    const auto* lowest =
        static_cast<const char*>(address) + before * static_cast<std::int64_t>(element_bytes);
    return {lowest, static_cast<std::uint64_t>(one - before) * element_bytes, written};
  }
  return {address, static_cast<std::uint64_t>(one + before) * element_bytes, written};
}

bool Accessible(const cublasContext& handle, const Extent& extent) {
  if (extent.bytes == 0) return true;
  std::uint64_t address = reinterpret_cast<std::uint64_t>(extent.address);
  if (extent.bytes > UINT64_MAX - address) return false;
  const std::uint64_t end = address + extent.bytes;
  while (address < end) {
    unsigned access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
    if (!FindMapping(*handle.driver, address, address, access)) return false;
    const bool allowed = access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE ||
                         (access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ && !extent.written);
    if (!allowed) return false;
  }
  return true;
}

cublasStatus_t Enqueue(const cublasContext& handle, std::initializer_list<Extent> extents,
                       std::function<void()> work) {
  for (const Extent& extent : extents) {
    if (Accessible(handle, extent)) continue;
    std::fprintf(stderr, "torpor-emulator: cuBLAS: no device memory at %p, %llu bytes\n",
                 extent.address, static_cast<unsigned long long>(extent.bytes));
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  auto queued = std::make_unique<Work>(std::move(work));
  if (handle.driver->launch_host_func(handle.stream, RunWork, queued.get()) != CUDA_SUCCESS) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  (void)queued.release();  // RunWork's now
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace torpor::emulator
