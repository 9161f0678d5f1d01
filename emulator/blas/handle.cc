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

// Sizes that 64 bits cannot hold stay at the largest number, which is accessible nowhere.
std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
std::uint64_t Plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

std::uint64_t Magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? 0 - bits : bits;
}

}  // namespace

Extent VectorExtent(const void* address, std::int64_t count, std::int64_t stride,
                    std::size_t element_bytes, bool written) {
  if (count <= 0) return {};
  const std::uint64_t reach = Times(static_cast<std::uint64_t>(count - 1), Magnitude(stride));
  return {address, Times(Plus(reach, 1), element_bytes), written};
}

Extent MatrixExtent(const void* address, std::int64_t rows, std::int64_t columns,
                    std::int64_t leading, std::size_t element_bytes, bool written,
                    std::int64_t batch_stride, std::int64_t count) {
  if (rows <= 0 || columns <= 0 || count <= 0) return {};
  const std::uint64_t one = Plus(Times(static_cast<std::uint64_t>(columns - 1), Magnitude(leading)),
                                 static_cast<std::uint64_t>(rows));
  const std::uint64_t reach =
      Times(Times(static_cast<std::uint64_t>(count - 1), Magnitude(batch_stride)), element_bytes);
  std::uint64_t lowest = reinterpret_cast<std::uint64_t>(address);
  if (batch_stride < 0) lowest -= reach;  // the last matrix lies lowest
  return {reinterpret_cast<const void*>(lowest), Plus(Times(one, element_bytes), reach), written};
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
