// Processes of one program share device memory and events. Each is started anew, as CUDA wants it;
// they hand each other handles through files that both have inherited, and words that tell how far
// they are through a page of shared memory.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/programs/check.h"

namespace {

constexpr int kCount = 1 << 16;
constexpr int kBlock = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);
constexpr int kRounds = 20;

__global__ void Add(int* to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] += value; }

// Slow enough that what follows must really wait.
__global__ void SlowlyDouble(int* to) {
  const long long begin = clock64();
  while (blockIdx.x == 0 && clock64() - begin < 2'000'000) {
  }
  to[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}

// What both processes see.
struct Shared {
  cudaIpcMemHandle_t memory;
  cudaIpcMemHandle_t interior;
  cudaIpcMemHandle_t orphan;  // of the child's
  cudaIpcEventHandle_t to_child;
  cudaIpcEventHandle_t to_parent;
  std::atomic<int> step;
};

void Reach(Shared& shared, int step) { shared.step.store(step); }
void Await(const Shared& shared, int step) {
  while (shared.step.load() < step) std::this_thread::yield();
}

Shared& Map(int file) {
  void* const page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  REQUIRE(page != MAP_FAILED);
  return *static_cast<Shared*>(page);
}

int DeviceCount() {
  int count = 0;
  CUDA(cudaGetDeviceCount(&count));
  return count;
}

void ExpectAll(const int* memory, int value) {
  std::vector<int> values(kCount);
  CUDA(cudaMemcpy(values.data(), memory, kBytes, cudaMemcpyDeviceToHost));
  for (const int got : values) REQUIRE(got == value);
}

pid_t StartChild(const char* program, const std::string& part, int file) {
  const std::string number = std::to_string(file);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // outlasts no test that fails
    execl(program, program, part.c_str(), number.c_str(), nullptr);
    _exit(127);
  }
  return child;
}

void ExpectEnd(pid_t child) {
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Adds one wherever the parent doubles: each in its turn, which events alone enforce.
void TakeTurns(Shared& shared) {
  CUDA(cudaSetDevice(DeviceCount() - 1));
  int* memory = nullptr;
  int* again = nullptr;
  cudaEvent_t from_parent = nullptr;
  cudaEvent_t to_parent = nullptr;
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* opened = nullptr;
  CUDA(cudaIpcOpenMemHandle(&opened, shared.memory, cudaIpcMemLazyEnablePeerAccess));
  memory = static_cast<int*>(opened);
  CUDA(cudaIpcOpenMemHandle(&opened, shared.interior, cudaIpcMemLazyEnablePeerAccess));
  again = static_cast<int*>(opened);
  REQUIRE(again == memory);
  CUDA(cudaIpcOpenEventHandle(&from_parent, shared.to_child));
  CUDA(cudaIpcOpenEventHandle(&to_parent, shared.to_parent));
  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, memory));
  REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  EXPECT_CUDA(cudaFree(memory), cudaErrorInvalidValue);
  cudaIpcMemHandle_t handle;
  EXPECT_CUDA(cudaIpcGetMemHandle(&handle, memory), cudaErrorInvalidValue);
  cudaIpcEventHandle_t event_handle;
  EXPECT_CUDA(cudaIpcGetEventHandle(&event_handle, from_parent), cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();
  CUDA(cudaEventQuery(to_parent));  // nobody has recorded it
  Reach(shared, 1);

  for (int round = 0; round < kRounds; ++round) {
    Await(shared, 2 * round + 2);
    CUDA(cudaStreamWaitEvent(stream, from_parent, 0));
    Add<<<kCount / kBlock, kBlock, 0, stream>>>(memory, 1);
    CUDA(cudaGetLastError());
    CUDA(cudaEventRecord(to_parent, stream));
    Reach(shared, 2 * round + 3);
  }
  CUDA(cudaEventSynchronize(to_parent));
  CUDA(cudaIpcCloseMemHandle(memory));
  ExpectAll(again, (1 << kRounds) - 1);  // it was opened twice
  CUDA(cudaIpcCloseMemHandle(again));
  EXPECT_CUDA(cudaIpcCloseMemHandle(again), cudaErrorInvalidValue);
  CUDA(cudaEventDestroy(from_parent));
  CUDA(cudaEventDestroy(to_parent));
  CUDA(cudaStreamDestroy(stream));
}

void TestTurns(Shared& shared, const char* program, int file) {
  int* memory = nullptr;
  CUDA(cudaMalloc(&memory, kBytes));
  CUDA(cudaMemset(memory, 0, kBytes));
  cudaEvent_t to_child = nullptr;
  cudaEvent_t from_child = nullptr;
  const unsigned flags = cudaEventDisableTiming | cudaEventInterprocess;
  EXPECT_CUDA(cudaEventCreateWithFlags(&to_child, cudaEventInterprocess), cudaErrorInvalidValue);
  CUDA(cudaEventCreateWithFlags(&to_child, flags));
  CUDA(cudaEventCreateWithFlags(&from_child, flags));
  CUDA(cudaIpcGetMemHandle(&shared.memory, memory));
  CUDA(cudaIpcGetMemHandle(&shared.interior, memory + 100));
  CUDA(cudaIpcGetEventHandle(&shared.to_child, to_child));
  CUDA(cudaIpcGetEventHandle(&shared.to_parent, from_child));
  void* own = nullptr;
  EXPECT_CUDA(cudaIpcOpenMemHandle(&own, shared.memory, cudaIpcMemLazyEnablePeerAccess),
              cudaErrorDeviceUninitialized);
  cudaEvent_t own_event = nullptr;
  EXPECT_CUDA(cudaIpcOpenEventHandle(&own_event, shared.to_child), cudaErrorDeviceUninitialized);
  (void)cudaGetLastError();

  const pid_t child = StartChild(program, "turns", file);
  Await(shared, 1);
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < kRounds; ++round) {
    CUDA(cudaStreamWaitEvent(stream, from_child, 0));
    SlowlyDouble<<<kCount / kBlock, kBlock, 0, stream>>>(memory);
    CUDA(cudaGetLastError());
    CUDA(cudaEventRecord(to_child, stream));
    Reach(shared, 2 * round + 2);
    Await(shared, 2 * round + 3);
  }
  // Freed while the child may still have it open, which keeps it.
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaEventSynchronize(from_child));
  ExpectAll(memory, (1 << kRounds) - 1);
  CUDA(cudaFree(memory));
  ExpectEnd(child);
  CUDA(cudaEventDestroy(to_child));
  CUDA(cudaEventDestroy(from_child));
  CUDA(cudaStreamDestroy(stream));
}

// Shares memory, and is killed while the parent has it open.
void BecomeOrphan(Shared& shared) {
  int* memory = nullptr;
  CUDA(cudaMalloc(&memory, kBytes));
  CUDA(cudaMemset(memory, 0, kBytes));
  Add<<<kCount / kBlock, kBlock>>>(memory, 7);
  CUDA(cudaIpcGetMemHandle(&shared.orphan, memory));
  CUDA(cudaDeviceSynchronize());
  Reach(shared, 1);
  for (;;) pause();
}

void TestOwnerDiesFirst(Shared& shared, const char* program, int file) {
  const pid_t child = StartChild(program, "orphan", file);
  Await(shared, 1);
  void* opened = nullptr;
  CUDA(cudaIpcOpenMemHandle(&opened, shared.orphan, cudaIpcMemLazyEnablePeerAccess));
  int* const memory = static_cast<int*>(opened);
  Add<<<kCount / kBlock, kBlock>>>(memory, 1);
  CUDA(cudaDeviceSynchronize());
  REQUIRE(kill(child, SIGKILL) == 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  Add<<<kCount / kBlock, kBlock>>>(memory, 1);
  ExpectAll(memory, 9);
  CUDA(cudaIpcCloseMemHandle(memory));
  // Nobody lends it any more, at once or a little later.
  while (cudaIpcOpenMemHandle(&opened, shared.orphan, cudaIpcMemLazyEnablePeerAccess) ==
         cudaSuccess)
    CUDA(cudaIpcCloseMemHandle(opened));
  EXPECT_CUDA(cudaGetLastError(), cudaErrorInvalidResourceHandle);
}

void TestBadHandles(const Shared& shared) {
  cudaIpcMemHandle_t memory;
  void* opened = nullptr;
  std::memset(&memory, 0x7f, sizeof memory);
  REQUIRE(cudaIpcOpenMemHandle(&opened, memory, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);
  memory = shared.orphan;
  memory.reserved[30] ^= 1;  // the secret
  EXPECT_CUDA(cudaIpcOpenMemHandle(&opened, memory, cudaIpcMemLazyEnablePeerAccess),
              cudaErrorInvalidResourceHandle);
  cudaIpcEventHandle_t event;
  std::memset(&event, 0x7f, sizeof event);
  cudaEvent_t opened_event = nullptr;
  REQUIRE(cudaIpcOpenEventHandle(&opened_event, event) != cudaSuccess);
  int on_host = 0;
  EXPECT_CUDA(cudaIpcGetMemHandle(&memory, &on_host), cudaErrorInvalidValue);
  void* pooled = nullptr;
  CUDA(cudaMallocAsync(&pooled, 64, nullptr));
  EXPECT_CUDA(cudaIpcGetMemHandle(&memory, pooled), cudaErrorInvalidValue);
  CUDA(cudaFreeAsync(pooled, nullptr));
}

int RunParent(const char* program) {
  const int file = memfd_create("shared", 0);
  REQUIRE(file >= 0 && ftruncate(file, sizeof(Shared)) == 0);
  Shared& shared = Map(file);
  TestTurns(shared, program, file);
  Reach(shared, 0);
  TestOwnerDiesFirst(shared, program, file);
  TestBadHandles(shared);
  return Pass();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return RunParent(argv[0]);
  Shared& shared = Map(std::stoi(argv[2]));
  if (std::string(argv[1]) == "orphan") BecomeOrphan(shared);
  TakeTurns(shared);
}
