#include "tests/emulator/exec/fake_device_memory.h"

#include <sys/mman.h>

namespace torpor::emulator {
namespace {

constexpr Bytes kWindowBytes = 64 * kGiB;
constexpr Bytes kPageBytes = 4096;
// Like a device's, far from all else that the process maps; a hint.
constexpr std::uint64_t kWindowHint = 0x2000'0000'0000;

}  // namespace

FakeDeviceMemory::FakeDeviceMemory() {
  begin_ = reinterpret_cast<std::uint64_t>(
      mmap(reinterpret_cast<void*>(kWindowHint), kWindowBytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  next_ = begin_ + kPageBytes;
}

FakeDeviceMemory::~FakeDeviceMemory() { munmap(reinterpret_cast<void*>(begin_), kWindowBytes); }

std::uint64_t FakeDeviceMemory::window_end() const { return begin_ + kWindowBytes; }

bool FakeDeviceMemory::IsAccessible(std::uint64_t address, Bytes size) const {
  const std::lock_guard lock(mutex_);
  auto found = registered_.upper_bound(address);
  if (found == registered_.begin()) return false;
  --found;
  return address - found->first + size <= found->second;
}

ExecResult<std::uint64_t> FakeDeviceMemory::Allocate(Bytes size) {
  const std::lock_guard lock(mutex_);
  const Bytes bytes = RoundUp(size + 1, kPageBytes);
  const std::uint64_t address = next_;
  if (mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) != 0) {
    return Failure<ExecError>{ExecError::kOutOfMemory, "mprotect"};
  }
  next_ += bytes + kPageBytes;  // an inaccessible page between allocations
  allocations_[address] = bytes;
  return address;
}

void FakeDeviceMemory::Free(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return;
  madvise(reinterpret_cast<void*>(address), found->second, MADV_DONTNEED);
  mprotect(reinterpret_cast<void*>(address), found->second, PROT_NONE);
  allocations_.erase(found);
}

void FakeDeviceMemory::Register(const void* address, Bytes size) {
  const std::lock_guard lock(mutex_);
  registered_[reinterpret_cast<std::uint64_t>(address)] = size;
}

}  // namespace torpor::emulator
