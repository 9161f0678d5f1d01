#include <gtest/gtest.h>

#include "nvidia/cudnn/graph_checks.h"
#include "tests/nvidia/cudnn_graph.h"

namespace torpor {
namespace {

// Whether the fused graph is still one after a change.
template <typename Change>
bool IsValidAfter(Change change) {
  DnnGraph graph = FusedGraph();
  change(graph);
  return DnnFault(graph) == nullptr;
}

TEST(CudnnGraphChecksTest, AFusedConvolutionIsAGraph) {
  EXPECT_STREQ(DnnFault(FusedGraph()), nullptr);
}

TEST(CudnnGraphChecksTest, ShapesMustGoTogether) {
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.tensors[2].shape.dims[2] = 7; }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.tensors[1].shape.dims[1] = 3; }))
      << "three go into four inputs not";
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.tensors[3].shape.dims[1] = 4; }))
      << "a bias for half of the channels";
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.tensors[0].shape.rank = 3; }));
  EXPECT_TRUE(IsValidAfter([](DnnGraph& g) {
    g.operations[0].convolution.after = {0, 2};
    g.operations[0].convolution.before = {2, 0};
  })) << "padding may differ between the sides";
}

TEST(CudnnGraphChecksTest, TensorsMustExistAndHaveIdsOfTheirOwn) {
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations[2].y = 6; }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations[0].w = kDnnNoTensor; }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations[2].w = 3; })) << "of one operand";
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.tensors[5].id = 'x'; }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.tensors[5].alignment = 12; }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.tensors[5].shape.strides[0] = -1; }));
}

TEST(CudnnGraphChecksTest, VirtualTensorsAreMadeBeforeTheyAreRead) {
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { std::swap(g.operations[0], g.operations[1]); }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations.erase(g.operations.begin()); }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations[2].y = 4; })) << "made twice";
}

TEST(CudnnGraphChecksTest, WhatIsNotKnownIsRefused) {
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations.clear(); }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations.resize(33, g.operations[0]); }));
  EXPECT_FALSE(IsValidAfter(
      [](DnnGraph& g) { g.operations[2].kind = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR; }));
  EXPECT_FALSE(
      IsValidAfter([](DnnGraph& g) { g.operations[2].pointwise.mode = CUDNN_POINTWISE_RELU_BWD; }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations[0].convolution.strides[1] = 0; }));
  EXPECT_FALSE(IsValidAfter([](DnnGraph& g) { g.operations[0].scalar_type = CUDNN_TYPE_INT64; }));
}

TEST(CudnnGraphChecksTest, UsesFollowFromTheOperations) {
  DnnGraph graph = FusedGraph();
  EXPECT_TRUE(DnnUseOf(graph, 0).is_read);
  EXPECT_FALSE(DnnUseOf(graph, 0).is_written);
  EXPECT_TRUE(DnnUseOf(graph, 5).is_written);
  EXPECT_FALSE(DnnUseOf(graph, 5).is_read);
  graph.operations[0].beta = 0.5;
  EXPECT_TRUE(DnnUseOf(graph, 2).is_read);
  graph.operations[0].kind = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  EXPECT_TRUE(DnnUseOf(graph, 1).is_written);
}

}  // namespace
}  // namespace torpor
