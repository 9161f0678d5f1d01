#pragma once

#include <chrono>
#include <optional>
#include <string_view>

// Messages from a daemon to its service manager (sd_notify(3)), over the datagram socket named by
// NOTIFY_SOCKET. torporctl receives the same messages from its daemon. Implemented without
// libsystemd: one datagram suffices, and the program stays relocatable.
namespace torpor::server {

// Sends e.g. "READY=1". Does nothing without a listener.
void NotifyServiceManager(std::string_view state);

// Returns the interval at which the manager expects "WATCHDOG=1" (half of WATCHDOG_USEC), nullopt
// if unset.
std::optional<std::chrono::microseconds> WatchdogInterval();

}  // namespace torpor::server
