// Tensors: set, scaled, added, copied, put together, reduced.
#include <algorithm>
#include <cmath>
#include <limits>

#include "emulator/dnn/handle.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

// Whether `small` can be broadcast over `large`: each dimension is equal or 1.
bool SpreadsOver(const DnnTensor& small, const DnnTensor& large) {
  if (small.rank != large.rank) return false;
  for (int i = 0; i < small.rank; ++i) {
    if (small.dims[i] != 1 && small.dims[i] != large.dims[i]) return false;
  }
  return true;
}

// Calls visit(place in `large`, place in `small`), both dense.
template <typename Visit>
void ForEachPair(const DnnTensor& large, const DnnTensor& small, Visit visit) {
  IndexWalk walk(large.dims.data(), large.rank);
  std::size_t place = 0;
  do {
    std::size_t other = 0;
    for (int i = 0; i < large.rank; ++i) {
      const auto at = static_cast<std::size_t>(walk.index()[static_cast<std::size_t>(i)]);
      other = other * static_cast<std::size_t>(small.dims[i]) + (small.dims[i] == 1 ? 0 : at);
    }
    visit(place, other);
    ++place;
  } while (walk.Next());
}

// Broadcasts a tensor to a larger shape.
template <typename T>
std::vector<T> Spread(const DnnTensor& small, const DnnTensor& large,
                      const std::vector<T>& values) {
  std::vector<T> all(CountOf(large));
  ForEachPair(large, small, [&](std::size_t to, std::size_t from) { all[to] = values[from]; });
  return all;
}

// Sums and products propagate NaN; other operations do if the mode says so.
template <typename T>
T Combine(const DnnOpTensor& operation, T a, T b) {
  const bool propagates = operation.nan == CUDNN_PROPAGATE_NAN;
  if (propagates && (std::isnan(a) || std::isnan(b))) return a + b;
  switch (operation.operation) {
    case CUDNN_OP_TENSOR_ADD:
      return a + b;
    case CUDNN_OP_TENSOR_MUL:
      return a * b;
    case CUDNN_OP_TENSOR_MIN:
      return std::fmin(a, b);
    case CUDNN_OP_TENSOR_MAX:
      return std::fmax(a, b);
    case CUDNN_OP_TENSOR_SQRT:
      return std::sqrt(a);
    default:
      return 1 - a;
  }
}

// The initial value of a reduction.
double FirstOf(std::int32_t operation) {
  switch (operation) {
    case CUDNN_REDUCE_TENSOR_MUL:
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return 1;
    case CUDNN_REDUCE_TENSOR_MIN:
      return std::numeric_limits<double>::infinity();
    case CUDNN_REDUCE_TENSOR_MAX:
      return -std::numeric_limits<double>::infinity();
    default:
      return 0;
  }
}

// Adds one value to a reduction.
double Step(std::int32_t operation, double so_far, double value) {
  switch (operation) {
    case CUDNN_REDUCE_TENSOR_MUL:
      return so_far * value;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return value == 0 ? so_far : so_far * value;
    case CUDNN_REDUCE_TENSOR_MIN:
      return std::isnan(value) || value < so_far ? value : so_far;
    case CUDNN_REDUCE_TENSOR_MAX:
      return std::isnan(value) || value > so_far ? value : so_far;
    case CUDNN_REDUCE_TENSOR_AMAX:
      return std::isnan(value) ? value : std::max(so_far, std::fabs(value));
    case CUDNN_REDUCE_TENSOR_NORM1:
      return so_far + std::fabs(value);
    case CUDNN_REDUCE_TENSOR_NORM2:
      return so_far + value * value;
    default:
      return so_far + value;
  }
}

// Reduces in double precision, whatever the type of the tensors.
std::vector<double> Reduce(const DnnReduceTensor& reduction, const DnnTensor& from,
                           const DnnTensor& to, const std::vector<double>& values) {
  std::vector<double> reduced(CountOf(to), FirstOf(reduction.operation));
  ForEachPair(from, to, [&](std::size_t i, std::size_t j) {
    // Skips NaN unless NaN is to be propagated.
    if (std::isnan(values[i]) && reduction.nan == CUDNN_NOT_PROPAGATE_NAN) return;
    reduced[j] = Step(reduction.operation, reduced[j], values[i]);
  });
  const double each = static_cast<double>(values.size()) / static_cast<double>(reduced.size());
  for (double& value : reduced) {
    if (reduction.operation == CUDNN_REDUCE_TENSOR_AVG) value /= each;
    if (reduction.operation == CUDNN_REDUCE_TENSOR_NORM2) value = std::sqrt(value);
  }
  return reduced;
}

// Reads the value of a cudnnSetTensor call, stored in the tensor's own type.
double ReadElement(const void* element, std::int32_t type) {
  const DnnTensor one{.type = type, .rank = 1, .dims = {1}, .strides = {1}};
  return LoadTensor<double>(one, element).front();
}

// Queues y = alpha * x + beta * y, x being spread over y.
cudnnStatus_t QueueSum(cudnnContext& context, const void* alpha, const DnnTensor* x_desc,
                       const void* x, const void* beta, const DnnTensor* y_desc, void* y) {
  const cudnnStatus_t status = CheckTensors({x_desc, y_desc});
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const DnnTensor from = *x_desc;
  const DnnTensor to = *y_desc;
  if (!SpreadsOver(from, to)) return CUDNN_STATUS_BAD_PARAM;
  const Blend blend = Blend::Read(alpha, beta, to.type);
  return Queue(context, {ReadExtent(from, x), WrittenExtent(to, y)}, [=] {
    InTypeOf(to.type, [&](auto type) {
      using T = decltype(type);
      StoreTensor(to, y, Spread(from, to, LoadTensor<T>(from, x)), blend.alpha, blend.beta);
    });
  });
}

}  // namespace

extern "C" {

// Sets all elements to one value.
cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void* y,
                             const void* value) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTensors({y_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (value == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const DnnTensor to = *y_desc;
    const double number = ReadElement(value, to.type);
    return Queue(context, {WrittenExtent(to, y)},
                 [=] { StoreTensor(to, y, std::vector<double>(CountOf(to), number)); });
  });
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void* y,
                               const void* alpha) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTensors({y_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (alpha == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const DnnTensor to = *y_desc;
    const double factor = ReadScalar(alpha, to.type);
    return Queue(context, {WrittenExtent(to, y)}, [=] {
      InTypeOf(to.type,
               [&](auto type) { StoreTensor(to, y, LoadTensor<decltype(type)>(to, y), factor); });
    });
  });
}

// Adds a tensor that may be broadcast: biases, for example.
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                             const cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
                             const cudnnTensorDescriptor_t c_desc, void* c) {
  return WithHandle(handle, [&](cudnnContext& context) {
    return QueueSum(context, alpha, a_desc, a, beta, c_desc, c);
  });
}

// Copies between layouts and types.
cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                   const cudnnTensorDescriptor_t x_desc, const void* x,
                                   const void* beta, const cudnnTensorDescriptor_t y_desc,
                                   void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    if (x_desc == nullptr || y_desc == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!HaveOneShape(*x_desc, *y_desc)) return CUDNN_STATUS_BAD_PARAM;
    return QueueSum(context, alpha, x_desc, x, beta, y_desc, y);
  });
}

// An operation on two tensors, of which the second may be broadcast.
cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t op_desc,
                            const void* alpha1, const cudnnTensorDescriptor_t a_desc, const void* a,
                            const void* alpha2, const cudnnTensorDescriptor_t b_desc, const void* b,
                            const void* beta, const cudnnTensorDescriptor_t c_desc, void* c) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTensors({a_desc, b_desc, c_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (op_desc == nullptr || alpha1 == nullptr || alpha2 == nullptr || beta == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const DnnOpTensor operation = *op_desc;
    const DnnTensor as = *a_desc;
    const DnnTensor bs = *b_desc;
    const DnnTensor cs = *c_desc;
    if (!HaveOneShape(as, cs) || !SpreadsOver(bs, cs)) return CUDNN_STATUS_BAD_PARAM;
    const double first = ReadScalar(alpha1, cs.type);
    const double second = ReadScalar(alpha2, cs.type);
    const double kept = ReadScalar(beta, cs.type);
    return Queue(context, {ReadExtent(as, a), ReadExtent(bs, b), WrittenExtent(cs, c)}, [=] {
      InTypeOf(cs.type, [&](auto type) {
        using T = decltype(type);
        auto values = LoadTensor<T>(as, a);
        const auto others = Spread(bs, cs, LoadTensor<T>(bs, b));
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = Combine(operation, static_cast<T>(first) * values[i],
                              static_cast<T>(second) * others[i]);
        }
        StoreTensor(cs, c, values, 1, kept);
      });
    });
  });
}

// Indices of reductions are not computed.
cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                           const cudnnReduceTensorDescriptor_t reduction,
                                           const cudnnTensorDescriptor_t,
                                           const cudnnTensorDescriptor_t, size_t* bytes) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (reduction == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    *bytes = 0;
    return reduction->indices == CUDNN_REDUCE_TENSOR_NO_INDICES ? CUDNN_STATUS_SUCCESS
                                                                : CUDNN_STATUS_NOT_SUPPORTED;
  });
}

// The emulator needs no workspace.
cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                             const cudnnReduceTensorDescriptor_t reduction,
                                             const cudnnTensorDescriptor_t,
                                             const cudnnTensorDescriptor_t, size_t* bytes) {
  return WithHandle(handle, [&](cudnnContext&) {
    if (reduction == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
  });
}

// The dimensions of the result that have size 1 are reduced.
cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t reduction,
                                void*, size_t, void*, size_t, const void* alpha,
                                const cudnnTensorDescriptor_t a_desc, const void* a,
                                const void* beta, const cudnnTensorDescriptor_t c_desc, void* c) {
  return WithHandle(handle, [&](cudnnContext& context) {
    const cudnnStatus_t status = CheckTensors({a_desc, c_desc});
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (reduction == nullptr || alpha == nullptr || beta == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    const DnnReduceTensor how = *reduction;
    if (how.indices != CUDNN_REDUCE_TENSOR_NO_INDICES) return CUDNN_STATUS_NOT_SUPPORTED;
    const DnnTensor from = *a_desc;
    const DnnTensor to = *c_desc;
    if (!SpreadsOver(to, from)) return CUDNN_STATUS_BAD_PARAM;
    const Blend blend = Blend::Read(alpha, beta, to.type);
    return Queue(context, {ReadExtent(from, a), WrittenExtent(to, c)}, [=] {
      StoreTensor(to, c, Reduce(how, from, to, LoadTensor<double>(from, a)), blend.alpha,
                  blend.beta);
    });
  });
}

}  // extern "C"
