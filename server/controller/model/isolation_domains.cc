#include "server/controller/model/isolation_domains.h"

#include "absl/strings/str_cat.h"

namespace torpor::server {
namespace {

constexpr const char* kOfShared = ".shared";

}  // namespace

DomainId IsolationDomains::Named(const std::string& name) {
  const auto [entry, is_new] = by_name_.emplace(name, DomainId{names_.size() + 1});
  if (is_new) names_.push_back(name);
  return entry->second;
}

std::string IsolationDomains::NameOf(DomainId domain) const {
  return domain ? names_.at(domain.value - 1) : "";
}

// No name of a tenant or function has a dot.
std::string IsolationDomains::SharesAs(const FunctionConfig& function) const {
  switch (IsolationOf(function, of_node_)) {
    case Isolation::kShared:
      return absl::StrCat(function.tenant, kOfShared);
    case Isolation::kTenant:
      return function.tenant;
    case Isolation::kFunction:
      return absl::StrCat(".", function.name);
  }
  return function.tenant;
}

DomainId IsolationDomains::OfSharers(const std::string& name) {
  if (name.ends_with(kOfShared)) return Named("shared");
  if (name.starts_with(".")) return Named(absl::StrCat("function/", name.substr(1)));
  return Named(absl::StrCat("tenant/", name));
}

}  // namespace torpor::server
