#include <sys/mman.h>

#include <numeric>
#include <thread>
#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

constexpr size_t kMega = size_t{1} << 20;

class MemoryTest : public CudaTest {
 protected:
  size_t Free() {
    size_t free = 0;
    EXPECT_CUDA(cuMemGetInfo(&free, nullptr));
    return free;
  }
};

TEST_F(MemoryTest, RoundTrip) {
  std::vector<int> sent(10'000);
  std::iota(sent.begin(), sent.end(), 0);
  const size_t size = sent.size() * sizeof(int);
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  ASSERT_CUDA(cuMemAlloc(&first, size));
  ASSERT_CUDA(cuMemAlloc(&second, size));
  EXPECT_EQ(first % 256, 0U);
  EXPECT_CUDA(cuMemcpyHtoD(first, sent.data(), size));
  EXPECT_CUDA(cuMemcpyDtoD(second, first, size));
  std::vector<int> got(sent.size());
  EXPECT_CUDA(cuMemcpyDtoH(got.data(), second, size));
  EXPECT_EQ(got, sent);
  std::fill(got.begin(), got.end(), 0);
  EXPECT_CUDA(cuMemcpy(reinterpret_cast<CUdeviceptr>(got.data()), second, size));
  EXPECT_EQ(got, sent);
  EXPECT_CUDA(cuMemFree(first));
  EXPECT_CUDA(cuMemFree(second));
}

TEST_F(MemoryTest, TotalIsEnforced) {
  const size_t free = Free();  // without the context
  CUdeviceptr most = 0;
  ASSERT_CUDA(cuMemAlloc(&most, 200 * kMega));
  EXPECT_EQ(Free(), free - 200 * kMega);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc(&more, free - 199 * kMega), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&more, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&more, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuMemFree(most));
  EXPECT_EQ(Free(), free);
}

TEST_F(MemoryTest, BadAddressesAreErrorsNotFaults) {
  char buffer[64] = {};
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAlloc(&address, 64));
  EXPECT_EQ(cuMemcpyHtoD(address, buffer, 65), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(address + 1, buffer, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(0x2000'0000'0000, buffer, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(1, buffer, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(address, nullptr, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(buffer, UINT64_MAX - 8, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(buffer), buffer, 64),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8(address, 1, 65), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32(address + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(address + 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CUDA(cuMemFree(address));
  EXPECT_EQ(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(address, buffer, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, Fills) {
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAlloc(&address, 64));
  ASSERT_CUDA(cuMemsetD32(address, 0x01020304, 16));
  ASSERT_CUDA(cuMemsetD16(address + 4, 0x0a0b, 1));
  ASSERT_CUDA(cuMemsetD2D8(address + 8, 8, 0xff, 2, 3));
  unsigned words[16];
  ASSERT_CUDA(cuMemcpyDtoH(words, address, sizeof(words)));
  EXPECT_EQ(words[0], 0x01020304U);
  EXPECT_EQ(words[1], 0x01020a0bU);
  EXPECT_EQ(words[2], 0x0102ffffU);
  EXPECT_EQ(words[3], 0x01020304U);
  EXPECT_EQ(words[6], 0x0102ffffU);
  EXPECT_EQ(words[8], 0x01020304U);
}

TEST_F(MemoryTest, PitchedCopies) {
  size_t pitch = 0;
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAllocPitch(&address, &pitch, 100, 10, 4));
  EXPECT_GE(pitch, 100U);
  std::vector<char> sent(1000);
  std::iota(sent.begin(), sent.end(), 0);
  CUDA_MEMCPY2D up{};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = sent.data();
  up.srcPitch = 100;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = address;
  up.dstPitch = pitch;
  up.WidthInBytes = 100;
  up.Height = 10;
  ASSERT_CUDA(cuMemcpy2D(&up));
  // Rows 2 to 4, columns 10 to 29.
  std::vector<char> got(60);
  CUDA_MEMCPY3D down{};
  down.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  down.srcDevice = address;
  down.srcPitch = pitch;
  down.srcY = 2;
  down.srcXInBytes = 10;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.dstHost = got.data();
  down.dstPitch = 20;
  down.WidthInBytes = 20;
  down.Height = 3;
  down.Depth = 1;
  ASSERT_CUDA(cuMemcpy3D(&down));
  EXPECT_EQ(got[0], sent[210]);
  EXPECT_EQ(got[59], sent[429]);
  up.Height = 1'000'000;
  EXPECT_EQ(cuMemcpy2D(&up), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, RegisteredHostMemory) {
  void* pages = mmap(nullptr, kMega, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_CUDA(cuMemHostRegister(pages, kMega, CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_EQ(cuMemHostRegister(pages, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemHostGetDevicePointer(&address, pages, 0));
  EXPECT_CUDA(cuMemsetD8(address, 7, kMega));
  EXPECT_EQ(static_cast<char*>(pages)[kMega - 1], 7);
  unsigned type = 0;
  ASSERT_CUDA(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
  ASSERT_CUDA(cuMemHostUnregister(pages));
  EXPECT_EQ(cuMemHostUnregister(pages), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(cuMemsetD8(address, 7, 1), CUDA_ERROR_INVALID_VALUE);
  munmap(pages, kMega);
  EXPECT_EQ(cuMemHostRegister(pages, kMega, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, PinnedAllocations) {
  const size_t free = Free();
  void* pinned = nullptr;
  ASSERT_CUDA(cuMemHostAlloc(&pinned, kMega, CU_MEMHOSTALLOC_PORTABLE));
  unsigned flags = 0;
  ASSERT_CUDA(cuMemHostGetFlags(&flags, pinned));
  EXPECT_EQ(flags, static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE));
  EXPECT_EQ(Free(), free);  // it is not the device's memory
  ASSERT_CUDA(cuMemFreeHost(pinned));
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, PointerAttributes) {
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAlloc(&address, 1000));
  CUdeviceptr base = 0;
  size_t size = 0;
  ASSERT_CUDA(cuMemGetAddressRange(&base, &size, address + 999));
  EXPECT_EQ(base, address);
  EXPECT_EQ(size, 1000U);
  EXPECT_EQ(cuMemGetAddressRange(&base, &size, address + 1000), CUDA_ERROR_NOT_FOUND);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  unsigned type = 9;
  int ordinal = 9;
  void* data[] = {&type, &ordinal};
  ASSERT_CUDA(cuPointerGetAttributes(2, attributes, data, address));
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(ordinal, 0);
  ASSERT_CUDA(cuPointerGetAttributes(2, attributes, data, reinterpret_cast<CUdeviceptr>(&type)));
  EXPECT_EQ(type, 0U);
}

TEST_F(MemoryTest, MemoryKnowsTheContextItWasAllocatedIn) {
  CUcontext second = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&second, 1));
  CUdeviceptr here = 0;
  CUdeviceptr there = 0;
  ASSERT_CUDA(cuMemAlloc(&here, 16));
  ASSERT_CUDA(cuCtxPushCurrent(second));
  ASSERT_CUDA(cuMemAlloc(&there, 16));
  CUcontext owner = nullptr;
  ASSERT_CUDA(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, here));
  EXPECT_EQ(owner, context_);
  ASSERT_CUDA(cuCtxPopCurrent(nullptr));
  ASSERT_CUDA(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, there));
  EXPECT_EQ(owner, second);
}

TEST_F(MemoryTest, PeerCopy) {
  CUcontext second = nullptr;
  ASSERT_CUDA(cuDevicePrimaryCtxRetain(&second, 1));
  CUdeviceptr here = 0;
  ASSERT_CUDA(cuMemAlloc(&here, 16));
  ASSERT_CUDA(cuMemsetD8(here, 5, 16));
  ASSERT_CUDA(cuCtxPushCurrent(second));
  CUdeviceptr there = 0;
  ASSERT_CUDA(cuMemAlloc(&there, 16));
  ASSERT_CUDA(cuMemcpyPeer(there, second, here, context_, 16));
  char got[16];
  ASSERT_CUDA(cuMemcpyDtoH(got, there, 16));
  EXPECT_EQ(got[15], 5);
  ASSERT_CUDA(cuCtxPopCurrent(nullptr));
}

TEST_F(MemoryTest, StreamOrderedAllocation) {
  const size_t free = Free();
  CUstream stream = nullptr;
  ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr address = 0;
  ASSERT_CUDA(cuMemAllocAsync(&address, kMega, stream));
  ASSERT_CUDA(cuMemsetD8Async(address, 1, kMega, stream));
  ASSERT_CUDA(cuMemFreeAsync(address, stream));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(Free(), free);
}

}  // namespace
}  // namespace torpor::emulator
