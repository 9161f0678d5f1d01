// The points in which a strict topology is as unforgiving as NVIDIA's driver.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kChunk = 2 << 20;

class StrictTest : public CudaTest {
 protected:
  void SetUp() override {}  // each test names its points

  void StartStrict(const std::string& points) {
    Start("  - {memory: 256MiB}\nstrict: {" + points + "}\n");
  }

  static CUstream Create() {
    CUstream stream = nullptr;
    EXPECT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }
};

// Pages of the host.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : size_(count * kPage),
        begin_(static_cast<char*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { munmap(begin_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* page(std::size_t index) const { return begin_ + index * kPage; }

 private:
  const std::size_t size_;
  char* const begin_;
};

TEST_F(StrictTest, ACopysHostMemoryIsOneRegistrationOrNone) {
  StartStrict("host_registrations: true");
  const Pages pages(4);
  ASSERT_CUDA(cuMemHostRegister(pages.page(0), kPage, 0));
  ASSERT_CUDA(cuMemHostRegister(pages.page(1), kPage, 0));
  CUdeviceptr device = 0;
  ASSERT_CUDA(cuMemAlloc(&device, 4 * kPage));
  EXPECT_CUDA(cuMemcpyHtoD(device, pages.page(0), kPage));
  EXPECT_CUDA(cuMemcpyHtoD(device, pages.page(2), 2 * kPage));
  EXPECT_EQ(cuMemcpyHtoD(device, pages.page(0), 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(pages.page(1), device, 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoDAsync(device, pages.page(0), 4 * kPage, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuMemHostUnregister(pages.page(0)));
  EXPECT_EQ(cuMemcpyHtoD(device, pages.page(0), 2 * kPage), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuMemHostUnregister(pages.page(1)));
  EXPECT_CUDA(cuMemcpyHtoD(device, pages.page(0), 4 * kPage));
}

TEST_F(StrictTest, RegistrationGivesEveryPageItsMemory) {
  StartStrict("host_registrations: true");
  const Pages pages(64);
  std::array<unsigned char, 64> resident{};
  ASSERT_EQ(mincore(pages.page(0), 64 * kPage, resident.data()), 0);
  ASSERT_THAT(resident, Each(0));
  ASSERT_CUDA(cuMemHostRegister(pages.page(0), 64 * kPage, 0));
  ASSERT_EQ(mincore(pages.page(0), 64 * kPage, resident.data()), 0);
  EXPECT_THAT(resident, Each(1));
}

TEST_F(StrictTest, AHintMayBeHonoured) {
  StartStrict("addresses: honoured");
  CUdeviceptr somewhere = 0;
  ASSERT_CUDA(cuMemAddressReserve(&somewhere, kChunk, 0, 0, 0));
  ASSERT_CUDA(cuMemAddressFree(somewhere, kChunk));
  CUdeviceptr address = 0;
  EXPECT_CUDA(cuMemAddressReserve(&address, kChunk, 0, somewhere, 0));
  EXPECT_EQ(address, somewhere);
}

TEST_F(StrictTest, AHintMayLeadElsewhere) {
  StartStrict("addresses: elsewhere");
  CUdeviceptr somewhere = 0;
  ASSERT_CUDA(cuMemAddressReserve(&somewhere, kChunk, 0, 0, 0));
  ASSERT_CUDA(cuMemAddressFree(somewhere, kChunk));
  CUdeviceptr address = 0;
  EXPECT_CUDA(cuMemAddressReserve(&address, kChunk, 0, somewhere, 0));
  EXPECT_NE(address, somewhere);
}

TEST_F(StrictTest, AHintMayBeRefused) {
  StartStrict("addresses: refused");
  CUdeviceptr somewhere = 0;
  ASSERT_CUDA(cuMemAddressReserve(&somewhere, kChunk, 0, 0, 0));
  ASSERT_CUDA(cuMemAddressFree(somewhere, kChunk));
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAddressReserve(&address, kChunk, 0, somewhere, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(StrictTest, NewMemoryHoldsNoZeros) {
  StartStrict("addresses: honoured");
  std::vector<unsigned char> bytes(kChunk);
  CUdeviceptr allocated = 0;
  ASSERT_CUDA(cuMemAlloc(&allocated, kChunk));
  ASSERT_CUDA(cuMemcpyDtoH(bytes.data(), allocated, kChunk));
  EXPECT_THAT(bytes, Each(0xA5));

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CUDA(cuMemCreate(&handle, kChunk, &properties, 0));
  CUdeviceptr mapped = 0;
  ASSERT_CUDA(cuMemAddressReserve(&mapped, kChunk, 0, 0, 0));
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_CUDA(cuMemMap(mapped, kChunk, 0, handle, 0));
  ASSERT_CUDA(cuMemSetAccess(mapped, kChunk, &access, 1));
  ASSERT_CUDA(cuMemcpyDtoH(bytes.data(), mapped, kChunk));
  EXPECT_THAT(bytes, Each(0xA5));
  // Memory that has been used keeps its bytes.
  ASSERT_CUDA(cuMemsetD8(mapped, 7, kChunk));
  ASSERT_CUDA(cuMemUnmap(mapped, kChunk));
  ASSERT_CUDA(cuMemMap(mapped, kChunk, 0, handle, 0));
  ASSERT_CUDA(cuMemSetAccess(mapped, kChunk, &access, 1));
  ASSERT_CUDA(cuMemcpyDtoH(bytes.data(), mapped, kChunk));
  EXPECT_THAT(bytes, Each(7));
}

// Fails in stream order, as a kernel with a bad address does.
void Fault(CUstream stream) {
  ASSERT_CUDA(cuLaunchHostFunc(
      stream, [](void*) { throw std::runtime_error("a fault"); }, nullptr));
}

TEST_F(StrictTest, AnIdleStreamRevealsNoFaultOfAnother) {
  StartStrict("hidden_faults: true");
  CUstream idle = Create();
  CUstream failing = Create();
  CUevent before = nullptr;
  CUevent behind = nullptr;
  ASSERT_CUDA(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
  ASSERT_CUDA(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING));
  ASSERT_CUDA(cuEventRecord(before, idle));
  ASSERT_CUDA(cuStreamSynchronize(idle));
  Fault(failing);
  CUresult seen = CUDA_ERROR_NOT_READY;
  while (seen == CUDA_ERROR_NOT_READY) seen = cuStreamQuery(failing);
  EXPECT_EQ(seen, CUDA_ERROR_UNKNOWN);
  EXPECT_CUDA(cuStreamQuery(idle));
  EXPECT_CUDA(cuEventQuery(before));
  // New work meets the fault.
  EXPECT_EQ(cuEventRecord(behind, idle), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuStreamSynchronize(idle), CUDA_ERROR_UNKNOWN);
}

TEST_F(StrictTest, AForgivingDriverTellsEveryQuery) {
  StartStrict("");
  CUstream idle = Create();
  CUstream failing = Create();
  Fault(failing);
  CUresult seen = CUDA_ERROR_NOT_READY;
  while (seen == CUDA_ERROR_NOT_READY) seen = cuStreamQuery(failing);
  EXPECT_EQ(cuStreamQuery(idle), seen);
}

TEST_F(StrictTest, ContextsAndStacksTakeMemory) {
  StartStrict("memory_overheads: true");
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_CUDA(cuMemGetInfo(&free, &total));
  EXPECT_EQ(total, 256U << 20);
  EXPECT_EQ(free, total - total / 8);
  // 1 KiB for each of 2048 threads on 16 multiprocessors.
  ASSERT_CUDA(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 10));
  ASSERT_CUDA(cuMemGetInfo(&free, &total));
  EXPECT_EQ(free, total - total / 8 - (32U << 20));
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 64 << 10), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CUDA(cuDevicePrimaryCtxReset(0));
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&context_, 0));
  ASSERT_CUDA(cuCtxSetCurrent(context_));
  ASSERT_CUDA(cuMemGetInfo(&free, &total));
  EXPECT_EQ(free, total - total / 8);
}

TEST_F(StrictTest, AContextNeedsMemory) {
  StartStrict("memory_overheads: true");
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_CUDA(cuMemGetInfo(&free, &total));
  CUdeviceptr all = 0;
  ASSERT_CUDA(cuMemAlloc(&all, free));
  CUcontext second = nullptr;
  EXPECT_EQ(cuCtxCreate(&second, nullptr, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CUDA(cuMemFree(all));
  EXPECT_CUDA(cuCtxCreate(&second, nullptr, 0, 0));
  EXPECT_CUDA(cuCtxDestroy(second));
}

TEST_F(StrictTest, FailingCallsAreLogged) {
  StartStrict("log_failures: true");
  std::vector<std::string> said;
  CUlogsCallbackHandle handle = nullptr;
  ASSERT_CUDA(cuLogsRegisterCallback(
      [](void* data, CUlogLevel, char* text, std::size_t size) {
        static_cast<std::vector<std::string>*>(data)->emplace_back(text, size);
      },
      &said, &handle));
  EXPECT_EQ(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(said, Contains(HasSubstr("cuMemFree_v2: CUDA_ERROR_INVALID_VALUE")));
  const std::size_t count = said.size();
  EXPECT_CUDA(cuStreamQuery(nullptr));
  EXPECT_EQ(said.size(), count);
  ASSERT_CUDA(cuLogsUnregisterCallback(handle));
}

TEST_F(StrictTest, OneThreadRunsAllHostFunctions) {
  StartStrict("launch_queues: true");
  CUstream first = Create();
  CUstream second = Create();
  std::promise<void> reached;
  std::promise<void> gate;
  std::pair<std::promise<void>*, std::promise<void>*> ends = {&reached, &gate};
  ASSERT_CUDA(cuLaunchHostFunc(
      first,
      [](void* data) {
        auto& [reached, gate] =
            *static_cast<std::pair<std::promise<void>*, std::promise<void>*>*>(data);
        reached->set_value();
        gate->get_future().wait();
      },
      &ends));
  reached.get_future().wait();
  std::atomic<bool> ran = false;
  ASSERT_CUDA(cuLaunchHostFunc(
      second, [](void* data) { *static_cast<std::atomic<bool>*>(data) = true; }, &ran));
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  EXPECT_FALSE(ran);
  gate.set_value();
  ASSERT_CUDA(cuStreamSynchronize(second));
  EXPECT_TRUE(ran);
}

TEST_F(StrictTest, AWaitHoldsUpStreamsOfItsHardwareQueue) {
  StartStrict("launch_queues: true");
  void* host = nullptr;
  ASSERT_CUDA(cuMemHostAlloc(&host, sizeof(unsigned), 0));
  auto* const word = static_cast<unsigned*>(host);
  *word = 0;
  std::vector<CUstream> streams(9);
  for (CUstream& stream : streams) stream = Create();
  ASSERT_CUDA(cuStreamWaitValue32(streams[0], reinterpret_cast<CUdeviceptr>(word), 1,
                                  CU_STREAM_WAIT_VALUE_EQ));
  CUevent event = nullptr;
  ASSERT_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  for (int i = 1; i < 8; ++i) {
    ASSERT_CUDA(cuEventRecord(event, streams[static_cast<std::size_t>(i)]));
    ASSERT_CUDA(cuEventSynchronize(event));
  }
  // Eight queues: the ninth stream shares the first one's.
  ASSERT_CUDA(cuEventRecord(event, streams[8]));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  std::atomic_ref(*word).store(1);
  EXPECT_CUDA(cuEventSynchronize(event));
}

}  // namespace
}  // namespace torpor::emulator
