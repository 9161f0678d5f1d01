// cudaMallocManaged: one address for the program and its kernels.
#include "tests/e2e/programs/check.h"

struct Node {
  Node* next;
  int value;
};

__global__ void AddOne(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += 1;
}

__global__ void Walk(const Node* node, int* sum) {
  for (; node; node = node->next) *sum += node->value;
}

__global__ void CountSystemWide(int* counter, int times) {
  for (int i = 0; i < times; ++i) atomicAdd_system(counter, 1);
}

// Answers the program's word with the next one.
__global__ void PingPong(volatile int* word, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    while (*word != 2 * round + 1) {
    }
    *word = 2 * round + 2;
  }
}

static constexpr int kCount = 100'000;
static constexpr std::size_t kBytes = kCount * sizeof(int);

static void BothSidesWrite() {
  int* values = nullptr;
  CUDA(cudaMallocManaged(&values, kBytes));
  for (int i = 0; i < kCount; ++i) values[i] = i;
  AddOne<<<(kCount + 255) / 256, 256>>>(values, kCount);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) REQUIRE(values[i] == i + 1);
  values[7] = 70;
  AddOne<<<(kCount + 255) / 256, 256>>>(values, kCount);
  CUDA(cudaDeviceSynchronize());
  REQUIRE(values[7] == 71 && values[8] == 10);
  CUDA(cudaFree(values));
}

static void Pointers() {
  Node* nodes = nullptr;
  int* sum = nullptr;
  CUDA(cudaMallocManaged(&nodes, 1000 * sizeof *nodes));
  CUDA(cudaMallocManaged(&sum, sizeof *sum, cudaMemAttachHost));
  for (int i = 0; i < 1000; ++i) nodes[i] = {i < 999 ? &nodes[i + 1] : nullptr, i};
  *sum = 0;
  Walk<<<1, 1>>>(nodes, sum);
  CUDA(cudaDeviceSynchronize());
  REQUIRE(*sum == 499'500);
  CUDA(cudaFree(nodes));
  CUDA(cudaFree(sum));
}

static void Copies() {
  int* managed = nullptr;
  int* other = nullptr;
  int* device = nullptr;
  CUDA(cudaMallocManaged(&managed, kBytes));
  CUDA(cudaMallocManaged(&other, kBytes));
  CUDA(cudaMalloc(&device, kBytes));
  CUDA(cudaMemset(managed, 1, kBytes));
  CUDA(cudaMemcpy(device, managed, kBytes, cudaMemcpyHostToDevice));
  AddOne<<<(kCount + 255) / 256, 256>>>(device, kCount);
  CUDA(cudaMemcpy(managed, device, kBytes, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpyAsync(other, managed, kBytes, cudaMemcpyDefault));
  AddOne<<<(kCount + 255) / 256, 256>>>(other, kCount);
  int last = 0;
  CUDA(cudaMemcpy(&last, other + kCount - 1, sizeof last, cudaMemcpyDeviceToHost));
  REQUIRE(last == 0x01010103);
  REQUIRE(managed[0] == 0x01010102);
  CUDA(cudaFree(managed));
  CUDA(cudaFree(other));
  CUDA(cudaFree(device));
}

static void AtTheSameTime() {
  int* counter = nullptr;
  CUDA(cudaMallocManaged(&counter, sizeof *counter));
  *counter = 0;
  constexpr int kTimes = 1000;
  int is_atomic_with_host = 0;
  CUDA(cudaDeviceGetAttribute(&is_atomic_with_host, cudaDevAttrHostNativeAtomicSupported, 0));
  const int host_times = is_atomic_with_host != 0 ? kTimes : 0;
  CountSystemWide<<<4, 64>>>(counter, kTimes);
  for (int i = 0; i < host_times; ++i) __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
  CUDA(cudaDeviceSynchronize());
  REQUIRE(*counter == 256 * kTimes + host_times);

  volatile int* word = counter;
  *word = 0;
  constexpr int kRounds = 100;
  PingPong<<<1, 1>>>(word, kRounds);
  EXPECT_CUDA(cudaStreamQuery(nullptr), cudaErrorNotReady);
  for (int round = 0; round < kRounds; ++round) {
    *word = 2 * round + 1;
    while (*word != 2 * round + 2) {
    }
  }
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFree(counter));
}

template <typename Value>
static Value RangeAttribute(cudaMemRangeAttribute attribute, const void* pointer,
                            std::size_t bytes) {
  Value value{};
  CUDA(cudaMemRangeGetAttribute(&value, sizeof value, attribute, pointer, bytes));
  return value;
}

static void Advice() {
  int managed_access = 0;
  CUDA(cudaDeviceGetAttribute(&managed_access, cudaDevAttrConcurrentManagedAccess, 0));
  REQUIRE(managed_access == 1);
  char* values = nullptr;
  CUDA(cudaMallocManaged(&values, kBytes));
  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, values + 9));
  REQUIRE(attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == values + 9 &&
          attributes.hostPointer == values + 9);
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
  const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
  CUDA(cudaMemAdvise(values, kBytes, cudaMemAdviseSetReadMostly, device));
  CUDA(cudaMemAdvise(values, kBytes / 2, cudaMemAdviseSetPreferredLocation, host));
  CUDA(cudaMemAdvise(values, kBytes, cudaMemAdviseSetAccessedBy, device));
  CUDA(cudaMemPrefetchAsync(values, kBytes, device, 0, nullptr));
  REQUIRE(RangeAttribute<int>(cudaMemRangeAttributeReadMostly, values, kBytes) == 1);
  REQUIRE(RangeAttribute<int>(cudaMemRangeAttributePreferredLocation, values, kBytes) ==
          cudaInvalidDeviceId);
  REQUIRE(RangeAttribute<int>(cudaMemRangeAttributePreferredLocation, values, kBytes / 2) ==
          cudaCpuDeviceId);
  REQUIRE(RangeAttribute<int>(cudaMemRangeAttributeAccessedBy, values, kBytes) == 0);
  REQUIRE(RangeAttribute<int>(cudaMemRangeAttributeLastPrefetchLocation, values, kBytes) == 0);
  EXPECT_CUDA(cudaMemPrefetchAsync(values, kBytes + 1, device, 0, nullptr), cudaErrorInvalidValue);
  int on_stack = 0;
  EXPECT_CUDA(cudaMemAdvise(&on_stack, 4, cudaMemAdviseSetReadMostly, device),
              cudaErrorInvalidValue);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamAttachMemAsync(stream, values));
  CUDA(cudaStreamDestroy(stream));
  EXPECT_CUDA(cudaFreeHost(values), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CUDA(cudaFree(values));
}

int main() {
  BothSidesWrite();
  Pointers();
  Copies();
  AtTheSameTime();
  Advice();
  return Pass();
}
