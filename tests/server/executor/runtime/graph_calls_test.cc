#include "server/executor/runtime/graph_calls.h"

#include <driver_types.h>
#include <gmock/gmock.h>

#include <vector>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

class GraphCallsTest : public RuntimeTest {
 protected:
  std::vector<std::size_t> ran_;  // bytes of the fields of each command
  GraphCalls calls_{*s_.device, streams_, image(), [this](const wire::GraphCommand& command) {
                      ran_.push_back(command.fields.size());
                      return cuda_api::CallStatus();
                    }};
};

// A launch of so many bytes of fields.
wire::GraphNode Node(std::size_t bytes, std::vector<std::uint32_t> dependencies) {
  return {{{wire::LaunchKernel::kCallId, std::vector<std::uint8_t>(bytes)}},
          std::move(dependencies)};
}

TEST_F(GraphCallsTest, ALaunchRunsTheCommandsOfEachNode) {
  ASSERT_TRUE(calls_.GraphCreate({1}).ok());
  ASSERT_TRUE(calls_.GraphAddNodes({1, 0, {Node(8, {}), Node(16, {0})}}).ok());
  EXPECT_TRUE(calls_.GraphLaunch({1, 0}).ok());
  EXPECT_THAT(ran_, ElementsAre(8, 16));
  ASSERT_TRUE(calls_.GraphSetNode({1, 1, Node(24, {}).commands}).ok());
  EXPECT_TRUE(calls_.GraphLaunch({1, 0}).ok());
  EXPECT_THAT(ran_, ElementsAre(8, 16, 8, 24));
}

TEST_F(GraphCallsTest, AGraphMustBeTheSessions) {
  EXPECT_FALSE(calls_.GraphLaunch({1, 0}).ok());
  EXPECT_FALSE(calls_.GraphDestroy({1}).ok());
  ASSERT_TRUE(calls_.GraphCreate({1}).ok());
  EXPECT_TRUE(calls_.GraphDestroy({1}).ok());
}

}  // namespace
}  // namespace torpor::executor
