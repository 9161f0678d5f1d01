#include "tests/chaos/tcp_connections.h"

#include <fmt/format.h>

#include <fstream>
#include <limits>
#include <string>

namespace torpor::chaos {
namespace {

// Of /proc/net/tcp.
constexpr const char* kEstablished = "01";
constexpr const char* kCloseWait = "08";

}  // namespace

int ConnectionsTo(std::uint16_t port) {
  const std::string ours = fmt::format(":{:04X}", port);
  std::ifstream table("/proc/net/tcp");
  table.ignore(std::numeric_limits<std::streamsize>::max(), '\n');  // the head
  int connections = 0;
  for (std::string slot, local, remote, state; table >> slot >> local >> remote >> state;) {
    if (local.ends_with(ours) && (state == kEstablished || state == kCloseWait)) ++connections;
    table.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return connections;
}

}  // namespace torpor::chaos
