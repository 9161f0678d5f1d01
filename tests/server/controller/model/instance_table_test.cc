#include "server/controller/model/instance_table.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

std::map<std::string, FunctionConfig> Functions() {
  std::map<std::string, FunctionConfig> functions;
  for (const char* name : {"a", "pair"}) functions[name].name = name;
  functions["pair"].gpus = 2;
  return functions;
}

TEST(InstanceTable, GivesEveryDeviceOfAFunctionAShard) {
  InstanceTable instances(Functions());
  const FunctionInstance& a = *instances.Find("a");
  const FunctionInstance& pair = *instances.Find("pair");
  EXPECT_EQ(a.shards, std::vector<InstanceId>{a.id});
  ASSERT_EQ(pair.shards.size(), 2u);
  EXPECT_EQ(pair.shards[0], pair.id);
  EXPECT_EQ(instances.LeadOf(pair.shards[1]), pair.id);
  EXPECT_EQ(instances.ShardOf(pair.shards[1]).instance, &pair);
  EXPECT_EQ(instances.ShardOf(pair.shards[1]).device_index, 1);
}

TEST(InstanceTable, FindsTheShardOfASession) {
  const InstanceTable instances(Functions());
  ClientSession session;
  session.instance = InstanceId{2};
  session.device_index = 1;
  EXPECT_EQ(instances.Of(session).config().name, "pair");
  EXPECT_EQ(instances.ShardOf(session), instances.At(InstanceId{2}).shards[1]);
}

TEST(InstanceTable, AFunctionHasItsInstancesByNameAndToken) {
  std::map<std::string, FunctionConfig> functions = Functions();
  functions["a"].instances["y"] = {"y", "127.0.0.1:2", ""};
  functions["a"].instances["x"] = {"x", "127.0.0.1:1", ""};
  InstanceTable instances(functions, {{"a/x", "token-x"}, {"a/y", "token-y"}, {"pair", "token"}});
  const RegisteredFunction& a = *instances.FindFunction("a");
  const RegisteredFunction& pair = *instances.FindFunction("pair");
  EXPECT_TRUE(a.has_several_instances());
  EXPECT_FALSE(pair.has_several_instances());
  EXPECT_EQ(a.id, scheduler::FunctionId{1});
  EXPECT_EQ(pair.id, scheduler::FunctionId{2});
  EXPECT_EQ(a.instances, (std::vector<InstanceId>{InstanceId{1}, InstanceId{2}}));
  EXPECT_EQ(instances.Find("a"), nullptr) << "it is not one of them";
  ASSERT_NE(instances.Find("a/y"), nullptr);
  EXPECT_EQ(instances.Find("a/y")->upstream, "127.0.0.1:2");
  EXPECT_EQ(instances.FindByToken("token-x"), instances.Find("a/x"));
  EXPECT_EQ(instances.FindByToken("token"), instances.Find("pair"));
  EXPECT_EQ(instances.FindByToken("other"), nullptr);
}

TEST(InstanceTable, KnowsNoOtherFunctions) {
  InstanceTable instances(Functions());
  EXPECT_EQ(instances.Find("c"), nullptr);
  EXPECT_EQ(instances.Find(""), nullptr);
}

}  // namespace
}  // namespace torpor::server
