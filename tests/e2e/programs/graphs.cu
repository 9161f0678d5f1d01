// Graphs that are built node by node: every kind of node, several launches, changes between them.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 4096;
constexpr int kThreads = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);

__device__ int table[kCount];

__global__ void MultiplyAdd(int* values, int factor, int term) {
  int& value = values[blockIdx.x * blockDim.x + threadIdx.x];
  value = value * factor + term;
}

__global__ void AddTo(int* sum, const int* values) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] += values[i];
}

// The nodes and what is instantiated from them; destroyed with the scope.
class Graph {
 public:
  Graph() { CUDA(cudaGraphCreate(&graph_, 0)); }
  ~Graph() {
    if (exec_) CUDA(cudaGraphExecDestroy(exec_));
    CUDA(cudaGraphDestroy(graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  operator cudaGraph_t() const { return graph_; }
  cudaGraphExec_t exec() {
    if (!exec_) CUDA(cudaGraphInstantiate(&exec_, graph_, 0));
    return exec_;
  }
  void Launch(cudaStream_t stream) { CUDA(cudaGraphLaunch(exec(), stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

using Nodes = std::vector<cudaGraphNode_t>;

static cudaKernelNodeParams Kernel(void* function, void** arguments) {
  cudaKernelNodeParams parameters{};
  parameters.func = function;
  parameters.gridDim = dim3(kCount / kThreads);
  parameters.blockDim = dim3(kThreads);
  parameters.kernelParams = arguments;
  return parameters;
}

static cudaGraphNode_t AddMultiplyAdd(cudaGraph_t graph, const Nodes& before, int* values,
                                      int factor, int term) {
  void* arguments[] = {&values, &factor, &term};
  const cudaKernelNodeParams parameters = Kernel(reinterpret_cast<void*>(MultiplyAdd), arguments);
  cudaGraphNode_t node = nullptr;
  CUDA(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &parameters));
  return node;
}

static cudaGraphNode_t AddCopy(cudaGraph_t graph, const Nodes& before, void* to, const void* from,
                               cudaMemcpyKind kind) {
  cudaGraphNode_t node = nullptr;
  CUDA(
      cudaGraphAddMemcpyNode1D(&node, graph, before.data(), before.size(), to, from, kBytes, kind));
  return node;
}

static cudaGraphNode_t AddFill(cudaGraph_t graph, const Nodes& before, int* to, unsigned value) {
  cudaMemsetParams parameters{};
  parameters.dst = to;
  parameters.value = value;
  parameters.elementSize = sizeof(int);
  parameters.width = kCount;
  parameters.height = 1;
  cudaGraphNode_t node = nullptr;
  CUDA(cudaGraphAddMemsetNode(&node, graph, before.data(), before.size(), &parameters));
  return node;
}

static bool All(const int* values, int expected) {
  return std::all_of(values, values + kCount, [&](int value) { return value == expected; });
}

static std::vector<int> Download(const int* device) {
  std::vector<int> values(kCount);
  CUDA(cudaMemcpy(values.data(), device, kBytes, cudaMemcpyDeviceToHost));
  return values;
}

struct Device {
  int* a = nullptr;
  int* b = nullptr;
  cudaStream_t stream = nullptr;
};

// Memory of the host is read and written by each launch, pinned and pageable alike.
static void HostMemoryIsReadAtEachLaunch(const Device& device, int* from, int* to) {
  Graph graph;
  const cudaGraphNode_t up = AddCopy(graph, {}, device.a, from, cudaMemcpyHostToDevice);
  const cudaGraphNode_t work = AddMultiplyAdd(graph, {up}, device.a, 2, 1);
  AddCopy(graph, {work}, to, device.a, cudaMemcpyDeviceToHost);
  for (int round = 0; round < 5; ++round) {
    std::fill(from, from + kCount, round);
    graph.Launch(device.stream);
    CUDA(cudaStreamSynchronize(device.stream));
    REQUIRE(All(to, 2 * round + 1));
  }
}

// A kernel between two uploads of the same buffer sees the first, one behind sees the second.
static void UploadsKeepTheirPlaces(const Device& device) {
  std::vector<int> first(kCount, 3);
  std::vector<int> second(kCount, 5);
  Graph graph;
  const cudaGraphNode_t clear = AddFill(graph, {}, device.b, 0);
  const cudaGraphNode_t one =
      AddCopy(graph, {clear}, device.a, first.data(), cudaMemcpyHostToDevice);
  const int* values = device.a;
  int* sum = device.b;
  void* arguments[] = {&sum, &values};
  const cudaKernelNodeParams add = Kernel(reinterpret_cast<void*>(AddTo), arguments);
  cudaGraphNode_t add_one = nullptr;
  cudaGraphNode_t add_two = nullptr;
  CUDA(cudaGraphAddKernelNode(&add_one, graph, &one, 1, &add));
  const cudaGraphNode_t two =
      AddCopy(graph, {add_one}, device.a, second.data(), cudaMemcpyHostToDevice);
  CUDA(cudaGraphAddKernelNode(&add_two, graph, &two, 1, &add));
  graph.Launch(device.stream);
  graph.Launch(device.stream);
  CUDA(cudaStreamSynchronize(device.stream));
  REQUIRE(All(Download(device.b).data(), 8));
}

struct Sum {
  const int* values;
  long long total;
  int calls;
};

static void AddUp(void* data) {
  Sum& sum = *static_cast<Sum*>(data);
  for (int i = 0; i < kCount; ++i) sum.total += sum.values[i];
  ++sum.calls;
}

static void HostFunctionsRunInTheirPlace(const Device& device, int* pinned) {
  Sum sum{pinned, 0, 0};
  const cudaHostNodeParams host{AddUp, &sum};
  Graph graph;
  const cudaGraphNode_t fill = AddFill(graph, {}, device.a, 2);
  const cudaGraphNode_t down = AddCopy(graph, {fill}, pinned, device.a, cudaMemcpyDeviceToHost);
  cudaGraphNode_t call = nullptr;
  CUDA(cudaGraphAddHostNode(&call, graph, &down, 1, &host));
  const cudaGraphNode_t more = AddMultiplyAdd(graph, {call}, device.a, 5, 0);
  const cudaGraphNode_t again = AddCopy(graph, {more}, pinned, device.a, cudaMemcpyDeviceToHost);
  cudaGraphNode_t call_again = nullptr;
  CUDA(cudaGraphAddHostNode(&call_again, graph, &again, 1, &host));
  for (int i = 0; i < 3; ++i) graph.Launch(device.stream);
  CUDA(cudaStreamSynchronize(device.stream));
  REQUIRE(sum.calls == 6);
  REQUIRE(sum.total == 3LL * kCount * (2 + 10));
}

// A diamond whose branches use memory of their own, as a child of a graph that runs it twice.
static void ChildrenRunWhole(const Device& device) {
  Graph child;
  const cudaGraphNode_t root = AddMultiplyAdd(child, {}, device.a, 1, 1);
  const cudaGraphNode_t left = AddMultiplyAdd(child, {root}, device.a, 2, 0);
  const cudaGraphNode_t right = AddMultiplyAdd(child, {root}, device.b, 2, 1);
  int* sum = device.a;
  const int* values = device.b;
  void* arguments[] = {&sum, &values};
  const cudaKernelNodeParams add = Kernel(reinterpret_cast<void*>(AddTo), arguments);
  const Nodes branches = {left, right};
  cudaGraphNode_t join = nullptr;
  CUDA(cudaGraphAddKernelNode(&join, child, branches.data(), branches.size(), &add));

  Graph parent;
  const Nodes fills = {AddFill(parent, {}, device.a, 0), AddFill(parent, {}, device.b, 0)};
  cudaGraphNode_t first = nullptr;
  cudaGraphNode_t second = nullptr;
  CUDA(cudaGraphAddChildGraphNode(&first, parent, fills.data(), fills.size(), child));
  CUDA(cudaGraphAddChildGraphNode(&second, parent, &first, 1, child));
  for (int i = 0; i < 4; ++i) parent.Launch(device.stream);
  CUDA(cudaStreamSynchronize(device.stream));
  // a: (0+1)*2 + 1 = 3, then (3+1)*2 + 3 = 11.
  REQUIRE(All(Download(device.a).data(), 11));
}

static void ExecutablesCanBeChanged(const Device& device) {
  Graph graph;
  const cudaGraphNode_t fill = AddFill(graph, {}, device.a, 1);
  const cudaGraphNode_t work = AddMultiplyAdd(graph, {fill}, device.a, 10, 0);
  graph.Launch(device.stream);
  REQUIRE(All(Download(device.a).data(), 10));

  int* values = device.a;
  int factor = 20;
  int term = 1;
  void* arguments[] = {&values, &factor, &term};
  const cudaKernelNodeParams changed = Kernel(reinterpret_cast<void*>(MultiplyAdd), arguments);
  CUDA(cudaGraphExecKernelNodeSetParams(graph.exec(), work, &changed));
  graph.Launch(device.stream);
  REQUIRE(All(Download(device.a).data(), 21));

  CUDA(cudaGraphNodeSetEnabled(graph.exec(), work, 0));
  unsigned enabled = 1;
  CUDA(cudaGraphNodeGetEnabled(graph.exec(), work, &enabled));
  REQUIRE(enabled == 0);
  graph.Launch(device.stream);
  REQUIRE(All(Download(device.a).data(), 1));
  CUDA(cudaGraphNodeSetEnabled(graph.exec(), work, 1));

  // The graph itself still multiplies by ten.
  Graph other;
  AddMultiplyAdd(other, {AddFill(other, {}, device.a, 2)}, device.a, 7, 0);
  cudaGraphExecUpdateResultInfo info{};
  CUDA(cudaGraphExecUpdate(graph.exec(), other, &info));
  REQUIRE(info.result == cudaGraphExecUpdateSuccess);
  graph.Launch(device.stream);
  REQUIRE(All(Download(device.a).data(), 14));

  Graph different;
  AddFill(different, {AddMultiplyAdd(different, {}, device.a, 7, 0)}, device.a, 2);
  EXPECT_CUDA(cudaGraphExecUpdate(graph.exec(), different, &info), cudaErrorGraphExecUpdateFailure);
  REQUIRE(info.result == cudaGraphExecUpdateErrorNodeTypeChanged);
  (void)cudaGetLastError();
}

static void NodesTellWhatTheyAre(const Device& device) {
  Graph graph;
  const cudaGraphNode_t fill = AddFill(graph, {}, device.a, 1);
  const cudaGraphNode_t work = AddMultiplyAdd(graph, {fill}, device.a, 3, 4);
  cudaKernelNodeParams told{};
  CUDA(cudaGraphKernelNodeGetParams(work, &told));
  REQUIRE(told.func == reinterpret_cast<void*>(MultiplyAdd));
  REQUIRE(told.gridDim.x == kCount / kThreads && told.blockDim.x == kThreads);
  REQUIRE(*static_cast<int**>(told.kernelParams[0]) == device.a);
  REQUIRE(*static_cast<int*>(told.kernelParams[2]) == 4);

  cudaGraph_t clone = nullptr;
  CUDA(cudaGraphClone(&clone, graph));
  cudaGraphNode_t twin = nullptr;
  CUDA(cudaGraphNodeFindInClone(&twin, work, clone));
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  CUDA(cudaGraphNodeGetType(twin, &type));
  REQUIRE(twin != work && type == cudaGraphNodeTypeKernel);
  std::size_t count = 0;
  CUDA(cudaGraphGetEdges(clone, nullptr, nullptr, nullptr, &count));
  REQUIRE(count == 1);
  CUDA(cudaGraphDestroyNode(twin));
  CUDA(cudaGraphGetNodes(clone, nullptr, &count));
  REQUIRE(count == 1);
  CUDA(cudaGraphDestroy(clone));

  // A cycle is found when the graph is instantiated.
  CUDA(cudaGraphAddDependencies(graph, &work, &fill, nullptr, 1));
  cudaGraphExec_t exec = nullptr;
  EXPECT_CUDA(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphGetNodes(reinterpret_cast<cudaGraph_t>(fill), nullptr, &count),
              cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

static void EventsAndSymbolsHaveNodes(const Device& device) {
  cudaEvent_t event = nullptr;
  CUDA(cudaEventCreate(&event));
  Graph producer;
  const cudaGraphNode_t fill = AddFill(producer, {}, device.a, 9);
  cudaGraphNode_t record = nullptr;
  CUDA(cudaGraphAddEventRecordNode(&record, producer, &fill, 1, event));

  Graph consumer;
  cudaGraphNode_t wait = nullptr;
  CUDA(cudaGraphAddEventWaitNode(&wait, consumer, nullptr, 0, event));
  cudaGraphNode_t store = nullptr;
  CUDA(cudaGraphAddMemcpyNodeToSymbol(&store, consumer, &wait, 1, table, device.a, kBytes, 0,
                                      cudaMemcpyDeviceToDevice));
  cudaGraphNode_t load = nullptr;
  CUDA(cudaGraphAddMemcpyNodeFromSymbol(&load, consumer, &store, 1, device.b, table, kBytes, 0,
                                        cudaMemcpyDeviceToDevice));
  cudaStream_t other = nullptr;
  CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  producer.Launch(device.stream);
  consumer.Launch(other);
  CUDA(cudaStreamSynchronize(other));
  CUDA(cudaEventQuery(event));
  REQUIRE(All(Download(device.b).data(), 9));
  CUDA(cudaStreamDestroy(other));
  CUDA(cudaEventDestroy(event));
}

static void RectanglesAreCopiedAndFilled(const Device& device) {
  constexpr std::size_t kRow = 64;  // ints
  constexpr std::size_t kRows = kCount / kRow;
  Graph graph;
  const cudaGraphNode_t clear = AddFill(graph, {}, device.a, 0);
  cudaMemsetParams fill{};
  fill.dst = device.a + 8;
  fill.pitch = kRow * sizeof(int);
  fill.value = 6;
  fill.elementSize = sizeof(int);
  fill.width = 16;
  fill.height = kRows;
  cudaGraphNode_t filled = nullptr;
  CUDA(cudaGraphAddMemsetNode(&filled, graph, &clear, 1, &fill));
  std::vector<int> packed(16 * kRows);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(device.a, kRow * sizeof(int), kRow * sizeof(int), kRows);
  copy.srcPos = make_cudaPos(8 * sizeof(int), 0, 0);
  copy.dstPtr = make_cudaPitchedPtr(packed.data(), 16 * sizeof(int), 16 * sizeof(int), kRows);
  copy.extent = make_cudaExtent(16 * sizeof(int), kRows, 1);
  copy.kind = cudaMemcpyDeviceToHost;
  cudaGraphNode_t copied = nullptr;
  CUDA(cudaGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy));
  graph.Launch(device.stream);
  CUDA(cudaStreamSynchronize(device.stream));
  for (const int value : packed) REQUIRE(value == 6);
  const std::vector<int> whole = Download(device.a);
  for (std::size_t i = 0; i < kCount; ++i)
    REQUIRE(whole[i] == (i % kRow >= 8 && i % kRow < 24 ? 6 : 0));
}

static void MemoryNodesAllocateAndFree(const Device& device) {
  Graph graph;
  cudaMemAllocNodeParams allocation{};
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location.type = cudaMemLocationTypeDevice;
  allocation.bytesize = kBytes;
  cudaGraphNode_t allocated = nullptr;
  CUDA(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &allocation));
  int* const memory = static_cast<int*>(allocation.dptr);
  const cudaGraphNode_t fill = AddFill(graph, {allocated}, memory, 4);
  const cudaGraphNode_t out = AddCopy(graph, {fill}, device.a, memory, cudaMemcpyDeviceToDevice);
  cudaGraphNode_t freed = nullptr;
  CUDA(cudaGraphAddMemFreeNode(&freed, graph, &out, 1, memory));
  graph.Launch(device.stream);
  graph.Launch(device.stream);
  REQUIRE(All(Download(device.a).data(), 4));
  EXPECT_CUDA(cudaFree(memory), cudaErrorInvalidValue);  // the graph has done it
  (void)cudaGetLastError();

  Graph keeping;
  CUDA(cudaGraphAddMemAllocNode(&allocated, keeping, nullptr, 0, &allocation));
  int* const kept = static_cast<int*>(allocation.dptr);
  AddFill(keeping, {allocated}, kept, 8);
  keeping.Launch(device.stream);
  REQUIRE(All(Download(kept).data(), 8));
  EXPECT_CUDA(cudaGraphLaunch(keeping.exec(), device.stream), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CUDA(cudaDeviceGraphMemTrim(0));
  std::uint64_t used = 0;
  CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  REQUIRE(used >= kBytes);  // drivers count whole pages
  CUDA(cudaFreeAsync(kept, device.stream));
  keeping.Launch(device.stream);
  CUDA(cudaFree(kept));
}

static void Count(void* counter) { ++*static_cast<int*>(counter); }

static void GraphsKeepUserObjects() {
  int destroyed = 0;
  cudaUserObject_t object = nullptr;
  CUDA(cudaUserObjectCreate(&object, &destroyed, Count, 1, cudaUserObjectNoDestructorSync));
  {
    Graph graph;
    CUDA(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    cudaGraph_t clone = nullptr;
    CUDA(cudaGraphClone(&clone, graph));
    CUDA(cudaGraphDestroy(clone));
    (void)graph.exec();
    REQUIRE(destroyed == 0);
  }
  REQUIRE(destroyed == 1);
}

int main() {
  Device device;
  CUDA(cudaMalloc(&device.a, kBytes));
  CUDA(cudaMalloc(&device.b, kBytes));
  CUDA(cudaStreamCreate(&device.stream));
  int* pinned = nullptr;
  CUDA(cudaMallocHost(&pinned, 2 * kBytes));
  std::vector<int> pageable(2 * kCount);
  HostMemoryIsReadAtEachLaunch(device, pinned, pinned + kCount);
  HostMemoryIsReadAtEachLaunch(device, pageable.data(), pageable.data() + kCount);
  UploadsKeepTheirPlaces(device);
  HostFunctionsRunInTheirPlace(device, pinned);
  ChildrenRunWhole(device);
  ExecutablesCanBeChanged(device);
  NodesTellWhatTheyAre(device);
  EventsAndSymbolsHaveNodes(device);
  RectanglesAreCopiedAndFilled(device);
  MemoryNodesAllocateAndFree(device);
  GraphsKeepUserObjects();
  CUDA(cudaDeviceSynchronize());
  return Pass();
}
