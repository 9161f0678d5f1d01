// Arrays, textures and surfaces of the driver API, filled by its copies and read by kernels that
// the runtime launches: what either API makes the other uses.
#include <cuda.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/e2e/programs/check_driver.h"

namespace {

constexpr unsigned kWidth = 16;
constexpr unsigned kHeight = 8;
constexpr unsigned kDepth = 4;

template <typename T>
struct DeviceValues {
  CUdeviceptr address = 0;
  std::size_t count;

  explicit DeviceValues(std::size_t values) : count(values) {
    CU(cuMemAlloc(&address, count * sizeof(T)));
    CU(cuMemsetD8(address, 0, count * sizeof(T)));
  }
  ~DeviceValues() { CU(cuMemFree(address)); }
  T* get() const { return reinterpret_cast<T*>(address); }
  std::vector<T> Read() const {
    std::vector<T> values(count);
    CU(cuMemcpyDtoH(values.data(), address, count * sizeof(T)));
    return values;
  }
};

CUarray Array(std::size_t height, std::size_t depth, CUarray_format format, unsigned channels,
              unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {kWidth, height, depth, format, channels, flags};
  CUarray array = nullptr;
  CU(cuArray3DCreate(&array, &descriptor));
  return array;
}

// Of the whole, rows of `row_bytes` without gaps.
void Fill(CUarray array, const void* from, std::size_t row_bytes, std::size_t rows) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = row_bytes;
  copy.Height = rows;
  CU(cuMemcpy2D(&copy));
}

CUDA_RESOURCE_DESC Resource(CUarray array) {
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

CUDA_TEXTURE_DESC Sampling(CUaddress_mode address, CUfilter_mode filter, unsigned flags) {
  CUDA_TEXTURE_DESC texture = {};
  for (CUaddress_mode& mode : texture.addressMode) mode = address;
  texture.filterMode = filter;
  texture.flags = flags;
  return texture;
}

CUtexObject Texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& sampling) {
  CUtexObject texture = 0;
  CU(cuTexObjectCreate(&texture, &resource, &sampling, nullptr));
  return texture;
}

// One block, a thread a texel; a quarter of a texel to the right of its centre.
__global__ void SampleBeside(cudaTextureObject_t texture, float* out) {
  out[threadIdx.y * kWidth + threadIdx.x] =
      tex2D<float>(texture, threadIdx.x + 0.75f, threadIdx.y + 0.5f);
}

// Filtered, with a window of the image copied first from the host, then from device memory.
void FilteredTexture() {
  std::vector<float> image(kWidth * kHeight);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * i % 101);
  const CUDA_ARRAY_DESCRIPTOR descriptor = {kWidth, kHeight, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  CU(cuArrayCreate(&array, &descriptor));
  Fill(array, image.data(), kWidth * sizeof(float), kHeight);

  // Three columns and two rows of the image over another part of it.
  DeviceValues<float> device(image.size());
  CU(cuMemcpyHtoD(device.address, image.data(), image.size() * sizeof(float)));
  CUDA_MEMCPY2D part = {};
  part.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  part.srcDevice = device.address;
  part.srcPitch = kWidth * sizeof(float);
  part.srcXInBytes = 2 * sizeof(float);
  part.srcY = 1;
  part.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  part.dstArray = array;
  part.dstXInBytes = 9 * sizeof(float);
  part.dstY = 5;
  part.WidthInBytes = 3 * sizeof(float);
  part.Height = 2;
  CU(cuMemcpy2DUnaligned(&part));
  for (unsigned y = 0; y < 2; ++y)
    for (unsigned x = 0; x < 3; ++x)
      image[(5 + y) * kWidth + 9 + x] = image[(1 + y) * kWidth + 2 + x];
  part.dstXInBytes = kWidth * sizeof(float) - 4;
  EXPECT_CU(cuMemcpy2D(&part), CUDA_ERROR_INVALID_VALUE);

  const CUtexObject texture =
      Texture(Resource(array), Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0));
  SampleBeside<<<1, dim3(kWidth, kHeight)>>>(texture, device.get());
  const std::vector<float> sampled = device.Read();
  for (unsigned y = 0; y < kHeight; ++y) {
    for (unsigned x = 0; x < kWidth; ++x) {
      const float here = image[y * kWidth + x];
      const float right = x + 1 < kWidth ? image[y * kWidth + x + 1] : here;
      REQUIRE(std::fabs(sampled[y * kWidth + x] - (0.75f * here + 0.25f * right)) < 1e-4f);
    }
  }
  CU(cuTexObjectDestroy(texture));
  CU(cuArrayDestroy(array));
}

__global__ void ReadNormalized(cudaTextureObject_t texture, float4* out) {
  // Once around to the right of the image.
  out[threadIdx.x] = tex2D<float4>(texture, 1 + (threadIdx.x + 0.5f) / kWidth, 0.5f / kHeight);
}

__global__ void ReadIntegers(cudaTextureObject_t texture, uchar4* out) {
  out[threadIdx.x] = tex2D<uchar4>(texture, threadIdx.x + 0.5f, 0.5f);
}

void ReadModes() {
  std::vector<std::uint8_t> image(kWidth * kHeight * 4);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i * 5);
  const CUarray array = Array(kHeight, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4);
  Fill(array, image.data(), std::size_t{kWidth} * 4, kHeight);
  const CUtexObject fractions = Texture(
      Resource(array),
      Sampling(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES));
  const CUtexObject integers =
      Texture(Resource(array),
              Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER));
  const DeviceValues<float4> read_fractions(kWidth);
  const DeviceValues<uchar4> read_integers(kWidth);
  ReadNormalized<<<1, kWidth>>>(fractions, read_fractions.get());
  ReadIntegers<<<1, kWidth>>>(integers, read_integers.get());
  const std::vector<float4> as_fractions = read_fractions.Read();
  const std::vector<uchar4> as_integers = read_integers.Read();
  for (unsigned x = 0; x < kWidth; ++x) {
    const std::uint8_t* const texel = &image[x * 4];
    REQUIRE(as_integers[x].x == texel[0] && as_integers[x].w == texel[3]);
    REQUIRE(std::fabs(as_fractions[x].y - static_cast<float>(texel[1]) / 255) < 1e-6f);
    REQUIRE(std::fabs(as_fractions[x].z - static_cast<float>(texel[2]) / 255) < 1e-6f);
  }
  CUDA_TEXTURE_DESC told = {};
  CU(cuTexObjectGetTextureDesc(&told, fractions));
  REQUIRE(told.flags == CU_TRSF_NORMALIZED_COORDINATES &&
          told.addressMode[1] == CU_TR_ADDRESS_MODE_WRAP);
  CU(cuTexObjectDestroy(fractions));
  CU(cuTexObjectDestroy(integers));
  CU(cuArrayDestroy(array));
}

__global__ void AddCoordinates(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int z = static_cast<int>(blockIdx.x);
  int2 texel;
  surf3Dread(&texel, surface, x * static_cast<int>(sizeof texel), y, z);
  texel.x += x + 100 * y;
  texel.y += 1000 * z;
  surf3Dwrite(texel, surface, x * static_cast<int>(sizeof texel), y, z);
}

// A box of host memory into the inside of a volume, a kernel over all of it, and back.
void VolumeOfASurface() {
  constexpr std::size_t kTexels = std::size_t{kWidth} * kHeight * kDepth;
  const CUarray array =
      Array(kHeight, kDepth, CU_AD_FORMAT_SIGNED_INT32, 2, CUDA_ARRAY3D_SURFACE_LDST);
  std::vector<int2> box(std::size_t{5} * 4 * 2);  // of 5 by 4 by 2, of which 4 by 3 by 2 are copied
  for (std::size_t i = 0; i < box.size(); ++i)
    box[i] = make_int2(static_cast<int>(i), -static_cast<int>(i));
  CUstream stream = nullptr;
  CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUDA_MEMCPY3D in = {};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = box.data();
  in.srcPitch = 5 * sizeof(int2);
  in.srcHeight = 4;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.dstXInBytes = 3 * sizeof(int2);
  in.dstY = 2;
  in.dstZ = 1;
  in.WidthInBytes = 4 * sizeof(int2);
  in.Height = 3;
  in.Depth = 2;
  CU(cuMemcpy3DAsync(&in, stream));
  const CUDA_RESOURCE_DESC resource = Resource(array);
  CUsurfObject surface = 0;
  CU(cuSurfObjectCreate(&surface, &resource));
  AddCoordinates<<<kDepth, dim3(kWidth, kHeight), 0, stream>>>(surface);

  std::vector<int2> result(kTexels);
  CUDA_MEMCPY3D out = {};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = result.data();
  out.WidthInBytes = kWidth * sizeof(int2);
  out.Height = kHeight;
  out.Depth = kDepth;
  CU(cuMemcpy3DAsync(&out, stream));
  CU(cuStreamSynchronize(stream));
  for (int z = 0; z < static_cast<int>(kDepth); ++z) {
    for (int y = 0; y < static_cast<int>(kHeight); ++y) {
      for (int x = 0; x < static_cast<int>(kWidth); ++x) {
        const bool inside = x >= 3 && x < 7 && y >= 2 && y < 5 && z >= 1 && z < 3;
        const int begun = inside ? ((z - 1) * 4 + y - 2) * 5 + x - 3 : 0;
        const int2 texel =
            result[static_cast<std::size_t>((z * int{kHeight} + y) * int{kWidth} + x)];
        REQUIRE(texel.x == begun + x + 100 * y && texel.y == -begun + 1000 * z);
      }
    }
  }
  CUDA_RESOURCE_DESC told = {};
  CU(cuSurfObjectGetResourceDesc(&told, surface));
  REQUIRE(told.res.array.hArray == array);
  CU(cuSurfObjectDestroy(surface));
  CU(cuStreamDestroy(stream));
  CU(cuArrayDestroy(array));
}

// Every copy of bytes at an offset, one after another.
void LinesOfBytes() {
  constexpr std::size_t kBytes = kWidth * sizeof(short);
  const CUarray first = Array(0, 0, CU_AD_FORMAT_SIGNED_INT16, 1);
  const CUarray second = Array(0, 0, CU_AD_FORMAT_SIGNED_INT16, 1);
  std::vector<short> sent(kWidth);
  for (unsigned i = 0; i < kWidth; ++i) sent[i] = static_cast<short>(300 * i - 7);
  std::vector<short> got(kWidth);
  const DeviceValues<short> device(kWidth);
  CU(cuMemcpyHtoA(first, 0, sent.data(), kBytes));
  CU(cuMemcpyAtoA(second, 0, first, 4, kBytes - 4));
  CU(cuMemcpyAtoD(device.address, second, 2, 6));
  CU(cuMemcpyDtoA(first, 8, device.address, 6));
  CU(cuMemcpyAtoH(got.data(), first, 0, kBytes));
  std::copy_backward(sent.begin() + 3, sent.begin() + 6, sent.begin() + 7);
  REQUIRE(got == sent);

  CUstream stream = nullptr;
  CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU(cuMemcpyHtoAAsync(second, 2, sent.data(), kBytes - 2, stream));
  CU(cuMemcpyAtoHAsync(got.data(), second, 2, kBytes - 2, stream));
  CU(cuStreamSynchronize(stream));
  for (unsigned i = 0; i + 1 < kWidth; ++i) REQUIRE(got[i] == sent[i]);
  EXPECT_CU(cuMemcpyHtoA(first, 2, sent.data(), kBytes), CUDA_ERROR_INVALID_VALUE);
  CU(cuStreamDestroy(stream));
  CU(cuArrayDestroy(first));
  CU(cuArrayDestroy(second));
}

__global__ void ReadLevels(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2DLod<float>(texture, 0.5f, 0.5f, static_cast<float>(threadIdx.x));
}

void Levels() {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {kWidth, kHeight, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray mipmapped = nullptr;
  CU(cuMipmappedArrayCreate(&mipmapped, &descriptor, 3));
  for (unsigned i = 0; i < 3; ++i) {
    CUarray level = nullptr;
    CU(cuMipmappedArrayGetLevel(&level, mipmapped, i));
    const std::vector<float> values((kWidth >> i) * (kHeight >> i), 10.5f + static_cast<float>(i));
    Fill(level, values.data(), (kWidth >> i) * sizeof(float), kHeight >> i);
  }
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = mipmapped;
  CUDA_TEXTURE_DESC sampling =
      Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
  sampling.maxMipmapLevelClamp = 2;
  const CUtexObject texture = Texture(resource, sampling);
  const DeviceValues<float> device(3);
  ReadLevels<<<1, 3>>>(texture, device.get());
  REQUIRE((device.Read() == std::vector<float>{10.5f, 11.5f, 12.5f}));
  CU(cuTexObjectDestroy(texture));
  CUarray level = nullptr;
  EXPECT_CU(cuMipmappedArrayGetLevel(&level, mipmapped, 3), CUDA_ERROR_INVALID_VALUE);
  CU(cuMipmappedArrayDestroy(mipmapped));
}

__global__ void Fetch(cudaTextureObject_t texture, int2* out) {
  out[threadIdx.x] = tex1Dfetch<int2>(texture, static_cast<int>(threadIdx.x));
}

void TextureOfMemory() {
  std::vector<int2> values(kWidth);
  for (unsigned i = 0; i < kWidth; ++i) values[i] = make_int2(static_cast<int>(i * i), -3);
  const DeviceValues<int2> memory(kWidth);
  CU(cuMemcpyHtoD(memory.address, values.data(), kWidth * sizeof(int2)));
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory.address;
  resource.res.linear.format = CU_AD_FORMAT_SIGNED_INT32;
  resource.res.linear.numChannels = 2;
  resource.res.linear.sizeInBytes = kWidth * sizeof(int2);
  const CUtexObject texture =
      Texture(resource,
              Sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER));
  const DeviceValues<int2> fetched(kWidth);
  Fetch<<<1, kWidth>>>(texture, fetched.get());
  const std::vector<int2> read = fetched.Read();
  for (unsigned i = 0; i < kWidth; ++i) REQUIRE(read[i].x == values[i].x && read[i].y == -3);
  CUDA_RESOURCE_DESC told = {};
  CU(cuTexObjectGetResourceDesc(&told, texture));
  REQUIRE(told.res.linear.format == CU_AD_FORMAT_SIGNED_INT32 && told.res.linear.numChannels == 2 &&
          told.res.linear.devPtr == memory.address);
  CU(cuTexObjectDestroy(texture));
}

void Descriptors() {
  const CUarray array = Array(kHeight, kDepth, CU_AD_FORMAT_HALF, 4, CUDA_ARRAY3D_LAYERED);
  CUDA_ARRAY3D_DESCRIPTOR told = {};
  CU(cuArray3DGetDescriptor(&told, array));
  REQUIRE(told.Width == kWidth && told.Height == kHeight && told.Depth == kDepth &&
          told.Format == CU_AD_FORMAT_HALF && told.NumChannels == 4 &&
          told.Flags == CUDA_ARRAY3D_LAYERED);
  cudaChannelFormatDesc format = {};
  CUDA(cudaGetChannelDesc(&format, reinterpret_cast<cudaArray_t>(array)));
  REQUIRE(format.w == 16 && format.f == cudaChannelFormatKindFloat);
  CU(cuArrayDestroy(array));
  const CUDA_ARRAY_DESCRIPTOR wrong = {kWidth, kHeight, CU_AD_FORMAT_FLOAT, 3};
  CUarray none = nullptr;
  EXPECT_CU(cuArrayCreate(&none, &wrong), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
  CU(cuInit(0));
  CUcontext context = nullptr;
  CU(cuDevicePrimaryCtxRetain(&context, 0));
  CU(cuCtxSetCurrent(context));
  FilteredTexture();
  ReadModes();
  VolumeOfASurface();
  LinesOfBytes();
  Levels();
  TextureOfMemory();
  Descriptors();
  CU(cuDevicePrimaryCtxRelease(0));
  return Pass();
}
