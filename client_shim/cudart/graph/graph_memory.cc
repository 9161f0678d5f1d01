#include "client_shim/cudart/graph/graph_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "client_shim/cudart/entry.h"

namespace torpor::shim {
namespace {

class Memories {
 public:
  void Add(const std::shared_ptr<GraphMemory>& memory, std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    by_address_[memory->address()] = memory;
    use_.reserved += bytes;
    use_.most_reserved = std::max(use_.most_reserved, use_.reserved);
  }
  void Remove(std::uint64_t address, std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    by_address_.erase(address);
    use_.reserved -= bytes;
    if (counted_.erase(address) == 1) use_.used -= bytes;
  }
  std::shared_ptr<GraphMemory> Find(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto found = by_address_.find(address);
    return found == by_address_.end() ? nullptr : found->second.lock();
  }
  bool IsInUse(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    return in_use_.contains(address);
  }
  void Use(std::uint64_t address, std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    in_use_.try_emplace(address, by_address_.find(address)->second.lock());
    if (!counted_.emplace(address, bytes).second) return;
    use_.used += bytes;
    use_.most_used = std::max(use_.most_used, use_.used);
  }
  // The reference that was held; dropped by the caller, outside the lock.
  std::shared_ptr<GraphMemory> Release(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto found = in_use_.find(address);
    if (found == in_use_.end()) return nullptr;
    std::shared_ptr<GraphMemory> held = std::move(found->second);
    in_use_.erase(found);
    return held;
  }
  void Trim() {
    std::lock_guard lock(mutex_);
    std::erase_if(counted_, [&](const auto& counted) {
      const bool is_idle = !in_use_.contains(counted.first);
      if (is_idle) use_.used -= counted.second;
      return is_idle;
    });
  }
  template <typename Change>
  GraphMemoryUse WithUse(const Change& change) {
    std::lock_guard lock(mutex_);
    change(use_);
    return use_;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<GraphMemory>> by_address_;
  std::map<std::uint64_t, std::shared_ptr<GraphMemory>> in_use_;
  std::map<std::uint64_t, std::uint64_t> counted_;  // bytes of those that count as used
  GraphMemoryUse use_;
};

Memories& TheMemories() {
  static auto* const memories = new Memories();
  return *memories;
}

}  // namespace

cudaError_t GraphMemory::Allocate(std::uint64_t bytes, std::shared_ptr<GraphMemory>& memory) {
  if (bytes == 0) return cudaErrorInvalidValue;
  std::uint64_t address = 0;
  TORPOR_TRY(Core().Malloc(bytes, address));
  memory.reset(new GraphMemory(address, bytes));
  TheMemories().Add(memory, bytes);
  return cudaSuccess;
}

std::shared_ptr<GraphMemory> GraphMemory::Find(std::uint64_t address) {
  return TheMemories().Find(address);
}

GraphMemory::GraphMemory(std::uint64_t address, std::uint64_t bytes)
    : address_(address), bytes_(bytes) {}

GraphMemory::~GraphMemory() {
  TheMemories().Remove(address_, bytes_);
  // An error of earlier work is told by the program's next call.
  if (!Core().IsDrained()) (void)Ask(wire::DeviceSynchronize{});
  (void)Core().Free(address_);
}

void GraphMemory::SetInUse(bool in_use) {
  if (in_use)
    TheMemories().Use(address_, bytes_);
  else
    TheMemories().Release(address_);
}

bool GraphMemory::is_in_use() const { return TheMemories().IsInUse(address_); }

bool FreeGraphMemory(std::uint64_t address, cudaError_t& result) {
  const std::shared_ptr<GraphMemory> memory = GraphMemory::Find(address);
  if (!memory) return false;
  result = memory->is_in_use() ? cudaSuccess : cudaErrorInvalidValue;
  memory->SetInUse(false);
  return true;
}

GraphMemoryUse CurrentGraphMemoryUse() {
  return TheMemories().WithUse([](GraphMemoryUse&) {});
}

void TrimGraphMemory() { TheMemories().Trim(); }

void ResetMostUsed() {
  TheMemories().WithUse([](GraphMemoryUse& use) { use.most_used = use.used; });
}

void ResetMostReserved() {
  TheMemories().WithUse([](GraphMemoryUse& use) { use.most_reserved = use.reserved; });
}

}  // namespace torpor::shim
