#include "server/controller/broken_instances.h"

namespace torpor::server {

void BrokenInstances::OnRefused(const FunctionInstance& instance, const std::string& why) {
  if (lives_ != nullptr) lives_->OnBroken(instance.full_name, why);
}

void BrokenInstances::Check() {
  if (lives_ == nullptr) return;
  std::erase_if(told_, [this](SessionId id) { return !sessions_.Find(id); });
  for (const auto& [id, session] : sessions_.all()) {
    if (!session->is_lost || told_.contains(id)) continue;
    FunctionInstance* const instance = instances_.FindById(session->instance);
    // Another process of the instance may serve; a request may still get the process's own word.
    const bool is_needed = instance != nullptr && !instance->is_leaving &&
                           sessions_.AbleOf(*instance).empty() && !requests_.IsUsing(instance->id);
    if (!is_needed) continue;
    for (const SessionPtr& lost : sessions_.Of(*instance)) {
      if (lost->is_lost) told_.insert(lost->id);
    }
    lives_->OnBroken(instance->full_name, "its CUDA has a sticky error");
  }
}

}  // namespace torpor::server
