#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client_shim/core/transport/daemon_port.h"
#include "proto/wire/control_messages.h"

namespace torpor::shim {

// The daemon's requests for a checkpoint (wire::SaveMemory), until each has an answer. A checkpoint
// serves the requests that came before it began. Not thread-safe.
class AwaitedSaves {
 public:
  using Outcome = wire::SaveMemoryReply::Outcome;

  // `daemon` must outlive this object.
  explicit AwaitedSaves(DaemonPort& daemon) : daemon_(daemon) {}

  void Add(const wire::SaveMemory& save) { waiting_.push_back(save.save_id); }
  // Whether a request has no checkpoint yet.
  bool HasWaiting() const { return !waiting_.empty(); }
  // A checkpoint begins, for all requests that wait.
  void Begin();
  // The executor has gone in the middle of the checkpoint: its requests wait again.
  void Restart();
  // The checkpoint has ended. `why` is the reason of kFailed, else empty.
  void Answer(Outcome outcome, const std::string& why = "");
  // There is no lease for a checkpoint.
  void AnswerAllWithoutLease();
  // The daemon that asked has gone.
  void Clear();

 private:
  DaemonPort& daemon_;
  std::vector<std::uint64_t> waiting_;
  std::vector<std::uint64_t> begun_;
};

}  // namespace torpor::shim
