// Chunks of memory, addresses, and registered host memory.
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <mutex>

#include "base/check.h"
#include "tests/server/executor/gpu/fake_driver_calls.h"

namespace torpor::executor {
namespace {

// Threads of a pool make and release chunks, threads of sessions pin memory.
std::mutex memory_mutex;

}  // namespace

struct FakeDriverCalls::Memory {
  static CUresult Granularity(std::size_t* bytes, const CUmemAllocationProp*,
                              CUmemAllocationGranularity_flags) {
    return *bytes = FakeCuda::kChunk, Ok();
  }
  static CUresult Create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                         const CUmemAllocationProp*, unsigned long long) {
    std::lock_guard lock(memory_mutex);
    if (fake->chunks_left_ <= 0) return CUDA_ERROR_OUT_OF_MEMORY;
    --fake->chunks_left_;
    *handle = fake->next_chunk_++;
    const int file = memfd_create("chunk", MFD_CLOEXEC);
    TORPOR_CHECK(ftruncate(file, static_cast<off_t>(bytes)) == 0);
    fake->chunk_files_[*handle] = file;
    return Ok();
  }
  static CUresult Info(std::size_t* free, std::size_t* total) {
    std::lock_guard lock(memory_mutex);
    *free = static_cast<std::size_t>(fake->chunks_left_) * FakeCuda::kChunk;
    *total = std::size_t{1} << 30;
    return Ok();
  }
  static CUresult ReleaseChunk(CUmemGenericAllocationHandle handle) {
    std::lock_guard lock(memory_mutex);
    close(fake->chunk_files_.at(handle));
    fake->chunk_files_.erase(handle);
    ++fake->chunks_left_;
    return CUDA_SUCCESS;
  }
  static CUresult Export(void* target, CUmemGenericAllocationHandle handle,
                         CUmemAllocationHandleType, unsigned long long) {
    if (fake->refuse_exports_) return CUDA_ERROR_NOT_SUPPORTED;
    std::lock_guard lock(memory_mutex);
    *static_cast<int*>(target) = dup(fake->chunk_files_.at(handle));
    return Ok();
  }
  static CUresult Import(CUmemGenericAllocationHandle* handle, void* source,
                         CUmemAllocationHandleType) {
    std::lock_guard lock(memory_mutex);
    ++fake->chunks_imported_;
    *handle = fake->next_chunk_++;
    fake->chunk_files_[*handle] = dup(static_cast<int>(reinterpret_cast<std::intptr_t>(source)));
    return Ok();
  }
  static CUresult Reserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr hint,
                          unsigned long long) {
    std::lock_guard lock(memory_mutex);
    if (hint == 0) {
      *address = fake->next_address_;
      fake->next_address_ += bytes;
    } else {
      *address = fake->misplace_ ? hint + FakeCuda::kChunk : hint;
    }
    return Ok();
  }
  static CUresult Free(CUdeviceptr, std::size_t) { return CUDA_SUCCESS; }
  static CUresult Map(CUdeviceptr address, std::size_t bytes, std::size_t,
                      CUmemGenericAllocationHandle handle, unsigned long long) {
    if (Ok() != CUDA_SUCCESS) return Ok();
    std::lock_guard lock(memory_mutex);
    if (fake->mapped_.contains(address)) return CUDA_ERROR_INVALID_VALUE;
    if (fake->mappings_left_ == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    --fake->mappings_left_;
    void* at = mmap(Pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                    fake->chunk_files_.at(handle), 0);
    TORPOR_CHECK(at == Pointer(address));
    fake->mapped_[address] = handle;
    return CUDA_SUCCESS;
  }
  static CUresult Unmap(CUdeviceptr address, std::size_t bytes) {
    std::lock_guard lock(memory_mutex);
    for (std::uint64_t at = address; at < address + bytes; at += FakeCuda::kChunk) {
      if (fake->mapped_.erase(at) == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(Pointer(address), bytes);
    return CUDA_SUCCESS;
  }
  static CUresult SetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc*,
                            std::size_t) {
    TORPOR_CHECK(mprotect(Pointer(address), bytes, PROT_READ | PROT_WRITE) == 0);
    return Ok();
  }
  static CUresult Register(void* begin, std::size_t bytes, unsigned) {
    std::lock_guard lock(memory_mutex);
    fake->registered_[reinterpret_cast<std::uint64_t>(begin)] = bytes;
    return Ok();
  }
  static CUresult Unregister(void* begin) {
    std::lock_guard lock(memory_mutex);
    return fake->registered_.erase(reinterpret_cast<std::uint64_t>(begin)) == 1
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  static CUresult DevicePointer(CUdeviceptr* device, void* host, unsigned) {
    return *device = reinterpret_cast<CUdeviceptr>(host), Ok();
  }
};

void FakeDriverCalls::AddMemory(CudaDriver& driver) {
  driver.MemGetAllocationGranularity = Memory::Granularity;
  driver.MemCreate = Memory::Create;
  driver.MemGetInfo = Memory::Info;
  driver.MemRelease = Memory::ReleaseChunk;
  driver.MemAddressReserve = Memory::Reserve;
  driver.MemAddressFree = Memory::Free;
  driver.MemMap = Memory::Map;
  driver.MemUnmap = Memory::Unmap;
  driver.MemSetAccess = Memory::SetAccess;
  driver.MemExportToShareableHandle = Memory::Export;
  driver.MemImportFromShareableHandle = Memory::Import;
  driver.MemHostRegister = Memory::Register;
  driver.MemHostUnregister = Memory::Unregister;
  driver.MemHostGetDevicePointer = Memory::DevicePointer;
}

std::size_t FakeCuda::mapped_chunks() const {
  std::lock_guard lock(memory_mutex);
  return mapped_.size();
}

bool FakeCuda::IsRegistered(const void* address) const {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  const auto after = registered_.upper_bound(at);
  return after != registered_.begin() && at - std::prev(after)->first < std::prev(after)->second;
}

}  // namespace torpor::executor
