#pragma once

#include <string>
#include <string_view>

namespace torpor::init {

// A program's message to its service manager (sd_notify(3)), as far as torpor-init follows it.
struct NotifyMessage {
  bool is_ready = false;           // READY=1
  bool is_stopping = false;        // STOPPING=1
  bool feeds_watchdog = false;     // WATCHDOG=1
  bool has_descriptors = false;    // FDSTORE=1: those that came with the message are to be kept
  bool drops_descriptors = false;  // FDSTOREREMOVE=1: those kept by this name are to be closed
  std::string name;                // FDNAME
};

// Takes any bytes. Lines of other kinds, which systemd may know, mean nothing.
NotifyMessage ParseNotifyMessage(std::string_view text);

}  // namespace torpor::init
