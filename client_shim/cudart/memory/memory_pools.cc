#include "client_shim/cudart/memory/memory_pools.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/units.h"
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/per_device.h"
#include "client_shim/cudart/memory/free_marks.h"
#include "client_shim/cudart/memory/pool_memory.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {

struct MemoryPool {
  PoolMemory memory;
  std::uint64_t max_bytes = 0;
  std::uint64_t release_threshold = 0;
  // Permissions for reuse. The first two have no effect: such reuse needs no extra dependency.
  int follows_events = 1;
  int is_opportunistic = 1;
  int may_add_dependencies = 1;
  bool is_destroyed = false;
};

namespace {

// Pools reserve whole chunks of the executor, so that each segment can be returned.
constexpr std::uint64_t kSegmentBytes = 2 * kMiB;
// A driver's pool grows by so much, so a limit below is no limit for an allocation that fits.
constexpr std::uint64_t kLimitBytes = 32 * kMiB;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 48;  // sums stay far below 2^64

// The pools of a device. A single mutex suffices: allocations are rare beside launches.
class Pools {
 public:
  Pools() : default_(pools_.emplace_back(std::make_unique<MemoryPool>()).get()) {}

  void Reset() {
    std::lock_guard lock(mutex_);
    pools_.resize(1);
    *default_ = MemoryPool();
    marks_.Forget();
    current_ = default_;
    segments_ = 0;
    has_excess_ = false;
  }

  MemoryPool* default_pool() { return default_; }
  MemoryPool* current() {
    std::lock_guard lock(mutex_);
    return current_;
  }
  bool has_segments() const { return segments_.load(std::memory_order_acquire) > 0; }

  cudaError_t SetCurrent(cudaMemPool_t handle) {
    return WithPool(handle, [this](MemoryPool& pool) {
      current_ = &pool;
      return cudaSuccess;
    });
  }

  MemoryPool* Create(std::uint64_t max_bytes) {
    std::lock_guard lock(mutex_);
    MemoryPool* const pool = pools_.emplace_back(std::make_unique<MemoryPool>()).get();
    pool->max_bytes = max_bytes;
    return pool;
  }

  cudaError_t Destroy(cudaMemPool_t handle) {
    return WithPool(handle, [this](MemoryPool& pool) -> cudaError_t {
      if (&pool == default_) return cudaErrorInvalidValue;
      if (current_ == &pool) current_ = default_;
      pool.is_destroyed = true;
      pool.release_threshold = 0;
      has_excess_ = true;
      return cudaSuccess;
    });
  }

  // Calls `use` under the mutex. cudaErrorInvalidValue for a handle of no live pool.
  template <typename Use>
  cudaError_t WithPool(cudaMemPool_t handle, const Use& use) {
    std::lock_guard lock(mutex_);
    auto* const pool = reinterpret_cast<MemoryPool*>(handle);
    const bool is_known = std::any_of(pools_.begin(), pools_.end(),
                                      [pool](const auto& known) { return known.get() == pool; });
    return is_known && !pool->is_destroyed ? use(*pool) : cudaErrorInvalidValue;
  }

  bool Knows(cudaMemPool_t handle) {
    return WithPool(handle, [](const MemoryPool&) { return cudaSuccess; }) == cudaSuccess;
  }

  // `stream`: name by free_marks.h. Call with the pool's device in use.
  cudaError_t Allocate(cudaMemPool_t handle, std::uint64_t bytes, std::uint64_t stream,
                       std::uint64_t& address) {
    return WithPool(handle, [&](MemoryPool& pool) -> cudaError_t {
      if (bytes > kMaxBytes) return cudaErrorMemoryAllocation;
      address = pool.memory.Take(bytes, stream);
      if (address != 0) return cudaSuccess;
      cudaError_t error = Reserve(pool, bytes);
      if (error == cudaErrorMemoryAllocation)
        error = ReserveWithoutRoom(pool, bytes, stream, address);
      if (error != cudaSuccess || address != 0) return error;
      address = pool.memory.Take(bytes, stream);
      return cudaSuccess;
    });
  }

  // Call with the stream's device in use.
  cudaError_t Free(std::uint64_t address, const ClientStream& stream) {
    std::lock_guard lock(mutex_);
    FreePointPtr point;
    MemoryPool* const pool = FindOwner(address);
    if (!pool) return cudaErrorInvalidValue;
    TORPOR_TRY(marks_.Mark(stream, point));
    return FreeIn(*pool, address, std::move(point));
  }

  cudaError_t FreeUnused(std::uint64_t address) {
    std::lock_guard lock(mutex_);
    MemoryPool* const pool = FindOwner(address);
    if (!pool) return cudaErrorInvalidValue;
    TORPOR_TRY(FreeIn(*pool, address, nullptr));
    return GiveBackExcess();  // the caller has waited for everything
  }

  bool FindRoom(std::uint64_t address, std::uint64_t& room) {
    std::lock_guard lock(mutex_);
    return std::any_of(pools_.begin(), pools_.end(),
                       [&](const auto& pool) { return pool->memory.FindRoom(address, room); });
  }

  cudaError_t Trim(cudaMemPool_t handle, std::uint64_t keep) {
    return WithPool(handle, [&](MemoryPool& pool) -> cudaError_t {
      TORPOR_TRY(Settle());
      return GiveBack(pool, keep);
    });
  }

  cudaError_t ReleaseExcess() {
    if (!has_excess_.load(std::memory_order_acquire)) return cudaSuccess;
    std::lock_guard lock(mutex_);
    return GiveBackExcess();
  }

  bool ReleaseUnused() {
    const OwnCalls own_calls;
    std::lock_guard lock(mutex_);
    return Settle() == cudaSuccess && GiveBackUnused();
  }

 private:
  // Returns unused segments while at least `keep` bytes remain reserved.
  cudaError_t GiveBack(MemoryPool& pool, std::uint64_t keep) {
    for (const std::uint64_t segment : pool.memory.TakeOutUnused(keep)) {
      --segments_;
      TORPOR_TRY(Core().Free(segment));
    }
    return cudaSuccess;
  }

  // Reserves a segment for `bytes`. cudaErrorMemoryAllocation beyond the pool's or session's limit.
  cudaError_t Reserve(MemoryPool& pool, std::uint64_t bytes) {
    const std::uint64_t segment = RoundUp(bytes, kSegmentBytes);
    const std::uint64_t limit = RoundUp(pool.max_bytes, kLimitBytes);
    if (limit != 0 && pool.memory.reserved().now + segment > limit)
      return cudaErrorMemoryAllocation;
    std::uint64_t begin = 0;
    TORPOR_TRY(Core().Malloc(segment, begin));
    pool.memory.AddSegment(begin, segment);
    ++segments_;
    return cudaSuccess;
  }

  // Tries, in CUDA's order: memory freed in a stream that has not passed the free yet, then all
  // memory of any pool that a synchronisation sets free.
  cudaError_t ReserveWithoutRoom(MemoryPool& pool, std::uint64_t bytes, std::uint64_t stream,
                                 std::uint64_t& address) {
    if (pool.may_add_dependencies != 0) {
      FreePointPtr after;
      address = pool.memory.TakeAfter(bytes, after);
      if (address != 0) return after ? AwaitInStream(*after, stream) : cudaSuccess;
    }
    TORPOR_TRY(Settle());
    address = pool.memory.Take(bytes, stream);
    if (address != 0) return cudaSuccess;
    GiveBackUnused();
    return Reserve(pool, bytes);
  }

  // Waits for the device. Segments are returned only while the session is idle, since executors
  // unmap the pages.
  static cudaError_t Settle() {
    return Core().IsDrained() ? cudaSuccess : Ask(wire::DeviceSynchronize{});
  }

  // Orders later work of `stream` behind the present work of the point's stream.
  static cudaError_t AwaitInStream(const FreePoint& point, std::uint64_t stream) {
    const bool are_here = IsStreamHere(point.stream()) && IsStreamHere(stream);
    return are_here ? ComeBehind(WireOf(stream), WireOf(point.stream()))
                    : ForEachDevice([] { return Settle(); });
  }

  // The pool with a block in use at `address`; null if there is none.
  MemoryPool* FindOwner(std::uint64_t address) {
    std::uint64_t room = 0;
    const auto owner = std::find_if(pools_.begin(), pools_.end(), [&](const auto& pool) {
      return pool->memory.FindRoom(address, room) && room > 0;
    });
    return owner == pools_.end() ? nullptr : owner->get();
  }

  cudaError_t FreeIn(MemoryPool& pool, std::uint64_t address, FreePointPtr point) {
    if (!pool.memory.Free(address, std::move(point))) return cudaErrorInvalidValue;
    if (pool.memory.reserved().now > pool.release_threshold) has_excess_ = true;
    return cudaSuccess;
  }

  // Returns unused memory beyond the thresholds; deletes destroyed pools without memory.
  cudaError_t GiveBackExcess() {
    has_excess_ = false;
    for (const auto& pool : pools_) {
      TORPOR_TRY(GiveBack(*pool, pool->release_threshold));
      const bool holds_more = pool->memory.reserved().now > pool->release_threshold;
      const bool waits = pool->memory.used().now < pool->memory.reserved().now;
      if (holds_more && waits) has_excess_ = true;
    }
    std::erase_if(pools_, [](const auto& pool) {
      return pool->is_destroyed && pool->memory.reserved().now == 0;
    });
    return cudaSuccess;
  }

  // Returns all unused segments of all pools; tells whether any was returned.
  bool GiveBackUnused() {
    const int before = segments_;
    for (const auto& pool : pools_)
      if (GiveBack(*pool, 0) != cudaSuccess) return false;
    return segments_ < before;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<MemoryPool>> pools_;
  FreeMarks marks_;
  MemoryPool* const default_;  // the first pool; programs may keep the handle forever
  MemoryPool* current_ = default_;
  std::atomic<int> segments_{0};
  std::atomic<bool> has_excess_{false};  // a synchronisation may make memory returnable
};

PerDevice<Pools>& AllPools() {
  static auto* const pools = new PerDevice<Pools>();
  return *pools;
}

// The pools of the device in use.
Pools& ThePools() { return AllPools().here(); }

// Turns to the pool's device.
cudaError_t UsePool(cudaMemPool_t handle) {
  if (ThePools().Knows(handle)) return cudaSuccess;
  for (int device = 0; device < wire::kMaxDevices; ++device) {
    if (!AllPools().of(device).Knows(handle)) continue;
    UseDevice(device);
    return Core().Start();
  }
  return cudaErrorInvalidValue;
}

cudaMemPool_t Handle(MemoryPool* pool) { return reinterpret_cast<cudaMemPool_t>(pool); }

template <typename Value>
cudaError_t Put(void* out, Value value) {
  *static_cast<Value*>(out) = value;
  return cudaSuccess;
}

cudaError_t Get(MemoryPool& pool, cudaMemPoolAttr attribute, void* value) {
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
      return Put<int>(value, pool.follows_events);
    case cudaMemPoolReuseAllowOpportunistic:
      return Put<int>(value, pool.is_opportunistic);
    case cudaMemPoolReuseAllowInternalDependencies:
      return Put<int>(value, pool.may_add_dependencies);
    case cudaMemPoolAttrReleaseThreshold:
      return Put<std::uint64_t>(value, pool.release_threshold);
    case cudaMemPoolAttrReservedMemCurrent:
      return Put<std::uint64_t>(value, pool.memory.reserved().now);
    case cudaMemPoolAttrReservedMemHigh:
      return Put<std::uint64_t>(value, pool.memory.reserved().high);
    case cudaMemPoolAttrUsedMemCurrent:
      return Put<std::uint64_t>(value, pool.memory.used().now);
    case cudaMemPoolAttrUsedMemHigh:
      return Put<std::uint64_t>(value, pool.memory.used().high);
  }
  return cudaErrorInvalidValue;
}

cudaError_t SetFlag(int& flag, const void* value) {
  flag = *static_cast<const int*>(value) != 0 ? 1 : 0;
  return cudaSuccess;
}

// CUDA allows resetting a high-water mark to 0 only, meaning the present value.
cudaError_t ResetHigh(PoolMemory::Level& level, const void* value) {
  if (*static_cast<const std::uint64_t*>(value) != 0) return cudaErrorInvalidValue;
  level.ResetHigh();
  return cudaSuccess;
}

cudaError_t Set(MemoryPool& pool, cudaMemPoolAttr attribute, const void* value) {
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
      return SetFlag(pool.follows_events, value);
    case cudaMemPoolReuseAllowOpportunistic:
      return SetFlag(pool.is_opportunistic, value);
    case cudaMemPoolReuseAllowInternalDependencies:
      return SetFlag(pool.may_add_dependencies, value);
    case cudaMemPoolAttrReleaseThreshold:
      pool.release_threshold = *static_cast<const std::uint64_t*>(value);
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
      return ResetHigh(pool.memory.reserved(), value);
    case cudaMemPoolAttrUsedMemHigh:
      return ResetHigh(pool.memory.used(), value);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaMemPool_t DefaultPool() { return Handle(ThePools().default_pool()); }
cudaMemPool_t CurrentPool() { return Handle(ThePools().current()); }
cudaError_t SetCurrentPool(cudaMemPool_t pool) { return ThePools().SetCurrent(pool); }

cudaError_t CreatePool(std::uint64_t max_bytes, cudaMemPool_t& pool) {
  pool = Handle(ThePools().Create(max_bytes));
  return cudaSuccess;
}

cudaError_t DestroyPool(cudaMemPool_t pool) {
  TORPOR_TRY(UsePool(pool));
  return ThePools().Destroy(pool);
}

cudaError_t CheckPool(cudaMemPool_t pool) {
  const CoreScope scope;
  return UsePool(pool);
}

cudaError_t GetPoolAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  TORPOR_TRY(UsePool(pool));
  return ThePools().WithPool(pool, [&](MemoryPool& found) { return Get(found, attribute, value); });
}

cudaError_t SetPoolAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, const void* value) {
  TORPOR_TRY(UsePool(pool));
  return ThePools().WithPool(pool, [&](MemoryPool& found) { return Set(found, attribute, value); });
}

cudaError_t TrimPool(cudaMemPool_t pool, std::uint64_t keep) {
  TORPOR_TRY(UsePool(pool));
  return ThePools().Trim(pool, keep);
}

cudaError_t AllocateFromPool(cudaMemPool_t pool, std::uint64_t bytes, cudaStream_t stream_handle,
                             void** out) {
  if (!out) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(stream_handle, stream));
  *out = nullptr;
  const std::uint64_t name = NameOf(*stream);
  TORPOR_TRY(UsePool(pool));
  if (bytes == 0) return cudaSuccess;
  std::uint64_t address = 0;
  TORPOR_TRY(ThePools().Allocate(pool, bytes, name, address));
  *out = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t FreeToPool(void* pointer, cudaStream_t stream_handle) {
  ClientStreamPtr stream;
  TORPOR_TRY(UseStream(stream_handle, stream));
  ClientCore::Allocation allocation;
  if (!Core().FindAllocation(Address(pointer), allocation)) return cudaErrorInvalidValue;
  return AllPools().of(allocation.device).Free(Address(pointer), *stream);
}

cudaError_t FreeUnusedToPool(void* pointer) { return ThePools().FreeUnused(Address(pointer)); }

bool FindInPools(const ClientCore::Allocation& allocation, std::uint64_t address,
                 std::uint64_t& room) {
  Pools& pools = AllPools().of(allocation.device);
  return allocation.on_device && pools.has_segments() && pools.FindRoom(address, room);
}

cudaError_t ReleasePoolMemory() { return ThePools().ReleaseExcess(); }
bool ReleaseAllPoolMemory() { return ThePools().has_segments() && ThePools().ReleaseUnused(); }
void ForgetPools() { ThePools().Reset(); }

}  // namespace torpor::shim
