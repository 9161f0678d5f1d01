#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "proto/wire/descriptor_socket.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Consecutive blocks of device memory, all mapped.
struct BlockRun {
  std::uint64_t address = 0;  // a multiple of wire::kImageBlockBytes
  std::size_t blocks = 0;
};

// Hashes blocks of GPU memory on the GPU. Thread-safe.
class BlockHasher {
 public:
  virtual ~BlockHasher() = default;

  // Returns the hashes of all blocks of `runs`, in order. Equal bytes have equal hashes on every
  // GPU. Waits for `stream`.
  virtual absl::StatusOr<std::vector<std::uint64_t>> Hash(std::span<const BlockRun> runs,
                                                          CUstream stream) = 0;

  // Hash of a block of zeros.
  virtual std::uint64_t zero_hash() const = 0;
};

// Hashes with a kernel that the driver compiles in Open. `device` must outlive the hasher.
class KernelBlockHasher final : public BlockHasher {
 public:
  static absl::StatusOr<std::unique_ptr<KernelBlockHasher>> Open(const Device& device);
  ~KernelBlockHasher() override;
  KernelBlockHasher(const KernelBlockHasher&) = delete;
  KernelBlockHasher& operator=(const KernelBlockHasher&) = delete;

  absl::StatusOr<std::vector<std::uint64_t>> Hash(std::span<const BlockRun> runs,
                                                  CUstream stream) override;
  std::uint64_t zero_hash() const override { return zero_hash_; }

 private:
  explicit KernelBlockHasher(const Device& device) : device_(device) {}

  absl::Status Load();
  absl::Status HashZeros();
  // Enqueues hashing of the first blocks of `run` into results_ from `first` on, as far as results_
  // has room. Returns the number of blocks.
  absl::StatusOr<std::size_t> Enqueue(const BlockRun& run, std::size_t first, CUstream stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Device& device_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  std::uint64_t zero_hash_ = 0;

  Mutex mutex_;
  // Host memory written by the kernel.
  std::uint64_t* results_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace torpor::executor
