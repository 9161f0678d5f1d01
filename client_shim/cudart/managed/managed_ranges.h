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

// A program's advice on managed memory (cudaMemAdvise, cudaMemPrefetchAsync). Kept only for
// queries: host and device both reach the memory where it lies.
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
  // Returns false if no allocation begins at `begin`.
  bool Remove(std::uint64_t begin);
  void RemoveIf(const std::function<bool(std::uint64_t begin)>& condition);
  bool Contains(std::uint64_t address) const;
  // Whether [begin, begin + bytes) lies in one allocation; bytes > 0.
  bool Contains(std::uint64_t begin, std::uint64_t bytes) const;
  // Whether an allocation begins at `begin`; stores the size in `bytes`.
  bool BeginsAt(std::uint64_t begin, std::uint64_t& bytes) const;

  // Changes the advice for [begin, begin + bytes); returns false unless one allocation has all
  // bytes.
  bool Advise(std::uint64_t begin, std::uint64_t bytes,
              const std::function<void(ManagedAdvice&)>& change);
  // The advice for each part of [begin, begin + bytes); empty unless one allocation has all bytes.
  std::vector<ManagedAdvice> AdviceOf(std::uint64_t begin, std::uint64_t bytes) const;

 private:
  struct Allocation {
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, ManagedAdvice> parts;  // by begin, each up to the next part
  };
  using Allocations = std::map<std::uint64_t, Allocation>;  // by begin

  Allocations::const_iterator Find(std::uint64_t begin, std::uint64_t bytes) const;

  mutable std::mutex mutex_;
  Allocations allocations_;
};

// The managed allocations of the process, on all devices. Managed memory is pinned memory of the
// host arena: kernels and the program share the bytes, which are coherent at any time and move with
// no GPU.
ManagedRanges& TheManagedRanges();

bool IsManaged(const void* pointer);

}  // namespace torpor::shim
