#include "server/init/notify_message.h"

#include <algorithm>

namespace torpor::init {
namespace {

void ApplyLine(std::string_view line, NotifyMessage& message) {
  constexpr std::string_view kName = "FDNAME=";
  if (line == "READY=1") message.is_ready = true;
  if (line == "STOPPING=1") message.is_stopping = true;
  if (line == "WATCHDOG=1") message.feeds_watchdog = true;
  if (line == "FDSTORE=1") message.has_descriptors = true;
  if (line == "FDSTOREREMOVE=1") message.drops_descriptors = true;
  if (line.starts_with(kName)) message.name = line.substr(kName.size());
}

}  // namespace

NotifyMessage ParseNotifyMessage(std::string_view text) {
  NotifyMessage message;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ApplyLine(text.substr(0, end), message);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return message;
}

}  // namespace torpor::init
