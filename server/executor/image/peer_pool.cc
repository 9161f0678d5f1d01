#include "server/executor/image/peer_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/executor/gpu/device_mapping.h"

namespace torpor::executor {
namespace {

// No GPU has as much.
constexpr Bytes kMaxPoolBytes = Bytes{1} << 42;
constexpr Bytes kMinChunkBytes = 4 * kKiB;

// Calls `use` with each maximal run of consecutive numbers, [first, last], of ascending `chunks`.
template <typename Use>
absl::Status ForEachRun(const std::vector<PeerPool::Number>& chunks, const Use& use) {
  for (std::size_t i = 0; i < chunks.size();) {
    std::size_t next = i + 1;
    while (next < chunks.size() && chunks[next] == chunks[next - 1] + 1) ++next;
    TORPOR_RETURN_IF_ERROR(use(chunks[i], chunks[next - 1]));
    i = next;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<PeerPool>> PeerPool::Reserve(const Device& device,
                                                            const PoolDescription& what) {
  const bool is_sound = what.chunk_bytes >= kMinChunkBytes && what.chunk_bytes <= kMaxPoolBytes &&
                        what.chunks > 0 && what.chunks <= kMaxPoolBytes / what.chunk_bytes;
  if (!is_sound) {
    return absl::InvalidArgumentError(absl::StrCat("a peer describes a pool of ", what.chunks,
                                                   " chunks of ", what.chunk_bytes, " bytes"));
  }
  std::shared_ptr<PeerPool> pool(new PeerPool(device, what));
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().MemAddressReserve(&pool->base_, what.chunks * what.chunk_bytes,
                                                      what.chunk_bytes, 0, 0),
                    "cuMemAddressReserve for a peer's pool"));
  return pool;
}

PeerPool::~PeerPool() {
  if (base_ == 0) return;
  const CudaDriver& driver = device_.driver();
  std::vector<Number> mapped;
  {
    MutexLock lock(&mutex_);
    for (Number i = 0; i < states_.size(); ++i) {
      if (states_[i] == State::kMapped) mapped.push_back(i);
    }
  }
  ForEachRun(mapped, [&](Number first, Number last) {
    driver.MemUnmap(AddressOf(first), (last - first + 1) * what_.chunk_bytes);
    return absl::OkStatus();
  }).IgnoreError();
  driver.MemAddressFree(base_, what_.chunks * what_.chunk_bytes);
}

absl::Status PeerPool::CheckNumber(Number chunk) const {
  if (chunk < what_.chunks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a peer names chunk ", chunk, " of its ", what_.chunks));
}

absl::StatusOr<bool> PeerPool::Has(std::span<const Number> chunks) const {
  for (const Number chunk : chunks) TORPOR_RETURN_IF_ERROR(CheckNumber(chunk));
  ReaderMutexLock lock(&mutex_);
  return std::ranges::all_of(chunks, [this](Number chunk) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return states_[chunk] == State::kMapped;
  });
}

absl::Status PeerPool::Import(const std::map<Number, UniqueFd>& chunks) {
  for (const auto& [chunk, descriptor] : chunks) TORPOR_RETURN_IF_ERROR(CheckNumber(chunk));
  const std::vector<Number> claimed = Claim(chunks);
  const absl::Status mapped = MapAll(claimed, chunks);
  Settle(claimed, mapped.ok() ? State::kMapped : State::kAbsent);
  TORPOR_RETURN_IF_ERROR(mapped);
  AwaitOthers(chunks);
  std::vector<Number> numbers;
  numbers.reserve(chunks.size());
  for (const auto& [chunk, descriptor] : chunks) numbers.push_back(chunk);
  TORPOR_ASSIGN_OR_RETURN(const bool has_all, Has(numbers));
  // Another thread has failed, and has logged the reason.
  if (!has_all) return absl::UnavailableError("another swap-in could not map a peer's chunks");
  return absl::OkStatus();
}

std::vector<PeerPool::Number> PeerPool::Claim(const std::map<Number, UniqueFd>& chunks) {
  std::vector<Number> claimed;
  MutexLock lock(&mutex_);
  for (const auto& [chunk, descriptor] : chunks) {
    if (states_[chunk] != State::kAbsent) continue;
    states_[chunk] = State::kComing;
    claimed.push_back(chunk);
  }
  return claimed;
}

absl::Status PeerPool::MapAll(const std::vector<Number>& claimed,
                              const std::map<Number, UniqueFd>& chunks) {
  absl::Status status;
  std::size_t mapped = 0;
  while (mapped < claimed.size()) {
    const Number chunk = claimed[mapped];
    status = MapImported(device_, chunks.at(chunk), AddressOf(chunk), what_.chunk_bytes);
    if (!status.ok()) break;
    ++mapped;
  }
  if (status.ok()) {
    status = ForEachRun(claimed, [this](Number first, Number last) {
      return AllowAccess(device_, AddressOf(first), (last - first + 1) * what_.chunk_bytes);
    });
  }
  if (status.ok()) return status;
  for (std::size_t i = 0; i < mapped; ++i) {
    device_.driver().MemUnmap(AddressOf(claimed[i]), what_.chunk_bytes);
  }
  return status;
}

void PeerPool::Settle(const std::vector<Number>& claimed, State state) {
  MutexLock lock(&mutex_);
  for (const Number chunk : claimed) states_[chunk] = state;
  settled_.SignalAll();
}

void PeerPool::AwaitOthers(const std::map<Number, UniqueFd>& chunks) {
  const auto is_coming = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::ranges::any_of(chunks,
                               [this](const auto& chunk) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
                                 return states_[chunk.first] == State::kComing;
                               });
  };
  MutexLock lock(&mutex_);
  while (is_coming()) mutex_.WaitFor(settled_, absl::Seconds(1));
}

std::size_t PeerPool::mapped_chunks() const {
  ReaderMutexLock lock(&mutex_);
  return static_cast<std::size_t>(std::ranges::count(states_, State::kMapped));
}

}  // namespace torpor::executor
