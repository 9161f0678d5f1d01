#include "server/executor/library/cudnn_graphs.h"

#include <gtest/gtest.h>

#include <utility>

#include "nvidia/cudnn/backend_descriptor.h"
#include "nvidia/cudnn/backend_library.h"
#include "nvidia/cudnn/shapes.h"
#include "server/executor/library/cudnn_calls.h"
#include "tests/nvidia/cudnn_graph.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor {
namespace {

constexpr std::uint64_t kWorkspaceBytes = 4096;

// Records the requests to a library with our own descriptors (nvidia/cudnn), and its answers.
struct Library {
  int heuristics = 0;
  std::vector<DnnEngineConfig> planned;
  std::vector<std::int64_t> executed;  // engines
  std::vector<std::uint64_t> addresses;
  std::uint64_t workspace = 0;
  std::int64_t unknown_engine = -1;
};
Library library;

DnnEngineChoice Choice(std::int64_t engine) {
  return {.engine = {.engine = engine,
                     .numerical_notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD},
                     .behavior_notes = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION},
                     .knobs = {{CUDNN_KNOB_TYPE_TILEK, 1, 9, 2}}},
          .knobs = {{CUDNN_KNOB_TYPE_TILEK, engine}}};
}

}  // namespace

// Engine 3 is the best, and needs workspace; 4 needs none.
cudnnStatus_t DnnRecommend(cudnnHandle_t, const DnnGraph&, cudnnBackendHeurMode_t,
                           std::vector<DnnEngineChoice>& choices) {
  ++library.heuristics;
  choices = {Choice(3), Choice(4)};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t DnnDescribe(cudnnHandle_t, const DnnGraph&, std::int64_t engine,
                          DnnEngine& description) {
  description = Choice(engine).engine;
  return engine == library.unknown_engine ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t DnnPlan(cudnnHandle_t, const DnnGraph&, const DnnEngineConfig& config,
                      std::uint64_t& workspace_bytes) {
  library.planned.push_back(config);
  workspace_bytes = config.engine == 3 ? kWorkspaceBytes : 0;
  return CUDNN_STATUS_SUCCESS;
}
void DnnSay(const std::string& line) { ADD_FAILURE() << line; }

namespace executor {
namespace {

cudnnStatus_t Execute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  DnnExecution execution;
  const DnnVerdict verdict = DnnReadExecution(plan, pack, execution);
  if (!verdict.ok()) return verdict.status;
  library.executed.push_back(execution.plan->config.engine);
  library.addresses = execution.addresses;
  library.workspace = execution.workspace;
  return CUDNN_STATUS_SUCCESS;
}

cuda_api::CudnnFunctions BackendLibrary() {
  cuda_api::CudnnFunctions f;
  f.cudnnCreate = [](cudnnHandle_t* handle) {
    return *handle = reinterpret_cast<cudnnHandle_t>(&library), CUDNN_STATUS_SUCCESS;
  };
  f.cudnnDestroy = [](cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; };
  f.cudnnSetStream = [](cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; };
  f.cudnnBackendCreateDescriptor = cudnnBackendCreateDescriptor;
  f.cudnnBackendDestroyDescriptor = cudnnBackendDestroyDescriptor;
  f.cudnnBackendSetAttribute = cudnnBackendSetAttribute;
  f.cudnnBackendGetAttribute = cudnnBackendGetAttribute;
  f.cudnnBackendFinalize = cudnnBackendFinalize;
  f.cudnnBackendExecute = Execute;
  return f;
}

class CudnnGraphsTest : public testing::Test {
 protected:
  CudnnGraphsTest() {
    library = {};
    command_.graph = FusedGraph();
    command_.config = {.engine = 3, .knobs = {{CUDNN_KNOB_TYPE_TILEK, 5}}};
    for (const DnnGraphTensor& tensor : command_.graph.tensors)
      command_.addresses.push_back(tensor.is_virtual != 0 ? 0 : base_ + tensor.id * 16384);
    command_.workspace = base_;
    command_.workspace_bytes = kWorkspaceBytes;
  }

  std::int32_t Execute() { return Send(command_).status.code; }
  template <typename Command>
  cuda_api::CallOutcome Send(const Command& command) {
    cuda_api::CallOutcome outcome;
    EXPECT_TRUE(
        cuda_api::DispatchCudnn(calls_, Command::kCallId, wire::Encoded(command), outcome).ok());
    return outcome;
  }

  FakeSession s_;
  const std::uint64_t base_ = s_.identity.device_base;
  CudnnPool pool_{BackendLibrary()};
  StreamSet streams_{*s_.device};
  CudnnCalls calls_{pool_, streams_, *s_.memory};
  wire::CudnnGraphExecute command_;
};

TEST_F(CudnnGraphsTest, APlanIsMadeOnceAndExecutedOnTheSessionsMemory) {
  ASSERT_EQ(Execute(), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(Execute(), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(library.planned.size(), 1u);
  EXPECT_EQ(library.planned[0].engine, 3);
  ASSERT_EQ(library.planned[0].knobs.size(), 1u);
  EXPECT_EQ(library.planned[0].knobs[0].value, 5);
  EXPECT_EQ(library.executed, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(library.addresses, command_.addresses);
  EXPECT_EQ(library.workspace, base_);
  EXPECT_EQ(library.heuristics, 0);
}

// Another function's session, with a handle and memory of its own.
TEST_F(CudnnGraphsTest, TheFirstCallOfAnotherSessionFindsThePlan) {
  ASSERT_EQ(Execute(), CUDNN_STATUS_SUCCESS);
  StreamSet streams(*s_.device);
  CudnnCalls others(pool_, streams, *s_.memory);
  cuda_api::CallOutcome outcome;
  ASSERT_TRUE(
      cuda_api::DispatchCudnn(others, command_.kCallId, wire::Encoded(command_), outcome).ok());
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message;
  EXPECT_EQ(library.planned.size(), 1u);
  EXPECT_EQ(library.executed, (std::vector<std::int64_t>{3, 3}));
  command_.config.knobs[0].value = 6;
  ASSERT_TRUE(
      cuda_api::DispatchCudnn(others, command_.kCallId, wire::Encoded(command_), outcome).ok());
  EXPECT_EQ(library.planned.size(), 2u) << "another configuration";
}

TEST_F(CudnnGraphsTest, AConfigurationOfAnotherGpuGivesWayToOneThatFits) {
  library.unknown_engine = command_.config.engine = 17;
  ASSERT_EQ(Execute(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(library.executed.back(), 3) << "the best";
  command_.workspace_bytes = command_.workspace = 0;
  ASSERT_EQ(Execute(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(library.executed.back(), 4) << "that needs no workspace";
  command_.config.engine = 3;
  ASSERT_EQ(Execute(), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(library.executed.back(), 4);
}

TEST_F(CudnnGraphsTest, RecommendationsTravelByValue) {
  wire::CudnnGraphChoices question;
  question.graph = command_.graph;
  question.mode = CUDNN_HEUR_MODE_FALLBACK;
  const cuda_api::CallOutcome outcome = Send(question);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message;
  wire::CudnnGraphChoicesResult answer;
  wire::Reader reader(outcome.result);
  reader(answer);
  ASSERT_TRUE(reader.done());
  ASSERT_EQ(answer.choices.size(), 2u);
  EXPECT_EQ(wire::Encoded(answer.choices[1]), wire::Encoded(Choice(4)));
  question.mode = CUDNN_HEUR_MODES_COUNT;
  EXPECT_EQ(Send(question).status.code, CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnGraphsTest, EnginesAndPlansAreDescribed) {
  wire::CudnnGraphEngine about_engine;
  about_engine.graph = command_.graph;
  about_engine.engine = 6;
  const cuda_api::CallOutcome described = Send(about_engine);
  ASSERT_TRUE(described.status.ok());
  EXPECT_EQ(described.result, wire::Encoded(Choice(6).engine));
  library.unknown_engine = 6;
  about_engine.graph.tensors[0].id = 'X';
  EXPECT_EQ(Send(about_engine).status.code, CUDNN_STATUS_NOT_SUPPORTED);
  wire::CudnnGraphPlan about_plan;
  about_plan.graph = command_.graph;
  about_plan.config = command_.config;
  const cuda_api::CallOutcome planned = Send(about_plan);
  EXPECT_EQ(planned.result, wire::Encoded(kWorkspaceBytes));
  about_plan.config.engine = 6;
  EXPECT_EQ(Send(about_plan).status.code, CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(CudnnGraphsTest, EveryTensorMustBeTheSessionsWhole) {
  const std::uint64_t end = base_ + 4 * kMiB;  // of what is resident
  const std::uint64_t y_bytes = DnnBytes(command_.graph.tensors.back().shape);
  command_.addresses.back() = end - y_bytes;
  EXPECT_EQ(Execute(), CUDNN_STATUS_SUCCESS);
  command_.addresses.back() += 16;
  EXPECT_EQ(Execute(), CUDNN_STATUS_BAD_PARAM);
  command_.addresses.back() = base_;
  command_.workspace = end - kWorkspaceBytes + 16;
  EXPECT_EQ(Execute(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(library.executed.size(), 1u);
}

TEST_F(CudnnGraphsTest, InvalidGraphsNeverReachTheLibrary) {
  command_.addresses.pop_back();
  EXPECT_EQ(Execute(), CUDNN_STATUS_BAD_PARAM);
  command_.addresses.push_back(base_);
  command_.config.engine = -1;
  EXPECT_EQ(Execute(), CUDNN_STATUS_BAD_PARAM);
  command_.config.engine = 3;
  command_.graph.operations[0].x = 77;
  EXPECT_EQ(Execute(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_TRUE(library.planned.empty());
}

TEST_F(CudnnGraphsTest, ALibraryWithoutTheApiSaysSo) {
  CudnnPool none{cuda_api::CudnnFunctions()};
  CudnnCalls calls(none, streams_, *s_.memory);
  cuda_api::CallOutcome outcome;
  ASSERT_TRUE(
      cuda_api::DispatchCudnn(calls, command_.kCallId, wire::Encoded(command_), outcome).ok());
  EXPECT_EQ(outcome.status.code, CUDNN_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace executor
}  // namespace torpor
