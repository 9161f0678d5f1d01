#pragma once

#include "base/clock.h"

namespace torpor::emulator {

// The calling thread's place in modelled time. Work of a stream follows in the model where the work
// before it ended, which is a little before the thread, that had to wake up and to fetch the work,
// comes to it: it may make up for that much, so that being late does not add up.
class ModelClock {
 public:
  // The work that the thread begins now could not have begun earlier,
  static void BeginWork();
  // or not before this.
  static void BeginWork(TimePoint earliest);
  // The work has been done; what the thread does from now on is no part of the model.
  static void EndWork();

  // When the thread's work could begin in the model: now or a little before.
  static TimePoint Ready();
  // From when on the time that it takes counts: now, or earlier by what the thread, free and with
  // the work before it, took to come to it.
  static TimePoint Begun();

  // Sleeps until `end`, up to which the work lasts in the model, and gives when it woke up.
  static TimePoint Reach(TimePoint end);
};

}  // namespace torpor::emulator
