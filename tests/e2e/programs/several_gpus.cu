// A program that sees several GPUs: each has memory, streams, modules and variables of its own, and
// events order their work.
#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/e2e/programs/check.h"
#include "tests/e2e/programs/several_gpus.h"

namespace {

__device__ int device_number = -1;
__managed__ int managed_count = 5;

__global__ void Count(int by) { managed_count += by; }

__global__ void ReadNumber(int* to) { *to = device_number; }

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
  const std::vector<Gpu> gpus = AllGpus();
  TestDescriptions(static_cast<int>(gpus.size()));
  TestCurrentDeviceIsAThreads();
  TestIndependentWork(gpus);
  TestVariables(gpus);
  TestManagedVariable(gpus);
  TestManagedVariableInThreads(gpus);
  TestEventsBetweenDevices(gpus);
  TestHostMemory(gpus);
  TestPools(gpus);
  TestThreads(gpus);
  TestReset(gpus);
  gpus[0].Free();
  return Pass();
}
