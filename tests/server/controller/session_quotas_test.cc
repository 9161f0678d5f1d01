#include "server/controller/session_quotas.h"

#include <gmock/gmock.h>

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

class SessionQuotasTest : public NodeWorld {
 protected:
  SessionQuotasTest() {
    for (const auto& [name, function] : tables_.instances.functions()) {
      function->config.tenant = "anna";
    }
  }
  // Why the function may have no further session; empty: one more may open.
  std::string Refusal(const std::string& function) {
    const absl::Status status = quotas_.Admit(InstanceOf(function));
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status));
    return std::string(status.message());
  }

  const SessionQuotas quotas_{tables_.instances, /*of_node=*/4};
};

TEST_F(SessionQuotasTest, AFunctionHasSoManySessionsAndOthersHaveTheirs) {
  tables_.instances.FindFunction("a")->config.max_sessions = 2;
  AddSession("a");
  EXPECT_EQ(Refusal("a"), "");
  AddSession("a");
  EXPECT_EQ(Refusal("a"),
            "function a has as many sessions as its max_sessions 2 allows; end some of its "
            "processes, or raise its max_sessions");
  EXPECT_EQ(Refusal("pair"), "");
}

TEST_F(SessionQuotasTest, ATenantsFunctionsHaveSoManyTogether) {
  tables_.instances.SetTenants({{"anna", {.name = "anna", .max_sessions = 2}}});
  AddSession("a");
  AddSession("pair");
  EXPECT_THAT(Refusal("a"), HasSubstr("tenant anna has as many sessions as its max_sessions 2"));
  tables_.instances.FindFunction("a")->config.tenant = "ben";
  EXPECT_EQ(Refusal("a"), "");
}

TEST_F(SessionQuotasTest, TheNodeHasSoManyAltogether) {
  for (int i = 0; i < 2; ++i) {
    AddSession("a");
    AddSession("pair");
  }
  EXPECT_THAT(Refusal("a"),
              HasSubstr("the node has as many sessions as the node's max_sessions 4"));
  tables_.instances.FindFunction("a")->config.tenant = "ben";
  EXPECT_THAT(Refusal("a"),
              HasSubstr("the node has as many sessions as the node's max_sessions 4"));
}

}  // namespace
}  // namespace torpor::server
