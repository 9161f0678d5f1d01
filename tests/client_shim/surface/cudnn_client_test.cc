#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "nvidia/cudnn/shapes.h"
#include "proto/cuda_api/cudnn_commands.h"
#include "tests/client_shim/surface/fake_client_core.h"
#include "tests/nvidia/cudnn_backend.h"

extern "C" torpor::shim::ClientCore* torpor_client_core() {
  return &torpor::shim::FakeClientCore::Current();
}

namespace torpor::shim {
namespace {

void* Device(std::uint64_t offset) { return reinterpret_cast<void*>(0x2000'0000'0000 + offset); }

class CudnnClientTest : public testing::Test {
 protected:
  void SetUp() override {
    core_.Forget();
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateTensorDescriptor(&x_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateTensorDescriptor(&y_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 2, 3, 4, 5),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 2, 3, 4, 5),
              CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroy(handle_);
  }

  cudnnStatus_t Softmax(const void* alpha, const void* beta) {
    return cudnnSoftmaxForward(handle_, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL, alpha, x_,
                               Device(0), beta, y_, Device(256));
  }

  FakeClientCore& core_ = FakeClientCore::Get();
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr;
  cudnnTensorDescriptor_t y_ = nullptr;
};

TEST_F(CudnnClientTest, DescriptorsTravelByValue) {
  const double alpha = 1.5;
  const double beta = 0.5;  // as the result's type asks
  ASSERT_EQ(Softmax(&alpha, &beta), CUDNN_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CudnnSoftmaxForward>();
  EXPECT_EQ(sent.stream, 0u);
  EXPECT_EQ(sent.algo, CUDNN_SOFTMAX_LOG);
  EXPECT_EQ(sent.xDesc.type, CUDNN_DATA_HALF);
  EXPECT_EQ(sent.xDesc.strides[1], 1);
  EXPECT_EQ(sent.xDesc.strides[3], 3);
  EXPECT_EQ(sent.yDesc.strides[0], 60);
  EXPECT_EQ(sent.y, 0x2000'0000'0100u);
  double value = 0;
  std::memcpy(&value, sent.beta.data(), sizeof value);
  EXPECT_EQ(value, 0.5);
}

TEST_F(CudnnClientTest, InvalidArgumentsAreRefusedAtOnce) {
  const double one = 1;
  EXPECT_EQ(Softmax(nullptr, &one), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(cudnnScaleTensor(handle_, nullptr, Device(0), &one),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(cudnnScaleTensor(nullptr, y_, Device(0), &one), CUDNN_STATUS_NOT_INITIALIZED);
  cudnnTensorDescriptor_t unset = nullptr;
  ASSERT_EQ(cudnnCreateTensorDescriptor(&unset), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnScaleTensor(handle_, unset, Device(0), &one), CUDNN_STATUS_BAD_PARAM);
  cudnnDestroyTensorDescriptor(unset);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudnnClientTest, TheHandlesStreamIsThatOfItsCalls) {
  const std::uint64_t stream = core_.MintHandle(HandleKind::kStream);
  EXPECT_EQ(cudnnSetStream(handle_, reinterpret_cast<cudaStream_t>(stream)),
            CUDNN_STATUS_BAD_PARAM);
  core_.live.insert(stream);
  ASSERT_EQ(cudnnSetStream(handle_, reinterpret_cast<cudaStream_t>(stream)), CUDNN_STATUS_SUCCESS);
  const double one = 1;
  ASSERT_EQ(cudnnScaleTensor(handle_, y_, Device(0), &one), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(core_.Only<wire::CudnnScaleTensor>().stream, stream);
  core_.sent.clear();
  ASSERT_EQ(cudnnSetStream(handle_, cudaStreamPerThread), CUDNN_STATUS_SUCCESS);
  core_.per_thread_stream += 1;
  ASSERT_EQ(cudnnScaleTensor(handle_, y_, Device(0), &one), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(core_.Only<wire::CudnnScaleTensor>().stream, core_.per_thread_stream);
}

class CudnnQuestionsTest : public CudnnClientTest {
 protected:
  // Every test asks about a shape of its own: answers are kept for the process's life.
  void Describe(int images) {
    ASSERT_EQ(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images, 2, 5, 5),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images, 4, 3, 3),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateFilterDescriptor(&w_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetFilter4dDescriptor(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 2, 3, 3),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateConvolutionDescriptor(&convolution_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetConvolution2dDescriptor(convolution_, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION,
                                              CUDNN_DATA_FLOAT),
              CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    CudnnClientTest::TearDown();
  }
  cudnnStatus_t AskSize(std::size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, y_,
                                                   CUDNN_CONVOLUTION_FWD_ALGO_GEMM, bytes);
  }

  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
};

TEST_F(CudnnQuestionsTest, AWorkspaceIsAskedForOnce) {
  ASSERT_NO_FATAL_FAILURE(Describe(1));
  wire::CudnnGetConvolutionForwardWorkspaceSizeResult answer;
  answer.bytes = 4096;
  core_.reply.result = wire::Encoded(answer);
  std::size_t bytes = 0;
  ASSERT_EQ(AskSize(&bytes), CUDNN_STATUS_SUCCESS);
  bytes = 0;
  ASSERT_EQ(AskSize(&bytes), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(bytes, 4096u);
  EXPECT_EQ(core_.sent.size(), 1u);
}

TEST_F(CudnnQuestionsTest, ARefusalIsRemembered) {
  ASSERT_NO_FATAL_FAILURE(Describe(2));
  core_.reply.status = CUDNN_STATUS_NOT_SUPPORTED;
  std::size_t bytes = 0;
  EXPECT_EQ(AskSize(&bytes), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(AskSize(&bytes), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(core_.sent.size(), 1u);
}

TEST_F(CudnnQuestionsTest, AlgorithmsAreTheLibrarysAnswer) {
  ASSERT_NO_FATAL_FAILURE(Describe(3));
  wire::CudnnConvolutionAlgorithmsResult answer;
  answer.algorithms = {{.algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
                        .time_ms = 0.5f,
                        .workspace_bytes = 128,
                        .determinism = CUDNN_DETERMINISTIC}};
  core_.reply.result = wire::Encoded(answer);
  cudnnConvolutionBwdFilterAlgoPerf_t found[2];
  int count = 0;
  ASSERT_EQ(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_, y_, convolution_, w_, 2,
                                                          &count, found),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(found[0].algo, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);
  EXPECT_EQ(found[0].memory, 128u);
  const auto sent = core_.Only<wire::CudnnConvolutionAlgorithms>();
  EXPECT_EQ(sent.direction, 2u);
  EXPECT_EQ(sent.x.dims[1], 2);
  EXPECT_EQ(sent.y.dims[1], 4);
  EXPECT_EQ(sent.requested, 2u);
}

TEST_F(CudnnQuestionsTest, OnlyAlgorithmsForWhichTheWorkspaceIsEnoughAreFound) {
  ASSERT_NO_FATAL_FAILURE(Describe(4));
  wire::CudnnConvolutionAlgorithmsResult answer;
  answer.algorithms = {
      {.algorithm = CUDNN_CONVOLUTION_FWD_ALGO_FFT, .workspace_bytes = 4096},
      {.algorithm = CUDNN_CONVOLUTION_FWD_ALGO_GEMM, .workspace_bytes = 1024},
      {.algorithm = CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, .workspace_bytes = 0},
  };
  core_.reply.result = wire::Encoded(answer);
  cudnnConvolutionFwdAlgoPerf_t found[3];
  int count = 0;
  ASSERT_EQ(
      cudnnFindConvolutionForwardAlgorithmEx(handle_, x_, Device(0), w_, Device(256), convolution_,
                                             y_, Device(512), 3, &count, found, Device(1024), 1024),
      CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 2);
  EXPECT_EQ(found[0].algo, CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
  EXPECT_EQ(found[1].algo, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
  EXPECT_EQ(core_.Only<wire::CudnnConvolutionAlgorithms>().is_measured, 1u);
}

class BatchNormTest : public CudnnClientTest {
 protected:
  void SetUp() override {
    CudnnClientTest::SetUp();
    ASSERT_EQ(cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 5),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateTensorDescriptor(&statistics_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnDeriveBNTensorDescriptor(statistics_, y_, CUDNN_BATCHNORM_SPATIAL),
              CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    cudnnDestroyTensorDescriptor(statistics_);
    CudnnClientTest::TearDown();
  }
  cudnnStatus_t Train(cudnnBatchNormOps_t operations) {
    const float one = 1;
    const float zero = 0;
    return cudnnBatchNormalizationForwardTrainingEx(
        handle_, CUDNN_BATCHNORM_SPATIAL, operations, &one, &zero, y_, Device(0), nullptr, nullptr,
        y_, Device(4096), statistics_, Device(8192), Device(8448), 0.1, nullptr, nullptr, 1e-5,
        nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0);
  }
  cudnnStatus_t AskReserved(cudnnBatchNormOps_t operations, std::size_t* bytes) {
    return cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle_, CUDNN_BATCHNORM_SPATIAL,
                                                                operations, nullptr, y_, bytes);
  }

  cudnnTensorDescriptor_t statistics_ = nullptr;
};

TEST_F(BatchNormTest, TheExtendedFormWithoutMoreIsThePlainOne) {
  std::size_t bytes = 1;
  ASSERT_EQ(AskReserved(CUDNN_BATCHNORM_OPS_BN, &bytes), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(bytes, 0u);
  ASSERT_EQ(Train(CUDNN_BATCHNORM_OPS_BN), CUDNN_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CudnnBatchNormalizationForwardTraining>();
  EXPECT_EQ(sent.bnBias, 0x2000'0000'2100u);
  EXPECT_EQ(sent.exponentialAverageFactor, 0.1);
}

TEST_F(BatchNormTest, AnActivationInItIsRefused) {
  std::size_t bytes = 1;
  EXPECT_EQ(AskReserved(CUDNN_BATCHNORM_OPS_BN_ACTIVATION, &bytes), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(Train(CUDNN_BATCHNORM_OPS_BN_ACTIVATION), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudnnClientTest, ASpatialTransformerTravelsByValue) {
  cudnnSpatialTransformerDescriptor_t transformer = nullptr;
  ASSERT_EQ(cudnnCreateSpatialTransformerDescriptor(&transformer), CUDNN_STATUS_SUCCESS);
  const auto generate = [&] {
    return cudnnSpatialTfGridGeneratorForward(handle_, transformer, Device(0), Device(256));
  };
  EXPECT_EQ(generate(), CUDNN_STATUS_BAD_PARAM) << "nothing is set";
  const int dims[] = {2, 3, 4, 5, 6};
  const auto set = [&](int rank) {
    return cudnnSetSpatialTransformerNdDescriptor(transformer, CUDNN_SAMPLER_BILINEAR,
                                                  CUDNN_DATA_DOUBLE, rank, dims);
  };
  EXPECT_EQ(set(5), CUDNN_STATUS_NOT_SUPPORTED);
  ASSERT_EQ(set(4), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(generate(), CUDNN_STATUS_SUCCESS);
  const auto grid = core_.Only<wire::CudnnSpatialTfGridGeneratorForward>();
  EXPECT_EQ(grid.stDesc.type, CUDNN_DATA_DOUBLE);
  EXPECT_EQ(grid.stDesc.dims, (std::array<std::int32_t, 4>{2, 3, 4, 5}));
  EXPECT_EQ(grid.grid, 0x2000'0000'0100u);
  core_.sent.clear();
  const double scales[] = {1, 2, 3, 4};
  ASSERT_EQ(cudnnSpatialTfSamplerBackward(handle_, transformer, &scales[0], y_, Device(0),
                                          &scales[1], y_, Device(4096), &scales[2], y_,
                                          Device(8192), Device(256), &scales[3], Device(16384)),
            CUDNN_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CudnnSpatialTfSamplerBackward>();
  double scale = 0;
  std::memcpy(&scale, sent.betaDgrid.data(), sizeof scale);
  EXPECT_EQ(scale, 4) << "of double, as the grid is";
  EXPECT_EQ(sent.dgrid, 0x2000'0000'4000u);
  cudnnDestroySpatialTransformerDescriptor(transformer);
}

TEST_F(CudnnClientTest, WhatIsMissingSaysSo) {
  EXPECT_EQ(cudnnBackendInitialize(nullptr), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(core_.warnings, std::vector<std::string>{"cudnnBackendInitialize"});
  EXPECT_STREQ(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM_NULL_POINTER), "CUDNN_STATUS_BAD_PARAM");
}

class CudnnBackendClientTest : public CudnnClientTest {
 protected:
  void SetUp() override {
    CudnnClientTest::SetUp();
    wire::CudnnGraphChoicesResult choices;
    choices.choices.resize(1);
    choices.choices[0].engine.engine = 7;
    choices.choices[0].knobs = {{CUDNN_KNOB_TYPE_TILEK, 2}};
    core_.results[wire::CudnnGraphChoices::kCallId] = wire::Encoded(choices);
    wire::CudnnGraphPlanResult plan;
    plan.workspace_bytes = 512;
    core_.results[wire::CudnnGraphPlan::kCallId] = wire::Encoded(plan);
  }
  // Every test asks about a shape of its own: answers are kept for the process's life.
  Backend Graph(std::int64_t images) const {
    const Backend forward =
        ForwardOf(ConvolutionOf({}), TensorOf('x', {images, 3, 8, 8}), TensorOf('w', {4, 3, 3, 3}),
                  TensorOf('y', {images, 4, 6, 6}));
    return GraphOf(handle_, {&forward});
  }
  static Backend Pack() {
    return PackOf({'x', 'y', 'w'}, {Device(0), Device(4096), Device(8192)}, Device(16384));
  }
};

TEST_F(CudnnBackendClientTest, AnExecutionIsOneCallWithAllByValue) {
  const Backend plan = PlanOf(Graph(1));
  core_.sent.clear();
  ASSERT_EQ(cudnnBackendExecute(handle_, plan.real(), Pack().real()), CUDNN_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CudnnGraphExecute>();
  EXPECT_EQ(sent.stream, 0u);
  ASSERT_EQ(sent.graph.tensors.size(), 3u);
  EXPECT_EQ(sent.graph.tensors[1].id, 'w');
  EXPECT_EQ(sent.config.engine, 7);
  EXPECT_EQ(sent.config.knobs[0].value, 2);
  EXPECT_EQ(sent.addresses[1], 0x2000'0000'2000u);
  EXPECT_EQ(sent.workspace, 0x2000'0000'4000u);
  EXPECT_EQ(sent.workspace_bytes, 512u);
}

TEST_F(CudnnBackendClientTest, AGraphIsAskedAboutOnce) {
  PlanOf(Graph(2));
  EXPECT_EQ(core_.sent.size(), 2u) << "which engines, and one's plan";
  PlanOf(Graph(2));
  EXPECT_EQ(core_.sent.size(), 2u);
  PlanOf(Graph(3));
  EXPECT_EQ(core_.sent.size(), 4u);
}

TEST_F(CudnnBackendClientTest, AnExecutionNeedsAHandleAndAllTensors) {
  const Backend plan = PlanOf(Graph(4));
  core_.sent.clear();
  EXPECT_EQ(cudnnBackendExecute(nullptr, plan.real(), Pack().real()), CUDNN_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cudnnBackendExecute(handle_, plan.real(), PackOf({'x'}, {Device(0)}).real()),
            CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(core_.warnings.size(), 1u);
  EXPECT_TRUE(core_.sent.empty());
}

class CudnnRecurrentClientTest : public CudnnClientTest {
 protected:
  void SetUp() override {
    CudnnClientTest::SetUp();
    ASSERT_EQ(cudnnCreateDropoutDescriptor(&dropout_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateRNNDescriptor(&rnn_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateRNNDataDescriptor(&sequences_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    cudnnDestroyRNNDataDescriptor(sequences_);
    cudnnDestroyRNNDescriptor(rnn_);
    cudnnDestroyDropoutDescriptor(dropout_);
    CudnnClientTest::TearDown();
  }

  // Every test asks about a size of its own: answers are kept for the process's life.
  void Describe(int size, std::vector<int> lengths = {4, 4}) {
    ASSERT_EQ(cudnnSetRNNDescriptor_v8(
                  rnn_, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                  CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT,
                  CUDNN_TENSOR_OP_MATH, size, size, size, 2, dropout_, CUDNN_RNN_PADDED_IO_ENABLED),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetRNNDataDescriptor(sequences_, CUDNN_DATA_HALF,
                                        CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 4, 2, size,
                                        lengths.data(), nullptr),
              CUDNN_STATUS_SUCCESS);
    const int dims[] = {2, 2, size, 1, 1};
    ASSERT_EQ(cudnnSetTensorNdDescriptorEx(x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 5, dims),
              CUDNN_STATUS_SUCCESS);
  }
  void SetDropout(float probability, void* states) {
    ASSERT_EQ(cudnnSetDropoutDescriptor(dropout_, handle_, probability, states,
                                        states == nullptr ? 0 : 64, 7),
              CUDNN_STATUS_SUCCESS);
  }
  cudnnStatus_t Forward(cudnnForwardMode_t mode) {
    return cudnnRNNForward(handle_, rnn_, mode, nullptr, sequences_, Device(0), sequences_,
                           Device(4096), x_, Device(8192), nullptr, nullptr, nullptr, nullptr, 512,
                           Device(16384), 256, Device(32768), 128, Device(65536));
  }
  cudnnStatus_t AskSpaces(std::size_t* workspace, std::size_t* reserve) {
    return cudnnGetRNNTempSpaceSizes(handle_, rnn_, CUDNN_FWD_MODE_INFERENCE, sequences_, workspace,
                                     reserve);
  }

  cudnnDropoutDescriptor_t dropout_ = nullptr;
  cudnnRNNDescriptor_t rnn_ = nullptr;
  cudnnRNNDataDescriptor_t sequences_ = nullptr;
};

TEST_F(CudnnRecurrentClientTest, APassIsOneCallWithAllByValue) {
  ASSERT_NO_FATAL_FAILURE(SetDropout(0.5f, Device(1 << 20)));
  ASSERT_NO_FATAL_FAILURE(Describe(3, {4, 1}));
  core_.sent.clear();
  ASSERT_EQ(Forward(CUDNN_FWD_MODE_TRAINING), CUDNN_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CudnnRnnForward>();
  EXPECT_EQ(sent.is_training, 1u);
  EXPECT_EQ(sent.shapes.rnn.cell, CUDNN_LSTM);
  EXPECT_EQ(sent.shapes.rnn.dropout.states, 0x2000'0010'0000u);
  EXPECT_EQ(sent.shapes.x.lengths, (std::vector<std::int32_t>{4, 1}));
  EXPECT_EQ(sent.shapes.hidden.dims[2], 3);
  EXPECT_EQ(sent.shapes.cell.rank, 0);
  EXPECT_EQ(sent.hx, 0x2000'0000'2000u);
  EXPECT_EQ(sent.hy, 0u);
  EXPECT_EQ(sent.weights_bytes, 512u);
  EXPECT_EQ(sent.reserve_bytes, 128u);
}

TEST_F(CudnnRecurrentClientTest, InferenceHasNeitherDropoutNorReserve) {
  ASSERT_NO_FATAL_FAILURE(SetDropout(0.5f, Device(1 << 20)));
  ASSERT_NO_FATAL_FAILURE(Describe(4));
  core_.sent.clear();
  ASSERT_EQ(Forward(CUDNN_FWD_MODE_INFERENCE), CUDNN_STATUS_SUCCESS);
  const auto sent = core_.Only<wire::CudnnRnnForward>();
  EXPECT_EQ(sent.shapes.rnn.dropout.probability, 0);
  EXPECT_EQ(sent.shapes.rnn.dropout.states, 0u);
  EXPECT_EQ(sent.reserve, 0u);
}

TEST_F(CudnnRecurrentClientTest, OnlyStatesOfDropoutAreSent) {
  ASSERT_NO_FATAL_FAILURE(SetDropout(0, nullptr));
  EXPECT_TRUE(core_.sent.empty());
  ASSERT_NO_FATAL_FAILURE(SetDropout(0.5f, Device(256)));
  EXPECT_EQ(core_.Only<wire::CudnnDropoutStates>().dropout.seed, 7u);
  core_.sent.clear();
  ASSERT_EQ(cudnnRestoreDropoutDescriptor(dropout_, handle_, 0.25f, Device(512), 64, 0),
            CUDNN_STATUS_SUCCESS);
  EXPECT_TRUE(core_.sent.empty()) << "they stay as they are";
  float probability = 0;
  void* states = nullptr;
  ASSERT_EQ(cudnnGetDropoutDescriptor(dropout_, handle_, &probability, &states, nullptr),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(probability, 0.25f);
  EXPECT_EQ(states, Device(512));
}

TEST_F(CudnnRecurrentClientTest, APseudoLayersParametersAreAskedForOnce) {
  ASSERT_NO_FATAL_FAILURE(Describe(5));
  wire::CudnnRnnParametersResult answer;
  answer.parameters.resize(8);
  answer.parameters[3].matrix = DnnDense(CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, 3, {1, 5, 5});
  answer.parameters[3].matrix_offset = 150;
  core_.reply.result = wire::Encoded(answer);
  const auto ask = [&](std::size_t bytes, int number, void** matrix, void** bias) {
    return cudnnGetRNNWeightParams(handle_, rnn_, 1, bytes, Device(1024), number, x_, matrix, y_,
                                   bias);
  };
  void* matrix = nullptr;
  void* bias = &bias;
  ASSERT_EQ(ask(200, 3, &matrix, &bias), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(matrix, Device(1024 + 150));
  EXPECT_EQ(bias, nullptr) << "there is none";
  int rank = 0;
  int dims[3] = {};
  ASSERT_EQ(cudnnGetTensorNdDescriptor(x_, 3, nullptr, &rank, dims, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(dims[2], 5);
  EXPECT_EQ(ask(199, 3, nullptr, nullptr), CUDNN_STATUS_BAD_PARAM) << "beyond the weight space";
  EXPECT_EQ(ask(200, 4, nullptr, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(ask(200, 8, nullptr, nullptr), CUDNN_STATUS_BAD_PARAM) << "without a projection";
  EXPECT_EQ(core_.Only<wire::CudnnRnnParameters>().layer, 1u);
}

TEST_F(CudnnRecurrentClientTest, SpacesAreAskedForOnceForSequencesOfAnyLength) {
  wire::CudnnRnnTempSpacesResult answer;
  answer.workspace_bytes = 4096;
  core_.reply.result = wire::Encoded(answer);
  ASSERT_NO_FATAL_FAILURE(Describe(6, {4, 3}));
  std::size_t workspace = 0;
  ASSERT_EQ(AskSpaces(&workspace, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(workspace, 4096u);
  ASSERT_NO_FATAL_FAILURE(Describe(6, {1, 2}));
  ASSERT_EQ(AskSpaces(&workspace, nullptr), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(core_.Only<wire::CudnnRnnTempSpaces>().x.lengths, (std::vector<std::int32_t>{4, 4}));
}

TEST_F(CudnnRecurrentClientTest, WhatDoesNotAgreeIsRefusedAtOnceAndTold) {
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_INFERENCE), CUDNN_STATUS_BAD_PARAM) << "nothing is set";
  ASSERT_NO_FATAL_FAILURE(Describe(7));
  ASSERT_EQ(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 2, 3, 7, 1),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(Forward(CUDNN_FWD_MODE_INFERENCE), CUDNN_STATUS_BAD_PARAM) << "of another batch";
  EXPECT_EQ(core_.warnings.size(), 2u);
  EXPECT_TRUE(core_.sent.empty());
}

TEST_F(CudnnRecurrentClientTest, GradientsAreTwoCalls) {
  ASSERT_NO_FATAL_FAILURE(Describe(8));
  ASSERT_EQ(cudnnRNNBackwardData_v8(handle_, rnn_, nullptr, sequences_, Device(0), Device(256),
                                    sequences_, Device(512), x_, Device(768), nullptr, Device(1024),
                                    x_, nullptr, nullptr, Device(1280), 512, Device(16384), 0,
                                    nullptr, 128, Device(65536)),
            CUDNN_STATUS_SUCCESS);
  const auto data = core_.Only<wire::CudnnRnnBackwardData>();
  EXPECT_EQ(data.dx, 0x2000'0000'0200u);
  EXPECT_EQ(data.dhx, 0x2000'0000'0400u);
  EXPECT_EQ(data.dcx, 0x2000'0000'0500u);
  EXPECT_EQ(data.workspace_bytes, 0u);
  core_.sent.clear();
  ASSERT_EQ(cudnnRNNBackwardWeights_v8(handle_, rnn_, CUDNN_WGRAD_MODE_ADD, nullptr, sequences_,
                                       Device(0), x_, Device(768), sequences_, Device(256), 512,
                                       Device(16384), 0, nullptr, 128, Device(65536)),
            CUDNN_STATUS_SUCCESS);
  const auto weights = core_.Only<wire::CudnnRnnBackwardWeights>();
  EXPECT_EQ(weights.adds, 1u);
  EXPECT_EQ(weights.weights, 0x2000'0000'4000u);
}

TEST_F(CudnnClientTest, CallsGoToTheDeviceThatTheHandleWasCreatedOn) {
  FakeClientCore& second = FakeClientCore::BeginSecond();
  const cudnnHandle_t first_handle = handle_;
  ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
  core_.MakeCurrent();
  const double one = 1;
  EXPECT_EQ(Softmax(&one, &one), CUDNN_STATUS_SUCCESS);
  EXPECT_TRUE(core_.sent.empty());
  EXPECT_EQ(second.sent.size(), 1u);
  EXPECT_EQ(cudnnDestroy(handle_), CUDNN_STATUS_SUCCESS);
  handle_ = first_handle;
  core_.hello = {};
}

}  // namespace
}  // namespace torpor::shim
