// Arrays, textures and surfaces stay good while the program moves from GPU to GPU. Its test does
// that while the program waits for the pipe that its argument names.
#include "tests/e2e/driven/wait.h"
#include "tests/e2e/programs/check.h"

constexpr int kSide = 64;

struct Images {
  char tag;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
};

__global__ void Number(Images images) {
  surf2Dwrite(static_cast<int>(blockIdx.x * kSide + threadIdx.x), images.surface,
              static_cast<int>(threadIdx.x * sizeof(int)), static_cast<int>(blockIdx.x));
}

__global__ void Double(Images images) {
  const int texel = tex2D<int>(images.texture, static_cast<float>(threadIdx.x) + 0.5f,
                               static_cast<float>(blockIdx.x) + 0.5f);
  surf2Dwrite(2 * texel, images.surface, static_cast<int>(threadIdx.x * sizeof(int)),
              static_cast<int>(blockIdx.x));
}

static Images Create(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  const cudaTextureDesc sampling = {};
  Images images = {'i', 0, 0};
  CUDA(cudaCreateTextureObject(&images.texture, &resource, &sampling, nullptr));
  CUDA(cudaCreateSurfaceObject(&images.surface, &resource));
  return images;
}

static void Destroy(const Images& images) {
  CUDA(cudaDestroyTextureObject(images.texture));
  CUDA(cudaDestroySurfaceObject(images.surface));
}

static void Require(cudaArray_t array, int factor) {
  static int texels[kSide * kSide];
  CUDA(cudaMemcpy2DFromArray(texels, kSide * sizeof(int), array, 0, 0, kSide * sizeof(int), kSide,
                             cudaMemcpyDeviceToHost));
  for (int i = 0; i < kSide * kSide; ++i) REQUIRE(texels[i] == factor * i);
}

int main(int count, char** arguments) {
  REQUIRE(count == 2);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr;
  CUDA(cudaMallocArray(&array, &format, kSide, kSide, cudaArraySurfaceLoadStore));
  const Images images = Create(array);
  // What the program destroys before it moves is nothing that the next GPU must have.
  cudaArray_t other = nullptr;
  CUDA(cudaMallocArray(&other, &format, kSide, kSide, cudaArraySurfaceLoadStore));
  const Images gone = Create(other);
  CUDA(cudaFreeArray(other));
  Number<<<kSide, kSide>>>(images);
  CUDA(cudaDeviceSynchronize());
  Wait(arguments[1]);
  Double<<<kSide, kSide>>>(images);
  Require(array, 2);
  Destroy(gone);
  const Images again = Create(array);
  Double<<<kSide, kSide>>>(again);
  Destroy(again);
  Double<<<kSide, kSide>>>(images);
  Require(array, 8);
  Destroy(images);
  CUDA(cudaFreeArray(array));
  return Pass();
}
