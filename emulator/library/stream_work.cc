#include "emulator/library/stream_work.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

namespace torpor::emulator {
namespace {

using Work = std::function<void()>;

// Runs on the stream's thread, where an exception would end the process.
void RunWork(void* data) {
  try {
    (*static_cast<const Work*>(data))();
  } catch (const std::exception& error) {  // too little host memory for a conversion
    std::fprintf(stderr, "torpor-emulator: %s\n", error.what());
  }
}

void DeleteWork(void* data) { delete static_cast<Work*>(data); }

// Finds the mapping that holds `address`: its end, and its access rights. Returns false for an
// address that the driver does not know.
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

// Walks over adjacent mappings, each of which must allow the access.
bool Accessible(const DriverCalls& driver, const AccessExtent& extent) {
  if (extent.bytes == 0) return true;
  std::uint64_t address = reinterpret_cast<std::uint64_t>(extent.address);
  if (extent.bytes > UINT64_MAX - address) return false;
  const std::uint64_t end = address + extent.bytes;
  while (address < end) {
    unsigned access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
    if (!FindMapping(driver, address, address, access)) return false;
    const bool allowed = access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE ||
                         (access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ && !extent.written);
    if (!allowed) return false;
  }
  return true;
}

bool QueueWork(const DriverCalls& driver, CUstream stream, std::span<const AccessExtent> extents,
               std::function<void()> work) {
  for (const AccessExtent& extent : extents) {
    if (Accessible(driver, extent)) continue;
    std::fprintf(stderr, "torpor-emulator: a library's call: no device memory at %p, %llu bytes\n",
                 extent.address, static_cast<unsigned long long>(extent.bytes));
    return false;
  }
  if (driver.computes() == 0) return true;
  auto queued = std::make_unique<Work>(std::move(work));
  if (driver.launch_work(stream, RunWork, queued.get(), DeleteWork) != CUDA_SUCCESS) return false;
  (void)queued.release();  // the driver's now
  return true;
}

}  // namespace torpor::emulator
