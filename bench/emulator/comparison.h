#pragma once

#include <benchmark/benchmark.h>
#include <time.h>

#include <string>

namespace torpor::emulator {

// Wall time, and time of all threads together, that one side of a comparison has taken: the second
// tells the same on a busy machine.
class Spent {
 public:
  // Gives the wall seconds of this one call of `body`.
  template <typename Body>
  double Measure(const Body& body) {
    const double wall_before = Seconds(CLOCK_MONOTONIC);
    const double cores_before = Seconds(CLOCK_PROCESS_CPUTIME_ID);
    body();
    const double took = Seconds(CLOCK_MONOTONIC) - wall_before;
    cores_ += Seconds(CLOCK_PROCESS_CPUTIME_ID) - cores_before;
    wall_ += took;
    return took;
  }

  double wall() const { return wall_; }
  double cores() const { return cores_; }

 private:
  static double Seconds(clockid_t clock) {
    timespec now = {};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  double wall_ = 0;
  double cores_ = 0;
};

// The emulator and native code by turns, so that what else the machine does slows both. The
// benchmark's time is the emulator's. `amount` is what a round does, in units of 1e9.
template <typename Emulated, typename Native>
void Compare(benchmark::State& state, const std::string& unit, double amount,
             const Emulated& emulated, const Native& native) {
  Spent ours;
  Spent theirs;
  emulated();  // compiles
  native();
  for (auto _ : state) {
    state.SetIterationTime(ours.Measure(emulated));
    theirs.Measure(native);
    benchmark::ClobberMemory();
  }
  const double total = amount * static_cast<double>(state.iterations());
  state.counters[unit] = total / ours.wall();
  state.counters[unit + "/core"] = total / ours.cores();
  state.counters["native " + unit] = total / theirs.wall();
  state.counters["native " + unit + "/core"] = total / theirs.cores();
  state.counters["of_native"] = theirs.wall() / ours.wall();
  state.counters["of_native/core"] = theirs.cores() / ours.cores();
}

}  // namespace torpor::emulator
