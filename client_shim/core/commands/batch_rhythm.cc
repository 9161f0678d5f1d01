#include "client_shim/core/commands/batch_rhythm.h"

#include <algorithm>

namespace torpor::shim {
namespace {

// The weight of a new measurement: a change of rhythm counts within a few batches, and a single
// interruption by the scheduler does not.
constexpr double kNewWeight = 0.25;

void Learn(double& known, double measured) {
  known = known == 0 ? measured : known + kNewWeight * (measured - known);
}

}  // namespace

void BatchRhythm::Note(std::size_t calls, Span filling, Span sending) {
  if (calls == 0) return;
  const double ns_per_call = static_cast<double>(filling.count()) / static_cast<double>(calls);
  // Beyond the double of what is known a measurement is an interruption, or a change that the next
  // measurements confirm.
  const auto bounded = [](double measured, double known) {
    return known == 0 ? measured : std::min(measured, 2 * known);
  };
  Learn(ns_per_call_, std::max(bounded(ns_per_call, ns_per_call_), 1.0));
  Learn(sending_ns_, std::max(bounded(static_cast<double>(sending.count()), sending_ns_), 1.0));
  const double best = sending_ns_ / (kSendingShare * ns_per_call_);
  calls_ = std::clamp(static_cast<std::size_t>(best), kMinCalls, kMaxCalls);
}

}  // namespace torpor::shim
