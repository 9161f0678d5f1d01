#include "server/controller/model/shared_blocks.h"

#include <algorithm>
#include <utility>

#include "base/secret.h"

namespace torpor::server {

SessionKey SharedBlocks::Share(Bytes offset) {
  const auto [block, is_new] = blocks_.try_emplace(offset);
  if (is_new) block->second.token = NewSessionKey();
  return block->second.token;
}

bool SharedBlocks::IsFreed(Bytes offset) const {
  const auto block = blocks_.find(offset);
  return block != blocks_.end() && block->second.is_freed;
}

bool SharedBlocks::Matches(Bytes offset, const SessionKey& token) const {
  const auto block = blocks_.find(offset);
  return block != blocks_.end() && !block->second.is_freed &&
         SecretsEqual(block->second.token, token);
}

void SharedBlocks::Open(Bytes offset, SessionId opener) {
  blocks_.at(offset).openers.insert(opener);
  was_opened_ = true;
}

SharedBlocks::Closed SharedBlocks::Close(Bytes offset, SessionId opener) {
  Block& block = blocks_.at(offset);
  block.openers.erase(opener);
  if (!block.openers.empty()) return Closed::kStillOpen;
  if (!block.is_freed) return Closed::kUnused;
  blocks_.erase(offset);
  return Closed::kFreed;
}

SharedBlocks::FreeTime SharedBlocks::Free(Bytes offset) {
  const auto block = blocks_.find(offset);
  if (block == blocks_.end()) return FreeTime::kNow;
  if (std::exchange(block->second.is_freed, true)) return FreeTime::kFreedAlready;
  if (!block->second.openers.empty()) return FreeTime::kWhenClosed;
  blocks_.erase(block);
  return FreeTime::kNow;
}

bool SharedBlocks::is_open() const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [](const auto& block) { return !block.second.openers.empty(); });
}

}  // namespace torpor::server
