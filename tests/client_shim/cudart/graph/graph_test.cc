// The structure of graphs: edges, clones, plans and updates, with no session.
#include "client_shim/cudart/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client_shim/cudart/graph/graph_update.h"
#include "client_shim/cudart/graph/plan.h"

namespace torpor::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

GraphNode& AddBehind(Graph& graph, std::initializer_list<GraphNode*> before,
                     NodeWork work = EmptyWork()) {
  GraphNode& node = graph.Add(std::move(work));
  for (GraphNode* earlier : before) EXPECT_TRUE(graph.Connect(*earlier, node, {}));
  return node;
}

TEST(GraphTest, AnEdgeIsThereOnceAndInItsOwnGraph) {
  Graph graph;
  Graph other;
  GraphNode& one = graph.Add(EmptyWork());
  GraphNode& two = graph.Add(EmptyWork());
  GraphNode& foreign = other.Add(EmptyWork());
  EXPECT_TRUE(graph.Connect(one, two, {}));
  EXPECT_FALSE(graph.Connect(one, two, {}));
  EXPECT_FALSE(graph.Connect(one, one, {}));
  EXPECT_FALSE(graph.Connect(one, foreign, {}));
  EXPECT_FALSE(graph.Disconnect(two, one, {}));
  EXPECT_TRUE(graph.Disconnect(one, two, {}));
  EXPECT_TRUE(one.dependents.empty() && two.dependencies.empty());
}

TEST(GraphTest, HandlesOfWhatIsGoneAreToldApart) {
  auto graph = std::make_unique<Graph>();
  GraphNode& one = graph->Add(EmptyWork());
  GraphNode& two = AddBehind(*graph, {&one});
  // Volatile: compilers that know where a handle comes from warn of its use below.
  const cudaGraph_t volatile handle = graph->handle();
  const cudaGraphNode_t volatile node = two.handle();
  const cudaGraphNode_t volatile removed = one.handle();
  EXPECT_EQ(Graph::Find(handle), graph.get());
  EXPECT_EQ(Graph::FindNode(removed), &one);
  graph->Remove(one);
  EXPECT_EQ(Graph::FindNode(removed), nullptr);
  const GraphNode* const left = Graph::FindNode(node);
  ASSERT_NE(left, nullptr);
  EXPECT_THAT(left->dependencies, IsEmpty());
  graph.reset();
  EXPECT_EQ(Graph::Find(handle), nullptr);
  EXPECT_EQ(Graph::FindNode(node), nullptr);
  EXPECT_EQ(Graph::Find(nullptr), nullptr);
}

TEST(GraphTest, TheOrderFollowsTheEdgesAndCyclesHaveNone) {
  Graph graph;
  GraphNode& last = graph.Add(EmptyWork());
  GraphNode& first = graph.Add(EmptyWork());
  GraphNode& middle = AddBehind(graph, {&first});
  ASSERT_TRUE(graph.Connect(middle, last, {}));
  std::vector<const GraphNode*> order;
  ASSERT_TRUE(graph.TopologicalOrder(order));
  EXPECT_THAT(order, ElementsAre(&first, &middle, &last));
  ASSERT_TRUE(graph.Connect(last, first, {}));
  EXPECT_FALSE(graph.TopologicalOrder(order));
  std::vector<Stage> stages;
  EXPECT_FALSE(MakePlan(
      graph, [](const GraphNode&) { return Runner::kExecutor; }, stages));
}

TEST(GraphTest, AClonesNodesAreItsOwn) {
  Graph graph;
  auto child = std::make_shared<Graph>();
  const GraphNode& inner = child->Add(EmptyWork());
  GraphNode& outer = graph.Add(ChildWork{child});
  const GraphNode& next = AddBehind(graph, {&outer});
  const std::unique_ptr<Graph> clone = graph.Clone();
  ASSERT_EQ(clone->nodes().size(), 2u);
  const GraphNode& twin = *clone->nodes()[0];
  EXPECT_EQ(twin.original, &outer);
  EXPECT_EQ(clone->nodes()[1]->original, &next);
  EXPECT_EQ(clone->nodes()[1]->dependencies.front().node, &twin);
  const Graph& inner_clone = *std::get<ChildWork>(twin.work).graph;
  EXPECT_NE(&inner_clone, child.get());
  EXPECT_EQ(inner_clone.nodes()[0]->original, &inner);
}

// Where each node of a plan runs.
class PlanTest : public testing::Test {
 protected:
  // Host work awaits, event records do not.
  std::vector<Stage> Plan() const {
    std::vector<Stage> stages;
    EXPECT_TRUE(MakePlan(
        graph_,
        [](const GraphNode& node) {
          if (std::holds_alternative<HostWork>(node.work)) return Runner::kClientAwaiting;
          return std::holds_alternative<EventRecordWork>(node.work) ? Runner::kClientAtOnce
                                                                    : Runner::kExecutor;
        },
        stages));
    return stages;
  }
  static std::vector<const GraphNode*> NodesOf(const Stage& stage) {
    std::vector<const GraphNode*> nodes;
    for (const PlannedNode& planned : stage.executor) nodes.push_back(planned.node);
    return nodes;
  }

  Graph graph_;
};

TEST_F(PlanTest, ExecutorsWorkIsOneStage) {
  GraphNode& root = graph_.Add(EmptyWork());
  GraphNode& left = AddBehind(graph_, {&root});
  GraphNode& right = AddBehind(graph_, {&root});
  GraphNode& join = AddBehind(graph_, {&left, &right});
  const std::vector<Stage> stages = Plan();
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_THAT(stages[0].client, IsEmpty());
  EXPECT_THAT(NodesOf(stages[0]), ElementsAre(&root, &left, &right, &join));
  EXPECT_THAT(stages[0].executor[3].dependencies, UnorderedElementsAre(1, 2));
}

TEST_F(PlanTest, ClientsWorkStandsBetweenStages) {
  GraphNode& before = graph_.Add(EmptyWork());
  GraphNode& host = AddBehind(graph_, {&before}, HostWork());
  GraphNode& record = AddBehind(graph_, {&host}, EventRecordWork());
  GraphNode& after = AddBehind(graph_, {&record, &before});
  GraphNode& aside = graph_.Add(EmptyWork());
  const std::vector<Stage> stages = Plan();
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_THAT(NodesOf(stages[0]), ElementsAre(&before, &aside));
  EXPECT_THAT(stages[1].client, ElementsAre(&host, &record));
  EXPECT_THAT(NodesOf(stages[1]), ElementsAre(&after));
  EXPECT_THAT(stages[1].executor[0].dependencies, IsEmpty()) << "of an earlier stage";
}

TEST_F(PlanTest, WorkThatWaitsForNothingComesFirstUnlessItAwaits) {
  GraphNode& record = graph_.Add(EventRecordWork());
  GraphNode& host = graph_.Add(HostWork());
  GraphNode& work = graph_.Add(EmptyWork());
  const std::vector<Stage> stages = Plan();
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_THAT(stages[0].client, ElementsAre(&record));
  EXPECT_THAT(NodesOf(stages[0]), ElementsAre(&work));
  EXPECT_THAT(stages[1].client, ElementsAre(&host));
}

TEST_F(PlanTest, AChildsNodesStandForIt) {
  auto child = std::make_shared<Graph>();
  GraphNode& root = child->Add(EmptyWork());
  GraphNode& left = AddBehind(*child, {&root});
  GraphNode& right = AddBehind(*child, {&root});
  GraphNode& before = graph_.Add(EmptyWork());
  GraphNode& whole = AddBehind(graph_, {&before}, ChildWork{child});
  GraphNode& nothing = AddBehind(graph_, {&whole}, ChildWork{std::make_shared<Graph>()});
  GraphNode& after = AddBehind(graph_, {&nothing});
  const std::vector<Stage> stages = Plan();
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_THAT(NodesOf(stages[0]), ElementsAre(&before, &root, &left, &right, &after));
  EXPECT_THAT(stages[0].executor[1].dependencies, ElementsAre(0));
  EXPECT_THAT(stages[0].executor[4].dependencies, UnorderedElementsAre(2, 3));
}

TEST(GraphUpdateTest, WorkGoesFromPlaceToPlace) {
  Graph own;
  GraphNode& host = own.Add(HostWork());
  AddBehind(own, {&host});
  Graph given;
  int data = 0;
  GraphNode& changed = given.Add(HostWork{{nullptr, &data}});
  AddBehind(given, {&changed});
  cudaGraphExecUpdateResultInfo info{};
  ReplacedWork replaced;
  ASSERT_TRUE(UpdateWork(own, given, info, replaced));
  EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
  EXPECT_EQ(std::get<HostWork>(host.work).parameters.userData, &data);
  ASSERT_EQ(replaced.size(), 2u);
  EXPECT_EQ(replaced[0].first, &host);
  EXPECT_EQ(std::get<HostWork>(replaced[0].second).parameters.userData, nullptr);
}

TEST(GraphUpdateTest, DifferencesAreTold) {
  Graph own;
  GraphNode& one = own.Add(EmptyWork());
  AddBehind(own, {&one}, HostWork());
  cudaGraphExecUpdateResultInfo info{};
  ReplacedWork replaced;

  Graph larger;
  for (int i = 0; i < 3; ++i) larger.Add(EmptyWork());
  EXPECT_FALSE(UpdateWork(own, larger, info, replaced));
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);

  Graph loose;
  loose.Add(EmptyWork());
  const GraphNode& alone = loose.Add(HostWork());
  EXPECT_FALSE(UpdateWork(own, loose, info, replaced));
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_EQ(info.errorNode, alone.handle());

  Graph other;
  const GraphNode& fill = other.Add(FillWork());
  AddBehind(other, {other.nodes()[0].get()}, HostWork());
  EXPECT_FALSE(UpdateWork(own, other, info, replaced));
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
  EXPECT_EQ(info.errorNode, fill.handle());
  EXPECT_TRUE(replaced.empty());
}

void CountUp(void* counter) { ++*static_cast<int*>(counter); }

TEST(UserObjectTest, LivesAsLongAsAnyReference) {
  int destroyed = 0;
  auto* const object = new UserObject(&destroyed, CountUp, 2);
  const cudaUserObject_t handle = object->handle();
  {
    Graph graph;
    graph.user_references().Take(*object, 1);
    const std::unique_ptr<Graph> clone = graph.Clone();
    EXPECT_FALSE(clone->user_references().Release(*object, 2)) << "it has one";
    EXPECT_FALSE(object->Release(4));
    EXPECT_TRUE(object->Release(1));
  }
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(UserObject::Find(handle), nullptr);
}

}  // namespace
}  // namespace torpor::shim
