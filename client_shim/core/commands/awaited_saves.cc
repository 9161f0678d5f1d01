#include "client_shim/core/commands/awaited_saves.h"

#include <utility>

namespace torpor::shim {

void AwaitedSaves::Begin() {
  begun_.insert(begun_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
}

void AwaitedSaves::Restart() {
  waiting_.insert(waiting_.begin(), begun_.begin(), begun_.end());
  begun_.clear();
}

void AwaitedSaves::Answer(Outcome outcome, const std::string& why) {
  for (const std::uint64_t id : std::exchange(begun_, {}))
    daemon_.Send(wire::SaveMemoryReply{id, outcome, why});
}

void AwaitedSaves::AnswerAllWithoutLease() {
  Begin();
  Answer(Outcome::kNoLease);
}

void AwaitedSaves::Clear() {
  waiting_.clear();
  begun_.clear();
}

}  // namespace torpor::shim
