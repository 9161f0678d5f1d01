// A program that sees several GPUs: each has memory, streams, modules and variables of its own;
// events order their work, and they reach each other's memory.
#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/e2e/programs/check.h"

namespace {

constexpr int kCount = 1 << 16;
constexpr int kBlock = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);

__device__ int device_number = -1;
__managed__ int managed_count = 5;

__global__ void Fill(int* to, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  to[i] = value + i;
}

__global__ void Add(int* to, const int* from, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  to[i] = from[i] + value;
}

__global__ void Count(int by) { managed_count += by; }

__global__ void ReadNumber(int* to) { *to = device_number; }

__global__ void Spin(long long clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) {
  }
}

// What the program has on one GPU.
struct Gpu {
  int index = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  int* memory = nullptr;

  explicit Gpu(int device) : index(device) {
    CUDA(cudaSetDevice(device));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaMalloc(&memory, kBytes));
  }
  void Free() const {
    CUDA(cudaSetDevice(index));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaFree(memory));
  }
};

void ExpectSequence(const std::vector<int>& values, int first) {
  for (int i = 0; i < kCount; ++i) REQUIRE(values[static_cast<std::size_t>(i)] == first + i);
}

std::vector<int> Fetch(const int* memory) {
  std::vector<int> values(kCount);
  CUDA(cudaMemcpy(values.data(), memory, kBytes, cudaMemcpyDeviceToHost));
  return values;
}

void TestDescriptions(int count) {
  std::vector<cudaDeviceProp> properties(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    CUDA(cudaGetDeviceProperties(&properties[static_cast<std::size_t>(i)], i));
    for (int j = 0; j < i; ++j) {
      const auto& one = properties[static_cast<std::size_t>(i)];
      const auto& other = properties[static_cast<std::size_t>(j)];
      REQUIRE(std::memcmp(&one.uuid, &other.uuid, sizeof one.uuid) != 0);
      REQUIRE(one.pciBusID != other.pciBusID || one.pciDeviceID != other.pciDeviceID ||
              one.pciDomainID != other.pciDomainID);
    }
    char bus_id[32];
    int found = -1;
    CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, i));
    CUDA(cudaDeviceGetByPCIBusId(&found, bus_id));
    REQUIRE(found == i);
  }
  EXPECT_CUDA(cudaSetDevice(count), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaSetDevice(-1), cudaErrorInvalidDevice);
  (void)cudaGetLastError();
}

void TestCurrentDeviceIsAThreads() {
  CUDA(cudaSetDevice(1));
  std::thread([] {
    int device = -1;
    CUDA(cudaGetDevice(&device));
    REQUIRE(device == 0);
    CUDA(cudaSetDevice(0));
  }).join();
  int device = -1;
  CUDA(cudaGetDevice(&device));
  REQUIRE(device == 1);
}

void TestIndependentWork(const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    CUDA(cudaSetDevice(gpu.index));
    Fill<<<kCount / kBlock, kBlock, 0, gpu.stream>>>(gpu.memory, 1000 * gpu.index);
    CUDA(cudaGetLastError());
    CUDA(cudaEventRecord(gpu.event, gpu.stream));
  }
  for (const Gpu& gpu : gpus) {
    // Waiting, querying and fetching need no change of the current device.
    CUDA(cudaStreamSynchronize(gpu.stream));
    cudaError_t state = cudaErrorNotReady;
    while (state == cudaErrorNotReady) state = cudaStreamQuery(gpu.stream);
    REQUIRE(state == cudaSuccess);
    CUDA(cudaEventSynchronize(gpu.event));
    CUDA(cudaEventQuery(gpu.event));
    ExpectSequence(Fetch(gpu.memory), 1000 * gpu.index);
    int device = -1;
    CUDA(cudaStreamGetDevice(gpu.stream, &device));
    REQUIRE(device == gpu.index);
    cudaPointerAttributes attributes{};
    CUDA(cudaPointerGetAttributes(&attributes, gpu.memory));
    REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == gpu.index);
  }
  // A launch and a record want their own device's stream.
  CUDA(cudaSetDevice(0));
  Fill<<<1, 1, 0, gpus[1].stream>>>(gpus[1].memory, 0);
  EXPECT_CUDA(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaEventRecord(gpus[0].event, gpus[1].stream), cudaErrorInvalidResourceHandle);
  float ms = 0;
  EXPECT_CUDA(cudaEventElapsedTime(&ms, gpus[0].event, gpus[1].event),
              cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();
}

void TestVariables(const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    CUDA(cudaSetDevice(gpu.index));
    const int number = 70 + gpu.index;
    CUDA(cudaMemcpyToSymbol(device_number, &number, sizeof number));
  }
  for (const Gpu& gpu : gpus) {
    CUDA(cudaSetDevice(gpu.index));
    ReadNumber<<<1, 1>>>(gpu.memory);
    int number = 0;
    CUDA(cudaMemcpy(&number, gpu.memory, sizeof number, cudaMemcpyDeviceToHost));
    REQUIRE(number == 70 + gpu.index);
    CUDA(cudaMemcpyFromSymbol(&number, device_number, sizeof number));
    REQUIRE(number == 70 + gpu.index);
  }
}

// A managed variable is one for all.
void TestManagedVariable(const std::vector<Gpu>& gpus) {
  int expected = managed_count;
  for (int round = 0; round < 3; ++round) {
    for (const Gpu& gpu : gpus) {
      CUDA(cudaSetDevice(gpu.index));
      Count<<<1, 1>>>(gpu.index + 1);
      CUDA(cudaDeviceSynchronize());
      expected += gpu.index + 1;
      REQUIRE(managed_count == expected);
    }
    managed_count = expected = round;
  }
}

// Nothing is lost where threads have their GPUs count at once: the launches come one after another.
void TestManagedVariableInThreads(const std::vector<Gpu>& gpus) {
  constexpr int kLaunches = 50;
  managed_count = 0;
  std::vector<std::thread> threads;
  for (const Gpu& gpu : gpus) {
    threads.emplace_back([&gpu] {
      CUDA(cudaSetDevice(gpu.index));
      for (int i = 0; i < kLaunches; ++i) Count<<<1, 1, 0, gpu.stream>>>(1);
      CUDA(cudaGetLastError());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Gpu& gpu : gpus) CUDA(cudaStreamSynchronize(gpu.stream));
  REQUIRE(managed_count == kLaunches * static_cast<int>(gpus.size()));
}

// Around all GPUs: each waits for the one before it and adds one to what that has written.
void TestEventsBetweenDevices(const std::vector<Gpu>& gpus) {
  constexpr int kRounds = 5;
  CUDA(cudaSetDevice(0));
  Fill<<<kCount / kBlock, kBlock, 0, gpus[0].stream>>>(gpus[0].memory, 0);
  CUDA(cudaEventRecord(gpus[0].event, gpus[0].stream));
  const Gpu* before = &gpus[0];
  int added = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 1; i <= gpus.size(); ++i) {
      const Gpu& gpu = gpus[i % gpus.size()];
      CUDA(cudaSetDevice(gpu.index));
      CUDA(cudaStreamWaitEvent(gpu.stream, before->event, 0));
      Spin<<<1, 1, 0, gpu.stream>>>(20000);
      Add<<<kCount / kBlock, kBlock, 0, gpu.stream>>>(gpu.memory, before->memory, 1);
      CUDA(cudaEventRecord(gpu.event, gpu.stream));
      before = &gpu;
      ++added;
    }
  }
  CUDA(cudaEventSynchronize(before->event));
  ExpectSequence(Fetch(before->memory), added);
}

void TestPeerAccess(const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    for (const Gpu& peer : gpus) {
      int can = -1;
      CUDA(cudaDeviceCanAccessPeer(&can, gpu.index, peer.index));
      REQUIRE(can == (gpu.index == peer.index ? 0 : 1));
      if (gpu.index == peer.index) continue;
      CUDA(cudaSetDevice(gpu.index));
      CUDA(cudaDeviceEnablePeerAccess(peer.index, 0));
      EXPECT_CUDA(cudaDeviceEnablePeerAccess(peer.index, 0), cudaErrorPeerAccessAlreadyEnabled);
      (void)cudaGetLastError();
    }
  }
  // Memory that is allocated, and freed, while another device already reaches the rest.
  for (int round = 0; round < 3; ++round) {
    CUDA(cudaSetDevice(1));
    int* late = nullptr;
    CUDA(cudaMalloc(&late, kBytes));
    CUDA(cudaSetDevice(0));
    Fill<<<kCount / kBlock, kBlock>>>(late, 5 + round);
    CUDA(cudaDeviceSynchronize());
    ExpectSequence(Fetch(late), 5 + round);
    CUDA(cudaFree(late));
  }
  CUDA(cudaSetDevice(0));
  CUDA(cudaDeviceDisablePeerAccess(1));
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  (void)cudaGetLastError();
}

void TestPeerCopies(const std::vector<Gpu>& gpus) {
  const Gpu& one = gpus[0];
  const Gpu& other = gpus[1];
  CUDA(cudaSetDevice(0));
  Fill<<<kCount / kBlock, kBlock>>>(one.memory, 300);
  CUDA(cudaMemcpyPeer(other.memory, 1, one.memory, 0, kBytes));
  ExpectSequence(Fetch(other.memory), 300);
  CUDA(cudaMemset(one.memory, 0, kBytes));
  CUDA(cudaMemcpy(one.memory, other.memory, kBytes, cudaMemcpyDefault));
  ExpectSequence(Fetch(one.memory), 300);
  CUDA(cudaSetDevice(1));
  Fill<<<kCount / kBlock, kBlock, 0, other.stream>>>(other.memory, 400);
  CUDA(cudaMemcpyPeerAsync(one.memory, 0, other.memory, 1, kBytes, other.stream));
  CUDA(cudaStreamSynchronize(other.stream));
  ExpectSequence(Fetch(one.memory), 400);
  CUDA(cudaMemcpyAsync(other.memory + 1, one.memory, kBytes / 2, cudaMemcpyDeviceToDevice,
                       other.stream));
  CUDA(cudaMemsetAsync(one.memory, 0xff, sizeof(int), other.stream));
  CUDA(cudaStreamSynchronize(other.stream));
  REQUIRE(Fetch(other.memory)[1] == 400);
  REQUIRE(Fetch(one.memory)[0] == -1);
}

// Copies of rows, of volumes and of arrays come behind the work of both devices too, without a word
// of the program's.
void TestPeerCopiesOfRows(const std::vector<Gpu>& gpus) {
  constexpr std::size_t kSide = 256;
  constexpr std::size_t kRow = kSide * sizeof(int);
  const Gpu& one = gpus[0];
  const Gpu& other = gpus[1];
  const auto begin = [&](int value) {
    CUDA(cudaSetDevice(0));
    Spin<<<1, 1, 0, one.stream>>>(200000);
    Fill<<<kCount / kBlock, kBlock, 0, one.stream>>>(one.memory, value);
    CUDA(cudaSetDevice(1));
    Spin<<<1, 1, 0, other.stream>>>(200000);
    CUDA(cudaMemsetAsync(other.memory, 0, kBytes, other.stream));
  };
  begin(600);
  CUDA(cudaMemcpy2D(other.memory, kRow, one.memory, kRow, kRow / 2, kSide, cudaMemcpyDefault));
  std::vector<int> values = Fetch(other.memory);
  REQUIRE(values[kSide + 3] == 600 + static_cast<int>(kSide) + 3 && values[kSide - 1] == 0);

  begin(700);
  cudaMemcpy3DPeerParms volume{};
  volume.srcPtr = make_cudaPitchedPtr(one.memory, kRow, kSide, kSide);
  volume.dstPtr = make_cudaPitchedPtr(other.memory, kRow, kSide, kSide);
  volume.dstDevice = 1;
  volume.extent = make_cudaExtent(kRow / 2, kSide, 1);
  CUDA(cudaMemcpy3DPeer(&volume));
  values = Fetch(other.memory);
  REQUIRE(values[kSide + 3] == 700 + static_cast<int>(kSide) + 3 && values[kSide - 1] == 0);

  begin(800);
  const cudaChannelFormatDesc texel = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr;
  CUDA(cudaMallocArray(&array, &texel, kSide, kSide));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, one.memory, kRow, kRow, kSide, cudaMemcpyDefault));
  CUDA(cudaSetDevice(0));
  CUDA(cudaMemcpy2DFromArray(values.data(), kRow, array, 0, 0, kRow, kSide, cudaMemcpyDefault));
  ExpectSequence(values, 800);
  EXPECT_CUDA(cudaMemcpy2DToArrayAsync(array, 0, 0, one.memory, kRow, kRow, kSide,
                                       cudaMemcpyDefault, one.stream),
              cudaErrorNotSupported);
  (void)cudaGetLastError();
  CUDA(cudaFreeArray(array));
}

// Pinned and managed memory is every device's.
void TestHostMemory(const std::vector<Gpu>& gpus) {
  int* pinned = nullptr;
  int* managed = nullptr;
  CUDA(cudaSetDevice(1));
  CUDA(cudaMallocHost(&pinned, kBytes));
  CUDA(cudaMallocManaged(&managed, kBytes));
  for (const Gpu& gpu : gpus) {
    CUDA(cudaSetDevice(gpu.index));
    Fill<<<kCount / kBlock, kBlock>>>(pinned, gpu.index);
    CUDA(cudaDeviceSynchronize());
    REQUIRE(pinned[7] == gpu.index + 7);
    Add<<<kCount / kBlock, kBlock>>>(managed, pinned, 1);
    CUDA(cudaDeviceSynchronize());
    REQUIRE(managed[7] == gpu.index + 8);
    CUDA(cudaMemcpyAsync(gpu.memory, pinned, kBytes, cudaMemcpyHostToDevice, gpu.stream));
    CUDA(cudaMemsetAsync(gpu.memory, 0, sizeof(int), gpu.stream));
    CUDA(cudaMemcpyAsync(managed, gpu.memory, kBytes, cudaMemcpyDeviceToHost, gpu.stream));
    CUDA(cudaStreamSynchronize(gpu.stream));
    REQUIRE(managed[0] == 0 && managed[7] == gpu.index + 7);
  }
  CUDA(cudaSetDevice(0));
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaFree(managed));
}

void TestPools(const std::vector<Gpu>& gpus) {
  std::vector<int*> blocks;
  for (const Gpu& gpu : gpus) {
    CUDA(cudaSetDevice(gpu.index));
    int* block = nullptr;
    CUDA(cudaMallocAsync(&block, kBytes, gpu.stream));
    Fill<<<kCount / kBlock, kBlock, 0, gpu.stream>>>(block, gpu.index);
    cudaPointerAttributes attributes{};
    CUDA(cudaPointerGetAttributes(&attributes, block));
    REQUIRE(attributes.device == gpu.index);
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    CUDA(cudaStreamSynchronize(gpus[i].stream));
    ExpectSequence(Fetch(blocks[i]), gpus[i].index);
    CUDA(cudaFreeAsync(blocks[i], gpus[i].stream));
  }
}

// A thread for each GPU, as programs often have.
void TestThreads(const std::vector<Gpu>& gpus) {
  std::vector<std::thread> threads;
  for (const Gpu& gpu : gpus) {
    threads.emplace_back([&gpu] {
      CUDA(cudaSetDevice(gpu.index));
      for (int round = 0; round < 20; ++round) {
        Fill<<<kCount / kBlock, kBlock, 0, cudaStreamPerThread>>>(gpu.memory, round);
        CUDA(cudaStreamSynchronize(cudaStreamPerThread));
        ExpectSequence(Fetch(gpu.memory), round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void TestReset(const std::vector<Gpu>& gpus) {
  CUDA(cudaSetDevice(1));
  CUDA(cudaDeviceReset());
  // The other's memory and streams are as they were.
  CUDA(cudaSetDevice(0));
  Fill<<<kCount / kBlock, kBlock, 0, gpus[0].stream>>>(gpus[0].memory, 9);
  CUDA(cudaStreamSynchronize(gpus[0].stream));
  ExpectSequence(Fetch(gpus[0].memory), 9);
  CUDA(cudaSetDevice(1));
  int* again = nullptr;
  CUDA(cudaMalloc(&again, kBytes));
  Fill<<<kCount / kBlock, kBlock>>>(again, 10);
  CUDA(cudaDeviceSynchronize());
  ExpectSequence(Fetch(again), 10);
  CUDA(cudaFree(again));
}

}  // namespace

int main() {
  int count = 0;
  CUDA(cudaGetDeviceCount(&count));
  REQUIRE(count >= 2);
  TestDescriptions(count);
  TestCurrentDeviceIsAThreads();
  std::vector<Gpu> gpus;
  for (int i = 0; i < count; ++i) gpus.emplace_back(i);
  TestIndependentWork(gpus);
  TestVariables(gpus);
  TestManagedVariable(gpus);
  TestManagedVariableInThreads(gpus);
  TestEventsBetweenDevices(gpus);
  TestPeerAccess(gpus);
  TestPeerCopies(gpus);
  TestPeerCopiesOfRows(gpus);
  TestHostMemory(gpus);
  TestPools(gpus);
  TestThreads(gpus);
  TestReset(gpus);
  gpus[0].Free();
  return Pass();
}
