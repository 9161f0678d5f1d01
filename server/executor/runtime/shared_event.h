#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "server/executor/session_memory/session_window.h"

namespace torpor::executor {

// An event that sessions of a function record and wait for, on any executor: two slots of the
// completion page of the session that created the event. The issued slot has the number of the
// latest record, the done slot the number of the latest complete record. Numbers begin with the
// lease, which all sessions of a function have at the same time, and grow. Leases end drained: a
// record of another lease than the present is complete, or was lost with the executor.
//
// Thread-safe. Clients may write to the page, so its contents are not trusted.
class SharedEvent {
 public:
  // Returns nullopt if there are no such slots, or if both are the same. `window` must outlive the
  // event and the work of `Record` and `Await`.
  static std::optional<SharedEvent> At(SessionWindow& window, std::uint32_t issued_slot,
                                       std::uint32_t done_slot, LeaseId lease);

  // Records the present work of `stream`; a later Await waits for that work.
  CUresult Record(CUstream stream) const;
  // Later work of `stream` waits for the latest record.
  CUresult Await(CUstream stream) const;
  bool IsComplete() const;

 private:
  SharedEvent(SessionWindow& window, std::uint32_t issued_slot, std::uint32_t done_slot,
              LeaseId lease)
      : window_(window), issued_slot_(issued_slot), done_slot_(done_slot), lease_(lease) {}

  // Whether record `number` still waits for work of the present lease.
  bool IsPending(std::uint64_t number) const;
  std::atomic<std::uint64_t>& issued() const { return *window_.Slot(issued_slot_); }
  std::atomic<std::uint64_t>& done() const { return *window_.Slot(done_slot_); }

  SessionWindow& window_;
  const std::uint32_t issued_slot_;
  const std::uint32_t done_slot_;
  const LeaseId lease_;
};

}  // namespace torpor::executor
