// Textures of layers, cubes, levels and plain memory; gathers; views; and texture objects that a
// kernel finds in memory.
#include <cmath>
#include <vector>

#include "tests/e2e/programs/check.h"

namespace {

cudaTextureDesc Sampling(bool normalized, cudaTextureFilterMode filter = cudaFilterModePoint) {
  cudaTextureDesc description = {};
  for (auto& mode : description.addressMode) mode = cudaAddressModeClamp;
  description.filterMode = filter;
  description.normalizedCoords = normalized ? 1 : 0;
  return description;
}

cudaResourceDesc OfArray(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

cudaTextureObject_t Create(const cudaResourceDesc& resource, const cudaTextureDesc& sampling,
                           const cudaResourceViewDesc* view = nullptr) {
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &sampling, view));
  return texture;
}

// Texel (x, y, z) is 10000 z + 100 y + x, plus what the caller adds.
cudaArray_t Numbered(const cudaExtent& extent, unsigned flags, float added = 0) {
  const std::size_t height = extent.height > 0 ? extent.height : 1;
  const std::size_t depth = extent.depth > 0 ? extent.depth : 1;
  std::vector<float> texels;
  for (std::size_t z = 0; z < depth; ++z) {
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < extent.width; ++x) {
        texels.push_back(static_cast<float>(10000 * z + 100 * y + x) + added);
      }
    }
  }
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  CUDA(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr =
      make_cudaPitchedPtr(texels.data(), extent.width * sizeof(float), extent.width, height);
  copy.dstArray = array;
  copy.extent = {extent.width, height, depth};
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&copy));
  return array;
}

__global__ void Kinds(cudaTextureObject_t lines, cudaTextureObject_t layers,
                      cudaTextureObject_t cube, cudaTextureObject_t cubes, float* out) {
  const float i = static_cast<float>(threadIdx.x) + 0.5f;
  out[threadIdx.x] = tex1DLayered<float>(lines, i, 2);
  out[4 + threadIdx.x] = tex2DLayered<float>(layers, i, 1.5f, 3);
  const float side = i / 2 - 1;  // through the texels' middles of a face that is 4 wide
  out[8 + threadIdx.x] = texCubemap<float>(cube, side, 0.25f, -1);
  out[12 + threadIdx.x] = texCubemapLayered<float>(cubes, side, 1, 0.25f, 1);
}

void CheckLayersAndCubes(float* out) {
  const cudaArray_t arrays[] = {Numbered({4, 0, 3}, cudaArrayLayered),
                                Numbered({4, 2, 4}, cudaArrayLayered),
                                Numbered({4, 4, 6}, cudaArrayCubemap),
                                Numbered({4, 4, 12}, cudaArrayCubemap | cudaArrayLayered)};
  cudaTextureObject_t textures[4];
  for (int i = 0; i < 4; ++i) textures[i] = Create(OfArray(arrays[i]), Sampling(i >= 2));
  Kinds<<<1, 4>>>(textures[0], textures[1], textures[2], textures[3], out);
  float got[16];
  CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4; ++i) {
    REQUIRE(got[i] == 20000 + i);
    REQUIRE(got[4 + i] == 30100 + i);
    // Looking along -z the face's s runs against x; t = -y = -0.25 is row 1.
    REQUIRE(got[8 + i] == 50000 + 100 + (3 - i));
    // Face +y of the second cube: s = x, t = z = 0.25 is row 2.
    REQUIRE(got[12 + i] == 80000 + 200 + i);
  }
  for (int i = 0; i < 4; ++i) {
    CUDA(cudaDestroyTextureObject(textures[i]));
    CUDA(cudaFreeArray(arrays[i]));
  }
}

__global__ void Levels(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2DLod<float>(texture, 0.1f, 0.1f, 0.25f * static_cast<float>(threadIdx.x));
  if (threadIdx.x == 0) {
    out[12] = tex2D<float>(texture, 0.1f, 0.1f);
    out[13] = tex2DGrad<float>(texture, 0.1f, 0.1f, {4.0f / 16, 0}, {0, 0});
  }
}

void CheckLevels(float* out) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmapped = nullptr;
  CUDA(cudaMallocMipmappedArray(&mipmapped, &format, {16, 8, 0}, 3));
  for (unsigned i = 0; i < 3; ++i) {
    cudaArray_t level = nullptr;
    CUDA(cudaGetMipmappedArrayLevel(&level, mipmapped, i));
    cudaExtent extent = {};
    CUDA(cudaArrayGetInfo(nullptr, &extent, nullptr, level));
    REQUIRE(extent.width == 16u >> i && extent.height == 8u >> i && extent.depth == 0);
    const std::vector<float> texels(extent.width * extent.height, static_cast<float>(i));
    CUDA(cudaMemcpy2DToArray(level, 0, 0, texels.data(), extent.width * sizeof(float),
                             extent.width * sizeof(float), extent.height, cudaMemcpyHostToDevice));
  }
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmapped;
  cudaTextureDesc sampling = Sampling(true, cudaFilterModeLinear);
  sampling.mipmapFilterMode = cudaFilterModeLinear;
  sampling.maxMipmapLevelClamp = 2;
  const cudaTextureObject_t texture = Create(resource, sampling);
  Levels<<<1, 12>>>(texture, out);
  float got[14];
  CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 12; ++i) REQUIRE(got[i] == std::fmin(0.25f * static_cast<float>(i), 2.0f));
  REQUIRE(got[12] == 0 && got[13] == 2);
  CUDA(cudaDestroyTextureObject(texture));

  // A view of the last two levels alone.
  cudaResourceViewDesc view = {};
  view.format = cudaResViewFormatFloat1;
  view.width = 16;
  view.height = 8;
  view.firstMipmapLevel = 1;
  view.lastMipmapLevel = 2;
  const cudaTextureObject_t narrow = Create(resource, sampling, &view);
  Levels<<<1, 12>>>(narrow, out);
  CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 12; ++i) {
    REQUIRE(got[i] == std::fmin(1 + 0.25f * static_cast<float>(i), 2.0f));
  }
  cudaResourceViewDesc known = {};
  CUDA(cudaGetTextureObjectResourceViewDesc(&known, narrow));
  REQUIRE(known.firstMipmapLevel == 1 && known.format == cudaResViewFormatFloat1);
  CUDA(cudaDestroyTextureObject(narrow));
  CUDA(cudaFreeMipmappedArray(mipmapped));
}

__global__ void Memory(cudaTextureObject_t linear, cudaTextureObject_t pitched,
                       cudaTextureObject_t gathered, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = static_cast<float>(tex1Dfetch<unsigned short>(linear, i - 4));
  out[32 + i] =
      tex2D<float>(pitched, (static_cast<float>(i % 8)) + 0.75f, static_cast<float>(i / 8));
  if (i == 0) {
    const float4 four = tex2Dgather<float4>(gathered, 2, 2, 0);
    out[64] = four.x;
    out[65] = four.y;
    out[66] = four.z;
    out[67] = four.w;
  }
}

void CheckMemory(float* out) {
  std::vector<unsigned short> shorts(16);
  for (std::size_t i = 0; i < shorts.size(); ++i)
    shorts[i] = static_cast<unsigned short>(60000 + i);
  unsigned short* linear = nullptr;
  CUDA(cudaMalloc(&linear, 32));
  CUDA(cudaMemcpy(linear, shorts.data(), 32, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = linear;
  resource.res.linear.desc = cudaCreateChannelDesc<unsigned short>();
  resource.res.linear.sizeInBytes = 32;
  const cudaTextureObject_t of_linear = Create(resource, Sampling(false));

  float rows[4][8];
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 8; ++x) rows[y][x] = static_cast<float>(8 * y + x);
  }
  float* pitched = nullptr;
  std::size_t pitch = 0;
  CUDA(cudaMallocPitch(&pitched, &pitch, sizeof(rows[0]), 4));
  CUDA(cudaMemcpy2D(pitched, pitch, rows, sizeof(rows[0]), sizeof(rows[0]), 4,
                    cudaMemcpyHostToDevice));
  resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = pitched;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = 8;
  resource.res.pitch2D.height = 4;
  resource.res.pitch2D.pitchInBytes = pitch;
  const cudaTextureObject_t of_pitched = Create(resource, Sampling(false, cudaFilterModeLinear));

  const cudaArray_t array = Numbered({4, 4, 0}, cudaArrayTextureGather);
  const cudaTextureObject_t gathered = Create(OfArray(array), Sampling(false));
  Memory<<<1, 32>>>(of_linear, of_pitched, gathered, out);
  float got[68];
  CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) {
    const int texel = i - 4;
    REQUIRE(got[i] == (texel < 0 || texel >= 16 ? 0.0f : static_cast<float>(60000 + texel)));
    // A quarter of the way to the next texel, and half a row up, but not beyond the edges.
    const float x = std::fmin(static_cast<float>(i % 8) + 0.25f, 7.0f);
    const float y = std::fmax(static_cast<float>(i / 8) - 0.5f, 0.0f);
    REQUIRE(std::fabs(got[32 + i] - (8 * y + x)) < 1e-4f);
  }
  REQUIRE(got[64] == 201 && got[65] == 202 && got[66] == 102 && got[67] == 101);
  for (const cudaTextureObject_t texture : {of_linear, of_pitched, gathered}) {
    CUDA(cudaDestroyTextureObject(texture));
  }
  CUDA(cudaFree(linear));
  CUDA(cudaFree(pitched));
  CUDA(cudaFreeArray(array));
}

__global__ void Colours(cudaTextureObject_t texture, float4* out) {
  *out = tex2D<float4>(texture, 0.5f, 0.5f);
}

void CheckSrgbAndBorder(float* out) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
  cudaArray_t array = nullptr;
  CUDA(cudaMallocArray(&array, &format, 1, 1));
  const uchar4 colour = {255, 128, 0, 128};
  CUDA(cudaMemcpy2DToArray(array, 0, 0, &colour, 4, 4, 1, cudaMemcpyHostToDevice));
  cudaTextureDesc sampling = Sampling(true);
  sampling.readMode = cudaReadModeNormalizedFloat;
  sampling.sRGB = 1;
  const cudaTextureObject_t texture = Create(OfArray(array), sampling);
  Colours<<<1, 1>>>(texture, reinterpret_cast<float4*>(out));
  float got[4];
  CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
  REQUIRE(got[0] == 1 && std::fabs(got[1] - 0.2158605f) < 2e-3f && got[2] == 0);
  REQUIRE(std::fabs(got[3] - 128 / 255.0f) < 1e-6f);
  cudaTextureDesc known = {};
  CUDA(cudaGetTextureObjectTextureDesc(&known, texture));
  REQUIRE(known.sRGB == 1 && known.readMode == cudaReadModeNormalizedFloat);
  CUDA(cudaDestroyTextureObject(texture));
  // A filter between integers, a texture of nothing, and a number that is no texture.
  sampling = Sampling(true, cudaFilterModeLinear);
  cudaTextureObject_t none = 0;
  const cudaResourceDesc of_array = OfArray(array);
  REQUIRE(cudaCreateTextureObject(&none, &of_array, &sampling, nullptr) != cudaSuccess);
  const cudaResourceDesc of_nothing = OfArray(nullptr);
  REQUIRE(cudaCreateTextureObject(&none, &of_nothing, &sampling, nullptr) != cudaSuccess);
  cudaGetLastError();
  CUDA(cudaDestroyTextureObject(1234567));
  CUDA(cudaFreeArray(array));
}

constexpr int kManyTextures = 40;
__constant__ cudaTextureObject_t known_textures[kManyTextures];

// Each lane reads another texture.
__global__ void Bindless(const cudaTextureObject_t* textures, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = tex1D<float>(textures[i], 1.5f);
  out[kManyTextures + i] = tex1D<float>(known_textures[i], 2.5f);
}

void CheckBindless(float* out) {
  cudaTextureObject_t textures[kManyTextures];
  cudaArray_t arrays[kManyTextures];
  for (int i = 0; i < kManyTextures; ++i) {
    arrays[i] = Numbered({4, 0, 0}, cudaArrayDefault, static_cast<float>(1000 * i));
    textures[i] = Create(OfArray(arrays[i]), Sampling(false));
  }
  cudaTextureObject_t* in_memory = nullptr;
  CUDA(cudaMalloc(&in_memory, sizeof(textures)));
  CUDA(cudaMemcpy(in_memory, textures, sizeof(textures), cudaMemcpyHostToDevice));
  CUDA(cudaMemcpyToSymbol(known_textures, textures, sizeof(textures)));
  Bindless<<<1, kManyTextures>>>(in_memory, out);
  // What runs may use the objects until it ends.
  for (const cudaTextureObject_t texture : textures) CUDA(cudaDestroyTextureObject(texture));
  float got[2 * kManyTextures];
  CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kManyTextures; ++i) {
    REQUIRE(got[i] == 1000 * i + 1 && got[kManyTextures + i] == 1000 * i + 2);
  }
  for (const cudaArray_t array : arrays) CUDA(cudaFreeArray(array));
  CUDA(cudaFree(in_memory));
}

}  // namespace

int main() {
  float* out = nullptr;
  CUDA(cudaMalloc(&out, 4096));
  CheckLayersAndCubes(out);
  CheckLevels(out);
  CheckMemory(out);
  CheckSrgbAndBorder(out);
  CheckBindless(out);
  CUDA(cudaFree(out));
  return Pass();
}
