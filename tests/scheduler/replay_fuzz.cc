#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "scheduler/event_check.h"
#include "scheduler/event_log.h"
#include "scheduler/replay.h"
#include "scheduler/setup.h"

namespace torpor::scheduler {
namespace {

// All events that pass the check, whatever the log says that was decided: a replay ends at the
// first decision that differs, and so sees little of a log that is not whole.
void TakeEvents(const std::string& log) {
  std::istringstream lines(log);
  std::string line;
  std::getline(lines, line);
  const Decoded<EventLogHeader> header = DecodeHeader(line);
  if (!header.value || !WhatIsWrong(header.value->options).empty()) return;
  std::optional<Setup> setup =
      MakeSetup(header.value->policy, header.value->seed, header.value->options.constants);
  if (!setup) return;
  Scheduler scheduler(std::move(setup->policies), header.value->options);
  while (std::getline(lines, line)) {
    const Decoded<LoggedEvent> logged = DecodeEvent(line);
    if (!logged.value) continue;
    const auto& [when, event] = *logged.value;
    if (WhatIsWrong(event, when, scheduler).empty()) scheduler.OnEvent(event, when);
  }
}

}  // namespace
}  // namespace torpor::scheduler

// Whatever a log holds, its replay ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 1 << 16) return 0;
  const std::string log(reinterpret_cast<const char*>(data), size);
  std::istringstream stream(log);
  torpor::scheduler::Replay(stream);
  torpor::scheduler::TakeEvents(log);
  return 0;
}
