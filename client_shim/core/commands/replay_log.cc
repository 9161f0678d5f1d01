#include "client_shim/core/commands/replay_log.h"

#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/units.h"
#include "proto/wire/batch.h"

namespace torpor::shim {
namespace {

// Calls `visit` with the call's id and fields of each command of the call table.
template <typename Visit>
void ForEachCommand(std::span<const std::uint8_t> commands, const Visit& visit) {
  while (!commands.empty()) {
    wire::CommandHeader header;
    std::memcpy(&header, commands.data(), sizeof header);
    if (header.call_id >= wire::kFirstTableCall) {
      visit(header.call_id, commands.subspan(sizeof header, header.size_bytes - sizeof header));
    }
    commands = commands.subspan(header.size_bytes);
  }
}

constexpr std::size_t kCacheLineBytes = 64;

// The least copy that pays the wait for the stores at its end.
constexpr std::size_t kLeastStreamedBytes = 1024;

// Copies to memory past the caches: the record is hardly ever read, and a line of the caches that
// is only written would be fetched from memory first. `to` begins a cache line.
void Stream(std::uint8_t* to, std::span<const std::uint8_t> from) {
#ifdef __SSE2__
  const bool is_streamed = from.size() >= kLeastStreamedBytes;
  while (is_streamed && from.size() >= kCacheLineBytes) {
    const auto* const lane_from = reinterpret_cast<const __m128i*>(from.data());
    auto* const lane_to = reinterpret_cast<__m128i*>(to);
    constexpr std::size_t kLanes = kCacheLineBytes / sizeof(__m128i);
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      _mm_stream_si128(lane_to + lane, _mm_loadu_si128(lane_from + lane));
    to += kCacheLineBytes;
    from = from.subspan(kCacheLineBytes);
  }
  if (is_streamed) _mm_sfence();
#endif
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

void JournalChange::ApplyTo(Journal& journal) const {
  switch (kind) {
    case Kind::kCreate:
      return journal.Create(handle, command());
    case Kind::kConfigure:
      journal.Configure(handle, command(), key);
      return;
    case Kind::kDestroy:
      journal.Destroy(handle, command());
      return;
  }
}

void ReplayLog::Append(std::uint64_t first, std::uint64_t count,
                       std::span<const std::uint8_t> commands) {
  if (count == 0) return;
  std::uint8_t* const data = Room(commands.size());
  Stream(data, commands);
  batches_.push_back({first, first + count, data, commands.size()});
  last_ = first + count - 1;
}

// Memory without content: each byte is written before it is read.
ReplayLog::Block ReplayLog::NewBlock(std::size_t capacity) {
  const bool is_huge = capacity % kBlockBytes == 0;
  void* const memory = std::aligned_alloc(is_huge ? kBlockBytes : kCacheLineBytes, capacity);
  if (memory == nullptr) throw std::bad_alloc();
  if (is_huge) madvise(memory, capacity, MADV_HUGEPAGE);  // without huge pages it is only slower
  Block block;
  block.data.reset(static_cast<std::uint8_t*>(memory));
  block.capacity = capacity;
  return block;
}

void ReplayLog::AddBlock(std::size_t bytes) {
  if (blocks_.empty() && bytes <= kFirstBlockBytes) {
    blocks_.push_back(NewBlock(kFirstBlockBytes));
  } else if (bytes <= kBlockBytes && !spares_.empty()) {
    blocks_.push_back(std::move(spares_.back()));
    spares_.pop_back();
  } else {
    blocks_.push_back(NewBlock(RoundUp(bytes, kBlockBytes)));
  }
}

// Room for a batch in one piece, at the begin of a cache line.
std::uint8_t* ReplayLog::Room(std::size_t bytes) {
  bytes = RoundUp(bytes, kCacheLineBytes);
  if (blocks_.empty() || blocks_.back().capacity - blocks_.back().used < bytes) AddBlock(bytes);
  Block& block = blocks_.back();
  std::uint8_t* const room = block.data.get() + block.used;
  block.used += bytes;
  ++block.batches;
  bytes_ += bytes;
  return room;
}

void ReplayLog::DropBatch() {
  bytes_ -= RoundUp(batches_.front().bytes, kCacheLineBytes);
  batches_.pop_front();
  // A block without a batch is behind none with one: it was too small for the next batch.
  while (blocks_.front().batches == 0) DropBlock();
  Block& block = blocks_.front();
  if (--block.batches > 0) return;
  // The last block goes on being filled, from its begin.
  if (blocks_.size() > 1 || block.capacity > kBlockBytes) return DropBlock();
  block.used = 0;
}

void ReplayLog::DropBlock() {
  Block& block = blocks_.front();
  block.used = 0;
  if (block.capacity == kBlockBytes && spares_.size() < kMostSpares) {
    spares_.push_back(std::move(block));
  }
  blocks_.pop_front();
}

void ReplayLog::NoteChange(JournalChange change, std::uint64_t number, bool is_command) {
  bytes_ += sizeof(Change) + change.fields.size();
  changes_.push_back({number, is_command, std::move(change)});
}

void ReplayLog::NoteCall(std::uint64_t number) {
  bytes_ += sizeof(Call);
  calls_.push_back({number, std::nullopt});
}

const ReplayLog::Call* ReplayLog::Find(std::uint64_t number) const {
  const auto found = std::ranges::lower_bound(calls_, number, {}, &Call::number);
  return found == calls_.end() || found->number != number ? nullptr : &*found;
}

void ReplayLog::NoteSeen(std::uint64_t number, const Seen& seen) {
  if (const Call* const call = Find(number)) const_cast<Call*>(call)->seen = seen;
}

bool ReplayLog::FindCall(std::uint64_t number, std::optional<Seen>& seen) const {
  const Call* const call = Find(number);
  if (call) seen = call->seen;
  return call != nullptr;
}

bool ReplayLog::TrimTo(std::uint64_t saved) {
  if (saved < saved_) return saved_is_free_;
  if (saved > last_) return false;
  // A change behind the last command saved belongs to the objects either way.
  while (!changes_.empty() && changes_.front().number <= saved) {
    const Change& front = changes_.front();
    front.change.ApplyTo(objects_);
    bytes_ -= sizeof(Change) + front.change.fields.size();
    changes_.pop_front();
  }
  while (!calls_.empty() && calls_.front().number <= saved) {
    bytes_ -= sizeof(Call);
    calls_.pop_front();
  }
  while (!batches_.empty() && batches_.front().end <= saved + 1) DropBatch();
  saved_is_free_ = saved_is_free_ && saved == saved_;
  saved_ = saved;
  return true;
}

void ReplayLog::Restart(std::uint64_t number) {
  last_ = std::max(last_, number);
  TrimTo(number);
  saved_is_free_ = true;
}

void ReplayLog::Visit(const Visitor& visitor) const {
  auto change = changes_.begin();
  const auto visit_changes_before = [&](std::uint64_t number) {
    for (; change != changes_.end() && change->number < number; ++change)
      if (!change->is_command) visitor.on_change(change->change);
  };
  for (const Batch& batch : batches_) {
    std::uint64_t number = batch.first;
    ForEachCommand({batch.data, batch.bytes}, [&](std::uint32_t call_id, auto fields) {
      visit_changes_before(number);
      if (number > saved_) visitor.on_command(number, {call_id, fields});
      ++number;
    });
  }
  visit_changes_before(~std::uint64_t{0});
}

}  // namespace torpor::shim
