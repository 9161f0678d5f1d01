#include "server/controller/function_changes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace torpor::server {

void FunctionChanges::Apply(const Config& config,
                            const std::map<std::string, std::string>& tokens) {
  SetTenants(config.tenants);
  std::vector<RegisteredFunction*> removed;
  for (const auto& [name, function] : instances_.functions()) {
    if (!config.functions.contains(name)) removed.push_back(function);
  }
  for (RegisteredFunction* const function : removed) Remove(*function);
  for (const auto& [name, function] : config.functions) {
    if (RegisteredFunction* const known = instances_.FindFunction(name)) {
      Change(*known, function, tokens);
    } else {
      Add(function, tokens);
    }
  }
  AdvanceSoon();
}

void FunctionChanges::SetTenants(const std::map<std::string, TenantConfig>& tenants) {
  instances_.SetTenants(tenants);
  std::erase_if(tenants_, [&](const auto& known) {
    const bool is_gone = !tenants.contains(known.first);
    if (is_gone) events_.Feed(scheduler::TenantSet{.tenant = known.second});
    return is_gone;
  });
  for (const auto& [name, tenant] : tenants) {
    scheduler::TenantId& id = tenants_[name];
    // A tenant that comes again is another one: the old one's share of the time is history.
    if (!id) id = scheduler::TenantId{next_tenant_++};
    events_.Feed(scheduler::TenantSet{.tenant = id, .weight = tenant.weight});
  }
}

scheduler::TenantId FunctionChanges::TenantOf(const std::string& name) const {
  const auto found = tenants_.find(name);
  return found == tenants_.end() ? scheduler::TenantId() : found->second;
}

void FunctionChanges::Feed(const RegisteredFunction& function) {
  const FunctionConfig& config = function.config;
  events_.Feed(scheduler::FunctionSet{
      .function = function.id,
      .objective = {.deadline = config.deadline, .percentile = config.percentile},
      .priority = config.priority,
      .max_waiting = static_cast<std::size_t>(config.max_waiting),
      .tenant = TenantOf(config.tenant),
      .keep_alive = config.keep_alive});
}

void FunctionChanges::Add(const FunctionConfig& config,
                          const std::map<std::string, std::string>& tokens) {
  RegisteredFunction& function = instances_.AddFunction(config);
  Feed(function);
  for (const InstanceConfig& described : InstancesOf(config)) {
    AddInstance(function, described, tokens);
  }
}

void FunctionChanges::AddInstance(RegisteredFunction& function, const InstanceConfig& described,
                                  const std::map<std::string, std::string>& tokens) {
  FunctionInstance& instance = instances_.AddInstance(function, described);
  const auto token = tokens.find(instance.full_name);
  if (token != tokens.end()) instance.token = token->second;
  events_.Feed(scheduler::InstanceAdded{
      .instance = instance.id,
      .max_in_flight = function.config.max_in_flight,
      .secondary_shards = {instance.shards.begin() + 1, instance.shards.end()},
      .function = function.id,
      .keeps_replicas = keeps_replicas_ && instance.shards.size() == 1,
      .is_constant = function.config.is_stateless});
  health_.Check(instance);
}

void FunctionChanges::Change(RegisteredFunction& function, const FunctionConfig& config,
                             const std::map<std::string, std::string>& tokens) {
  const bool is_new = !(function.config == config);
  function.config = config;
  // The tenant's id may be another one.
  if (is_new || scheduler_.node().functions.at(function.id).tenant != TenantOf(config.tenant)) {
    Feed(function);
  }
  std::map<std::string, InstanceConfig> wanted;
  for (InstanceConfig& described : InstancesOf(config)) {
    std::string full_name = FullNameOf(config, described);
    wanted.emplace(std::move(full_name), std::move(described));
  }
  const std::vector<InstanceId> present = function.instances;
  for (const auto& [full_name, described] : wanted) {
    FunctionInstance* const instance = instances_.Find(full_name);
    if (!instance) {
      AddInstance(function, described, tokens);
      continue;
    }
    const auto token = tokens.find(full_name);
    instance->token = token == tokens.end() ? "" : token->second;
    if (std::exchange(instance->upstream, described.upstream) == described.upstream) continue;
    health_.Forgive(*instance);  // nothing is known against the new server
  }
  // Last: waiting requests go to the instances that stay.
  for (const InstanceId id : present) {
    FunctionInstance& instance = instances_.At(id);
    if (!instance.is_leaving && !wanted.contains(instance.full_name)) Remove(instance);
  }
}

void FunctionChanges::Remove(RegisteredFunction& function) {
  spdlog::info("function {} is removed", function.config.name);
  instances_.Leave(function);
  const std::vector<InstanceId> instances = function.instances;
  for (const InstanceId id : instances) {
    if (!instances_.At(id).is_leaving) Remove(instances_.At(id));
  }
  requests_.FailRemoved(function);
}

void FunctionChanges::Remove(FunctionInstance& instance) {
  instance.is_leaving = true;
  leaving_.insert(instance.id);
  admin_.Abandon(instance);
  health_.Check(instance);
}

void FunctionChanges::AdvanceSoon() {
  if (leaving_.empty() || std::exchange(is_posted_, true)) return;
  // Nobody up the stack may hold a removed instance.
  loop_.Post([this] {
    is_posted_ = false;
    std::erase_if(leaving_, [this](InstanceId id) { return AdvanceRemoval(instances_.At(id)); });
  });
}

bool FunctionChanges::AdvanceRemoval(FunctionInstance& instance) {
  if (requests_.IsUsing(instance.id)) return false;
  const auto sessions = sessions_.all();
  for (const auto& [id, session] : sessions) {
    if (session->instance != instance.id) continue;
    closing_.Close(session, absl::StrCat("function ", instance.full_name, " was removed"));
  }
  const bool has_sessions =
      std::any_of(sessions_.all().begin(), sessions_.all().end(),
                  [&](const auto& session) { return session.second->instance == instance.id; });
  if (has_sessions || instance.lease || !scheduler_.MayRemove(instance.id)) return false;
  RegisteredFunction& function = *instance.function;
  events_.Feed(scheduler::InstanceRemoved{instance.id});
  if (lives_ != nullptr) lives_->OnRemoved(instance.full_name);
  instances_.Remove(instance);
  if (!function.instances.empty()) return true;
  events_.Feed(scheduler::FunctionRemoved{function.id});
  instances_.Remove(function);
  return true;
}

}  // namespace torpor::server
