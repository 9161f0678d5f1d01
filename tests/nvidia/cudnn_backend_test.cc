#include "tests/nvidia/cudnn_backend.h"

#include <string>

#include "nvidia/cudnn/backend_descriptor.h"
#include "nvidia/cudnn/backend_library.h"

namespace torpor {
namespace {

// The library of which these entries are: what it was asked, and what it answers.
struct Library {
  std::vector<DnnGraph> graphs;
  std::vector<DnnEngineConfig> planned;
  std::vector<std::string> said;
  cudnnStatus_t plan_status = CUDNN_STATUS_SUCCESS;
};
Library library;

}  // namespace

cudnnStatus_t DnnRecommend(cudnnHandle_t, const DnnGraph& graph, cudnnBackendHeurMode_t mode,
                           std::vector<DnnEngineChoice>& choices) {
  library.graphs.push_back(graph);
  if (mode == CUDNN_HEUR_MODE_B) return CUDNN_STATUS_NOT_SUPPORTED;
  choices.resize(2);
  choices[0].engine = {.engine = 7,
                       .numerical_notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
                       .knobs = {{CUDNN_KNOB_TYPE_TILE_SIZE, 0, 8, 2}}};
  choices[0].knobs = {{CUDNN_KNOB_TYPE_TILE_SIZE, 4}, {CUDNN_KNOB_TYPE_STAGES, 3}};
  choices[1].engine.engine = 1;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t DnnDescribe(cudnnHandle_t, const DnnGraph&, std::int64_t engine,
                          DnnEngine& description) {
  description = {.engine = engine, .behavior_notes = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}};
  return engine == 99 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t DnnPlan(cudnnHandle_t, const DnnGraph&, const DnnEngineConfig& config,
                      std::uint64_t& workspace_bytes) {
  library.planned.push_back(config);
  workspace_bytes = 4096;
  return library.plan_status;
}
void DnnSay(const std::string& line) { library.said.push_back(line); }

namespace {

constexpr std::int64_t kX = 'x';
constexpr std::int64_t kW = 'w';
constexpr std::int64_t kY = 'y';

class CudnnBackendTest : public testing::Test {
 protected:
  CudnnBackendTest() { library = {}; }

  // A convolution that keeps its images' size.
  Backend Graph() const {
    const Backend forward =
        ForwardOf(ConvolutionOf({.before = {1, 1}, .after = {1, 1}}), TensorOf(kX, {2, 3, 8, 8}),
                  TensorOf(kW, {4, 3, 3, 3}), TensorOf(kY, {2, 4, 8, 8}), 0.5f, 2);
    return GraphOf(nullptr, {&forward});
  }
};

TEST_F(CudnnBackendTest, AGraphOutlivesTheDescriptorsItWasMadeOf) {
  const Backend heuristic = HeuristicOf(Graph()).Final();
  ASSERT_EQ(library.graphs.size(), 1u);
  const DnnGraph& graph = library.graphs[0];
  ASSERT_EQ(graph.tensors.size(), 3u);
  EXPECT_EQ(graph.tensors[1].id, kW);
  EXPECT_EQ(graph.tensors[2].shape.strides[1], 64);
  ASSERT_EQ(graph.operations.size(), 1u);
  EXPECT_EQ(graph.operations[0].kind, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_EQ(graph.operations[0].y, 2u);
  EXPECT_EQ(graph.operations[0].convolution.after[1], 1);
  EXPECT_EQ(graph.operations[0].alpha, 0.5);
  EXPECT_EQ(graph.operations[0].beta, 2);
  EXPECT_TRUE(library.said.empty());
}

TEST_F(CudnnBackendTest, RecommendationsAreReadAsDescriptors) {
  const Backend heuristic = HeuristicOf(Graph()).Final();
  Backend configs[3] = {Backend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
                        Backend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
                        Backend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)};
  cudnnBackendDescriptor_t real[3] = {configs[0].real(), configs[1].real(), configs[2].real()};
  std::int64_t count = 0;
  ASSERT_EQ(cudnnBackendGetAttribute(heuristic.real(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 3, &count, real),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 2);
  const Backend engine =
      configs[0].Get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  EXPECT_EQ(engine.Get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64),
            std::vector<std::int64_t>{7});
  EXPECT_EQ(engine.Get<std::int32_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE),
            std::vector<std::int32_t>{CUDNN_NUMERICAL_NOTE_TENSOR_CORE});
  EXPECT_TRUE(
      engine.Get<std::int32_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE).empty());
  const Backend range = engine.Get(CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
  EXPECT_EQ(range.Get<std::int64_t>(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64),
            std::vector<std::int64_t>{8});
  const Backend knob =
      configs[0].Get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  EXPECT_EQ(knob.Get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64),
            std::vector<std::int64_t>{4});
}

TEST_F(CudnnBackendTest, APlanIsOfTheConfigurationThatWasChosen) {
  const Backend plan = PlanOf(Graph());
  ASSERT_EQ(library.planned.size(), 1u);
  EXPECT_EQ(library.planned[0].engine, 7);
  ASSERT_EQ(library.planned[0].knobs.size(), 2u);
  EXPECT_EQ(library.planned[0].knobs[1].value, 3);
  EXPECT_EQ(plan.Get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64),
            std::vector<std::int64_t>{4096});
}

TEST_F(CudnnBackendTest, ProgramsMayChooseEnginesAndKnobsThemselves) {
  const Backend graph = Graph();
  const Backend engine =
      std::move(Backend(CUDNN_BACKEND_ENGINE_DESCRIPTOR)
                    .Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
                    .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::int64_t{5}))
          .Final();
  EXPECT_EQ(engine.Get<std::int32_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE),
            std::vector<std::int32_t>{CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION});
  const Backend knob =
      std::move(
          Backend(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
              .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, CUDNN_KNOB_TYPE_TILEK)
              .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::int64_t{2}))
          .Final();
  const Backend config = std::move(Backend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
                                       .Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine)
                                       .Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knob))
                             .Final();
  Backend plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  library.plan_status = CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
  EXPECT_EQ(plan.TryFinalize(), CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  ASSERT_EQ(library.planned.size(), 1u);
  EXPECT_EQ(library.planned[0].engine, 5);
  EXPECT_EQ(library.planned[0].knobs[0].type, CUDNN_KNOB_TYPE_TILEK);
  Backend none(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  none.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::int64_t{99});
  EXPECT_EQ(none.TryFinalize(), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_TRUE(library.said.empty()) << "the library has said why";
}

TEST_F(CudnnBackendTest, AnExecutionHasTheAddressesInTheGraphsOrder) {
  const Backend plan = PlanOf(Graph());
  const auto at = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
  const Backend pack = PackOf({kY, kW, kX}, {at(0x300), at(0x200), at(0x100)}, at(0x1000));
  DnnExecution execution;
  ASSERT_TRUE(DnnReadExecution(plan.real(), pack.real(), execution).ok());
  EXPECT_EQ(execution.addresses, (std::vector<std::uint64_t>{0x100, 0x200, 0x300}));
  EXPECT_EQ(execution.workspace, 0x1000u);
  const auto status = [&](const Backend& other) {
    return DnnReadExecution(plan.real(), other.real(), execution).status;
  };
  EXPECT_EQ(status(PackOf({kY, kW}, {at(0x300), at(0x200)}, at(0x1000))),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(status(PackOf({kY, kW, kX}, {at(0x300), at(0x200), at(0x108)}, at(0x1000))),
            CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  EXPECT_EQ(status(PackOf({kY, kW, kX}, {at(0x300), at(0x200), at(0x100)})),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER)
      << "no workspace";
  EXPECT_EQ(status(plan), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
  EXPECT_EQ(status(Backend(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
}

TEST_F(CudnnBackendTest, SettingFollowsTheRules) {
  Backend tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const auto set = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const std::vector<std::int64_t>& elements) {
    return tensor.TrySet(name, type, elements);
  };
  EXPECT_EQ(set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT32, {1}),
            CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  EXPECT_EQ(set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, {}), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, Shape(9, 1)),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, {1}), CUDNN_STATUS_BAD_PARAM)
      << "not a tensor's";
  EXPECT_EQ(set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, {1}),
            CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudnnBackendSetAttribute(tensor.real(), CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 1,
                                     nullptr),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  Backend operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  const std::vector<cudnnBackendDescriptor_t> open = {tensor.real()};
  EXPECT_EQ(
      operation.TrySet(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, open),
      CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  const Backend function = FunctionOf(CUDNN_POINTWISE_ADD);
  const std::vector<cudnnBackendDescriptor_t> other = {function.real()};
  EXPECT_EQ(
      operation.TrySet(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, other),
      CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
  EXPECT_EQ(library.said.size(), 8u) << "each with a reason";
}

TEST_F(CudnnBackendTest, FinalizingFollowsTheRules) {
  Backend tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(tensor.TryFinalize(), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(library.said.back(), "cudnnBackendFinalize: CUDNN_ATTR_TENSOR_DATA_TYPE is not set");
  const Backend made = TensorOf(kX, {2, 3});
  EXPECT_EQ(cudnnBackendFinalize(made.real()), CUDNN_STATUS_BAD_PARAM) << "twice";
  const std::int64_t id = 5;
  EXPECT_EQ(
      cudnnBackendSetAttribute(made.real(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id),
      CUDNN_STATUS_NOT_INITIALIZED);
  std::int64_t count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(tensor.real(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64,
                                     1, &count, nullptr),
            CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(made.Get<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64), (Shape{2, 3}));
  Backend huge(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  huge.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, Shape{2, 1})
      .Set(CUDNN_ATTR_TENSOR_STRIDES, Shape{std::int64_t{1} << 31, 1})
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  EXPECT_EQ(huge.TryFinalize(), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(CudnnBackendTest, GraphsMustMakeSense) {
  const Backend convolution = ConvolutionOf({});
  const Backend w = TensorOf(kW, {4, 3, 3, 3});
  const Backend misshapen =
      ForwardOf(convolution, TensorOf(kX, {2, 3, 8, 8}), w, TensorOf(kY, {2, 4, 8, 8}));
  EXPECT_EQ(OpenGraphOf(nullptr, {&misshapen}).TryFinalize(), CUDNN_STATUS_BAD_PARAM);
  const Backend doubled =
      ForwardOf(convolution, TensorOf(kX, {2, 3, 8, 8}), w, TensorOf(kX, {2, 4, 6, 6}));
  EXPECT_EQ(OpenGraphOf(nullptr, {&doubled}).TryFinalize(),
            CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
  EXPECT_EQ(HeuristicOf(Graph(), CUDNN_HEUR_MODE_B).TryFinalize(), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(CudnnBackendTest, WhatIsMissingSaysSo) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR, &descriptor),
            CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cudnnBackendFinalize(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(library.said,
            std::vector<std::string>{"cudnnBackendCreateDescriptor: descriptors of kind 18 are not"
                                     " supported (docs/shim.md)"});
}

}  // namespace
}  // namespace torpor
