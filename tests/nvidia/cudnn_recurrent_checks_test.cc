#include <gtest/gtest.h>

#include <vector>

#include "nvidia/cudnn/recurrent_checks.h"

namespace torpor {
namespace {

// Two layers of an LSTM in both directions, a batch of three sequences.
DnnRnnShapes Lstm() {
  DnnRnnShapes s;
  s.rnn = {.cell = CUDNN_LSTM,
           .direction = CUDNN_BIDIRECTIONAL,
           .input_size = 5,
           .hidden_size = 4,
           .projection_size = 4,
           .layers = 2};
  s.x = {.max_steps = 6, .batch = 3, .vector_size = 5, .lengths = {6, 2, 0}};
  s.y = s.x;
  s.y.vector_size = 8;
  s.hidden = DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, {4, 3, 4});
  s.cell = s.hidden;
  return s;
}

TEST(CudnnRecurrentChecksTest, WhatAgreesHasNoFault) {
  DnnRnnShapes s = Lstm();
  EXPECT_EQ(DnnFault(s), nullptr);
  s.hidden.rank = s.cell.rank = 0;
  EXPECT_EQ(DnnFault(s), nullptr) << "without states";
  s = Lstm();
  s.hidden = DnnDense(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, {4, 3, 4, 1, 1});
  EXPECT_EQ(DnnFault(s), nullptr) << "as PyTorch describes states";
}

TEST(CudnnRecurrentChecksTest, LayersAreWithinTheirRules) {
  const auto is_valid = [](auto change) {
    DnnRnn rnn = Lstm().rnn;
    change(rnn);
    return DnnIsValid(rnn);
  };
  EXPECT_FALSE(DnnIsValid(DnnRnn())) << "not set yet";
  EXPECT_TRUE(is_valid([](DnnRnn& r) { r.projection_size = 2; }));
  EXPECT_FALSE(is_valid([](DnnRnn& r) { r.projection_size = 5; }));
  EXPECT_FALSE(is_valid([](DnnRnn& r) {
    r.cell = CUDNN_GRU;
    r.projection_size = 2;
  })) << "only LSTMs have projections";
  EXPECT_FALSE(is_valid([](DnnRnn& r) { r.cell = 4; }));
  EXPECT_FALSE(is_valid([](DnnRnn& r) { r.type = CUDNN_DATA_INT8; }));
  EXPECT_FALSE(is_valid([](DnnRnn& r) { r.layers = INT32_MAX; }));
  EXPECT_FALSE(is_valid([](DnnRnn& r) { r.dropout.probability = 1.5f; }));
}

TEST(CudnnRecurrentChecksTest, EveryCellHasItsLinearLayers) {
  DnnRnn rnn = Lstm().rnn;
  EXPECT_EQ(DnnPseudoLayers(rnn), 4);
  EXPECT_EQ(DnnLinearLayers(rnn), 8);
  rnn.projection_size = 1;
  EXPECT_EQ(DnnLinearLayers(rnn), 9);
  rnn = {.cell = CUDNN_GRU, .hidden_size = 1, .projection_size = 1, .layers = 3};
  EXPECT_EQ(DnnPseudoLayers(rnn), 3);
  EXPECT_EQ(DnnLinearLayers(rnn), 6);
  rnn.cell = CUDNN_RNN_RELU;
  EXPECT_EQ(DnnLinearLayers(rnn), 2);
}

TEST(CudnnRecurrentChecksTest, SequencesTakeAsMuchAsTheirLayoutSays) {
  DnnRnnData x = Lstm().x;
  EXPECT_EQ(DnnBytes(x), 6u * 3 * 5 * 4);
  x.layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  EXPECT_EQ(DnnBytes(x), 8u * 5 * 4);
  x.type = CUDNN_DATA_HALF;
  EXPECT_EQ(DnnBytes(x), 8u * 5 * 2);
  x.layout = CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;
  x.max_steps = x.vector_size = INT32_MAX;
  EXPECT_EQ(DnnBytes(x), kDnnEndless);
}

TEST(CudnnRecurrentChecksTest, LengthsFitTheirBatch) {
  const auto is_valid = [](int layout, std::vector<std::int32_t> lengths) {
    DnnRnnData x = Lstm().x;
    x.layout = layout;
    x.lengths = std::move(lengths);
    return DnnIsValid(x);
  };
  constexpr int kUnpacked = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  EXPECT_TRUE(is_valid(kUnpacked, {1, 6, 3}));
  EXPECT_FALSE(is_valid(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, {1, 6, 3})) << "longest first";
  EXPECT_FALSE(is_valid(kUnpacked, {1, 7, 3}));
  EXPECT_FALSE(is_valid(kUnpacked, {1, -1, 3}));
  EXPECT_FALSE(is_valid(kUnpacked, {1, 6}));
  EXPECT_FALSE(is_valid(3, {1, 6, 3}));
}

TEST(CudnnRecurrentChecksTest, WhatDoesNotAgreeIsTold) {
  const auto fault = [](auto change) {
    DnnRnnShapes s = Lstm();
    change(s);
    return DnnFault(s) != nullptr;
  };
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.x.type = s.y.type = CUDNN_DATA_HALF; }));
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.x.vector_size = 4; }));
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.y.vector_size = 4; })) << "of one direction";
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.y.lengths[1] = 3; }));
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.hidden.dims[0] = 2; }));
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.hidden.strides[0] = 16; })) << "not dense";
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.cell.type = CUDNN_DATA_DOUBLE; }));
  EXPECT_TRUE(fault([](DnnRnnShapes& s) { s.rnn.cell = CUDNN_GRU; })) << "with cell states";
}

TEST(CudnnRecurrentChecksTest, DescriptorsBecomeOneValue) {
  const DnnRnnShapes shapes = Lstm();
  cudnnRNNStruct rnn{shapes.rnn};
  rnn.dropout.probability = 0.5f;
  const cudnnRNNDataStruct x{shapes.x};
  const cudnnRNNDataStruct y{shapes.y};
  const cudnnTensorStruct states{shapes.hidden};
  DnnRnnShapes read;
  EXPECT_EQ(DnnReadShapes({&rnn, &x, &y, &states, true, &states, true}, false, read), nullptr);
  EXPECT_EQ(read.cell.rank, 3);
  EXPECT_EQ(read.rnn.dropout.probability, 0) << "which is of training";
  DnnRnnShapes without;
  EXPECT_EQ(DnnReadShapes({&rnn, &x, &y, &states, true, nullptr, false}, true, without), nullptr);
  EXPECT_EQ(without.cell.rank, 0);
  EXPECT_EQ(without.rnn.dropout.probability, 0.5f);
  DnnRnnShapes wrong;
  EXPECT_NE(DnnReadShapes({&rnn, &x, &y, nullptr, true, nullptr, false}, false, wrong), nullptr);
  EXPECT_NE(DnnReadShapes({&rnn, nullptr, &y}, false, wrong), nullptr);
}

}  // namespace
}  // namespace torpor
