#pragma once

#include <string>

#include "tools/probe/items.h"

namespace torpor::probe {

// What an item's process has left behind.
struct ItemEnd {
  std::string lines;  // of Report
  std::string error;  // why it did not end well; empty if it did
  double seconds = 0;
};

// Runs the item in a process of its own, ended by force after the item's patience. The calling
// process must not have called the driver.
ItemEnd RunInProcess(const Item& item);

}  // namespace torpor::probe
