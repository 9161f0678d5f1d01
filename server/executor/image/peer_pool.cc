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
  std::vector<Number> mapped;
  {
    MutexLock lock(&mutex_);
    for (Number i = 0; i < states_.size(); ++i) {
      if (states_[i] == State::kMapped) mapped.push_back(i);
    }
  }
  Unmap(mapped);
  device_.driver().MemAddressFree(base_, what_.chunks * what_.chunk_bytes);
}

void PeerPool::Unmap(const std::vector<Number>& chunks) {
  ForEachRun(chunks, [this](Number first, Number last) {
    device_.driver().MemUnmap(AddressOf(first), (last - first + 1) * what_.chunk_bytes);
    return absl::OkStatus();
  }).IgnoreError();
}

absl::Status PeerPool::CheckNumbers(std::span<const Number> chunks) const {
  const auto outside =
      std::ranges::find_if(chunks, [this](Number chunk) { return chunk >= what_.chunks; });
  if (outside == chunks.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a peer names chunk ", *outside, " of its ", what_.chunks));
}

absl::Status PeerPool::Use(std::span<const Number> chunks) {
  TORPOR_RETURN_IF_ERROR(CheckNumbers(chunks));
  MutexLock lock(&mutex_);
  AwaitEndOf(State::kLeaving, chunks);
  for (const Number chunk : chunks) ++users_[chunk];
  return absl::OkStatus();
}

void PeerPool::LetGo(std::span<const Number> chunks) {
  std::vector<Number> leaving;
  {
    MutexLock lock(&mutex_);
    for (const Number chunk : chunks) {
      --users_[chunk];
      if (keeps_mappings_ || !IsUnused(chunk)) continue;
      states_[chunk] = State::kLeaving;
      leaving.push_back(chunk);
    }
  }
  std::ranges::sort(leaving);
  Leave(leaving);
}

void PeerPool::UnmapAfterUse() {
  std::vector<Number> leaving;
  {
    MutexLock lock(&mutex_);
    keeps_mappings_ = false;
    for (Number chunk = 0; chunk < states_.size(); ++chunk) {
      if (!IsUnused(chunk)) continue;
      states_[chunk] = State::kLeaving;
      leaving.push_back(chunk);
    }
  }
  Leave(leaving);
}

void PeerPool::Leave(const std::vector<Number>& chunks) {
  Unmap(chunks);
  Settle(chunks, State::kAbsent);
}

absl::StatusOr<bool> PeerPool::Has(std::span<const Number> chunks) const {
  TORPOR_RETURN_IF_ERROR(CheckNumbers(chunks));
  ReaderMutexLock lock(&mutex_);
  return std::ranges::all_of(chunks, [this](Number chunk) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return states_[chunk] == State::kMapped;
  });
}

absl::Status PeerPool::Import(const std::map<Number, UniqueFd>& chunks) {
  std::vector<Number> numbers;
  numbers.reserve(chunks.size());
  for (const auto& [chunk, descriptor] : chunks) numbers.push_back(chunk);
  TORPOR_RETURN_IF_ERROR(CheckNumbers(numbers));
  const std::vector<Number> claimed = Claim(chunks);
  const absl::Status mapped = MapAll(claimed, chunks);
  Settle(claimed, mapped.ok() ? State::kMapped : State::kAbsent);
  TORPOR_RETURN_IF_ERROR(mapped);
  {
    MutexLock lock(&mutex_);
    AwaitEndOf(State::kComing, numbers);
  }
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

void PeerPool::AwaitEndOf(State state, std::span<const Number> chunks) {
  const auto is_any = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::ranges::any_of(chunks, [&](Number chunk) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return states_[chunk] == state;
    });
  };
  while (is_any()) mutex_.WaitFor(settled_, absl::Seconds(1));
}

std::size_t PeerPool::mapped_chunks() const {
  ReaderMutexLock lock(&mutex_);
  return static_cast<std::size_t>(std::ranges::count(states_, State::kMapped));
}

}  // namespace torpor::executor
