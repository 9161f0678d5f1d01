#include "server/executor/image/physical_pool.h"

#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "server/executor/gpu/device_mapping.h"
#include "server/executor/gpu/expected_failures.h"
#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {
namespace {

CUmemAllocationProp HandleProperties(const Device& device, bool can_export) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = device.location();
  // Allows sharing with executors of other GPUs that a function uses at the same time.
  if (can_export) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

absl::StatusOr<CUmemGenericAllocationHandle> CreateChunk(const Device& device, Bytes bytes,
                                                         bool can_export) {
  const CUmemAllocationProp properties = HandleProperties(device, can_export);
  CUmemGenericAllocationHandle handle = 0;
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().MemCreate(&handle, bytes, &properties, 0), "cuMemCreate"));
  return handle;
}

// Creates and exports a chunk that other processes could map.
absl::Status TryExport(const Device& device, Bytes chunk_bytes) {
  TORPOR_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle handle,
                          CreateChunk(device, chunk_bytes, true));
  const absl::StatusOr<UniqueFd> exported = ExportMemory(device, handle);
  device.driver().MemRelease(handle);
  return exported.status();
}

bool CanExport(const Device& device, Bytes chunk_bytes) {
  if (device.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
    return false;
  }
  const ExpectedFailures in_a_sandbox;
  const absl::Status tried = TryExport(device, chunk_bytes);
  if (!tried.ok()) {
    spdlog::warn("GPU memory cannot be shared with other GPUs' executors: {}", tried.ToString());
  }
  return tried.ok();
}

absl::Status CheckSizes(const Device& device, Bytes pool_bytes, Bytes chunk_bytes) {
  const CUmemAllocationProp properties = HandleProperties(device, false);
  std::size_t granularity = 0;
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().MemGetAllocationGranularity(&granularity, &properties,
                                                                CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                    "cuMemGetAllocationGranularity"));
  if (chunk_bytes == 0 || chunk_bytes % granularity != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk of ", chunk_bytes,
                                                   " bytes is not a multiple of the driver's ",
                                                   granularity, "; set chunk_bytes"));
  }
  if (pool_bytes < chunk_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the GPU has ", pool_bytes,
                                                   " bytes for images, less than one chunk of ",
                                                   chunk_bytes, "; lower driver_reserve"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PhysicalPool>> PhysicalPool::Create(const Device& device,
                                                                   Bytes pool_bytes,
                                                                   Bytes chunk_bytes,
                                                                   Bytes reserve) {
  TORPOR_RETURN_IF_ERROR(CheckSizes(device, pool_bytes, chunk_bytes));
  std::unique_ptr<PhysicalPool> pool(
      new PhysicalPool(device, chunk_bytes, CanExport(device, chunk_bytes), /*owner=*/nullptr));
  TORPOR_RETURN_IF_ERROR(pool->Fill(pool_bytes / chunk_bytes, reserve));
  return pool;
}

absl::Status PhysicalPool::Fill(std::size_t count, Bytes reserve) {
  std::vector<CUmemGenericAllocationHandle> chunks;
  absl::Status status;
  while (chunks.size() < count) {
    const absl::StatusOr<CUmemGenericAllocationHandle> chunk =
        CreateChunk(device_, chunk_bytes_, can_export_);
    status = chunk.status();
    if (!status.ok()) break;
    chunks.push_back(*chunk);
  }
  if (chunks.empty()) return status;
  if (!status.ok()) {
    // Without memory of its own the driver could load no module.
    const std::size_t back = ChunksToGiveBack(chunks.size(), chunk_bytes_, reserve);
    spdlog::warn(
        "the driver gives less for images than it had reported free: {} of {} MiB, of which {} MiB "
        "go back as its reserve ({}); end other programs on this GPU or lower pool_bytes",
        chunks.size() * chunk_bytes_ / kMiB, count * chunk_bytes_ / kMiB,
        back * chunk_bytes_ / kMiB, status.ToString());
    for (std::size_t i = 0; i < back; ++i) {
      device_.driver().MemRelease(chunks.back());
      chunks.pop_back();
    }
  }
  Add(std::move(chunks));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PhysicalPool>> PhysicalPool::Import(const Device& device,
                                                                   const PoolClient& owner) {
  TORPOR_ASSIGN_OR_RETURN(const PoolDescription what, owner.Open());
  TORPOR_RETURN_IF_ERROR(CheckSizes(device, what.chunk_bytes * what.chunks, what.chunk_bytes));
  std::unique_ptr<PhysicalPool> pool(
      new PhysicalPool(device, what.chunk_bytes, /*can_export=*/true, &owner));
  TORPOR_RETURN_IF_ERROR(pool->ImportAll(what.chunks));
  return pool;
}

absl::Status PhysicalPool::ImportAll(std::uint64_t count) {
  std::vector<CUmemGenericAllocationHandle> chunks;
  absl::Status status;
  while (status.ok() && chunks.size() < count) {
    const auto next =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(count - chunks.size(), kMaxDescriptors));
    absl::StatusOr<std::vector<UniqueFd>> descriptors = owner_->Fetch(chunks.size(), next);
    status = descriptors.status();
    for (std::size_t i = 0; status.ok() && i < descriptors->size(); ++i) {
      const absl::StatusOr<CUmemGenericAllocationHandle> chunk =
          ImportMemory(device_, (*descriptors)[i]);
      status = chunk.status();
      if (status.ok()) chunks.push_back(*chunk);
    }
  }
  Add(std::move(chunks));
  return status;
}

void PhysicalPool::Add(std::vector<CUmemGenericAllocationHandle> chunks) {
  by_number_ = std::move(chunks);
  MutexLock lock(&mutex_);
  for (const CUmemGenericAllocationHandle chunk : by_number_) {
    numbers_.emplace(chunk, static_cast<std::uint32_t>(numbers_.size()));
    if (owner_ == nullptr) own_.Add(chunk);
  }
}

absl::StatusOr<UniqueFd> PhysicalPool::Export(std::uint32_t number) const {
  if (owner_ == nullptr) return ExportMemory(device_, by_number_.at(number));
  // Whether the driver exports what it has imported, its documentation leaves open.
  TORPOR_ASSIGN_OR_RETURN(std::vector<UniqueFd> descriptors, owner_->Fetch(number, 1));
  return std::move(descriptors.front());
}

PhysicalPool::~PhysicalPool() {
  MutexLock lock(&mutex_);
  TORPOR_CHECK(taken_ == 0);
  for (const CUmemGenericAllocationHandle chunk : by_number_) device_.driver().MemRelease(chunk);
}

void PhysicalPool::SetDomain(std::uint64_t domain) {
  MutexLock lock(&mutex_);
  TORPOR_CHECK(!is_domain_final_);
  is_domain_final_ = true;
  domain_ = domain;
}

absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> PhysicalPool::Take(std::size_t count) {
  if (count == 0) return std::vector<CUmemGenericAllocationHandle>();
  return owner_ == nullptr ? TakeOwn(count) : TakeFromOwner(count);
}

absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> PhysicalPool::TakeOwn(std::size_t count) {
  MutexLock lock(&mutex_);
  std::vector<CUmemGenericAllocationHandle> taken;
  if (!own_.Take(count, taken)) return NotEnough(count, own_.free());
  taken_ += count;
  return taken;
}

absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> PhysicalPool::TakeFromOwner(
    std::size_t count) {
  std::uint64_t domain = 0;
  {
    MutexLock lock(&mutex_);
    is_domain_final_ = true;
    domain = domain_;
  }
  const absl::StatusOr<std::vector<std::uint32_t>> numbers = owner_->Take(domain, count);
  if (absl::IsResourceExhausted(numbers.status())) return NotEnough(count, owner_->free_chunks());
  TORPOR_RETURN_IF_ERROR(numbers.status());
  std::vector<CUmemGenericAllocationHandle> taken;
  taken.reserve(count);
  for (const std::uint32_t number : *numbers) taken.push_back(HandleOf(number));
  MutexLock lock(&mutex_);
  taken_ += count;
  return taken;
}

absl::Status PhysicalPool::NotEnough(std::size_t count, std::size_t free) const {
  return absl::ResourceExhaustedError(absl::StrCat("the GPU has ", free, " free chunks of ",
                                                   chunk_bytes_, " bytes, ", count, " are needed"));
}

void PhysicalPool::Return(std::span<const CUmemGenericAllocationHandle> chunks) {
  if (chunks.empty()) return;
  {
    MutexLock lock(&mutex_);
    taken_ -= chunks.size();
    if (owner_ == nullptr) return own_.Return(chunks);
  }
  std::vector<std::uint32_t> numbers;
  numbers.reserve(chunks.size());
  for (const CUmemGenericAllocationHandle chunk : chunks) numbers.push_back(numbers_.at(chunk));
  const absl::Status returned = owner_->Return(numbers);
  if (returned.ok()) return;
  spdlog::error("{} chunks stay this process's until its end: {}", chunks.size(),
                returned.ToString());
}

std::optional<std::uint32_t> PhysicalPool::NumberOf(CUmemGenericAllocationHandle chunk) const {
  const auto found = numbers_.find(chunk);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::size_t PhysicalPool::free_chunks() const {
  if (owner_ != nullptr) return owner_->free_chunks();
  MutexLock lock(&mutex_);
  return own_.free();
}

absl::StatusOr<std::unique_ptr<PhysicalPool>> MakePool(const Device& device, const PoolNeeds& needs,
                                                       Bytes chunk_bytes) {
  const Bytes bytes = PoolBytes(needs);
  const int gpu = device.location().id;
  const std::string of_spare =
      needs.spare > 0 ? absl::StrCat(", ", needs.spare / kMiB, " are for further executors") : "";
  spdlog::info("GPU {}: {} of {} MiB are free, {} MiB stay with the driver{}", gpu,
               needs.free / kMiB, needs.total / kMiB, ReserveOf(needs) / kMiB, of_spare);
  if (bytes < needs.asked) {
    spdlog::warn("GPU {}: pool_bytes asks for {} MiB, and {} MiB may be had; lower driver_reserve",
                 gpu, needs.asked / kMiB, bytes / kMiB);
  }
  return PhysicalPool::Create(device, bytes, chunk_bytes, ReserveOf(needs) + needs.spare);
}

PoolDescription Describe(const PhysicalPool& pool) {
  PoolDescription description{0, pool.chunk_bytes(), pool.chunks()};
  TORPOR_CHECK(getrandom(&description.id, sizeof description.id, 0) == sizeof description.id);
  return description;
}

}  // namespace torpor::executor
