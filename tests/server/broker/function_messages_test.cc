#include "server/broker/function_messages.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

TEST(FunctionMessages, TheRouterKnowsWhatItForwardsBy) {
  std::map<std::string, FunctionConfig> functions;
  FunctionConfig& function = functions["f"];
  function.name = "f";
  function.instances["a"] = {.name = "a", .upstream = "host:1", .token_file = "a.token"};
  function.instances["b"] = {.name = "b", .upstream = "", .token_file = "b.token"};
  function.upstream_timeout = std::chrono::seconds(7);
  function.deadline = std::chrono::milliseconds(80);
  function.second_tries = false;
  const std::map<std::string, FunctionConfig> read = FromMessage(ToMessage(functions));
  ASSERT_EQ(read.size(), 1u);
  const FunctionConfig& known = read.at("f");
  EXPECT_EQ(known.name, "f");
  ASSERT_EQ(known.instances.size(), 2u);
  EXPECT_EQ(known.instances.at("a").upstream, "host:1");
  EXPECT_EQ(known.instances.at("a").token_file, "") << "no business of the router";
  EXPECT_EQ(known.instances.at("b").upstream, "");
  EXPECT_EQ(known.upstream_timeout, std::chrono::seconds(7));
  EXPECT_EQ(known.deadline, std::chrono::milliseconds(80));
  EXPECT_FALSE(known.second_tries);
}

TEST(FunctionMessages, AFunctionWithoutAListHasOneInstance) {
  std::map<std::string, FunctionConfig> functions;
  functions["f"].name = "f";
  functions["f"].upstream = "host:1";
  const std::map<std::string, FunctionConfig> read = FromMessage(ToMessage(functions));
  const std::vector<InstanceConfig> instances = InstancesOf(read.at("f"));
  ASSERT_EQ(instances.size(), 1u);
  EXPECT_EQ(instances[0].upstream, "host:1");
  EXPECT_TRUE(read.at("f").second_tries);
}

}  // namespace
}  // namespace torpor::server
