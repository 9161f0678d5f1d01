#include "client_shim/core/commands/journal.h"

#include <algorithm>

namespace torpor::shim {

void Journal::Create(std::uint64_t handle, const Command& create) {
  created_at_[handle] = ++version_;
  objects_.emplace(version_, Object{Stored(create), {}});
}

bool Journal::Configure(std::uint64_t handle, const Command& setting, std::uint64_t key) {
  const auto found = created_at_.find(handle);
  if (found == created_at_.end()) return false;
  std::vector<Setting>& settings = objects_.at(found->second).settings;
  std::erase_if(settings, [&](const Setting& old) {
    return old.command.call_id == setting.call_id && old.key == key;
  });
  settings.push_back({++version_, key, Stored(setting)});
  return true;
}

bool Journal::Destroy(std::uint64_t handle, const Command& destroy) {
  const auto found = created_at_.find(handle);
  if (found == created_at_.end()) return false;
  if (destroy.call_id != 0) destroyed_.push_back({++version_, found->second, Stored(destroy)});
  objects_.erase(found->second);
  created_at_.erase(found);
  return true;
}

void Journal::Replay(std::uint64_t known, const Sink& sink) const {
  if (known == version_) return;
  std::map<std::uint64_t, const Stored*> settings;
  for (const auto& [created_at, object] : objects_) {
    if (created_at > known) sink(object.create.view());
    for (const Setting& setting : object.settings)
      if (setting.version > known) settings.emplace(setting.version, &setting.command);
  }
  for (const auto& [version, setting] : settings) sink(setting->view());
  for (const Destroyed& destroyed : destroyed_)
    if (destroyed.version > known && destroyed.created_at <= known) sink(destroyed.command.view());
}

void Journal::Trim(std::uint64_t known) {
  std::erase_if(destroyed_, [&](const Destroyed& destroyed) { return destroyed.version <= known; });
}

}  // namespace torpor::shim
