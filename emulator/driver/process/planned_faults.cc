#include "emulator/driver/process/planned_faults.h"

#include <unistd.h>

#include <csignal>

#include "emulator/driver/process/driver.h"

namespace torpor::emulator {
namespace {

// Does not return if the plan kills this process.
std::optional<CallEffect> Meet(CallKind call, unsigned place) {
  Driver& driver = Driver::Get();
  if (driver.topology().plan.calls.empty()) return std::nullopt;
  const auto effect = CountCall(driver.topology().plan, driver.node(), call, place);
  if (effect == CallEffect::kKill) kill(getpid(), SIGKILL);
  return effect;
}

}  // namespace

void MeetPlan(CallKind call, const StreamTarget& target) {
  if (Meet(call, target.context->device().spec().place) != CallEffect::kEcc) return;
  target.context->Submit(
      target.stream, [] { return CUDA_ERROR_ECC_UNCORRECTABLE; }, Stream::Placement::kQueue);
}

bool IsAllocationToFail(const DriverDevice& device) {
  return Meet(CallKind::kAllocation, device.spec().place) == CallEffect::kFail;
}

}  // namespace torpor::emulator
