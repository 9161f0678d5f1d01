#include "client_shim/cudart/graph/graph_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {
namespace {

// All graph memory of the process, and the account that programs can read. Thread-safe.
class Memories {
 public:
  void Add(const std::shared_ptr<GraphMemory>& memory) {
    std::lock_guard lock(mutex_);
    known_[memory->address()] = {memory.get(), memory};
    use_.reserved += memory->bytes();
    use_.max_reserved = std::max(use_.max_reserved, use_.reserved);
  }
  // Returns false if the memory was forgotten.
  bool Remove(const GraphMemory& memory) {
    std::lock_guard lock(mutex_);
    if (!Knows(memory)) return false;
    known_.erase(memory.address());
    use_.reserved -= memory.bytes();
    if (counted_.erase(memory.address()) == 1) use_.used -= memory.bytes();
    return true;
  }
  std::shared_ptr<GraphMemory> Find(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    const auto found = known_.find(address);
    return found == known_.end() ? nullptr : found->second.reference.lock();
  }
  bool IsInUse(const GraphMemory& memory) {
    std::lock_guard lock(mutex_);
    return Knows(memory) && in_use_.contains(memory.address());
  }
  void Use(const GraphMemory& memory) {
    std::lock_guard lock(mutex_);
    if (!Knows(memory)) return;
    in_use_.try_emplace(memory.address(), known_.at(memory.address()).reference.lock());
    if (!counted_.emplace(memory.address(), memory.bytes()).second) return;
    use_.used += memory.bytes();
    use_.max_used = std::max(use_.max_used, use_.used);
  }
  // Ends the use. Returns the reference held until now, to be dropped outside the lock.
  std::shared_ptr<GraphMemory> Release(const GraphMemory& memory) {
    std::lock_guard lock(mutex_);
    const auto found = in_use_.find(memory.address());
    if (!Knows(memory) || found == in_use_.end()) return nullptr;
    std::shared_ptr<GraphMemory> held = std::move(found->second);
    in_use_.erase(found);
    return held;
  }
  // Forgets all memory of a device. Returns the references held until now, as above.
  std::vector<std::shared_ptr<GraphMemory>> ForgetOf(const ClientCore& core) {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<GraphMemory>> held;
    std::erase_if(known_, [&](const auto& entry) {
      const GraphMemory& memory = *entry.second.memory;
      if (&memory.core() != &core) return false;
      use_.reserved -= memory.bytes();
      if (counted_.erase(entry.first) == 1) use_.used -= memory.bytes();
      if (auto in_use = in_use_.extract(entry.first)) held.push_back(std::move(in_use.mapped()));
      return true;
    });
    if (known_.empty()) use_ = {};
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
  struct Known {
    const GraphMemory* memory = nullptr;  // for comparison only
    std::weak_ptr<GraphMemory> reference;
  };

  // Compares objects, since new memory may have the address of forgotten memory.
  bool Knows(const GraphMemory& memory) const {
    const auto found = known_.find(memory.address());
    return found != known_.end() && found->second.memory == &memory;
  }

  std::mutex mutex_;
  std::map<std::uint64_t, Known> known_;  // by address
  std::map<std::uint64_t, std::shared_ptr<GraphMemory>> in_use_;
  std::map<std::uint64_t, std::uint64_t> counted_;  // bytes counted as used, by address
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
  memory.reset(new GraphMemory(Core(), address, bytes));
  TheMemories().Add(memory);
  return cudaSuccess;
}

std::shared_ptr<GraphMemory> GraphMemory::Find(std::uint64_t address) {
  return TheMemories().Find(address);
}

GraphMemory::GraphMemory(ClientCore& core, std::uint64_t address, std::uint64_t bytes)
    : core_(core), address_(address), bytes_(bytes) {}

GraphMemory::~GraphMemory() {
  if (!TheMemories().Remove(*this)) return;
  const CoreScope scope;
  UseCore(core_);
  const OwnCalls own_calls;  // the program's next call reports errors of earlier work
  if (!Core().IsDrained()) (void)Ask(wire::DeviceSynchronize{});
  (void)Core().Free(address_);
}

void GraphMemory::SetInUse(bool in_use) {
  if (in_use)
    TheMemories().Use(*this);
  else
    TheMemories().Release(*this);
}

bool GraphMemory::is_in_use() const { return TheMemories().IsInUse(*this); }

bool FreeGraphMemory(std::uint64_t address, cudaError_t& result) {
  const std::shared_ptr<GraphMemory> memory = GraphMemory::Find(address);
  if (!memory) return false;
  result = memory->is_in_use() ? cudaSuccess : cudaErrorInvalidValue;
  memory->SetInUse(false);
  return true;
}

void ForgetGraphMemory() { TheMemories().ForgetOf(Core()); }

GraphMemoryUse CurrentGraphMemoryUse() {
  return TheMemories().WithUse([](GraphMemoryUse&) {});
}

void TrimGraphMemory() { TheMemories().Trim(); }

void ResetMaxUsed() {
  TheMemories().WithUse([](GraphMemoryUse& use) { use.max_used = use.used; });
}

void ResetMaxReserved() {
  TheMemories().WithUse([](GraphMemoryUse& use) { use.max_reserved = use.reserved; });
}

}  // namespace torpor::shim
