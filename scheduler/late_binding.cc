#include "scheduler/binding_policy.h"

namespace torpor::scheduler {

std::unique_ptr<BindingPolicy> MakeLateBinding() { return std::make_unique<BindingPolicy>(); }

}  // namespace torpor::scheduler
