#include "server/controller/instance_health.h"

#include <algorithm>
#include <utility>

namespace torpor::server {

scheduler::Health InstanceHealth::HealthOf(const FunctionInstance& instance) const {
  if (instance.is_leaving) return scheduler::Health::kLeaving;
  const bool is_refusing = loop_.Now() < instance.standing.refused_until;
  if (instance.upstream.empty() || is_refusing) return scheduler::Health::kDown;
  return sessions_.AbleOf(instance).empty() ? scheduler::Health::kUnproven
                                            : scheduler::Health::kServing;
}

void InstanceHealth::Check(FunctionInstance& instance) {
  const scheduler::Health health = HealthOf(instance);
  if (std::exchange(instance.standing.health, health) == health) return;
  events_.Feed(scheduler::HealthChanged{instance.id, health});
}

void InstanceHealth::Forgive(FunctionInstance& instance) {
  instance.standing.refused_until = {};
  instance.standing.refused_for = {};
  Check(instance);
}

void InstanceHealth::OnRefused(FunctionInstance& instance) {
  InstanceStanding& standing = instance.standing;
  standing.refused_for = std::clamp(2 * standing.refused_for, kFirstPause, kLongestPause);
  standing.refused_until = loop_.Now() + standing.refused_for;
  loop_.RunAt(standing.refused_until, [this, id = instance.id] {
    if (FunctionInstance* const known = instances_.FindById(id)) Check(*known);
  });
  Check(instance);
}

}  // namespace torpor::server
