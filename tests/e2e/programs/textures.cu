// Texture objects: every address mode and filter, in one to three dimensions, for all kinds of
// channels, against a model on the host that follows the appendix "Texture Fetching" of the CUDA
// C++ Programming Guide.
#include <cuda_fp16.h>

#include <cmath>
#include <vector>

#include "tests/e2e/programs/check.h"

namespace {

constexpr int kWidth = 13;
constexpr int kHeight = 7;
constexpr int kDepth = 5;
constexpr int kSamples = 512;

struct Mode {
  cudaTextureAddressMode address;
  cudaTextureFilterMode filter;
  bool normalized;
};

cudaTextureDesc Describe(const Mode& mode, cudaTextureReadMode read) {
  cudaTextureDesc description = {};
  for (auto& address : description.addressMode) address = mode.address;
  description.filterMode = mode.filter;
  description.readMode = read;
  description.normalizedCoords = mode.normalized ? 1 : 0;
  return description;
}

template <int kDimensions>
__global__ void Fetch(cudaTextureObject_t texture, const float3* at, float4* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kSamples) return;
  if (kDimensions == 1) out[i] = tex1D<float4>(texture, at[i].x);
  if (kDimensions == 2) out[i] = tex2D<float4>(texture, at[i].x, at[i].y);
  if (kDimensions == 3) out[i] = tex3D<float4>(texture, at[i].x, at[i].y, at[i].z);
}

// Where a coordinate lands along an axis: coordinates are folded before they are scaled.
double Fold(double x, int extent, const Mode& mode) {
  if (!mode.normalized) return x;
  if (mode.address == cudaAddressModeWrap) x -= std::floor(x);
  if (mode.address == cudaAddressModeMirror) {
    const double whole = std::floor(x);
    const double part = x - whole;
    x = std::fmod(std::fabs(whole), 2) == 0 ? part : 1 - part;
  }
  return x * extent;
}

struct Volume {
  std::vector<float4> texels;
  int extent[3];

  // A texel, or what stands for one outside.
  float4 At(int x, int y, int z, const Mode& mode) const {
    int at[3] = {x, y, z};
    for (int i = 0; i < 3; ++i) {
      const int n = extent[i];
      if (at[i] >= 0 && at[i] < n) continue;
      if (mode.address == cudaAddressModeBorder) return {0, 0, 0, 0};
      const bool wraps = mode.address == cudaAddressModeWrap && mode.normalized;
      at[i] = wraps ? (at[i] + n) % n : at[i] < 0 ? 0 : n - 1;
    }
    return texels[(at[2] * extent[1] + at[1]) * extent[0] + at[0]];
  }
};

// What a texture should give, and how far a GPU may be from it: the weights have 8 bits, the guide
// does not say how these are rounded, and filters of narrow integers have few bits more than the
// result.
struct Expected {
  float4 value;
  float4 tolerance;
};

Expected Model(const Volume& volume, int dimensions, const float3& at, const Mode& mode) {
  const float coordinates[3] = {at.x, at.y, at.z};
  const bool linear = mode.filter == cudaFilterModeLinear;
  int first[3] = {};
  double weight[3] = {};
  for (int i = 0; i < dimensions; ++i) {
    const double x = Fold(coordinates[i], volume.extent[i], mode) - (linear ? 0.5 : 0);
    first[i] = static_cast<int>(std::floor(x));
    if (linear) weight[i] = std::floor((x - first[i]) * 256 + 0.5) / 256;
  }
  double sum[4] = {};
  double least[4] = {1e30, 1e30, 1e30, 1e30};
  double most[4] = {-1e30, -1e30, -1e30, -1e30};
  for (int corner = 0; corner < (linear ? 1 << dimensions : 1); ++corner) {
    double share = 1;
    int texel[3] = {};
    for (int i = 0; i < dimensions; ++i) {
      const int second = (corner >> i) & 1;
      texel[i] = first[i] + second;
      if (linear) share *= second != 0 ? weight[i] : 1 - weight[i];
    }
    const float4 value = volume.At(texel[0], texel[1], texel[2], mode);
    const double channels[4] = {value.x, value.y, value.z, value.w};
    for (int c = 0; c < 4; ++c) {
      sum[c] += share * channels[c];
      least[c] = std::fmin(least[c], channels[c]);
      most[c] = std::fmax(most[c], channels[c]);
    }
  }
  const auto value = [&](int c) { return static_cast<float>(sum[c]); };
  const auto tolerance = [&](int c) {
    const double step = linear ? (most[c] - least[c]) * dimensions / 256 + 1e-4 : 1e-6;
    return static_cast<float>(step + 1e-5 * std::fabs(sum[c]));
  };
  return {{value(0), value(1), value(2), value(3)},
          {tolerance(0), tolerance(1), tolerance(2), tolerance(3)}};
}

// Coordinates in and around the volume, a quarter of a filter's step beside where it would round,
// and away from edges and middles of texels, where a rounding would choose other texels.
std::vector<float3> Coordinates(const Volume& volume, bool normalized) {
  std::vector<float3> at(kSamples);
  unsigned state = 12345;
  const auto next = [&](int extent) {
    state = state * 1664525 + 1013904223;
    const double texel = std::floor(static_cast<double>(state >> 8) / (1 << 24) * 6 * extent) / 2;
    const double steps = 4 + state % 120;  // of 128
    const double x = texel + (steps + 0.25) / 256 - extent;
    return static_cast<float>(normalized ? x / extent : x);
  };
  for (float3& one : at) {
    one = {next(volume.extent[0]), next(volume.extent[1]), next(volume.extent[2])};
  }
  return at;
}

bool IsNear(const float4& got, const Expected& expected, int channels) {
  const auto& [wanted, tolerance] = expected;
  if (std::fabs(got.x - wanted.x) > tolerance.x) return false;
  if (channels >= 2 && std::fabs(got.y - wanted.y) > tolerance.y) return false;
  if (channels < 4) return true;
  return std::fabs(got.z - wanted.z) <= tolerance.z && std::fabs(got.w - wanted.w) <= tolerance.w;
}

void Tell(const float4& got, const Expected& expected, const float3& at, const Mode& mode,
          int dimensions) {
  const float4& wanted = expected.value;
  std::printf("%dD, address mode %d, filter mode %d, %s, at %.9g %.9g %.9g: ", dimensions,
              mode.address, mode.filter, mode.normalized ? "normalized" : "texels", at.x, at.y,
              at.z);
  std::printf("%.9g %.9g %.9g %.9g, not %.9g %.9g %.9g %.9g\n", got.x, got.y, got.z, got.w,
              wanted.x, wanted.y, wanted.z, wanted.w);
}

class Samples {
 public:
  Samples() {
    CUDA(cudaMalloc(&at_, kSamples * sizeof(float3)));
    CUDA(cudaMalloc(&out_, kSamples * sizeof(float4)));
  }
  ~Samples() {
    CUDA(cudaFree(at_));
    CUDA(cudaFree(out_));
  }

  template <int kDimensions>
  void Compare(cudaTextureObject_t texture, const Volume& volume, const Mode& mode, int channels) {
    const std::vector<float3> at = Coordinates(volume, mode.normalized);
    CUDA(cudaMemcpy(at_, at.data(), kSamples * sizeof(float3), cudaMemcpyHostToDevice));
    Fetch<kDimensions><<<(kSamples + 63) / 64, 64>>>(texture, at_, out_);
    std::vector<float4> out(kSamples);
    CUDA(cudaMemcpy(out.data(), out_, kSamples * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kSamples; ++i) {
      const Expected expected = Model(volume, kDimensions, at[i], mode);
      const bool is_well = IsNear(out[i], expected, channels);
      if (!is_well) Tell(out[i], expected, at[i], mode, kDimensions);
      REQUIRE(is_well);
    }
  }

 private:
  float3* at_ = nullptr;
  float4* out_ = nullptr;
};

// Texels as the array stores them, and as a texture reads them.
template <typename Channel>
struct Channels;
template <>
struct Channels<float> {
  static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKindFloat;
  static constexpr cudaTextureReadMode kRead = cudaReadModeElementType;
  static float Store(int number) { return static_cast<float>(number) * 0.37f - 40; }
  static float Read(float stored) { return stored; }
};
template <>
struct Channels<__half> {
  static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKindFloat;
  static constexpr cudaTextureReadMode kRead = cudaReadModeElementType;
  static __half Store(int number) { return __float2half(static_cast<float>(number) * 0.25f - 30); }
  static float Read(__half stored) { return __half2float(stored); }
};
template <>
struct Channels<unsigned char> {
  static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKindUnsigned;
  static constexpr cudaTextureReadMode kRead = cudaReadModeNormalizedFloat;
  static unsigned char Store(int number) { return static_cast<unsigned char>(number * 37); }
  static float Read(unsigned char stored) { return static_cast<float>(stored) / 255.0f; }
};
template <>
struct Channels<signed char> {
  static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKindSigned;
  static constexpr cudaTextureReadMode kRead = cudaReadModeNormalizedFloat;
  static signed char Store(int number) { return static_cast<signed char>(number * 37); }
  static float Read(signed char stored) { return std::fmax(stored / 127.0f, -1.0f); }
};
template <>
struct Channels<unsigned short> {
  static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKindUnsigned;
  static constexpr cudaTextureReadMode kRead = cudaReadModeNormalizedFloat;
  static unsigned short Store(int number) { return static_cast<unsigned short>(number * 4637); }
  static float Read(unsigned short stored) { return static_cast<float>(stored) / 65535.0f; }
};
template <>
struct Channels<short> {
  static constexpr cudaChannelFormatKind kKind = cudaChannelFormatKindSigned;
  static constexpr cudaTextureReadMode kRead = cudaReadModeNormalizedFloat;
  static short Store(int number) { return static_cast<short>(number * 4637); }
  static float Read(short stored) { return std::fmax(stored / 32767.0f, -1.0f); }
};

template <typename Channel, int kDimensions>
void CheckChannels(int channels) {
  using Traits = Channels<Channel>;
  Volume volume = {{}, {kWidth, kDimensions > 1 ? kHeight : 1, kDimensions > 2 ? kDepth : 1}};
  const int texels = volume.extent[0] * volume.extent[1] * volume.extent[2];
  std::vector<Channel> stored(static_cast<std::size_t>(texels * channels));
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = Traits::Store(static_cast<int>(i));
  for (int i = 0; i < texels; ++i) {
    const auto channel = [&](int c) {
      return c < channels ? Traits::Read(stored[static_cast<std::size_t>(i * channels + c)]) : 0;
    };
    volume.texels.push_back({channel(0), channel(1), channel(2), channel(3)});
  }

  constexpr int kBits = 8 * sizeof(Channel);
  const cudaChannelFormatDesc format = {kBits, channels > 1 ? kBits : 0, channels > 2 ? kBits : 0,
                                        channels > 2 ? kBits : 0, Traits::kKind};
  cudaArray_t array = nullptr;
  const cudaExtent extent = {kWidth, kDimensions > 1 ? std::size_t{kHeight} : 0,
                             kDimensions > 2 ? std::size_t{kDepth} : 0};
  CUDA(cudaMalloc3DArray(&array, &format, extent));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(stored.data(), kWidth * channels * sizeof(Channel), kWidth,
                                    static_cast<std::size_t>(volume.extent[1]));
  copy.dstArray = array;
  copy.extent = {kWidth, static_cast<std::size_t>(volume.extent[1]),
                 static_cast<std::size_t>(volume.extent[2])};
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3D(&copy));

  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  Samples samples;
  for (const auto address :
       {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder}) {
    for (const auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
      for (const bool normalized : {false, true}) {
        const Mode mode = {address, filter, normalized};
        const cudaTextureDesc description = Describe(mode, Traits::kRead);
        cudaTextureObject_t texture = 0;
        CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
        samples.Compare<kDimensions>(texture, volume, mode, channels);
        CUDA(cudaDestroyTextureObject(texture));
      }
    }
  }
  CUDA(cudaFreeArray(array));
}

template <typename T>
__global__ void FetchIntegers(cudaTextureObject_t texture, T* out) {
  out[threadIdx.x] = tex2D<T>(texture, threadIdx.x + 0.5f, 1.5f);
}

// Integers are read as they are, with their sign.
template <typename T>
void CheckIntegers() {
  std::vector<T> stored(2 * 32);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<T>(0x9e3779b9u * i);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t array = nullptr;
  CUDA(cudaMallocArray(&array, &format, 32, 2));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, stored.data(), 32 * sizeof(T), 32 * sizeof(T), 2,
                           cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  const cudaTextureDesc description = {};
  cudaTextureObject_t texture = 0;
  CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  T* out = nullptr;
  CUDA(cudaMalloc(&out, 32 * sizeof(T)));
  FetchIntegers<<<1, 32>>>(texture, out);
  std::vector<T> got(32);
  CUDA(cudaMemcpy(got.data(), out, 32 * sizeof(T), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < 32; ++i) REQUIRE(got[i] == stored[32 + i]);
  CUDA(cudaFree(out));
  CUDA(cudaDestroyTextureObject(texture));
  CUDA(cudaFreeArray(array));
}

}  // namespace

int main() {
  CheckChannels<float, 1>(1);
  CheckChannels<float, 2>(4);
  CheckChannels<float, 3>(2);
  CheckChannels<__half, 2>(2);
  CheckChannels<unsigned char, 2>(4);
  CheckChannels<signed char, 2>(1);
  CheckChannels<unsigned short, 3>(1);
  CheckChannels<short, 1>(4);
  CheckIntegers<unsigned char>();
  CheckIntegers<signed char>();
  CheckIntegers<unsigned short>();
  CheckIntegers<short>();
  CheckIntegers<unsigned>();
  CheckIntegers<int>();
  return Pass();
}
