#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/init/notify_message.h"

// A name is of one line, and a message of the lines that were understood is understood the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::init;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const NotifyMessage message = ParseNotifyMessage(text);
  if (message.name.find('\n') != std::string::npos) std::abort();
  std::string again = "FDNAME=" + message.name;
  if (message.is_ready) again += "\nREADY=1";
  if (message.has_descriptors) again += "\nFDSTORE=1";
  const NotifyMessage second = ParseNotifyMessage(again);
  if (second.name != message.name || second.is_ready != message.is_ready ||
      second.has_descriptors != message.has_descriptors) {
    std::abort();
  }
  return 0;
}
