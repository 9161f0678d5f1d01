#include "server/executor/image/block_hasher.h"

#include <algorithm>

#include "base/status_macros.h"

namespace torpor::executor {

// The PTX of block_hash.cu; the build makes it.
extern const char kBlockHashPtx[];

namespace {

constexpr unsigned kThreads = 256;  // as in block_hash.cu
constexpr unsigned kVectorsPerBlock = wire::kImageBlockBytes / 16;
// 8 GiB of memory at a time; also a grid that every GPU takes.
constexpr std::size_t kMaxResults = std::size_t{128} * 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<KernelBlockHasher>> KernelBlockHasher::Open(const Device& device) {
  std::unique_ptr<KernelBlockHasher> hasher(new KernelBlockHasher(device));
  TORPOR_RETURN_IF_ERROR(hasher->Load());
  TORPOR_RETURN_IF_ERROR(hasher->HashZeros());
  return hasher;
}

absl::Status KernelBlockHasher::Load() {
  const CudaDriver& driver = device_.driver();
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.ModuleLoadData(&module_, kBlockHashPtx),
                                        "loading the kernel that hashes memory"));
  unsigned count = 1;
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.ModuleEnumerateFunctions(&kernel_, count, module_),
                                        "finding the kernel that hashes memory"));
  void* results = nullptr;
  TORPOR_RETURN_IF_ERROR(
      device_.Status(driver.MemHostAlloc(&results, kMaxResults * sizeof(std::uint64_t), 0),
                     "allocating room for hashes"));
  MutexLock lock(&mutex_);
  results_ = static_cast<std::uint64_t*>(results);
  return absl::OkStatus();
}

absl::Status KernelBlockHasher::HashZeros() {
  BlockRun zeros{0, 1};
  {
    // The last of the room for results is read, the first written.
    MutexLock lock(&mutex_);
    std::uint64_t* const block =
        results_ + kMaxResults - wire::kImageBlockBytes / sizeof(*results_);
    std::fill_n(block, wire::kImageBlockBytes / sizeof(*results_), 0);
    zeros.address = reinterpret_cast<std::uint64_t>(block);
  }
  TORPOR_ASSIGN_OR_RETURN(const CUstream stream, device_.CreateStream());
  const auto hashes = Hash({&zeros, 1}, stream);
  device_.driver().StreamDestroy(stream);
  if (hashes.ok()) zero_hash_ = hashes->front();
  return hashes.status();
}

KernelBlockHasher::~KernelBlockHasher() {
  MutexLock lock(&mutex_);
  if (results_ != nullptr) device_.driver().MemFreeHost(results_);
  if (module_ != nullptr) device_.driver().ModuleUnload(module_);
}

absl::StatusOr<std::vector<std::uint64_t>> KernelBlockHasher::Hash(std::span<const BlockRun> runs,
                                                                   CUstream stream) {
  std::vector<std::uint64_t> hashes;
  std::size_t pending = 0;
  MutexLock lock(&mutex_);
  const auto collect = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const CUresult done = device_.driver().StreamSynchronize(stream);
    hashes.insert(hashes.end(), results_, results_ + pending);
    pending = 0;
    return device_.Status(done, "hashing memory");
  };
  for (BlockRun run : runs) {
    while (run.blocks > 0) {
      const absl::StatusOr<std::size_t> taken = Enqueue(run, pending, stream);
      if (!taken.ok()) {
        // What was launched still writes to the results.
        collect().IgnoreError();
        return taken.status();
      }
      run.address += *taken * wire::kImageBlockBytes;
      run.blocks -= *taken;
      pending += *taken;
      if (pending == kMaxResults) TORPOR_RETURN_IF_ERROR(collect());
    }
  }
  TORPOR_RETURN_IF_ERROR(collect());
  return hashes;
}

absl::StatusOr<std::size_t> KernelBlockHasher::Enqueue(const BlockRun& run, std::size_t first,
                                                       CUstream stream) {
  const std::size_t blocks = std::min(run.blocks, kMaxResults - first);
  std::uint64_t address = run.address;
  unsigned vectors = kVectorsPerBlock;
  // The driver addresses the whole machine alike: host memory of its own is where the host sees it.
  std::uint64_t* results = results_ + first;
  void* parameters[] = {&address, &vectors, &results};
  TORPOR_RETURN_IF_ERROR(
      device_.Status(device_.driver().LaunchKernel(kernel_, static_cast<unsigned>(blocks), 1, 1,
                                                   kThreads, 1, 1, 0, stream, parameters, nullptr),
                     "launching the kernel that hashes memory"));
  return blocks;
}

}  // namespace torpor::executor
