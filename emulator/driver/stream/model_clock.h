#pragma once

#include "base/clock.h"

namespace torpor::emulator {

// The calling thread's place in modelled time. In the model, a stream's work starts when the work
// before it ended. The thread reaches that work a little later, since it has to wake up and fetch
// the work. ModelClock lets the thread make up for this gap, so that delays do not add up.
class ModelClock {
 public:
  // Begins work that could not have begun earlier than now,
  static void BeginWork();
  // or not before `earliest`.
  static void BeginWork(TimePoint earliest);
  // Ends the work; until the next BeginWork the thread is not part of the model.
  static void EndWork();

  // Returns when the thread's work could begin in the model: now or a little before.
  static TimePoint Ready();
  // Returns the time from which the work's real duration counts: now, less the time that the
  // thread, free and with the work submitted, took to reach it.
  static TimePoint Begun();

  // Sleeps until `end`, the work's end in the model, and returns the time of waking up.
  static TimePoint Reach(TimePoint end);
};

}  // namespace torpor::emulator
