#pragma once

#include <span>

#include "tools/probe/report.h"

namespace torpor::probe {

// What the probe asks of a driver, one question a function. Each runs in a process of its own,
// which has not called the driver before, and may leave the context broken.
void ProbeReservations(Report& report);
void ProbeVirtualMemory(Report& report);
void ProbeRegistrations(Report& report);
void ProbeUploads(Report& report);
void ProbeHiddenFaults(Report& report);
void ProbeMessages(Report& report);
void ProbeAssertions(Report& report);
void ProbeLimits(Report& report);
void ProbeMemory(Report& report);
void ProbeLatencies(Report& report);
void ProbeStalls(Report& report);
void ProbeLoading(Report& report);

struct Item {
  const char* name;
  void (*run)(Report&);
  int patience_s;  // after which the item counts as hung
  const char* question;
};

// All items, in the order in which the probe runs them.
std::span<const Item> Items();

}  // namespace torpor::probe
