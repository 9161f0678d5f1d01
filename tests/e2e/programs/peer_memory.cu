// A program that sees several GPUs: each reaches the others' memory, and what is copied between
// them comes behind the work of both.
#include <vector>

#include "tests/e2e/programs/check.h"
#include "tests/e2e/programs/several_gpus.h"

namespace {

void TestPeerAccess(const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    for (const Gpu& peer : gpus) {
      int can = -1;
      CUDA(cudaDeviceCanAccessPeer(&can, gpu.index, peer.index));
      REQUIRE(can == (gpu.index == peer.index ? 0 : 1));
      if (gpu.index == peer.index) continue;
      CUDA(cudaSetDevice(gpu.index));
      CUDA(cudaDeviceEnablePeerAccess(peer.index, 0));
      EXPECT_CUDA(cudaDeviceEnablePeerAccess(peer.index, 0), cudaErrorPeerAccessAlreadyEnabled);
      (void)cudaGetLastError();
    }
  }
  // Memory that is allocated, and freed, while another device already reaches the rest.
  for (int round = 0; round < 3; ++round) {
    CUDA(cudaSetDevice(1));
    int* late = nullptr;
    CUDA(cudaMalloc(&late, kBytes));
    CUDA(cudaSetDevice(0));
    Fill<<<kCount / kBlock, kBlock>>>(late, 5 + round);
    CUDA(cudaDeviceSynchronize());
    ExpectSequence(Fetch(late), 5 + round);
    CUDA(cudaFree(late));
  }
  CUDA(cudaSetDevice(0));
  CUDA(cudaDeviceDisablePeerAccess(1));
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  (void)cudaGetLastError();
}

void TestPeerCopies(const std::vector<Gpu>& gpus) {
  const Gpu& one = gpus[0];
  const Gpu& other = gpus[1];
  CUDA(cudaSetDevice(0));
  Fill<<<kCount / kBlock, kBlock>>>(one.memory, 300);
  CUDA(cudaMemcpyPeer(other.memory, 1, one.memory, 0, kBytes));
  ExpectSequence(Fetch(other.memory), 300);
  CUDA(cudaMemset(one.memory, 0, kBytes));
  CUDA(cudaMemcpy(one.memory, other.memory, kBytes, cudaMemcpyDefault));
  ExpectSequence(Fetch(one.memory), 300);
  CUDA(cudaSetDevice(1));
  Fill<<<kCount / kBlock, kBlock, 0, other.stream>>>(other.memory, 400);
  CUDA(cudaMemcpyPeerAsync(one.memory, 0, other.memory, 1, kBytes, other.stream));
  CUDA(cudaStreamSynchronize(other.stream));
  ExpectSequence(Fetch(one.memory), 400);
  CUDA(cudaMemcpyAsync(other.memory + 1, one.memory, kBytes / 2, cudaMemcpyDeviceToDevice,
                       other.stream));
  CUDA(cudaMemsetAsync(one.memory, 0xff, sizeof(int), other.stream));
  CUDA(cudaStreamSynchronize(other.stream));
  REQUIRE(Fetch(other.memory)[1] == 400);
  REQUIRE(Fetch(one.memory)[0] == -1);
}

// Copies of rows, of volumes and of arrays come behind the work of both devices too, without a word
// of the program's.
void TestPeerCopiesOfRows(const std::vector<Gpu>& gpus) {
  constexpr std::size_t kSide = 256;
  constexpr std::size_t kRow = kSide * sizeof(int);
  const Gpu& one = gpus[0];
  const Gpu& other = gpus[1];
  const auto begin = [&](int value) {
    CUDA(cudaSetDevice(0));
    Spin<<<1, 1, 0, one.stream>>>(200000);
    Fill<<<kCount / kBlock, kBlock, 0, one.stream>>>(one.memory, value);
    CUDA(cudaSetDevice(1));
    Spin<<<1, 1, 0, other.stream>>>(200000);
    CUDA(cudaMemsetAsync(other.memory, 0, kBytes, other.stream));
  };
  begin(600);
  CUDA(cudaMemcpy2D(other.memory, kRow, one.memory, kRow, kRow / 2, kSide, cudaMemcpyDefault));
  std::vector<int> values = Fetch(other.memory);
  REQUIRE(values[kSide + 3] == 600 + static_cast<int>(kSide) + 3 && values[kSide - 1] == 0);

  begin(700);
  cudaMemcpy3DPeerParms volume{};
  volume.srcPtr = make_cudaPitchedPtr(one.memory, kRow, kSide, kSide);
  volume.dstPtr = make_cudaPitchedPtr(other.memory, kRow, kSide, kSide);
  volume.dstDevice = 1;
  volume.extent = make_cudaExtent(kRow / 2, kSide, 1);
  CUDA(cudaMemcpy3DPeer(&volume));
  values = Fetch(other.memory);
  REQUIRE(values[kSide + 3] == 700 + static_cast<int>(kSide) + 3 && values[kSide - 1] == 0);

  begin(800);
  const cudaChannelFormatDesc texel = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr;
  CUDA(cudaMallocArray(&array, &texel, kSide, kSide));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, one.memory, kRow, kRow, kSide, cudaMemcpyDefault));
  CUDA(cudaSetDevice(0));
  CUDA(cudaMemcpy2DFromArray(values.data(), kRow, array, 0, 0, kRow, kSide, cudaMemcpyDefault));
  ExpectSequence(values, 800);
  CUDA(cudaFreeArray(array));
}

}  // namespace

int main() {
  const std::vector<Gpu> gpus = AllGpus();
  TestPeerAccess(gpus);
  TestPeerCopies(gpus);
  TestPeerCopiesOfRows(gpus);
  for (const Gpu& gpu : gpus) gpu.Free();
  return Pass();
}
