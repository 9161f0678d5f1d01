// What the driver fails to do where the topology's `faults` say so.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

constexpr std::size_t kHandleBytes = 2 << 20;

class FaultsTest : public CudaTest {
 protected:
  void SetUp() override {}  // each test names its faults

  void StartWith(const std::string& faults) {
    Start("  - {memory: 256MiB}\nfaults: {" + faults + "}\n");
  }

  static CUresult CreateHandle(CUmemGenericAllocationHandle& handle) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return cuMemCreate(&handle, kHandleBytes, &properties, 0);
  }

  static CUresult Export(CUmemGenericAllocationHandle handle) {
    int fd = -1;
    const CUresult result =
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (fd >= 0) close(fd);
    return result;
  }
};

TEST_F(FaultsTest, AnExportIsRefusedThoughTheDeviceSupportsIt) {
  StartWith("exports: refused");
  int supported = 0;
  ASSERT_CUDA(cuDeviceGetAttribute(
      &supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
  EXPECT_EQ(supported, 1);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CUDA(CreateHandle(handle));
  EXPECT_EQ(Export(handle), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_CUDA(cuMemRelease(handle));
}

TEST_F(FaultsTest, WithoutFaultsAnExportSucceeds) {
  StartWith("");
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CUDA(CreateHandle(handle));
  EXPECT_CUDA(Export(handle));
  EXPECT_CUDA(cuMemRelease(handle));
}

TEST_F(FaultsTest, MemoryEndsEarlyThoughTheDriverReportsMore) {
  StartWith("memory_ends_at: 64MiB");
  std::size_t free_before = 0;  // without the context
  ASSERT_CUDA(cuMemGetInfo(&free_before, nullptr));
  std::vector<CUmemGenericAllocationHandle> handles;
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = CUDA_SUCCESS;
  while ((result = CreateHandle(handle)) == CUDA_SUCCESS) handles.push_back(handle);
  EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_CUDA(cuMemGetInfo(&free, &total));
  EXPECT_EQ(total, std::size_t{256} << 20);
  EXPECT_EQ(free, std::size_t{192} << 20);
  EXPECT_EQ(handles.size() * kHandleBytes, free_before - free);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, kHandleBytes), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CUDA(cuMemRelease(handles.back()));
  EXPECT_CUDA(cuMemAlloc(&address, kHandleBytes));
}

TEST_F(FaultsTest, AnAllocationFailsAsPlanned) {
  StartWith("calls: [{call: allocation, nth: 2, effect: fail}]");
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_CUDA(cuMemAlloc(&first, kHandleBytes));
  EXPECT_EQ(CreateHandle(handle), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CUDA(CreateHandle(handle));
  EXPECT_CUDA(cuMemAlloc(&second, kHandleBytes));
}

TEST_F(FaultsTest, AnEccErrorEndsTheContext) {
  StartWith("calls: [{call: copy, nth: 3, effect: ecc}]");
  CUdeviceptr memory = 0;
  ASSERT_CUDA(cuMemAlloc(&memory, 8));
  EXPECT_CUDA(cuMemsetD32(memory, 7, 2));
  unsigned value = 0;
  EXPECT_CUDA(cuMemcpyDtoH(&value, memory, 4));
  EXPECT_EQ(value, 7u);
  EXPECT_EQ(cuMemcpyDtoH(&value, memory, 4), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE) << "for good";
  EXPECT_EQ(cuMemAlloc(&memory, 8), CUDA_ERROR_ECC_UNCORRECTABLE);
}

TEST_F(FaultsTest, AProcessIsKilledAtItsCall) {
  const auto fill = [this] {
    StartWith("calls: [{call: copy, nth: 3, effect: kill}]");
    CUdeviceptr memory = 0;
    cuMemAlloc(&memory, 4);
    for (int i = 1; i <= 3; ++i) {
      std::fprintf(stderr, "fill %d\n", i);
      cuMemsetD32(memory, 7, 1);
    }
    std::fprintf(stderr, "survived\n");
    std::exit(0);
  };
  EXPECT_EXIT(fill(), testing::KilledBySignal(SIGKILL), "fill 3");
}

}  // namespace
}  // namespace torpor::emulator
