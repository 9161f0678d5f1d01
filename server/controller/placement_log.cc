#include "server/controller/placement_log.h"

#include <optional>
#include <variant>

namespace torpor::server {

void PlacementLog::Before(const scheduler::Event& event) {
  InstanceId ended;
  if (const auto* const lease = std::get_if<scheduler::LeaseEnded>(&event)) {
    ended = lease->instance;
  } else if (const auto* const executor = std::get_if<scheduler::ExecutorDown>(&event)) {
    const auto tenant = tenants_.find(executor->gpu);
    if (tenant != tenants_.end() && tenant->second) ended = instances_.LeadOf(tenant->second);
  }
  if (!ended) return;
  for (auto& [gpu, tenant] : tenants_) {
    if (tenant && instances_.LeadOf(tenant) == ended) tenant = {};
  }
}

void PlacementLog::After(const scheduler::Actions& decided) {
  NoteTenants();
  for (const scheduler::Action& action : decided) {
    if (const auto* const out = std::get_if<scheduler::SwapOut>(&action)) Note(*out);
    if (const auto* const in = std::get_if<scheduler::SwapIn>(&action)) Note(*in);
  }
}

void PlacementLog::NoteTenants() {
  for (const auto& [id, gpu] : scheduler_.node().gpus) {
    InstanceId& tenant = tenants_[id];
    if (tenant == gpu.tenant) continue;
    tenant = gpu.tenant;
    if (!tenant) continue;
    FunctionInstance& instance = *instances_.ShardOf(tenant).instance;
    instance.placement = {.since = loop_.Now(),
                          .wait = scheduler_.node().instances.at(instance.id).wait,
                          .loading_nearby = LoadingNear(id)};
  }
}

void PlacementLog::Note(const scheduler::SwapOut& action) {
  if (action.reason != scheduler::SwapOutReason::kMemoryFull) return;
  const InstanceId tenant = scheduler_.node().gpus.at(action.gpu).tenant;
  const bool is_placing =
      tenant && scheduler_.node().instances.at(tenant).tenancy.phase == scheduler::Phase::kPlacing;
  if (!is_placing) return;
  instances_.ShardOf(tenant).instance->placement.evicted.push_back(
      instances_.ShardOf(action.instance).instance->full_name);
}

void PlacementLog::Note(const scheduler::SwapIn& action) {
  if (scheduler_.node().gpus.at(action.gpu).tenant != action.instance) return;
  InstancePlacement& placement = instances_.ShardOf(action.instance).instance->placement;
  placement.swap_in = loop_.Now();
  placement.peer = action.source;
}

std::vector<InstancePlacement::Neighbour> PlacementLog::LoadingNear(GpuIndex gpu) const {
  std::vector<InstancePlacement::Neighbour> neighbours;
  const auto& gpus = scheduler_.node().gpus;
  const std::optional<int> pcie_switch = gpus.at(gpu).pcie_switch;
  for (const auto& [id, other] : gpus) {
    const bool is_near = pcie_switch && other.pcie_switch == pcie_switch && id != gpu;
    if (!is_near || !other.loading) continue;
    neighbours.push_back({id, instances_.At(instances_.LeadOf(other.loading)).full_name});
  }
  return neighbours;
}

}  // namespace torpor::server
