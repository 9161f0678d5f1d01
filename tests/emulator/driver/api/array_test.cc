// Arrays: creation, descriptions, and copies of every kind.
#include <numeric>
#include <vector>

#include "tests/emulator/driver/api/cuda_test.h"

namespace torpor::emulator {
namespace {

class ArrayTest : public CudaTest {
 protected:
  static CUDA_ARRAY3D_DESCRIPTOR Description(size_t width, size_t height, size_t depth,
                                             unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR description{};
    description.Width = width;
    description.Height = height;
    description.Depth = depth;
    description.Format = CU_AD_FORMAT_UNSIGNED_INT16;
    description.NumChannels = 2;
    description.Flags = flags;
    return description;
  }
  static CUarray Create(size_t width, size_t height, size_t depth, unsigned flags = 0) {
    const CUDA_ARRAY3D_DESCRIPTOR description = Description(width, height, depth, flags);
    CUarray array = nullptr;
    EXPECT_CUDA(cuArray3DCreate(&array, &description));
    return array;
  }
  static size_t Free() {
    size_t free = 0;
    EXPECT_CUDA(cuMemGetInfo(&free, nullptr));
    return free;
  }
};

TEST_F(ArrayTest, TellsWhatItIs) {
  CUDA_ARRAY_DESCRIPTOR flat{};
  flat.Width = 10;
  flat.Height = 4;
  flat.Format = CU_AD_FORMAT_HALF;
  flat.NumChannels = 4;
  CUarray array = nullptr;
  ASSERT_CUDA(cuArrayCreate(&array, &flat));
  CUDA_ARRAY_DESCRIPTOR known{};
  EXPECT_CUDA(cuArrayGetDescriptor(&known, array));
  EXPECT_EQ(known.Height, 4U);
  EXPECT_EQ(known.Format, CU_AD_FORMAT_HALF);
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  EXPECT_CUDA(cuArray3DGetDescriptor(&whole, array));
  EXPECT_EQ(whole.Width, 10U);
  EXPECT_EQ(whole.NumChannels, 4U);
  EXPECT_EQ(whole.Depth, 0U);
  EXPECT_CUDA(cuArrayDestroy(array));
  EXPECT_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuArrayGetDescriptor(&known, array), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(ArrayTest, CountsAgainstTheDevice) {
  const size_t before = Free();
  const CUarray array = Create(1024, 1024, 0);
  EXPECT_EQ(before - Free(), size_t{4} << 20);
  EXPECT_CUDA(cuArrayDestroy(array));
  EXPECT_EQ(Free(), before);
  const CUDA_ARRAY3D_DESCRIPTOR large = Description(16384, 16384, 64);
  CUarray none = nullptr;
  EXPECT_EQ(cuArray3DCreate(&none, &large), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(ArrayTest, InvalidDescriptionsAreRefused) {
  CUarray none = nullptr;
  EXPECT_EQ(cuArray3DCreate(&none, nullptr), CUDA_ERROR_INVALID_VALUE);
  for (const CUDA_ARRAY3D_DESCRIPTOR& wrong :
       {Description(0, 4, 0), Description(131073, 4, 0), Description(4, 0, 4),
        Description(SIZE_MAX, SIZE_MAX, SIZE_MAX), Description(4, 4, 5, CUDA_ARRAY3D_CUBEMAP),
        Description(4, 5, 6, CUDA_ARRAY3D_CUBEMAP), Description(4, 4, 0, CUDA_ARRAY3D_LAYERED),
        Description(4, 4, 2049, CUDA_ARRAY3D_LAYERED)}) {
    EXPECT_EQ(cuArray3DCreate(&none, &wrong), CUDA_ERROR_INVALID_VALUE);
  }
  const CUDA_ARRAY3D_DESCRIPTOR sparse = Description(4, 4, 0, CUDA_ARRAY3D_SPARSE);
  EXPECT_EQ(cuArray3DCreate(&none, &sparse), CUDA_ERROR_NOT_SUPPORTED);
  CUmipmappedArray mipmapped = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR small = Description(4, 4, 0);
  EXPECT_EQ(cuMipmappedArrayCreate(&mipmapped, &small, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMipmappedArrayCreate(&mipmapped, &small, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ArrayTest, BoxesGoInAndOut) {
  const CUarray array = Create(8, 4, 3);
  std::vector<unsigned> sent(96);
  std::iota(sent.begin(), sent.end(), 1U);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent.data();
  copy.srcPitch = 32;
  copy.srcHeight = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 32;
  copy.Height = 4;
  copy.Depth = 3;
  ASSERT_CUDA(cuMemcpy3D(&copy));

  // The box at (2, 1, 1) of 3 x 2 x 2 texels, by way of another array and the device.
  const CUarray other = Create(4, 4, 4);
  copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = 8;
  copy.srcY = copy.srcZ = 1;
  copy.dstArray = other;
  copy.dstXInBytes = 4;
  copy.dstY = copy.dstZ = 2;
  copy.WidthInBytes = 12;
  copy.Height = copy.Depth = 2;
  ASSERT_CUDA(cuMemcpy3DAsync(&copy, nullptr));
  CUdeviceptr device = 0;
  ASSERT_CUDA(cuMemAlloc(&device, 4096));
  copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = other;
  copy.srcXInBytes = 4;
  copy.srcY = copy.srcZ = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = 12;
  copy.WidthInBytes = 12;
  copy.Height = copy.Depth = 2;
  ASSERT_CUDA(cuMemcpy3DAsync(&copy, nullptr));
  std::vector<unsigned> got(12);
  ASSERT_CUDA(cuMemcpyDtoH(got.data(), device, 48));
  for (unsigned z = 0; z < 2; ++z) {
    for (unsigned y = 0; y < 2; ++y) {
      for (unsigned x = 0; x < 3; ++x) {
        EXPECT_EQ(got[(z * 2 + y) * 3 + x], sent[((z + 1) * 4 + y + 1) * 8 + x + 2]);
      }
    }
  }
  // What reaches out of the array, or into half a texel.
  for (const auto spoil : std::initializer_list<void (*)(CUDA_MEMCPY3D&)>{
           [](CUDA_MEMCPY3D& c) { c.srcXInBytes = 8; }, [](CUDA_MEMCPY3D& c) { c.srcY = 3; },
           [](CUDA_MEMCPY3D& c) { c.srcZ = SIZE_MAX; }, [](CUDA_MEMCPY3D& c) { c.Depth = 3; },
           [](CUDA_MEMCPY3D& c) { c.srcXInBytes = 2; }, [](CUDA_MEMCPY3D& c) { c.srcLOD = 1; }}) {
    CUDA_MEMCPY3D wrong = copy;
    spoil(wrong);
    EXPECT_EQ(cuMemcpy3D(&wrong), CUDA_ERROR_INVALID_VALUE);
  }
  copy.srcArray = nullptr;
  EXPECT_EQ(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CUDA(cuArrayDestroy(array));
  EXPECT_CUDA(cuArrayDestroy(other));
  EXPECT_CUDA(cuMemFree(device));
}

TEST_F(ArrayTest, BytesGoOnFromRowToRow) {
  const CUarray array = Create(8, 4, 0);
  const CUarray other = Create(4, 8, 0);
  std::vector<unsigned> sent(32);
  std::iota(sent.begin(), sent.end(), 1U);
  ASSERT_CUDA(cuMemcpyHtoA(array, 0, sent.data(), 128));
  ASSERT_CUDA(cuMemcpyAtoA(other, 8, array, 20, 80));
  CUdeviceptr device = 0;
  ASSERT_CUDA(cuMemAlloc(&device, 80));
  ASSERT_CUDA(cuMemcpyAtoD(device, other, 8, 80));
  std::vector<unsigned> got(20);
  ASSERT_CUDA(cuMemcpyDtoH(got.data(), device, 80));
  EXPECT_EQ(got, std::vector<unsigned>(sent.begin() + 5, sent.begin() + 25));
  ASSERT_CUDA(cuMemcpyDtoA(array, 48, device, 80));
  std::vector<unsigned> all(32);
  ASSERT_CUDA(cuMemcpyAtoHAsync(all.data(), array, 0, 128, nullptr));
  ASSERT_CUDA(cuStreamSynchronize(nullptr));
  EXPECT_EQ(all[11], 12U);
  EXPECT_EQ(all[12], 6U);
  EXPECT_EQ(cuMemcpyHtoA(array, 124, sent.data(), 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyAtoH(all.data(), array, 128, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuArrayDestroy(array));
  EXPECT_CUDA(cuArrayDestroy(other));
  EXPECT_CUDA(cuMemFree(device));
}

TEST_F(ArrayTest, NothingIsCopiedOfMemoryThatEndsTooEarly) {
  constexpr size_t kRow = size_t{1024} * 4;
  const CUarray array = Create(1024, 2, 0);
  CUdeviceptr memory = 0;
  ASSERT_CUDA(cuMemAlloc(&memory, kRow));
  ASSERT_CUDA(cuMemsetD8(memory, 7, kRow));
  EXPECT_EQ(cuMemcpyDtoA(array, 0, memory, 2 * kRow), CUDA_ERROR_INVALID_VALUE);
  std::vector<unsigned char> got(kRow, 1);
  ASSERT_CUDA(cuMemcpyAtoH(got.data(), array, 0, kRow));
  EXPECT_EQ(got, std::vector<unsigned char>(kRow, 0));
}

TEST_F(ArrayTest, LevelsHalveAndGoWithTheWhole) {
  const CUDA_ARRAY3D_DESCRIPTOR description = Description(9, 4, 0);
  CUmipmappedArray mipmapped = nullptr;
  ASSERT_CUDA(cuMipmappedArrayCreate(&mipmapped, &description, 4));
  const size_t widths[] = {9, 4, 2, 1};
  const size_t heights[] = {4, 2, 1, 1};
  CUarray level = nullptr;
  for (unsigned i = 0; i < 4; ++i) {
    ASSERT_CUDA(cuMipmappedArrayGetLevel(&level, mipmapped, i));
    CUDA_ARRAY_DESCRIPTOR known{};
    EXPECT_CUDA(cuArrayGetDescriptor(&known, level));
    EXPECT_EQ(known.Width, widths[i]);
    EXPECT_EQ(known.Height, heights[i]);
  }
  EXPECT_EQ(cuMipmappedArrayGetLevel(&level, mipmapped, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuArrayDestroy(level), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CUDA(cuMipmappedArrayDestroy(mipmapped));
  CUDA_ARRAY_DESCRIPTOR known{};
  EXPECT_EQ(cuArrayGetDescriptor(&known, level), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace torpor::emulator
