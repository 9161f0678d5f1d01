#include "server/executor/image/physical_pool.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

using memory::HandleCounts;
using memory::Handles;

CUmemAllocationProp HandleProperties(const Device& device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = device.location();
  // For the executors of other GPUs that a function uses at the same time.
  if (device.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  return properties;
}

absl::Status CheckSizes(const Device& device, Bytes pool_bytes, Bytes chunk_bytes) {
  const CUmemAllocationProp properties = HandleProperties(device);
  std::size_t granularity = 0;
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().MemGetAllocationGranularity(&granularity, &properties,
                                                                CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                    "cuMemGetAllocationGranularity"));
  if (chunk_bytes == 0 || chunk_bytes % granularity != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk of ", chunk_bytes,
                                                   " bytes is not a multiple of the driver's ",
                                                   granularity, "; set --chunk-bytes"));
  }
  if (pool_bytes < chunk_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the GPU has ", pool_bytes,
                                                   " bytes for images, less than one chunk of ",
                                                   chunk_bytes, "; lower --driver-reserve"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PhysicalPool>> PhysicalPool::Create(const Device& device,
                                                                   Bytes pool_bytes,
                                                                   Bytes chunk_bytes) {
  TORPOR_RETURN_IF_ERROR(CheckSizes(device, pool_bytes, chunk_bytes));
  return Start(std::unique_ptr<PhysicalPool>(new PhysicalPool(
      device, {chunk_bytes, chunk_bytes}, {pool_bytes / chunk_bytes, 0}, std::nullopt)));
}

absl::StatusOr<std::unique_ptr<PhysicalPool>> PhysicalPool::Create(const Device& device,
                                                                   Bytes pool_bytes,
                                                                   memory::HandleSizes sizes,
                                                                   memory::HandleBalance balance) {
  TORPOR_RETURN_IF_ERROR(CheckSizes(device, pool_bytes, sizes.small_bytes));
  if (sizes.large_bytes <= sizes.small_bytes || sizes.large_bytes % sizes.small_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a large handle of ", sizes.large_bytes,
                                                   " bytes is not several chunks of ",
                                                   sizes.small_bytes));
  }
  return Start(std::unique_ptr<PhysicalPool>(
      new PhysicalPool(device, sizes, memory::StartCounts(pool_bytes, sizes, balance), balance)));
}

absl::StatusOr<std::unique_ptr<PhysicalPool>> PhysicalPool::Start(
    std::unique_ptr<PhysicalPool> pool) {
  // The first handle at once, so that a driver that gives none is found out at start.
  TORPOR_RETURN_IF_ERROR(pool->AddHandle(pool->NextIsLarge()));
  pool->filler_ = std::thread([raw = pool.get()] { raw->Fill(); });
  return pool;
}

PhysicalPool::~PhysicalPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (filler_.joinable()) filler_.join();
  TORPOR_CHECK(pool_.free() == pool_.total());
  Handles all;
  pool_.Take(pool_.free(), all);
  Release(all);
}

void PhysicalPool::Release(const Handles& handles) const {
  for (const memory::Handle handle : handles.small) device_.driver().MemRelease(handle);
  for (const memory::Handle handle : handles.large) device_.driver().MemRelease(handle);
}

absl::Status PhysicalPool::AddHandle(bool is_large) {
  const CUmemAllocationProp properties = HandleProperties(device_);
  const Bytes bytes = is_large ? sizes_.large_bytes : sizes_.small_bytes;
  CUmemGenericAllocationHandle handle = 0;
  TORPOR_RETURN_IF_ERROR(
      device_.Status(device_.driver().MemCreate(&handle, bytes, &properties, 0), "cuMemCreate"));
  std::lock_guard lock(mutex_);
  pool_.Add(is_large ? Handles{{}, {handle}} : Handles{{handle}, {}});
  changed_.notify_all();
  return absl::OkStatus();
}

void PhysicalPool::GiveUp(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  spdlog::error("the pool has {} of {} bytes: {}; raise --driver-reserve",
                pool_.total().bytes(sizes_), pool_bytes_, status.ToString());
  fill_status_ = status;
  changed_.notify_all();
}

void PhysicalPool::Fill() {
  absl::Status status = device_.MakeCurrent();
  while (status.ok()) {
    bool is_large = false;
    {
      std::lock_guard lock(mutex_);
      if (stopping_ || pool_.total() == planned_) return;
      is_large = NextIsLarge();
    }
    status = AddHandle(is_large);
  }
  GiveUp(status);
}

bool PhysicalPool::NextIsLarge() const {
  // Both sizes grow alike: the first images need both.
  const HandleCounts total = pool_.total();
  if (total.small >= planned_.small) return true;
  return total.large < planned_.large &&
         total.large * planned_.small <= total.small * planned_.large;
}

absl::StatusOr<Handles> PhysicalPool::Take(HandleCounts counts) {
  Handles taken;
  std::unique_lock lock(mutex_);
  while (!pool_.Take(counts, taken)) {
    const HandleCounts available = Available();
    if (counts.small > available.small || counts.large > available.large) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the GPU has ", available.small, " free chunks of ", sizes_.small_bytes, " bytes, ",
          counts.small, " are needed",
          balance_ ? absl::StrCat(", and ", available.large, " of ", sizes_.large_bytes, ", ",
                                  counts.large, " are needed")
                   : ""));
    }
    changed_.wait(lock);
  }
  return taken;
}

void PhysicalPool::Return(const Handles& handles) {
  std::lock_guard lock(mutex_);
  pool_.Return(handles);
}

absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> PhysicalPool::Take(std::size_t count) {
  TORPOR_ASSIGN_OR_RETURN(Handles taken, Take(HandleCounts{count, 0}));
  return std::move(taken.small);
}

void PhysicalPool::Return(std::span<const CUmemGenericAllocationHandle> chunks) {
  Return(Handles{{chunks.begin(), chunks.end()}, {}});
}

HandleCounts PhysicalPool::Available() const {
  HandleCounts available = pool_.free();
  if (!fill_status_.ok()) return available;
  available.small += planned_.small - pool_.total().small;
  available.large += planned_.large - pool_.total().large;
  return available;
}

HandleCounts PhysicalPool::available() const {
  std::lock_guard lock(mutex_);
  return Available();
}

std::size_t PhysicalPool::free_chunks() const {
  std::lock_guard lock(mutex_);
  return pool_.free().small;
}

absl::StatusOr<bool> PhysicalPool::Rebalance() {
  if (!balance_) return false;
  Handles released;
  HandleCounts create;
  {
    std::lock_guard lock(mutex_);
    if (!fill_status_.ok()) return fill_status_;
    if (!(pool_.total() == planned_)) return false;  // still being filled
    const auto exchange = memory::NextExchange(pool_.free(), sizes_, *balance_);
    if (!exchange || !pool_.Remove(exchange->release, released)) return false;
    create = exchange->create;
    planned_.small += create.small - released.small.size();
    planned_.large += create.large - released.large.size();
  }
  Release(released);
  absl::Status status;
  for (std::size_t i = 0; i < create.small && status.ok(); ++i) status = AddHandle(false);
  for (std::size_t i = 0; i < create.large && status.ok(); ++i) status = AddHandle(true);
  if (status.ok()) return true;
  GiveUp(status);
  return status;
}

}  // namespace torpor::executor
