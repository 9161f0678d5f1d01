#include "client_shim/core/memory/deferred_frees.h"

#include "base/units.h"

namespace torpor::shim {
namespace {

constexpr std::uint64_t kAddressAlignment = 512;

}  // namespace

std::uint64_t DeferredFrees::ClassOf(std::uint64_t bytes) {
  return RoundUp(bytes, kAddressAlignment);
}

void DeferredFrees::Add(std::uint64_t address, std::uint64_t bytes, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  by_class_.emplace(ClassOf(bytes), Freed{address, number});
  bytes_ += ClassOf(bytes);
}

bool DeferredFrees::Take(std::uint64_t bytes, std::uint64_t& address) {
  const std::lock_guard lock(mutex_);
  const auto found = by_class_.find(ClassOf(bytes));
  if (found == by_class_.end()) return false;
  address = found->second.address;
  by_class_.erase(found);
  bytes_ -= ClassOf(bytes);
  return true;
}

std::vector<std::uint64_t> DeferredFrees::TakeUpTo(std::uint64_t saved) {
  const std::lock_guard lock(mutex_);
  ++frees_begun_;
  std::vector<std::uint64_t> addresses;
  for (auto freed = by_class_.begin(); freed != by_class_.end();) {
    if (freed->second.number > saved) {
      ++freed;
      continue;
    }
    addresses.push_back(freed->second.address);
    bytes_ -= freed->first;
    freed = by_class_.erase(freed);
  }
  return addresses;
}

void DeferredFrees::FreeUpTo(std::uint64_t saved,
                             const std::function<void(std::uint64_t address)>& free) {
  for (const std::uint64_t address : TakeUpTo(saved)) free(address);
  const std::lock_guard lock(mutex_);
  ++frees_ended_;
}

cudaError_t DeferredFrees::CountBeside(const std::function<cudaError_t()>& ask,
                                       std::uint64_t& bytes) const {
  for (;;) {
    const std::uint64_t ended_before = frees_ended();
    if (const cudaError_t error = ask(); error != cudaSuccess) return error;
    const std::lock_guard lock(mutex_);
    bytes = bytes_;
    if (frees_begun_ == ended_before) return cudaSuccess;
  }
}

std::uint64_t DeferredFrees::frees_ended() const {
  const std::lock_guard lock(mutex_);
  return frees_ended_;
}

std::uint64_t DeferredFrees::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace torpor::shim
