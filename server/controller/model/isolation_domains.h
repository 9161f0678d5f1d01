#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "server/config/config.h"

namespace torpor::server {

// The node's isolation domains, by number and by name: `shared`, `tenant/NAME`, `function/NAME`.
// Sessions of a domain share executors, and kernels of one may reach another's memory; sessions of
// different domains share neither. On the controller's thread.
class IsolationDomains {
 public:
  // `of_node`: the isolation of functions that choose none.
  explicit IsolationDomains(Isolation of_node) : of_node_(of_node) {}

  // Returns the name under which the function's sessions share modules, and equal blocks in host
  // memory: with functions of the same tenant in the same domain.
  std::string SharesAs(const FunctionConfig& function) const;
  // Returns the domain of sessions that share under this name.
  DomainId OfSharers(const std::string& name);

  // Returns the domain of this name, a new one if there is none.
  DomainId Named(const std::string& name);
  // Returns the name, or an empty text for an invalid id.
  std::string NameOf(DomainId domain) const;

 private:
  const Isolation of_node_;
  std::map<std::string, DomainId> by_name_;
  std::vector<std::string> names_;  // of domain number i + 1
};

}  // namespace torpor::server
