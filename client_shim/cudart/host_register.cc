#include "client_shim/cudart/host_register.h"

#include <iterator>
#include <map>
#include <mutex>

#include "client_shim/cudart/entry.h"

namespace torpor::shim {
namespace {

class Registered {
 public:
  bool Add(std::uint64_t begin, std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    const auto next = ranges_.lower_bound(begin);
    const bool meets_next = next != ranges_.end() && next->first < begin + bytes;
    const bool meets_previous = next != ranges_.begin() && Contains(*std::prev(next), begin);
    if (meets_next || meets_previous) return false;
    ranges_.emplace(begin, bytes);
    return true;
  }
  bool Remove(std::uint64_t begin) {
    std::lock_guard lock(mutex_);
    return ranges_.erase(begin) > 0;
  }
  bool Find(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto after = ranges_.upper_bound(address);
    return after != ranges_.begin() && Contains(*std::prev(after), address);
  }

 private:
  using Range = std::pair<const std::uint64_t, std::uint64_t>;  // begin and bytes
  static bool Contains(const Range& range, std::uint64_t address) {
    return address - range.first < range.second;
  }

  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

Registered& TheRegistered() {
  static auto* const registered = new Registered();
  return *registered;
}

cudaError_t Register(const void* pointer, std::uint64_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostRegisterPortable | cudaHostRegisterMapped |
                              cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  if (!pointer || bytes == 0 || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  if ((flags & cudaHostRegisterIoMemory) != 0) return cudaErrorNotSupported;
  TORPOR_TRY(Begin());
  ClientCore::Allocation allocation;
  const bool is_ours = Core().FindAllocation(Address(pointer), allocation);
  return !is_ours && TheRegistered().Add(Address(pointer), bytes)
             ? cudaSuccess
             : cudaErrorHostMemoryAlreadyRegistered;
}

}  // namespace

bool IsRegistered(const void* pointer) { return TheRegistered().Find(Address(pointer)); }

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return Entry([&] { return Register(pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Begin());
    return TheRegistered().Remove(Address(pointer)) ? cudaSuccess
                                                    : cudaErrorHostMemoryNotRegistered;
  });
}
