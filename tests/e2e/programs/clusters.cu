// Clusters of blocks and their distributed shared memory, on devices of capability 9.0 and up.
#include <cooperative_groups.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/e2e/programs/check.h"

namespace cg = cooperative_groups;

constexpr int kThreads = 128;
constexpr int kBins = 1000;

// The CUDA programming guide's histogram: each block of the cluster holds a part of the bins.
__global__ void Histogram(int* bins, int bin_count, int bins_per_block, const int* values,
                          std::size_t count) {
  extern __shared__ int own[];
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) own[i] = 0;
  cluster.sync();
  for (std::size_t i = cg::this_grid().thread_rank(); i < count; i += blockDim.x * gridDim.x) {
    const int bin = values[i] < 0 ? 0 : values[i] >= bin_count ? bin_count - 1 : values[i];
    int* const there = cluster.map_shared_rank(own, bin / bins_per_block);
    atomicAdd(there + bin % bins_per_block, 1);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) {
    const int bin = static_cast<int>(rank) * bins_per_block + i;
    if (bin < bin_count) atomicAdd(&bins[bin], own[i]);
  }
}

// Every block tells its neighbour's number and what a cluster knows of itself.
__global__ void __cluster_dims__(2, 2, 1) Neighbours(int* out) {
  __shared__ int number;
  cg::cluster_group cluster = cg::this_cluster();
  const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  if (threadIdx.x == 0) number = block;
  auto token = cluster.barrier_arrive();
  cluster.barrier_wait(std::move(token));
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  const int* const there = cluster.map_shared_rank(&number, next);
  if (threadIdx.x == 0) {
    out[block] = *there * 1000 + static_cast<int>(cluster.query_shared_rank(there)) * 100 +
                 static_cast<int>(cluster.num_threads());
  }
  cluster.sync();
}

__global__ void CountBlocks(int* out) {
  if (threadIdx.x == 0) atomicAdd(out, static_cast<int>(cg::this_cluster().num_blocks()));
}

struct ClusterLaunch {
  ClusterLaunch(unsigned blocks, unsigned cluster, std::size_t shared = 0) {
    config.gridDim = blocks;
    config.blockDim = kThreads;
    config.dynamicSmemBytes = shared;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;

  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute = {};
};

std::vector<int> Values(std::size_t count) {
  std::vector<int> values(count);
  unsigned state = 12345;
  for (int& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<int>(state >> 8) % (kBins + 20) - 10;
  }
  return values;
}

void CheckHistogram(unsigned cluster, cudaStream_t stream = nullptr) {
  const std::vector<int> values = Values(100000);
  std::vector<int> expected(kBins);
  for (const int value : values) ++expected[value < 0 ? 0 : value >= kBins ? kBins - 1 : value];
  int* in = nullptr;
  int* bins = nullptr;
  CUDA(cudaMalloc(&in, values.size() * sizeof(int)));
  CUDA(cudaMalloc(&bins, kBins * sizeof(int)));
  CUDA(cudaMemcpy(in, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice));
  CUDA(cudaMemset(bins, 0, kBins * sizeof(int)));
  const int per_block = (kBins + static_cast<int>(cluster) - 1) / static_cast<int>(cluster);
  const ClusterLaunch launch(cluster * 3, cluster, per_block * sizeof(int));
  cudaLaunchConfig_t config = launch.config;
  config.stream = stream;
  CUDA(cudaLaunchKernelEx(&config, Histogram, bins, kBins, per_block, static_cast<const int*>(in),
                          values.size()));
  std::vector<int> found(kBins);
  CUDA(cudaMemcpy(found.data(), bins, kBins * sizeof(int), cudaMemcpyDeviceToHost));
  REQUIRE(found == expected);
  CUDA(cudaFree(in));
  CUDA(cudaFree(bins));
}

void CheckNeighbours() {
  constexpr int kWidth = 4;
  constexpr int kHeight = 2;
  int* out = nullptr;
  CUDA(cudaMalloc(&out, kWidth * kHeight * sizeof(int)));
  Neighbours<<<dim3(kWidth, kHeight), 64>>>(out);
  CUDA(cudaGetLastError());
  int found[kWidth * kHeight] = {};
  CUDA(cudaMemcpy(found, out, sizeof(found), cudaMemcpyDeviceToHost));
  for (int block = 0; block < kWidth * kHeight; ++block) {
    const int rank = block / kWidth * 2 + block % 2;
    const int next = (rank + 1) % 4;
    const int neighbour = next / 2 * kWidth + block % kWidth / 2 * 2 + next % 2;
    REQUIRE(found[block] == neighbour * 1000 + next * 100 + 256);
  }
  // The size was given at compile time.
  Neighbours<<<dim3(3, 2), 64>>>(out);
  EXPECT_CUDA(cudaGetLastError(), cudaErrorInvalidClusterSize);
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, Neighbours));
  REQUIRE(attributes.requiredClusterWidth == 2 && attributes.requiredClusterHeight == 2);
  EXPECT_CUDA(cudaFuncSetAttribute(Neighbours, cudaFuncAttributeRequiredClusterWidth, 4),
              cudaErrorInvalidValue);
  CUDA(cudaFree(out));
}

void CheckErrors() {
  int* out = nullptr;
  CUDA(cudaMalloc(&out, sizeof(int)));
  const auto launch = [&](unsigned blocks, unsigned cluster) {
    const ClusterLaunch shape(blocks, cluster);
    const cudaError_t error = cudaLaunchKernelEx(&shape.config, CountBlocks, out);
    cudaGetLastError();
    return error;
  };
  REQUIRE(launch(6, 4) == cudaErrorInvalidClusterSize);
  REQUIRE(launch(32, 32) == cudaErrorInvalidClusterSize);
  REQUIRE(launch(16, 16) == cudaErrorInvalidClusterSize);
  CUDA(cudaFuncSetAttribute(CountBlocks, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CUDA(cudaMemset(out, 0, sizeof(int)));
  REQUIRE(launch(16, 16) == cudaSuccess);
  int found = 0;
  CUDA(cudaMemcpy(&found, out, sizeof(int), cudaMemcpyDeviceToHost));
  REQUIRE(found == 256);
  CUDA(cudaFree(out));
}

// The size as an attribute of the kernel, for launches that name none.
void CheckRequiredSize() {
  int* out = nullptr;
  CUDA(cudaMalloc(&out, sizeof(int)));
  CUDA(cudaFuncSetAttribute(CountBlocks, cudaFuncAttributeRequiredClusterWidth, 4));
  CUDA(cudaFuncSetAttribute(CountBlocks, cudaFuncAttributeRequiredClusterHeight, 1));
  CUDA(cudaFuncSetAttribute(CountBlocks, cudaFuncAttributeRequiredClusterDepth, 1));
  CUDA(cudaMemset(out, 0, sizeof(int)));
  CountBlocks<<<8, 32>>>(out);
  CUDA(cudaGetLastError());
  int found = 0;
  CUDA(cudaMemcpy(&found, out, sizeof(int), cudaMemcpyDeviceToHost));
  REQUIRE(found == 32);
  CUDA(cudaFree(out));
}

void CheckOccupancy() {
  const ClusterLaunch launch(16, 8, 1024);
  int clusters = 0;
  CUDA(cudaOccupancyMaxActiveClusters(&clusters, Histogram, &launch.config));
  REQUIRE(clusters >= 1);
  int largest = 0;
  CUDA(cudaOccupancyMaxPotentialClusterSize(&largest, Histogram, &launch.config));
  REQUIRE(largest == 8);
}

// A captured launch keeps its clusters.
void CheckGraph() {
  int* out = nullptr;
  CUDA(cudaMalloc(&out, sizeof(int)));
  CUDA(cudaMemset(out, 0, sizeof(int)));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  const ClusterLaunch shape(8, 4);
  cudaLaunchConfig_t config = shape.config;
  config.stream = stream;
  CUDA(cudaLaunchKernelEx(&config, CountBlocks, out));
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t node = nullptr;
  std::size_t count = 1;
  CUDA(cudaGraphGetNodes(graph, &node, &count));
  cudaLaunchAttributeValue value;
  CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  REQUIRE(value.clusterDim.x == 4 && value.clusterDim.y == 1);
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, stream));
  int found = 0;
  CUDA(cudaMemcpyAsync(&found, out, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  REQUIRE(found == 3 * 8 * 4);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(out));
}

int main() {
  int has_clusters = 0;
  CUDA(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0));
  if (has_clusters == 0) return Pass();
  for (const unsigned cluster : {1U, 2U, 8U}) CheckHistogram(cluster);
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  CheckHistogram(4, stream);
  CUDA(cudaFuncSetAttribute(Histogram, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  CheckHistogram(16);
  CUDA(cudaFuncSetAttribute(Histogram, cudaFuncAttributeNonPortableClusterSizeAllowed, 0));
  CheckNeighbours();
  CheckOccupancy();
  CheckErrors();
  CheckGraph();
  CheckRequiredSize();
  return Pass();
}
