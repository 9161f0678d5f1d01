#pragma once

#include "base/clock.h"
#include "base/units.h"
#include "emulator/node/node_state.h"
#include "emulator/node/route.h"

namespace torpor::emulator {

// One copy on its way over links, which ends no earlier than the model says. It goes in pieces, so
// that others on the same links get their share. For the thread that copies.
class Transfer {
 public:
  // Begins with `size` bytes before it, on a route that is paced.
  Transfer(const Route& route, Bytes size, ModelledWorkCounters& account);

  // How many bytes may be copied before Pass is called; 0 when all have passed.
  Bytes room() const { return room_; }
  // Call when so many bytes, at most room(), have been copied. Sleeps where the links are slower;
  // the last piece also counts the copy in the account.
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
