#include "emulator/driver/model_clock.h"

#include <time.h>

#include <algorithm>

namespace torpor::emulator {
namespace {

// How much later than in the model the thread's last modelled work ended.
thread_local Duration late{0};

TimePoint Now() { return std::chrono::steady_clock::now(); }

}  // namespace

void ModelClock::BeginWork() { late = Duration::zero(); }

void ModelClock::BeginWork(TimePoint earliest) {
  if (late > Duration::zero()) late = std::clamp(Now() - earliest, Duration::zero(), late);
}

TimePoint ModelClock::Ready() { return Now() - late; }

TimePoint ModelClock::Reach(TimePoint end) {
  const auto ns = end.time_since_epoch().count();
  const timespec deadline{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                          .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  TimePoint now = Now();
  for (; now < end; now = Now()) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr);
  }
  late = now - end;
  return now;
}

}  // namespace torpor::emulator
