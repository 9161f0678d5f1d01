#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

// Messages from a daemon to its service manager (sd_notify(3)), over the datagram socket named by
// NOTIFY_SOCKET. torpor-init and torporctl receive the same messages from their daemons.
// Implemented without libsystemd: one datagram suffices, and the program stays relocatable.
namespace torpor::server {

// Sends e.g. "READY=1". Does nothing without a listener.
void NotifyServiceManager(std::string_view state);

// Sends a message of lines, and `descriptor` with it unless that is -1; the manager gets a
// descriptor of its own. Unavailable if there is no manager, or one that has not read its messages
// for some seconds. Thread-safe.
absl::Status SendToServiceManager(std::string_view message, int descriptor = -1);

// Returns the interval at which the manager expects "WATCHDOG=1" (half of WATCHDOG_USEC), nullopt
// if unset.
std::optional<std::chrono::microseconds> WatchdogInterval();

}  // namespace torpor::server
