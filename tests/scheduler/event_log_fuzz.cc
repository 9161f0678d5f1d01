#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "scheduler/event_log.h"

// What is accepted is encoded to the same text again, so that nothing of it was lost.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::scheduler;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const Decoded<LoggedEvent> event = DecodeEvent(line);
  if (event.value.has_value() == !event.error.empty()) std::abort();
  if (event.value && Encode(event.value->event, event.value->when) != line) std::abort();
  const Decoded<EventLogHeader> header = DecodeHeader(line);
  if (header.value.has_value() == !header.error.empty()) std::abort();
  if (header.value && Encode(*header.value) != line) std::abort();
  return 0;
}
