#pragma once

#include <cuda_runtime_api.h>

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

constexpr int kHostAccessor = wire::kMaxDevices;

// What a program has said of managed memory (cudaMemAdvise, cudaMemPrefetchAsync). It lies where
// host and device both reach it, whatever the advice: kept only to be asked for.
struct ManagedAdvice {
  bool read_mostly = false;
  std::bitset<wire::kMaxDevices + 1> accessed_by;  // by device; kHostAccessor is the host
  cudaMemLocation preferred{cudaMemLocationTypeInvalid, 0};
  cudaMemLocation prefetched{cudaMemLocationTypeInvalid, 0};
};

// The live managed allocations, and the advice for each part of them. Thread-safe.
class ManagedRanges {
 public:
  void Add(std::uint64_t begin, std::uint64_t bytes);
  // False: none begins there.
  bool Remove(std::uint64_t begin);
  void RemoveIf(const std::function<bool(std::uint64_t begin)>& condition);
  bool Contains(std::uint64_t address) const;
  // Whether [begin, begin + bytes) lies in one allocation; bytes > 0.
  bool Contains(std::uint64_t begin, std::uint64_t bytes) const;
  // Whether an allocation begins there. Gives its size.
  bool BeginsAt(std::uint64_t begin, std::uint64_t& bytes) const;

  // Changes the advice for [begin, begin + bytes); false if that is not in one allocation.
  bool Advise(std::uint64_t begin, std::uint64_t bytes,
              const std::function<void(ManagedAdvice&)>& change);
  // The advice for each part of [begin, begin + bytes), none if that is not in one allocation.
  std::vector<ManagedAdvice> AdviceOf(std::uint64_t begin, std::uint64_t bytes) const;

 private:
  struct Allocation {
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, ManagedAdvice> parts;  // by begin, each up to the next
  };
  using Allocations = std::map<std::uint64_t, Allocation>;  // by begin

  Allocations::const_iterator Find(std::uint64_t begin, std::uint64_t bytes) const;

  mutable std::mutex mutex_;
  Allocations allocations_;
};

// Managed memory is pinned memory of the host arena: kernels and the program use the very same
// bytes, so it is coherent at any time and moves with no GPU.
ManagedRanges& TheManagedRanges();

bool IsManaged(const void* pointer);

}  // namespace torpor::shim
