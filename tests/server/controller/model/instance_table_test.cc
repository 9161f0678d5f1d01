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

void AddAll(const std::map<std::string, FunctionConfig>& functions, InstanceTable& instances) {
  for (const auto& [name, function] : functions) {
    RegisteredFunction& added = instances.AddFunction(function);
    for (const InstanceConfig& instance : InstancesOf(function)) {
      FunctionInstance& of_function = instances.AddInstance(added, instance);
      of_function.token = "token-" + of_function.full_name;
    }
  }
}

TEST(InstanceTable, GivesEveryDeviceOfAFunctionAShard) {
  InstanceTable instances;
  AddAll(Functions(), instances);
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
  InstanceTable instances;
  AddAll(Functions(), instances);
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
  InstanceTable instances;
  AddAll(functions, instances);
  const RegisteredFunction& a = *instances.FindFunction("a");
  const RegisteredFunction& pair = *instances.FindFunction("pair");
  EXPECT_TRUE(a.has_several_instances());
  EXPECT_FALSE(pair.has_several_instances());
  EXPECT_FALSE(instances.HasSibling(*instances.Find("pair")));
  EXPECT_TRUE(instances.HasSibling(*instances.Find("a/x")));
  instances.Find("a/x")->is_leaving = true;
  EXPECT_FALSE(instances.HasSibling(*instances.Find("a/y")));
  instances.At(InstanceId{1}).is_leaving = false;
  EXPECT_EQ(a.id, scheduler::FunctionId{1});
  EXPECT_EQ(pair.id, scheduler::FunctionId{2});
  EXPECT_EQ(a.instances, (std::vector<InstanceId>{InstanceId{1}, InstanceId{2}}));
  EXPECT_EQ(instances.Find("a"), nullptr) << "it is not one of them";
  ASSERT_NE(instances.Find("a/y"), nullptr);
  EXPECT_EQ(instances.Find("a/y")->upstream, "127.0.0.1:2");
  EXPECT_EQ(instances.FindByToken("token-a/x"), instances.Find("a/x"));
  EXPECT_EQ(instances.FindByToken("token-pair"), instances.Find("pair"));
  EXPECT_EQ(instances.FindByToken("other"), nullptr);
}

TEST(InstanceTable, WhoLeavesIsNotFoundAndMayBeThereAgain) {
  InstanceTable instances;
  AddAll(Functions(), instances);
  RegisteredFunction& pair = *instances.FindFunction("pair");
  FunctionInstance& old = *instances.Find("pair");
  old.is_leaving = true;
  EXPECT_EQ(instances.Find("pair"), nullptr);
  EXPECT_EQ(instances.FindByToken("token-pair"), nullptr);
  instances.Leave(pair);
  EXPECT_EQ(instances.FindFunction("pair"), nullptr);
  EXPECT_EQ(instances.functions().size(), 1u);
  EXPECT_EQ(&instances.At(old.id), &old) << "until it is removed";
  std::map<std::string, FunctionConfig> again = Functions();
  again.erase("a");
  AddAll(again, instances);
  EXPECT_NE(instances.Find("pair"), &old);
  const InstanceId id = old.id;
  instances.Remove(old);
  EXPECT_EQ(instances.FindById(id), nullptr);
  instances.Remove(pair);
  ASSERT_NE(instances.FindFunction("pair"), nullptr);
  EXPECT_EQ(instances.FindFunction("pair")->id, scheduler::FunctionId{3});
}

TEST(InstanceTable, KnowsNoOtherFunctions) {
  InstanceTable instances;
  AddAll(Functions(), instances);
  EXPECT_EQ(instances.Find("c"), nullptr);
  EXPECT_EQ(instances.Find(""), nullptr);
}

}  // namespace
}  // namespace torpor::server
