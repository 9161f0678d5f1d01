#include "server/controller/model/isolation_domains.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

namespace torpor::server {
namespace {

FunctionConfig Function(const std::string& name, const std::string& tenant,
                        FunctionIsolation isolation = FunctionIsolation::kAsNode) {
  FunctionConfig function;
  function.name = name;
  function.tenant = tenant;
  function.isolation = isolation;
  return function;
}

std::string DomainOf(IsolationDomains& domains, const FunctionConfig& function) {
  return domains.NameOf(domains.OfSharers(domains.SharesAs(function)));
}

TEST(IsolationDomains, FollowTheNodesIsolation) {
  IsolationDomains shared(Isolation::kShared);
  IsolationDomains tenant(Isolation::kTenant);
  IsolationDomains function(Isolation::kFunction);
  EXPECT_EQ(DomainOf(shared, Function("f", "t")), "shared");
  EXPECT_EQ(DomainOf(tenant, Function("f", "t")), "tenant/t");
  EXPECT_EQ(DomainOf(function, Function("f", "t")), "function/f");
}

TEST(IsolationDomains, AFunctionMayChoose) {
  IsolationDomains domains(Isolation::kTenant);
  EXPECT_EQ(DomainOf(domains, Function("f", "t", FunctionIsolation::kShared)), "shared");
  EXPECT_EQ(DomainOf(domains, Function("f", "t", FunctionIsolation::kTenant)), "tenant/t");
  EXPECT_EQ(DomainOf(domains, Function("f", "t", FunctionIsolation::kFunction)), "function/f");
}

// Whoever shares modules and blocks shares a domain and a tenant, whatever the names.
TEST(IsolationDomains, NamesOfSharersDoNotMeet) {
  const IsolationDomains domains(Isolation::kTenant);
  const FunctionConfig alike[] = {Function("shared", "function"),
                                  Function("function", "shared", FunctionIsolation::kFunction),
                                  Function("shared", "shared", FunctionIsolation::kShared),
                                  Function("shared", "function", FunctionIsolation::kFunction),
                                  Function("shared", "function", FunctionIsolation::kShared)};
  std::set<std::string> names;
  for (const FunctionConfig& function : alike) names.insert(domains.SharesAs(function));
  EXPECT_EQ(names.size(), std::size(alike));
}

TEST(IsolationDomains, ANameIsOneDomain) {
  IsolationDomains domains(Isolation::kTenant);
  const DomainId one = domains.Named("tenant/a");
  EXPECT_TRUE(one);
  EXPECT_EQ(domains.Named("tenant/a"), one);
  EXPECT_NE(domains.Named("tenant/b"), one);
  EXPECT_EQ(domains.NameOf({}), "");
}

}  // namespace
}  // namespace torpor::server
