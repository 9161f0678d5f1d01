#include "client_shim/cudart/memory/host_register.h"

#include <atomic>
#include <iterator>
#include <map>
#include <mutex>

#include "base/units.h"
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/memory/shared_pages.h"
#include "client_shim/cudart/stream/host_functions.h"

namespace torpor::shim {
namespace {

// A registered range.
struct Registration {
  std::uint64_t bytes = 0;
  unsigned flags = 0;
  // The pages around the range, shared with `block` in the arena; 0 while invisible to kernels.
  std::uint64_t pages = 0;
  std::uint64_t pages_bytes = 0;
  std::uint64_t block = 0;
};

// All registered ranges; no two overlap. Thread-safe.
class Registered {
 public:
  bool Add(std::uint64_t begin, std::uint64_t bytes, unsigned flags) {
    std::lock_guard lock(mutex_);
    const auto next = ranges_.lower_bound(begin);
    const bool meets_next = next != ranges_.end() && next->first < begin + bytes;
    const bool meets_previous = next != ranges_.begin() && Contains(*std::prev(next), begin);
    if (meets_next || meets_previous) return false;
    ranges_[begin] = {bytes, flags, 0, 0, 0};
    return true;
  }

  // Unshares the pages of the range that begins at `begin`, and frees their block.
  cudaError_t Remove(std::uint64_t begin) {
    std::lock_guard lock(mutex_);
    const auto found = ranges_.find(begin);
    if (found == ranges_.end()) return cudaErrorHostMemoryNotRegistered;
    const Registration registration = found->second;
    if (registration.block != 0) {
      if (!UnsharePages(registration.pages, registration.pages_bytes))
        return cudaErrorMemoryAllocation;
      --exposed_;
    }
    ranges_.erase(found);
    return registration.block == 0 ? cudaSuccess : Core().HostFree(registration.block);
  }

  cudaError_t RemoveAll() {
    std::lock_guard lock(mutex_);
    for (const auto& [begin, registration] : ranges_) {
      if (registration.block == 0) continue;
      if (!UnsharePages(registration.pages, registration.pages_bytes))
        return cudaErrorMemoryAllocation;
      TORPOR_TRY(Core().HostFree(registration.block));
    }
    ranges_.clear();
    exposed_ = 0;
    return cudaSuccess;
  }

  bool Find(std::uint64_t address, unsigned& flags) {
    std::lock_guard lock(mutex_);
    const auto found = Containing(address);
    if (found == ranges_.end()) return false;
    flags = found->second.flags;
    return true;
  }

  bool has_exposed() const { return exposed_.load(std::memory_order_acquire) > 0; }

  cudaError_t Expose(std::uint64_t address, std::uint64_t& alias) {
    std::lock_guard lock(mutex_);
    const auto found = Containing(address);
    if (found == ranges_.end()) return cudaErrorInvalidValue;
    Registration& registration = found->second;
    if (registration.block == 0) TORPOR_TRY(Share(found->first, registration));
    alias = registration.block + (address - registration.pages);
    return cudaSuccess;
  }

  // The arena's address for an exposed range; else `address` itself.
  std::uint64_t Alias(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto found = Containing(address);
    const bool is_exposed = found != ranges_.end() && found->second.block != 0;
    return is_exposed ? found->second.block + (address - found->second.pages) : address;
  }

 private:
  using Ranges = std::map<std::uint64_t, Registration>;  // by begin

  static bool Contains(const Ranges::value_type& range, std::uint64_t address) {
    return address - range.first < range.second.bytes;
  }
  Ranges::iterator Containing(std::uint64_t address) {
    const auto after = ranges_.upper_bound(address);
    const bool found = after != ranges_.begin() && Contains(*std::prev(after), address);
    return found ? std::prev(after) : ranges_.end();
  }

  cudaError_t Share(std::uint64_t begin, Registration& registration) {
    const std::uint64_t pages = RoundDown(begin, kPageBytes);
    const std::uint64_t bytes = RoundUp(begin + registration.bytes, kPageBytes) - pages;
    std::uint64_t block = 0;
    TORPOR_TRY(Core().HostAlloc(bytes, block));
    if (!SharePages(pages, bytes, block)) {
      Core().HostFree(block);
      Core().WarnOnce("registered",
                      "only private memory of the heap can be made visible to kernels by"
                      " cudaHostRegister: allocate it with cudaHostAlloc");
      return cudaErrorNotSupported;
    }
    registration.pages = pages;
    registration.pages_bytes = bytes;
    registration.block = block;
    ++exposed_;
    return cudaSuccess;
  }

  std::mutex mutex_;
  Ranges ranges_;
  std::atomic<int> exposed_{0};
};

Registered& TheRegistered() {
  static auto* const registered = new Registered();
  return *registered;
}

// Only notes the range: copies treat the memory as pageable until exposed.
cudaError_t Register(const void* pointer, std::uint64_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostRegisterPortable | cudaHostRegisterMapped |
                              cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  if (!pointer || bytes == 0 || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  if ((flags & cudaHostRegisterIoMemory) != 0) return cudaErrorNotSupported;
  TORPOR_TRY(Begin());
  ClientCore::Allocation allocation;
  const bool is_ours = Core().FindAllocation(Address(pointer), allocation);
  return !is_ours && TheRegistered().Add(Address(pointer), bytes, flags)
             ? cudaSuccess
             : cudaErrorHostMemoryAlreadyRegistered;
}

// Waits for the device before unsharing pages that kernels may use.
cudaError_t Unregister(const void* pointer) {
  TORPOR_TRY(Begin());
  if (TheRegistered().has_exposed()) {
    TORPOR_TRY(AwaitAllHostFunctions());
    if (!Core().IsDrained()) TORPOR_TRY(Ask(wire::DeviceSynchronize{}));
  }
  return TheRegistered().Remove(Address(pointer));
}

}  // namespace

bool FindRegistered(const void* pointer, unsigned& flags) {
  return TheRegistered().Find(Address(pointer), flags);
}

bool IsRegistered(const void* pointer) {
  unsigned flags = 0;
  return FindRegistered(pointer, flags);
}

cudaError_t ExposeRegistered(const void* pointer, void*& device_pointer) {
  std::uint64_t alias = 0;
  TORPOR_TRY(TheRegistered().Expose(Address(pointer), alias));
  device_pointer = reinterpret_cast<void*>(alias);
  return cudaSuccess;
}

cudaError_t UnregisterAll() { return TheRegistered().RemoveAll(); }

const void* ArenaAlias(const void* pointer) {
  if (!TheRegistered().has_exposed()) return pointer;
  return reinterpret_cast<const void*>(TheRegistered().Alias(Address(pointer)));
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return Entry([&] { return Register(pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return Entry([&] { return Unregister(pointer); });
}
