// Arrays and surfaces: copies of every kind, what kernels read and write, and errors.
#include <cstring>
#include <vector>

#include "tests/e2e/programs/check.h"

namespace {

constexpr int kWidth = 10;
constexpr int kHeight = 6;
constexpr int kDepth = 3;

cudaSurfaceObject_t Surface(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  CUDA(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

template <typename T>
cudaArray_t Array(const cudaExtent& extent, unsigned flags = cudaArraySurfaceLoadStore) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t array = nullptr;
  CUDA(cudaMalloc3DArray(&array, &format, extent, flags));
  return array;
}

void CheckFlatCopies() {
  const cudaArray_t array = Array<short>({kWidth, kHeight, 0});
  const cudaArray_t other = Array<short>({kWidth, kHeight, 0});
  std::vector<short> sent(kWidth * kHeight);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<short>(i * 7);
  std::vector<short> got(sent.size());
  constexpr std::size_t kRow = kWidth * sizeof(short);
  // New arrays hold nothing of others.
  CUDA(cudaMemcpy2DFromArray(got.data(), kRow, array, 0, 0, kRow, kHeight, cudaMemcpyDeviceToHost));
  for (const short texel : got) REQUIRE(texel == 0);

  CUDA(cudaMemcpy2DToArray(array, 0, 0, sent.data(), kRow, kRow, kHeight, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, kRow, kHeight));
  CUDA(cudaMemcpy2DFromArray(got.data(), kRow, other, 0, 0, kRow, kHeight, cudaMemcpyDefault));
  REQUIRE(got == sent);
  // A part, through device memory and a stream.
  short* device = nullptr;
  CUDA(cudaMalloc(&device, 1024));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA(cudaMemcpy2DFromArrayAsync(device, 64, array, 4, 1, 6, 4, cudaMemcpyDeviceToDevice, stream));
  CUDA(cudaMemcpy2DToArrayAsync(other, 0, 2, device, 64, 6, 4, cudaMemcpyDeviceToDevice, stream));
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy2DFromArray(got.data(), 6, other, 0, 2, 6, 4, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 3; ++x) REQUIRE(got[y * 3 + x] == sent[(y + 1) * kWidth + x + 2]);
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  // Bytes that go on from row to row.
  CUDA(cudaMemcpyToArray(other, 6, 1, sent.data(), 3 * kRow, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpyFromArray(got.data(), other, 6, 1, 3 * kRow, cudaMemcpyDeviceToHost));
  REQUIRE(std::memcmp(got.data(), sent.data(), 3 * kRow) == 0);
  CUDA(cudaMemcpyArrayToArray(array, 0, 0, other, 6, 1, 2 * kRow));
  CUDA(cudaMemcpyFromArray(got.data(), array, 0, 0, 2 * kRow, cudaMemcpyDeviceToHost));
  REQUIRE(std::memcmp(got.data(), sent.data(), 2 * kRow) == 0);
  EXPECT_CUDA(cudaMemcpyToArray(other, 6, kHeight - 1, sent.data(), kRow, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
#pragma GCC diagnostic pop
  EXPECT_CUDA(cudaMemcpy2DToArray(array, 2, 0, sent.data(), kRow, kRow, 1, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemcpy2DToArray(array, 0, 0, sent.data(), kRow, kRow, 1, cudaMemcpyDeviceToHost),
              cudaErrorInvalidMemcpyDirection);
  cudaGetLastError();
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(device));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFreeArray(other));
}

// Pitched memory and an array of three dimensions, a box inside, and pinned memory.
void CheckVolumeCopies() {
  std::vector<int> sent(kWidth * kHeight * kDepth);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<int>(i) + 1;
  const auto host = [](void* memory) {
    return make_cudaPitchedPtr(memory, kWidth * sizeof(int), kWidth, kHeight);
  };
  cudaPitchedPtr pitched = {};
  CUDA(cudaMalloc3D(&pitched, {kWidth * sizeof(int), kHeight, kDepth}));
  CUDA(cudaMemset3D(pitched, 0xff, {kWidth * sizeof(int), kHeight, kDepth}));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = host(sent.data());
  copy.dstPtr = pitched;
  copy.extent = {kWidth * sizeof(int), kHeight - 1, kDepth};
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&copy));
  CUDA(cudaMemset3D(pitched, 0, {2 * sizeof(int), 1, kDepth}));

  const cudaArray_t array = Array<int>({kWidth, kHeight, kDepth});
  copy = {};
  copy.srcPtr = pitched;
  copy.dstArray = array;
  copy.extent = {kWidth, kHeight, kDepth};
  copy.kind = cudaMemcpyDeviceToDevice;
  CUDA(cudaMemcpy3D(&copy));

  int* pinned = nullptr;
  CUDA(cudaMallocHost(&pinned, sent.size() * sizeof(int)));
  copy = {};
  copy.srcArray = array;
  copy.dstPtr = host(pinned);
  copy.extent = {kWidth, kHeight, kDepth};
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3DAsync(&copy, nullptr));
  CUDA(cudaDeviceSynchronize());
  for (int z = 0; z < kDepth; ++z) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const int i = (z * kHeight + y) * kWidth + x;
        const int wanted = y == kHeight - 1 ? -1 : y == 0 && x < 2 ? 0 : sent[i];
        REQUIRE(pinned[i] == wanted);
      }
    }
  }
  // A box from one array to another; positions in arrays are in texels.
  const cudaArray_t other = Array<int>({kWidth, kHeight, kDepth});
  copy = {};
  copy.srcArray = array;
  copy.srcPos = {3, 1, 1};
  copy.dstArray = other;
  copy.dstPos = {0, 2, 0};
  copy.extent = {4, 3, 2};
  copy.kind = cudaMemcpyDeviceToDevice;
  CUDA(cudaMemcpy3D(&copy));
  int one = 0;
  copy = {};
  copy.srcArray = other;
  copy.srcPos = {3, 4, 1};
  copy.dstPtr = make_cudaPitchedPtr(&one, sizeof(one), 1, 1);
  copy.extent = {1, 1, 1};
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&copy));
  REQUIRE(one == sent[(2 * kHeight + 3) * kWidth + 6]);
  copy.srcPos = {kWidth, 0, 0};
  EXPECT_CUDA(cudaMemcpy3D(&copy), cudaErrorInvalidValue);
  copy.srcPtr = host(sent.data());  // both an array and memory
  EXPECT_CUDA(cudaMemcpy3D(&copy), cudaErrorInvalidValue);
  cudaGetLastError();
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaFree(pitched.ptr));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFreeArray(other));
}

__global__ void Write2D(cudaSurfaceObject_t surface) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const uchar4 texel = {static_cast<unsigned char>(x), static_cast<unsigned char>(y),
                        static_cast<unsigned char>(x + y), 7};
  // What is outside is dropped.
  surf2Dwrite(texel, surface, x * static_cast<int>(sizeof(texel)), y, cudaBoundaryModeZero);
}

// Mirrors each row; reads outside give zero or the edge.
__global__ void Mirror(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, uchar4* edges) {
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(blockIdx.x);
  uchar4 texel;
  surf2Dread(&texel, from, (width - 1 - x) * 4, y);
  surf2Dwrite(texel, to, x * 4, y);
  if (x == 0 && y == 0) {
    surf2Dread(&edges[0], from, -4, 0, cudaBoundaryModeZero);
    surf2Dread(&edges[1], from, 4 * width + 8, 3, cudaBoundaryModeClamp);
  }
}

void CheckFlatSurfaces() {
  const cudaArray_t from = Array<uchar4>({kWidth, kHeight, 0});
  const cudaArray_t to = Array<uchar4>({kWidth, kHeight, 0});
  const cudaSurfaceObject_t surfaces[] = {Surface(from), Surface(to)};
  uchar4* edges = nullptr;
  CUDA(cudaMalloc(&edges, 2 * sizeof(uchar4)));
  Write2D<<<dim3(2, 1), dim3(8, 8)>>>(surfaces[0]);
  Mirror<<<kHeight, kWidth>>>(surfaces[0], surfaces[1], kWidth, edges);
  std::vector<uchar4> got(kWidth * kHeight);
  CUDA(cudaMemcpy2DFromArray(got.data(), kWidth * 4, to, 0, 0, kWidth * 4, kHeight,
                             cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const uchar4 texel = got[static_cast<std::size_t>(y * kWidth + x)];
      const int source = kWidth - 1 - x;
      REQUIRE(texel.x == source && texel.y == y && texel.z == source + y && texel.w == 7);
    }
  }
  uchar4 read[2];
  CUDA(cudaMemcpy(read, edges, sizeof(read), cudaMemcpyDeviceToHost));
  REQUIRE(read[0].x == 0 && read[0].w == 0 && read[1].x == kWidth - 1 && read[1].y == 3);
  for (const cudaSurfaceObject_t surface : surfaces) CUDA(cudaDestroySurfaceObject(surface));
  CUDA(cudaFree(edges));
  CUDA(cudaFreeArray(from));
  CUDA(cudaFreeArray(to));
}

__global__ void WriteKinds(cudaSurfaceObject_t line, cudaSurfaceObject_t volume,
                           cudaSurfaceObject_t layers, cudaSurfaceObject_t lines,
                           cudaSurfaceObject_t cube) {
  const int i = static_cast<int>(threadIdx.x);
  surf1Dwrite(static_cast<unsigned char>(i + 1), line, i);
  surf3Dwrite(make_float4(1, 2, 3, static_cast<float>(i)), volume, i * 16, 1, 2);
  surf2DLayeredwrite(static_cast<short>(-i), layers, i * 2, 1, 3);
  surf1DLayeredwrite(make_int2(i, -i), lines, i * 8, 1);
  surfCubemapwrite(i, cube, i * 4, 2, 5);
}

template <typename T>
std::vector<T> Row(cudaArray_t array, std::size_t y, std::size_t z) {
  std::vector<T> row(4);
  cudaMemcpy3DParms copy = {};
  copy.srcArray = array;
  copy.srcPos = {0, y, z};
  copy.dstPtr = make_cudaPitchedPtr(row.data(), 4 * sizeof(T), 4, 1);
  copy.extent = {4, 1, 1};
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA(cudaMemcpy3D(&copy));
  return row;
}

void CheckOtherSurfaces() {
  const cudaArray_t arrays[] = {
      Array<unsigned char>({4, 0, 0}), Array<float4>({4, 2, 3}),
      Array<short>({4, 2, 4}, cudaArraySurfaceLoadStore | cudaArrayLayered),
      Array<int2>({4, 0, 2}, cudaArraySurfaceLoadStore | cudaArrayLayered),
      Array<int>({4, 4, 6}, cudaArraySurfaceLoadStore | cudaArrayCubemap)};
  cudaSurfaceObject_t surfaces[5];
  for (int i = 0; i < 5; ++i) surfaces[i] = Surface(arrays[i]);
  WriteKinds<<<1, 4>>>(surfaces[0], surfaces[1], surfaces[2], surfaces[3], surfaces[4]);
  const auto line = Row<unsigned char>(arrays[0], 0, 0);
  const auto volume = Row<float4>(arrays[1], 1, 2);
  const auto layer = Row<short>(arrays[2], 1, 3);
  const auto lines = Row<int2>(arrays[3], 0, 1);
  const auto face = Row<int>(arrays[4], 2, 5);
  for (int i = 0; i < 4; ++i) {
    const auto n = static_cast<std::size_t>(i);
    REQUIRE(line[n] == i + 1 && volume[n].x == 1 && volume[n].w == static_cast<float>(i));
    REQUIRE(layer[n] == -i && lines[n].x == i && lines[n].y == -i && face[n] == i);
  }
  for (int i = 0; i < 5; ++i) {
    CUDA(cudaDestroySurfaceObject(surfaces[i]));
    CUDA(cudaFreeArray(arrays[i]));
  }
}

void CheckErrors() {
  const cudaChannelFormatDesc three = {8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  EXPECT_CUDA(cudaMallocArray(&array, &three, 4, 4), cudaErrorInvalidChannelDescriptor);
  EXPECT_CUDA(cudaMallocArray(&array, &format, 0, 4), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMalloc3DArray(&array, &format, {4, 5, 6}, cudaArrayCubemap),
              cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMalloc3DArray(&array, &format, {16384, 16384, 16384}), cudaErrorMemoryAllocation);
  CUDA(cudaMallocArray(&array, &format, 4, 4));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  // An array made without cudaArraySurfaceLoadStore is taken, too.
  CUDA(cudaCreateSurfaceObject(&surface, &resource));
  CUDA(cudaDestroySurfaceObject(surface));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFreeArray(nullptr));
  REQUIRE(cudaFreeArray(array) != cudaSuccess);
  cudaGetLastError();
  CUDA(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  CheckFlatCopies();
  CheckVolumeCopies();
  CheckFlatSurfaces();
  CheckOtherSurfaces();
  CheckErrors();
  return Pass();
}
