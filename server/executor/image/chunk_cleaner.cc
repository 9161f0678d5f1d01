#include "server/executor/image/chunk_cleaner.h"

#include "base/status_macros.h"
#include "server/executor/gpu/device_mapping.h"

namespace torpor::executor {

ChunkCleaner::ChunkCleaner(const Device& device, const PhysicalPool& pool)
    : device_(device), pool_(pool), is_mapped_(pool.chunks()) {}

ChunkCleaner::~ChunkCleaner() {
  if (base_ == 0) return;
  const CudaDriver& driver = device_.driver();
  for (std::uint32_t number = 0; number < is_mapped_.size(); ++number) {
    if (is_mapped_[number]) driver.MemUnmap(AddressOf(number), pool_.chunk_bytes());
  }
  driver.MemAddressFree(base_, pool_.pool_bytes());
  if (stream_ != nullptr) driver.StreamDestroy(stream_);
}

absl::Status ChunkCleaner::Clear(std::span<const std::uint32_t> numbers) {
  TORPOR_RETURN_IF_ERROR(Prepare());
  for (const std::uint32_t number : numbers) TORPOR_RETURN_IF_ERROR(Map(number));
  absl::Status status = Fill(numbers);
  // After an error too: a fill of a chunk that stays free could come behind its next user's bytes.
  status.Update(device_.Status(device_.driver().StreamSynchronize(stream_), "cuStreamSynchronize"));
  return status;
}

absl::Status ChunkCleaner::Prepare() {
  if (stream_ == nullptr) {
    TORPOR_ASSIGN_OR_RETURN(stream_, device_.CreateStream());
  }
  if (base_ != 0) return absl::OkStatus();
  return device_.Status(device_.driver().MemAddressReserve(&base_, pool_.pool_bytes(), 0, 0, 0),
                        "cuMemAddressReserve to clear chunks");
}

absl::Status ChunkCleaner::Map(std::uint32_t number) {
  if (is_mapped_[number]) return absl::OkStatus();
  const CudaDriver& driver = device_.driver();
  TORPOR_RETURN_IF_ERROR(device_.Status(
      driver.MemMap(AddressOf(number), pool_.chunk_bytes(), 0, pool_.HandleOf(number), 0),
      "cuMemMap to clear a chunk"));
  absl::Status allowed = AllowAccess(device_, AddressOf(number), pool_.chunk_bytes());
  if (!allowed.ok()) driver.MemUnmap(AddressOf(number), pool_.chunk_bytes());
  is_mapped_[number] = allowed.ok();
  return allowed;
}

// A fill may be a kernel, and then waits for this context's time slice while executors' kernels
// run. A copy engine would not wait, but copies zeros only from memory that this process would have
// to hold.
absl::Status ChunkCleaner::Fill(std::span<const std::uint32_t> numbers) {
  for (const std::uint32_t number : numbers) {
    TORPOR_RETURN_IF_ERROR(device_.Status(
        device_.driver().MemsetD32Async(AddressOf(number), 0,
                                        pool_.chunk_bytes() / sizeof(std::uint32_t), stream_),
        "cuMemsetD32Async of a chunk"));
  }
  return absl::OkStatus();
}

}  // namespace torpor::executor
