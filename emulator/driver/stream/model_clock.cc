#include "emulator/driver/stream/model_clock.h"

#include <time.h>

#include <algorithm>

namespace torpor::emulator {
namespace {

// How much later than in the model the thread's last modelled work ended.
thread_local Duration late{0};
// Delay between the time when the thread's work could begin and the time when the thread came to
// it.
thread_local Duration gap{0};

TimePoint Now() { return std::chrono::steady_clock::now(); }

thread_local TimePoint last_end = Now();

}  // namespace

void ModelClock::BeginWork() { late = gap = Duration::zero(); }

void ModelClock::BeginWork(TimePoint earliest) {
  const TimePoint begin = std::max(last_end, earliest);
  gap = std::max(Now() - begin, Duration::zero());
  late = std::min(begin - earliest, late) + gap;
}

void ModelClock::EndWork() { last_end = Now(); }

TimePoint ModelClock::Ready() { return Now() - late; }

TimePoint ModelClock::Begun() { return Now() - gap; }

TimePoint ModelClock::Reach(TimePoint end) {
  const auto ns = end.time_since_epoch().count();
  const timespec deadline{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                          .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  TimePoint now = Now();
  for (; now < end; now = Now()) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr);
  }
  late = now - end;
  gap = Duration::zero();
  last_end = now;
  return now;
}

}  // namespace torpor::emulator
