// The spatial transformer: grids of affine maps, sampling by a grid, and the gradients of both.
#include <algorithm>
#include <cmath>

#include "emulator/dnn/handle.h"
#include "nvidia/cudnn/spatial.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

// bfloat16 is not supported: PyTorch does not sample bfloat16 by cuDNN either.
cudnnStatus_t CheckTransformer(const DnnSpatialTransformer* transformer) {
  if (transformer == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!DnnIsValid(*transformer)) return CUDNN_STATUS_BAD_PARAM;
  const std::int32_t type = transformer->type;
  const bool is_computable =
      type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF;
  return is_computable ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
}

// An output pixel in the coordinates of affine maps: x and y from -1 to 1, and 1 for the offset.
template <typename T>
struct Pixel {
  T coordinates[3];
};

// Maps 0..count-1 to -1..1; a single pixel lies in the middle.
template <typename T>
T CoordinateOf(int i, int count) {
  return count == 1 ? T(0) : static_cast<T>(2 * i - (count - 1)) / static_cast<T>(count - 1);
}

// Calls visit(first of the image's map, first of the pixel's place in the grid, pixel) for all.
template <typename T, typename Visit>
void ForEachPixel(const DnnSpatialTransformer& transformer, Visit visit) {
  const auto [images, channels, rows, columns] = transformer.dims;
  std::size_t place = 0;
  for (int image = 0; image < images; ++image) {
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column, place += 2) {
        visit(static_cast<std::size_t>(image) * 6, place,
              Pixel<T>{{CoordinateOf<T>(column, columns), CoordinateOf<T>(row, rows), T(1)}});
      }
    }
  }
}

// Applies each sample's affine map to all output pixels.
template <typename T>
std::vector<T> GridOf(const DnnSpatialTransformer& transformer, const std::vector<T>& theta) {
  std::vector<T> grid(CountOf(DnnGrid(transformer)));
  ForEachPixel<T>(transformer, [&](std::size_t map, std::size_t to, const Pixel<T>& pixel) {
    for (std::size_t i = 0; i < 6; ++i) {
      grid[to + i / 3] += theta[map + i] * pixel.coordinates[i % 3];
    }
  });
  return grid;
}

// Sums the gradient of the grid over the pixels of each sample.
template <typename T>
std::vector<T> ThetaGradient(const DnnSpatialTransformer& transformer,
                             const std::vector<T>& dgrid) {
  std::vector<T> dtheta(CountOf(DnnTheta(transformer)));
  ForEachPixel<T>(transformer, [&](std::size_t map, std::size_t from, const Pixel<T>& pixel) {
    for (std::size_t i = 0; i < 6; ++i) {
      dtheta[map + i] += dgrid[from + i / 3] * pixel.coordinates[i % 3];
    }
  });
  return dtheta;
}

// The shapes of a sampling call.
struct Sampling {
  DnnSpatialTransformer transformer;
  DnnTensor x;
  DnnTensor y;
};

// Reads and checks the descriptors of a sampling call.
cudnnStatus_t CheckSampling(const DnnSpatialTransformer* transformer, const DnnTensor* x,
                            const DnnTensor* y, Sampling& sampling) {
  cudnnStatus_t status = CheckTransformer(transformer);
  if (status == CUDNN_STATUS_SUCCESS) status = CheckTensors({x, y});
  if (status != CUDNN_STATUS_SUCCESS) return status;
  sampling = {*transformer, *x, *y};
  if (x->rank != kDnnTransformedRank || y->rank != x->rank || x->dims[0] != y->dims[0] ||
      x->dims[1] != y->dims[1] ||
      !std::equal(transformer->dims.begin(), transformer->dims.end(), y->dims.begin())) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return x->type == transformer->type && y->type == x->type ? status
                                                            : CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
}

// A pixel of x near a sampled position.
template <typename T>
struct Neighbour {
  std::size_t place;  // in its channel
  T weight;
  T slopes[2];  // of the weight, by the place's coordinates
};

// A grid coordinate in units of x's pixels, perhaps outside x.
template <typename T>
struct Along {
  Along(T coordinate, int pixels)
      : count(pixels),
        scale(static_cast<T>(pixels - 1) / 2),
        at((coordinate + 1) * scale),
        is_near(at >= -1 && at < static_cast<T>(pixels)),  // false of what is no number
        before(is_near ? static_cast<int>(std::floor(at)) : 0) {}

  int PixelOf(int side) const { return before + side; }
  bool Has(int side) const { return PixelOf(side) >= 0 && PixelOf(side) < count; }
  T WeightOf(int side) const { return T(1) - std::fabs(at - static_cast<T>(PixelOf(side))); }
  T SlopeOf(int side) const { return side == 0 ? -scale : scale; }

  const int count;
  const T scale;
  const T at;
  const bool is_near;
  const int before;
};

// Calls visit(neighbour) for the neighbours inside x, at most four; pixels outside x are zero.
template <typename T, typename Visit>
void ForEachNeighbour(const Along<T>& along_x, const Along<T>& along_y, Visit visit) {
  if (!along_x.is_near || !along_y.is_near) return;
  for (int corner = 0; corner < 4; ++corner) {
    const int right = corner % 2;
    const int below = corner / 2;
    if (!along_x.Has(right) || !along_y.Has(below)) continue;
    const auto row = static_cast<std::size_t>(along_y.PixelOf(below));
    const auto column = static_cast<std::size_t>(along_x.PixelOf(right));
    const T weight_x = along_x.WeightOf(right);
    const T weight_y = along_y.WeightOf(below);
    visit(Neighbour<T>{row * static_cast<std::size_t>(along_x.count) + column,
                       weight_x * weight_y,
                       {along_x.SlopeOf(right) * weight_y, along_y.SlopeOf(below) * weight_x}});
  }
}

// Calls visit(index in the grid, index in x, index in y, neighbour) for all elements of y and the
// pixels of x near each.
template <typename T, typename Visit>
void ForEachSample(const Sampling& s, const std::vector<T>& grid, Visit visit) {
  const auto channels = static_cast<std::size_t>(s.x.dims[1]);
  const std::size_t pixels_of_x = CountOf(s.x) / static_cast<std::size_t>(s.x.dims[0]) / channels;
  const std::size_t pixels_of_y = CountOf(s.y) / static_cast<std::size_t>(s.y.dims[0]) / channels;
  for (std::size_t point = 0; point < grid.size() / 2; ++point) {
    const Along<T> along_x(grid[2 * point], s.x.dims[3]);
    const Along<T> along_y(grid[2 * point + 1], s.x.dims[2]);
    ForEachNeighbour(along_x, along_y, [&](const Neighbour<T>& neighbour) {
      const std::size_t first = point / pixels_of_y * channels;
      for (std::size_t channel = first; channel < first + channels; ++channel) {
        visit(2 * point, channel * pixels_of_x + neighbour.place,
              channel * pixels_of_y + point % pixels_of_y, neighbour);
      }
    });
  }
}

// Bilinear interpolation: weighted sums of up to four neighbours.
template <typename T>
std::vector<T> Sampled(const Sampling& s, const std::vector<T>& x, const std::vector<T>& grid) {
  std::vector<T> y(CountOf(s.y));
  ForEachSample(s, grid,
                [&](std::size_t, std::size_t from, std::size_t to, const Neighbour<T>& neighbour) {
                  y[to] += neighbour.weight * x[from];
                });
  return y;
}

template <typename T>
struct SamplingGradients {
  std::vector<T> dx;
  std::vector<T> dgrid;
};

// The gradients of the source and of the grid.
template <typename T>
SamplingGradients<T> GradientsOf(const Sampling& s, const std::vector<T>& x,
                                 const std::vector<T>& grid, const std::vector<T>& dy) {
  SamplingGradients<T> gradients{std::vector<T>(x.size()), std::vector<T>(grid.size())};
  ForEachSample(
      s, grid,
      [&](std::size_t point, std::size_t from, std::size_t to, const Neighbour<T>& neighbour) {
        gradients.dx[from] += neighbour.weight * dy[to];
        for (std::size_t i = 0; i < 2; ++i) {
          gradients.dgrid[point + i] += neighbour.slopes[i] * x[from] * dy[to];
        }
      });
  return gradients;
}

}  // namespace

extern "C" {

// Makes the grid of all samples from their affine maps.
cudnnStatus_t cudnnSpatialTfGridGeneratorForward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t transformer, const void* theta,
    void* grid) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTransformer(transformer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const DnnSpatialTransformer t = *transformer;
    return Queue(context, {ReadExtent(DnnTheta(t), theta), WrittenExtent(DnnGrid(t), grid)}, [=] {
      InTypeOf(t.type, [&](auto type) {
        const auto maps = LoadTensor<decltype(type)>(DnnTheta(t), theta);
        StoreTensor(DnnGrid(t), grid, GridOf(t, maps));
      });
    });
  });
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t transformer, const void* dgrid,
    void* dtheta) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTransformer(transformer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const DnnSpatialTransformer t = *transformer;
    return Queue(context, {ReadExtent(DnnGrid(t), dgrid), WrittenExtent(DnnTheta(t), dtheta)}, [=] {
      InTypeOf(t.type, [&](auto type) {
        const auto slopes = LoadTensor<decltype(type)>(DnnGrid(t), dgrid);
        StoreTensor(DnnTheta(t), dtheta, ThetaGradient(t, slopes));
      });
    });
  });
}

// Samples x at the positions of the grid.
cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                           cudnnSpatialTransformerDescriptor_t transformer,
                                           const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                           const void* x, const void* grid, const void* beta,
                                           cudnnTensorDescriptor_t y_desc, void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    Sampling s;
    const cudnnStatus_t status = CheckSampling(transformer, x_desc, y_desc, s);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const DnnTensor points = DnnGrid(s.transformer);
    const Blend blend = Blend::Read(alpha, beta, s.y.type);
    return Queue(
        context, {ReadExtent(s.x, x), ReadExtent(points, grid), WrittenExtent(s.y, y)}, [=] {
          InTypeOf(s.y.type, [&](auto type) {
            using T = decltype(type);
            const auto made = Sampled(s, LoadTensor<T>(s.x, x), LoadTensor<T>(points, grid));
            StoreTensor(s.y, y, made, blend.alpha, blend.beta);
          });
        });
  });
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                            cudnnSpatialTransformerDescriptor_t transformer,
                                            const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                            const void* x, const void* beta,
                                            const cudnnTensorDescriptor_t dx_desc, void* dx,
                                            const void* alpha_dgrid,
                                            const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                            const void* grid, const void* beta_dgrid, void* dgrid) {
  return WithHandle(handle, [&](cudnnContext& context) {
    Sampling s;
    cudnnStatus_t status = CheckSampling(transformer, x_desc, dy_desc, s);
    if (status == CUDNN_STATUS_SUCCESS) status = CheckTensors({dx_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr || beta == nullptr || alpha_dgrid == nullptr || beta_dgrid == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const DnnTensor dxs = *dx_desc;
    if (!HaveOneShape(dxs, s.x) || dxs.type != s.x.type) return CUDNN_STATUS_BAD_PARAM;
    const DnnTensor points = DnnGrid(s.transformer);
    const Blend blend = Blend::Read(alpha, beta, dxs.type);
    const Blend blend_dgrid = Blend::Read(alpha_dgrid, beta_dgrid, points.type);
    return Queue(context,
                 {ReadExtent(s.x, x), ReadExtent(s.y, dy), ReadExtent(points, grid),
                  WrittenExtent(dxs, dx), WrittenExtent(points, dgrid)},
                 [=] {
                   InTypeOf(dxs.type, [&](auto type) {
                     using T = decltype(type);
                     const auto made =
                         GradientsOf(s, LoadTensor<T>(s.x, x), LoadTensor<T>(points, grid),
                                     LoadTensor<T>(s.y, dy));
                     StoreTensor(dxs, dx, made.dx, blend.alpha, blend.beta);
                     StoreTensor(points, dgrid, made.dgrid, blend_dgrid.alpha, blend_dgrid.beta);
                   });
                 });
  });
}

}  // extern "C"
