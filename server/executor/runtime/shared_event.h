#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "server/executor/session_memory/session_window.h"

namespace torpor::executor {

// An event that sessions of a function record and wait for, whatever executor each is on: two slots
// of the completion page of the session that created it. One has the number of the latest record,
// the other that of the latest that has completed. Numbers begin with the lease, which all sessions
// of a function have at the same time, and grow. Leases end drained: a record of another lease than
// the present one is complete, or was lost with its executor.
//
// Any thread. The page is the clients' to write: nothing here trusts what it says.
class SharedEvent {
 public:
  // Nothing if there are no such slots. `window` must outlive it, and the work of `Record` and
  // `Await`.
  static std::optional<SharedEvent> At(SessionWindow& window, std::uint32_t issued_slot,
                                       std::uint32_t done_slot, LeaseId lease);

  // Whoever waits after it has returned waits for what `stream` has got so far.
  CUresult Record(CUstream stream) const;
  // Later work of `stream` waits for the latest record.
  CUresult Await(CUstream stream) const;
  bool IsComplete() const;

 private:
  SharedEvent(SessionWindow& window, std::uint32_t issued_slot, std::uint32_t done_slot,
              LeaseId lease)
      : window_(window), issued_slot_(issued_slot), done_slot_(done_slot), lease_(lease) {}

  // Whether work of the present lease must complete before record `number` has.
  bool IsPending(std::uint64_t number) const;
  std::atomic<std::uint64_t>& issued() const { return *window_.Slot(issued_slot_); }
  std::atomic<std::uint64_t>& done() const { return *window_.Slot(done_slot_); }

  SessionWindow& window_;
  const std::uint32_t issued_slot_;
  const std::uint32_t done_slot_;
  const LeaseId lease_;
};

}  // namespace torpor::executor
