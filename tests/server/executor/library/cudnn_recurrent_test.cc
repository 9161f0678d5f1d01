#include <gtest/gtest.h>

#include <vector>

#include "nvidia/cudnn/recurrent_checks.h"
#include "server/executor/library/cudnn_calls.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

// What the fake library was asked.
struct Asked {
  int live = 0;  // descriptors of layers, sequences and dropout
  int calls = 0;
  bool restored = false;
  void* states = nullptr;  // of dropout
  const void* x = nullptr;
  const void* hx = nullptr;
  void* cy = nullptr;
  cudnnTensorDescriptor_t cell = nullptr;
  const void* weights = nullptr;
  void* reserve = nullptr;
  std::vector<int> lengths;
};
Asked asked;

template <typename Descriptor>
cudnnStatus_t Create(Descriptor* descriptor) {
  ++asked.live;
  return *descriptor = reinterpret_cast<Descriptor>(&asked), CUDNN_STATUS_SUCCESS;
}
template <typename Descriptor>
cudnnStatus_t Destroy(Descriptor) {
  return --asked.live, CUDNN_STATUS_SUCCESS;
}

// Has its matrices of halves 8 bytes apart, a bias behind each of the first four.
cudnnStatus_t WeightParameters(cudnnHandle_t, cudnnRNNDescriptor_t, int32_t layer,
                               std::size_t bytes, const void* weights, int32_t number,
                               cudnnTensorDescriptor_t, void** matrix, cudnnTensorDescriptor_t,
                               void** bias) {
  if (bytes != 1024) return CUDNN_STATUS_BAD_PARAM;
  char* const base = const_cast<char*>(static_cast<const char*>(weights));
  const std::ptrdiff_t offset = std::ptrdiff_t{layer} * 256 + std::ptrdiff_t{number} * 8;
  *matrix = base + offset;
  *bias = number < 4 ? base + offset + 4 : nullptr;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Forward(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t, const int32_t*,
                      cudnnRNNDataDescriptor_t, const void* x, cudnnRNNDataDescriptor_t, void*,
                      cudnnTensorDescriptor_t, const void* hx, void*, cudnnTensorDescriptor_t cell,
                      const void*, void* cy, std::size_t, const void* weights, std::size_t, void*,
                      std::size_t, void* reserve) {
  ++asked.calls;
  asked.x = x;
  asked.hx = hx;
  asked.cell = cell;
  asked.cy = cy;
  asked.weights = weights;
  asked.reserve = reserve;
  return CUDNN_STATUS_SUCCESS;
}

void DescribeByFakes(cuda_api::CudnnFunctions& f) {
  f.cudnnCreateTensorDescriptor = Create<cudnnTensorDescriptor_t>;
  f.cudnnDestroyTensorDescriptor = Destroy<cudnnTensorDescriptor_t>;
  f.cudnnCreateDropoutDescriptor = Create<cudnnDropoutDescriptor_t>;
  f.cudnnDestroyDropoutDescriptor = Destroy<cudnnDropoutDescriptor_t>;
  f.cudnnCreateRNNDescriptor = Create<cudnnRNNDescriptor_t>;
  f.cudnnDestroyRNNDescriptor = Destroy<cudnnRNNDescriptor_t>;
  f.cudnnCreateRNNDataDescriptor = Create<cudnnRNNDataDescriptor_t>;
  f.cudnnDestroyRNNDataDescriptor = Destroy<cudnnRNNDataDescriptor_t>;
  f.cudnnSetTensorNdDescriptor = [](auto...) { return CUDNN_STATUS_SUCCESS; };
  f.cudnnGetTensorNdDescriptor = [](const cudnnTensorDescriptor_t, int, cudnnDataType_t* type,
                                    int* rank, int* dims, int*) {
    *type = CUDNN_DATA_HALF;
    *rank = 3;
    dims[1] = 2;
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnSetDropoutDescriptor = [](cudnnDropoutDescriptor_t, cudnnHandle_t, float, void* states,
                                   std::size_t, unsigned long long) {
    asked.restored = false;
    return asked.states = states, CUDNN_STATUS_SUCCESS;
  };
  f.cudnnRestoreDropoutDescriptor = [](cudnnDropoutDescriptor_t, cudnnHandle_t, float, void* states,
                                       std::size_t, unsigned long long) {
    asked.restored = true;
    return asked.states = states, CUDNN_STATUS_SUCCESS;
  };
  f.cudnnSetRNNDescriptor_v8 = [](auto...) { return CUDNN_STATUS_SUCCESS; };
  f.cudnnSetRNNDataDescriptor = [](cudnnRNNDataDescriptor_t, cudnnDataType_t, cudnnRNNDataLayout_t,
                                   int, int batch, int, const int* lengths, void*) {
    asked.lengths.assign(lengths, lengths + batch);
    return CUDNN_STATUS_SUCCESS;
  };
}

cuda_api::CudnnFunctions FakeLibrary() {
  cuda_api::CudnnFunctions f;
  f.cudnnCreate = [](cudnnHandle_t* handle) {
    return *handle = reinterpret_cast<cudnnHandle_t>(&asked), CUDNN_STATUS_SUCCESS;
  };
  f.cudnnDestroy = [](cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; };
  f.cudnnSetStream = [](cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; };
  DescribeByFakes(f);
  f.cudnnGetRNNWeightSpaceSize = [](cudnnHandle_t, cudnnRNNDescriptor_t, std::size_t* bytes) {
    return *bytes = 1024, CUDNN_STATUS_SUCCESS;
  };
  f.cudnnGetRNNWeightParams = WeightParameters;
  f.cudnnGetRNNTempSpaceSizes = [](cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t,
                                   cudnnRNNDataDescriptor_t, std::size_t* workspace,
                                   std::size_t* reserve) {
    *workspace = 64;
    if (reserve != nullptr) *reserve = 32;
    return CUDNN_STATUS_SUCCESS;
  };
  f.cudnnRNNForward = Forward;
  f.cudnnRNNBackwardWeights_v8 = [](cudnnHandle_t, cudnnRNNDescriptor_t, cudnnWgradMode_t mode,
                                    const int32_t*, cudnnRNNDataDescriptor_t, const void*,
                                    cudnnTensorDescriptor_t, const void*, cudnnRNNDataDescriptor_t,
                                    const void*, std::size_t, void* weights, std::size_t, void*,
                                    std::size_t, void*) {
    ++asked.calls;
    asked.weights = weights;
    return mode == CUDNN_WGRAD_MODE_ADD ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
  };
  return f;
}

class CudnnRecurrentTest : public testing::Test {
 protected:
  CudnnRecurrentTest() {
    asked = {};
    DnnRnnShapes& shapes = command_.shapes;
    shapes.rnn.cell = CUDNN_LSTM;
    shapes.rnn.input_size = shapes.rnn.hidden_size = shapes.rnn.projection_size = 4;
    shapes.rnn.layers = 2;
    shapes.x = {.max_steps = 3, .batch = 2, .vector_size = 4, .lengths = {3, 2}};
    shapes.y = shapes.x;
    shapes.hidden = DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, {2, 2, 4});
    command_.x = base_;
    command_.y = base_ + 4096;
    command_.hx = base_ + 8192;
    command_.weights = base_ + 16384;
    command_.weights_bytes = 1024;
  }

  template <typename Command>
  std::int32_t Run(const Command& command, std::vector<std::uint8_t>* result = nullptr) {
    cuda_api::CallOutcome outcome;
    EXPECT_TRUE(
        cuda_api::DispatchCudnn(calls_, Command::kCallId, wire::Encoded(command), outcome).ok());
    if (result != nullptr) *result = outcome.result;
    return outcome.status.code;
  }
  void* At(std::uint64_t offset) const { return reinterpret_cast<void*>(base_ + offset); }

  FakeSession s_;
  const std::uint64_t base_ = s_.identity.device_base;
  CudnnPool pool_{FakeLibrary()};
  StreamSet streams_{*s_.device};
  CudnnCalls calls_{pool_, streams_, *s_.memory};
  wire::CudnnRnnForward command_;
};

TEST_F(CudnnRecurrentTest, APassReachesTheLibrary) {
  ASSERT_EQ(Run(command_), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.x, At(0));
  EXPECT_EQ(asked.hx, At(8192));
  EXPECT_EQ(asked.weights, At(16384));
  EXPECT_EQ(asked.lengths, (std::vector<int>{3, 2}));
  EXPECT_EQ(asked.cell, nullptr);
  EXPECT_EQ(asked.cy, nullptr);
  EXPECT_EQ(asked.reserve, nullptr);
  const int made = asked.live;
  ASSERT_EQ(Run(command_), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.live, made) << "one descriptor a value";
}

TEST_F(CudnnRecurrentTest, EveryRangeMustBeTheSessionsWhole) {
  const std::uint64_t end = base_ + 4 * kMiB;  // of what is resident
  const auto refused = [&](auto change) {
    wire::CudnnRnnForward command = command_;
    change(command);
    return Run(command) == CUDNN_STATUS_BAD_PARAM;
  };
  EXPECT_FALSE(refused([&](auto& c) { c.x = end - DnnBytes(c.shapes.x); }));
  EXPECT_TRUE(refused([&](auto& c) { c.x = end - DnnBytes(c.shapes.x) + 4; }));
  EXPECT_TRUE(refused([&](auto& c) { c.hy = end - 4; }));
  EXPECT_TRUE(refused([&](auto& c) { c.weights = end - 1023; }));
  EXPECT_TRUE(refused([&](auto& c) { c.reserve = end, c.reserve_bytes = 1; }));
  EXPECT_EQ(asked.calls, 1);
}

TEST_F(CudnnRecurrentTest, InvalidShapesNeverReachTheLibrary) {
  command_.shapes.x.lengths = {3};
  EXPECT_EQ(Run(command_), CUDNN_STATUS_BAD_PARAM);
  command_.shapes.x.lengths = {3, 4};
  EXPECT_EQ(Run(command_), CUDNN_STATUS_BAD_PARAM);
  command_.shapes.x.lengths = {3, 1};
  EXPECT_EQ(Run(command_), CUDNN_STATUS_BAD_PARAM) << "unlike those of what comes out";
  EXPECT_EQ(asked.calls, 0);
  EXPECT_EQ(asked.live, 0);
}

TEST_F(CudnnRecurrentTest, TheStatesOfDropoutAreWhereTheGpuHasThem) {
  wire::CudnnDropoutStates begin;
  begin.dropout = {0.5f, base_ + 65536, 64, 7};
  ASSERT_EQ(Run(begin), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.states, At(65536));
  EXPECT_FALSE(asked.restored);
  command_.is_training = 1;
  command_.shapes.rnn.dropout = begin.dropout;
  ASSERT_EQ(Run(command_), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.states, At(65536));
  EXPECT_TRUE(asked.restored) << "not begun anew";
  command_.shapes.rnn.dropout.states = 4096;
  EXPECT_EQ(Run(command_), CUDNN_STATUS_NOT_SUPPORTED) << "not the session's";
  begin.dropout.states = 4096;
  EXPECT_EQ(Run(begin), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnRecurrentTest, ParametersAreToldByOffset) {
  wire::CudnnRnnParameters question;
  question.rnn = command_.shapes.rnn;
  question.layer = 1;
  std::vector<std::uint8_t> encoded;
  ASSERT_EQ(Run(question, &encoded), CUDNN_STATUS_SUCCESS);
  wire::CudnnRnnParametersResult answer;
  wire::Reader reader(encoded);
  reader(answer);
  ASSERT_TRUE(reader.done());
  ASSERT_EQ(answer.parameters.size(), 8u);
  EXPECT_EQ(answer.parameters[3].matrix_offset, 256u + 24);
  EXPECT_EQ(answer.parameters[3].bias_offset, 256u + 28);
  EXPECT_EQ(answer.parameters[3].matrix.type, CUDNN_DATA_HALF);
  EXPECT_EQ(answer.parameters[3].matrix.dims[1], 2);
  EXPECT_EQ(answer.parameters[4].matrix.rank, 3);
  EXPECT_EQ(answer.parameters[4].bias.rank, 0);
  question.layer = 2;
  EXPECT_EQ(Run(question), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnRecurrentTest, OnlyTrainingHasAReserve) {
  wire::CudnnRnnTempSpaces question;
  question.rnn = command_.shapes.rnn;
  question.x = command_.shapes.x;
  const auto ask = [&] {
    std::vector<std::uint8_t> encoded;
    EXPECT_EQ(Run(question, &encoded), CUDNN_STATUS_SUCCESS);
    wire::CudnnRnnTempSpacesResult answer;
    wire::Reader reader(encoded);
    reader(answer);
    EXPECT_EQ(answer.workspace_bytes, 64u);
    return answer.reserve_bytes;
  };
  EXPECT_EQ(ask(), 0u);
  question.is_training = 1;
  EXPECT_EQ(ask(), 32u);
}

TEST_F(CudnnRecurrentTest, GradientsReachTheLibraryIfItHasThem) {
  wire::CudnnRnnBackwardWeights weights;
  weights.shapes = command_.shapes;
  weights.adds = 1;
  weights.x = weights.y = base_;
  weights.weights = base_ + 16384;
  weights.weights_bytes = 1024;
  EXPECT_EQ(Run(weights), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(asked.weights, At(16384));
  wire::CudnnRnnBackwardData data;
  data.shapes = command_.shapes;
  data.y = data.dy = data.dx = base_;
  EXPECT_EQ(Run(data), CUDNN_STATUS_NOT_SUPPORTED) << "this library has none";
  EXPECT_EQ(asked.calls, 1);
}

}  // namespace
}  // namespace torpor::executor
