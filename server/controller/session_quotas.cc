#include "server/controller/session_quotas.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace torpor::server {
namespace {

absl::Status Refusal(const std::string& whose, int limit, const char* setting) {
  return absl::ResourceExhaustedError(
      absl::StrCat(whose, " has as many sessions as ", setting, " ", limit,
                   " allows; end some of its processes, or raise ", setting));
}

}  // namespace

absl::Status SessionQuotas::Admit(const FunctionInstance& instance) const {
  const FunctionConfig& config = instance.config();
  const auto is_below = [](std::size_t sessions, int limit) {
    return sessions < static_cast<std::size_t>(limit);
  };
  if (!is_below(instance.sessions.size(), config.max_sessions)) {
    return Refusal("function " + instance.full_name, config.max_sessions, "its max_sessions");
  }
  std::size_t of_all = 0;
  std::size_t of_tenant = 0;
  for (const auto& [id, other] : instances_) {
    of_all += other.sessions.size();
    if (other.config().tenant == config.tenant) of_tenant += other.sessions.size();
  }
  if (!is_below(of_all, of_node_)) return Refusal("the node", of_node_, "the node's max_sessions");
  const TenantConfig* const tenant = instances_.FindTenant(config.tenant);
  if (tenant && !is_below(of_tenant, tenant->max_sessions)) {
    return Refusal("tenant " + config.tenant, tenant->max_sessions, "its max_sessions");
  }
  return absl::OkStatus();
}

}  // namespace torpor::server
