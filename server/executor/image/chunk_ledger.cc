#include "server/executor/image/chunk_ledger.h"

#include <algorithm>

#include "base/check.h"

namespace torpor::executor {

ChunkLedger::ChunkLedger(std::size_t chunks) : chunks_(chunks) {
  for (std::size_t number = chunks; number-- > 0;) Free(static_cast<Number>(number));
}

bool ChunkLedger::Holds(Holder holder) const {
  return std::ranges::any_of(chunks_,
                             [holder](const Chunk& chunk) { return chunk.holder == holder; });
}

ChunkLedger::Taken ChunkLedger::Take(Holder holder, Domain domain, std::size_t count) {
  TORPOR_CHECK(count <= free_);
  Taken taken;
  TakeOf(domain, count, taken.chunks);
  TakeOf(std::nullopt, count - taken.chunks.size(), taken.chunks);
  taken.clean = taken.chunks.size();
  while (taken.chunks.size() < count) {
    TakeOf(by_last_use_.begin()->first, count - taken.chunks.size(), taken.chunks);
  }
  for (const Number number : taken.chunks) {
    chunks_[number].holder = holder;
    chunks_[number].domain = domain;
  }
  free_ -= count;
  return taken;
}

void ChunkLedger::TakeOf(LastUse last_use, std::size_t count, std::vector<Number>& taken) {
  const auto found = by_last_use_.find(last_use);
  if (found == by_last_use_.end()) return;
  std::vector<Number>& free = found->second;
  const auto first = free.end() - static_cast<std::ptrdiff_t>(std::min(count, free.size()));
  taken.insert(taken.end(), first, free.end());
  free.erase(first, free.end());
  if (free.empty()) by_last_use_.erase(found);
}

void ChunkLedger::Undo(const Taken& taken) {
  for (const Number number : taken.chunks) Free(number);
}

bool ChunkLedger::Return(Holder holder, std::span<const Number> chunks) {
  std::vector<Number> sorted(chunks.begin(), chunks.end());
  std::ranges::sort(sorted);
  const bool comes_twice = std::ranges::adjacent_find(sorted) != sorted.end();
  const bool are_held = std::ranges::all_of(sorted, [&](Number number) {
    return number < chunks_.size() && chunks_[number].holder == holder;
  });
  if (comes_twice || !are_held) return false;
  for (const Number number : chunks) {
    chunks_[number].last_use = chunks_[number].domain;
    Free(number);
  }
  return true;
}

void ChunkLedger::ReturnAll(Holder holder) {
  std::vector<Number> held;
  for (Number number = 0; number < chunks_.size(); ++number) {
    if (chunks_[number].holder == holder) held.push_back(number);
  }
  TORPOR_CHECK(Return(holder, held));
}

void ChunkLedger::Free(Number number) {
  chunks_[number].holder.reset();
  by_last_use_[chunks_[number].last_use].push_back(number);
  ++free_;
}

}  // namespace torpor::executor
