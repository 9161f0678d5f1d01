#pragma once

#include "emulator/driver/device/device.h"
#include "emulator/driver/process/stream_target.h"
#include "emulator/node/fault_plan.h"

namespace torpor::emulator {

// Counts a launch or a copy for the topology's fault plan. If the call is planned to end badly,
// this process is killed, or work ahead of the call poisons the context.
void MeetPlan(CallKind call, const StreamTarget& target);

// Counts an allocation likewise. Returns whether the allocation is planned to fail.
bool IsAllocationToFail(const DriverDevice& device);

}  // namespace torpor::emulator
