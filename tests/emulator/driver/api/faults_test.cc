// What the driver fails to do where the topology's `faults` say so.
#include <gmock/gmock.h>
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

}  // namespace
}  // namespace torpor::emulator
