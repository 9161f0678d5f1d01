#pragma once

#include "base/clock.h"
#include "base/units.h"
#include "emulator/node/node_state.h"
#include "emulator/node/route.h"

namespace torpor::emulator {

// One copy over paced links, which ends no earlier than the model says. The copy goes in pieces, so
// that other copies on the same links get their share. Used by the thread that copies.
class Transfer {
 public:
  // Begins a copy of `size` bytes. `route` must be paced, and outlive the transfer with `account`.
  Transfer(const Route& route, Bytes size, ModelledWorkCounters& account);

  // Bytes that may be copied before the next Pass; 0 at the end.
  Bytes room() const { return room_; }
  // Call after copying `size` bytes, at most room(). Sleeps if the links are slower; the last call
  // adds the copy to the account.
  void Pass(Bytes size);

 private:
  void ReservePiece();

  const Route& route_;
  ModelledWorkCounters& account_;
  const TimePoint begun_;     // really
  const TimePoint ready_;     // in the model
  TimePoint reserved_until_;  // in the model
  Bytes left_;                // not reserved yet
  Bytes room_ = 0;
};

}  // namespace torpor::emulator
