// Streams whose work is captured into graphs: forks and joins, several threads, what must not be
// captured.
#include <algorithm>
#include <thread>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 4096;
constexpr int kThreads = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);

__device__ int variable;

__global__ void MultiplyAdd(int* values, int factor, int term) {
  int& value = values[blockIdx.x * blockDim.x + threadIdx.x];
  value = value * factor + term;
}

__global__ void AddTo(int* sum, const int* values) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] += values[i];
}

static void LaunchMultiplyAdd(cudaStream_t stream, int* values, int factor, int term) {
  MultiplyAdd<<<kCount / kThreads, kThreads, 0, stream>>>(values, factor, term);
}

struct Device {
  Device() {
    CUDA(cudaMalloc(&a, kBytes));
    CUDA(cudaMalloc(&b, kBytes));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&fork));
    CUDA(cudaEventCreate(&join));
  }

  int* a = nullptr;
  int* b = nullptr;
  cudaStream_t stream = nullptr;
  cudaStream_t side = nullptr;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
};

static cudaGraphExec_t Instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  return exec;
}

static bool All(const int* device, int expected) {
  std::vector<int> values(kCount);
  CUDA(cudaMemcpy(values.data(), device, kBytes, cudaMemcpyDeviceToHost));
  return std::all_of(values.begin(), values.end(), [&](int value) { return value == expected; });
}

// Both branches run `length` kernels; nothing runs while they are captured.
static cudaGraph_t CaptureFork(const Device& device, int length, int term) {
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  CUDA(cudaMemsetAsync(device.a, 0, kBytes, device.stream));
  CUDA(cudaEventRecord(device.fork, device.stream));
  CUDA(cudaStreamWaitEvent(device.side, device.fork, 0));
  CUDA(cudaMemsetAsync(device.b, 0, kBytes, device.side));
  for (int i = 0; i < length; ++i) {
    LaunchMultiplyAdd(device.stream, device.a, 1, term);
    LaunchMultiplyAdd(device.side, device.b, 1, 2 * term);
  }
  CUDA(cudaEventRecord(device.join, device.side));
  CUDA(cudaStreamWaitEvent(device.stream, device.join, 0));
  AddTo<<<kCount / kThreads, kThreads, 0, device.stream>>>(device.a, device.b);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA(cudaStreamIsCapturing(device.side, &status));
  REQUIRE(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(device.stream, &graph));
  CUDA(cudaStreamIsCapturing(device.side, &status));
  REQUIRE(status == cudaStreamCaptureStatusNone);
  (void)cudaGetLastError();
  return graph;
}

static void ForksAreJoined(const Device& device) {
  CUDA(cudaMemset(device.a, 1, kBytes));
  cudaGraph_t graph = CaptureFork(device, 10, 1);
  REQUIRE(All(device.a, 0x01010101));
  std::size_t count = 0;
  CUDA(cudaGraphGetRootNodes(graph, nullptr, &count));
  REQUIRE(count == 1);
  cudaGraphExec_t exec = Instantiate(graph);
  for (int i = 0; i < 5; ++i) CUDA(cudaGraphLaunch(exec, device.stream));
  CUDA(cudaStreamSynchronize(device.stream));
  REQUIRE(All(device.a, 30));

  // The same shape with another term, and launches in streams that do not wait for each other.
  graph = CaptureFork(device, 10, 3);
  cudaGraphExecUpdateResultInfo info{};
  CUDA(cudaGraphExecUpdate(exec, graph, &info));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaGraphLaunch(exec, device.stream));
  CUDA(cudaGraphLaunch(exec, device.side));
  CUDA(cudaStreamSynchronize(device.side));
  CUDA(cudaStreamSynchronize(device.stream));
  REQUIRE(All(device.a, 90));
  CUDA(cudaGraphExecDestroy(exec));
}

struct Rounds {
  int* values = nullptr;
  int count = 0;
};

static void FillNext(void* data) {
  auto& rounds = *static_cast<Rounds*>(data);
  ++rounds.count;
  std::fill_n(rounds.values, kCount, rounds.count);
}

// A launch waits for the one before, whatever streams they are in: the function must not fill the
// memory that the earlier launch has still to copy.
static void LaunchesComeOneAfterAnother(const Device& device) {
  Rounds rounds;
  CUDA(cudaMallocHost(&rounds.values, kBytes));
  CUDA(cudaMemset(device.a, 0, kBytes));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  CUDA(cudaLaunchHostFunc(device.stream, FillNext, &rounds));
  for (int i = 0; i < 20; ++i) LaunchMultiplyAdd(device.stream, device.a, 1, 0);
  CUDA(cudaMemcpyAsync(device.b, rounds.values, kBytes, cudaMemcpyHostToDevice, device.stream));
  AddTo<<<kCount / kThreads, kThreads, 0, device.stream>>>(device.a, device.b);
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(device.stream, &graph));
  cudaGraphExec_t exec = Instantiate(graph);
  for (int i = 0; i < 6; ++i) CUDA(cudaGraphLaunch(exec, i % 2 == 0 ? device.stream : device.side));
  CUDA(cudaDeviceSynchronize());
  REQUIRE(All(device.a, 1 + 2 + 3 + 4 + 5 + 6));
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaFreeHost(rounds.values));
}

static void Triple(void* value) { *static_cast<int*>(value) *= 3; }

// Copies, host functions and allocations become nodes too.
static void EveryCallBecomesANode(const Device& device) {
  cudaGraphExec_t fork = Instantiate(CaptureFork(device, 2, 1));  // leaves 6 in a
  CUDA(cudaGraphLaunch(fork, device.stream));
  std::vector<int> host(kCount, 0);
  int number = 1;
  int from_symbol = 0;
  int* temporary = nullptr;
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal));
  CUDA(cudaMallocAsync(&temporary, kBytes, device.stream));
  CUDA(cudaMemcpyAsync(temporary, device.a, kBytes, cudaMemcpyDeviceToDevice, device.stream));
  LaunchMultiplyAdd(device.stream, temporary, 2, 1);
  CUDA(cudaLaunchHostFunc(device.stream, Triple, &number));
  CUDA(cudaMemcpyAsync(host.data(), temporary, kBytes, cudaMemcpyDeviceToHost, device.stream));
  CUDA(cudaMemcpyToSymbolAsync(variable, temporary, sizeof(int), 0, cudaMemcpyDeviceToDevice,
                               device.stream));
  CUDA(cudaMemcpyFromSymbolAsync(&from_symbol, variable, sizeof(int), 0, cudaMemcpyDeviceToHost,
                                 device.stream));
  CUDA(cudaFreeAsync(temporary, device.stream));
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(device.stream, &graph));
  REQUIRE(number == 1 && host[0] == 0);
  cudaGraphExec_t exec = Instantiate(graph);
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, device.stream));
  CUDA(cudaStreamSynchronize(device.stream));
  REQUIRE(number == 27 && from_symbol == 13);
  for (const int value : host) REQUIRE(value == 13);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphExecDestroy(fork));
}

// What a library does that adds nodes of its own to a capture.
static void NodesCanBePutIntoACapture(const Device& device) {
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeRelaxed));
  CUDA(cudaMemsetAsync(device.a, 0, kBytes, device.stream));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* front = nullptr;
  std::size_t count = 0;
  CUDA(cudaStreamGetCaptureInfo(device.stream, &status, &id, &graph, &front, nullptr, &count));
  REQUIRE(status == cudaStreamCaptureStatusActive && id != 0 && count == 1);
  int* values = device.a;
  int factor = 1;
  int term = 5;
  void* arguments[] = {&values, &factor, &term};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(MultiplyAdd);
  kernel.gridDim = dim3(kCount / kThreads);
  kernel.blockDim = dim3(kThreads);
  kernel.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  CUDA(cudaGraphAddKernelNode(&node, graph, front, count, &kernel));
  CUDA(cudaStreamUpdateCaptureDependencies(device.stream, &node, nullptr, 1,
                                           cudaStreamSetCaptureDependencies));
  LaunchMultiplyAdd(device.stream, device.a, 4, 0);
  cudaGraph_t captured = nullptr;
  CUDA(cudaStreamEndCapture(device.stream, &captured));
  REQUIRE(captured == graph);
  cudaGraphExec_t exec = Instantiate(captured);
  CUDA(cudaGraphLaunch(exec, nullptr));
  REQUIRE(All(device.a, 20));
  CUDA(cudaGraphExecDestroy(exec));
}

// A branch's stream may go as soon as it has been joined, and not before.
static void StreamsMayLeaveACapture(const Device& device) {
  for (const bool is_joined : {true, false}) {
    cudaStream_t branch = nullptr;
    CUDA(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
    CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
    CUDA(cudaEventRecord(device.fork, device.stream));
    CUDA(cudaStreamWaitEvent(branch, device.fork, 0));
    LaunchMultiplyAdd(branch, device.b, 0, 7);
    CUDA(cudaEventRecord(device.join, branch));
    if (is_joined) CUDA(cudaStreamWaitEvent(device.stream, device.join, 0));
    CUDA(cudaStreamDestroy(branch));
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(device.stream, &graph),
                is_joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (!is_joined) break;
    cudaGraphExec_t exec = Instantiate(graph);
    CUDA(cudaGraphLaunch(exec, nullptr));
    REQUIRE(All(device.b, 7));
    CUDA(cudaGraphExecDestroy(exec));
  }
  (void)cudaGetLastError();
}

static void RequireBroken(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA(cudaStreamIsCapturing(stream, &status));
  REQUIRE(status == cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(stream);
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  REQUIRE(graph == nullptr);
  (void)cudaGetLastError();
}

static void WhatCannotBeCapturedBreaksTheCapture(const Device& device) {
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(device.stream, &graph), cudaErrorIllegalState);
  EXPECT_CUDA(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
              cudaErrorStreamCaptureUnsupported);

  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  EXPECT_CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal),
              cudaErrorIllegalState);
  EXPECT_CUDA(cudaStreamSynchronize(device.stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_CUDA(cudaMemsetAsync(device.a, 0, kBytes, device.stream),
              cudaErrorStreamCaptureInvalidated);
  RequireBroken(device.stream);

  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  void* memory = nullptr;
  EXPECT_CUDA(cudaMalloc(&memory, kBytes), cudaErrorStreamCaptureUnsupported);
  RequireBroken(device.stream);

  // A question about captured work, and a launch of a graph.
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  CUDA(cudaEventRecord(device.fork, device.stream));
  EXPECT_CUDA(cudaEventQuery(device.fork), cudaErrorCapturedEvent);
  RequireBroken(device.stream);
  cudaGraphExec_t exec = Instantiate(CaptureFork(device, 1, 1));
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_CUDA(cudaGraphLaunch(exec, device.stream), cudaErrorStreamCaptureUnsupported);
  RequireBroken(device.stream);
  CUDA(cudaGraphExecDestroy(exec));

  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeRelaxed));
  CUDA(cudaMalloc(&memory, kBytes));
  CUDA(cudaStreamEndCapture(device.stream, &graph));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaFree(memory));

  cudaStream_t blocking = nullptr;
  CUDA(cudaStreamCreate(&blocking));
  CUDA(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  EXPECT_CUDA(cudaMemset(device.a, 0, kBytes), cudaErrorStreamCaptureImplicit);
  RequireBroken(blocking);
  CUDA(cudaStreamDestroy(blocking));

  // A branch that is never joined, and an event of another time.
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  CUDA(cudaEventRecord(device.fork, device.stream));
  CUDA(cudaStreamWaitEvent(device.side, device.fork, 0));
  LaunchMultiplyAdd(device.side, device.b, 1, 1);
  EXPECT_CUDA(cudaStreamEndCapture(device.side, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_CUDA(cudaStreamEndCapture(device.stream, &graph), cudaErrorStreamCaptureInvalidated);
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  CUDA(cudaEventRecord(device.fork, device.stream));
  CUDA(cudaStreamWaitEvent(device.side, device.fork, 0));
  LaunchMultiplyAdd(device.side, device.b, 1, 1);
  EXPECT_CUDA(cudaStreamEndCapture(device.stream, &graph), cudaErrorStreamCaptureUnjoined);

  cudaEvent_t outside = nullptr;
  CUDA(cudaEventCreate(&outside));
  CUDA(cudaEventRecord(outside, device.side));
  CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeGlobal));
  EXPECT_CUDA(cudaStreamWaitEvent(device.stream, outside, 0), cudaErrorStreamCaptureIsolation);
  RequireBroken(device.stream);
  CUDA(cudaEventDestroy(outside));
  (void)cudaGetLastError();
}

// Each thread captures, instantiates and launches on its own.
static void ThreadsCaptureSideBySide() {
  std::vector<std::thread> threads;
  for (int number = 1; number <= 4; ++number) {
    threads.emplace_back([number] {
      const Device device;
      for (int round = 0; round < 5; ++round) {
        CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal));
        CUDA(cudaMemsetAsync(device.a, 0, kBytes, device.stream));
        for (int i = 0; i < 20; ++i) LaunchMultiplyAdd(device.stream, device.a, 1, number);
        cudaGraph_t graph = nullptr;
        CUDA(cudaStreamEndCapture(device.stream, &graph));
        cudaGraphExec_t exec = Instantiate(graph);
        CUDA(cudaGraphLaunch(exec, device.stream));
        CUDA(cudaStreamSynchronize(device.stream));
        CUDA(cudaGraphExecDestroy(exec));
      }
      std::vector<int> values(kCount);
      CUDA(cudaMemcpyAsync(values.data(), device.a, kBytes, cudaMemcpyDeviceToHost, device.stream));
      CUDA(cudaStreamSynchronize(device.stream));
      for (const int value : values) REQUIRE(value == 20 * number);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int main() {
  const Device device;
  ForksAreJoined(device);
  LaunchesComeOneAfterAnother(device);
  EveryCallBecomesANode(device);
  NodesCanBePutIntoACapture(device);
  StreamsMayLeaveACapture(device);
  WhatCannotBeCapturedBreaksTheCapture(device);
  ThreadsCaptureSideBySide();
  CUDA(cudaDeviceSynchronize());
  return Pass();
}
