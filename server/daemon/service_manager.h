#pragma once

#include <chrono>
#include <optional>
#include <string_view>

// What a daemon says to the service manager that started it (sd_notify(3)), over the datagram
// socket that NOTIFY_SOCKET names. torporctl uses the same to know when its daemon is ready.
// Spoken here, not by libsystemd: it is one datagram, and the program stays relocatable.
namespace torpor::server {

// Sends e.g. "READY=1". Does nothing where nobody listens.
void NotifyServiceManager(std::string_view state);

// How often the manager wants to hear "WATCHDOG=1", if it does: half of WATCHDOG_USEC.
std::optional<std::chrono::microseconds> WatchdogInterval();

}  // namespace torpor::server
