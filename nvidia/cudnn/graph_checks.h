#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nvidia/cudnn/graph.h"
#include "nvidia/cudnn/shapes.h"

// Validity of graphs, and which tensors they read and write. Safe for arbitrary values: used for
// graphs made from a program's descriptors and for graphs received from outside.
namespace torpor {

inline constexpr std::size_t kMaxDnnGraphTensors = 64;
inline constexpr std::size_t kMaxDnnGraphOperations = 32;
inline constexpr std::size_t kMaxDnnKnobs = 256;

// Whether the operation is a convolution or one of its gradients.
constexpr bool DnnIsConvolution(std::int32_t kind) {
  return kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

// Number of operands of a function; 0 for unknown functions and functions with other operands.
constexpr int DnnOperands(std::int32_t pointwise_mode) {
  switch (pointwise_mode) {
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_ADD_SQUARE:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_MAX:
    case CUDNN_POINTWISE_MIN:
    case CUDNN_POINTWISE_MOD:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_POW:
    case CUDNN_POINTWISE_SUB:
      return 2;
    case CUDNN_POINTWISE_ABS:
    case CUDNN_POINTWISE_CEIL:
    case CUDNN_POINTWISE_COS:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_FLOOR:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_NEG:
    case CUDNN_POINTWISE_RSQRT:
    case CUDNN_POINTWISE_SIN:
    case CUDNN_POINTWISE_SQRT:
    case CUDNN_POINTWISE_TAN:
    case CUDNN_POINTWISE_ERF:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_RECIPROCAL:
    case CUDNN_POINTWISE_RELU_FWD:
    case CUDNN_POINTWISE_TANH_FWD:
    case CUDNN_POINTWISE_SIGMOID_FWD:
    case CUDNN_POINTWISE_ELU_FWD:
    case CUDNN_POINTWISE_GELU_FWD:
    case CUDNN_POINTWISE_SOFTPLUS_FWD:
    case CUDNN_POINTWISE_SWISH_FWD:
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
      return 1;
    default:
      return 0;
  }
}

// Validity of the parts of a graph, each by itself.
constexpr bool DnnIsValid(const DnnGraphTensor& x) {
  const bool aligned = x.alignment >= 1 && (x.alignment & (x.alignment - 1)) == 0;
  return DnnIsValid(x.shape) && aligned && x.is_virtual <= 1;
}

constexpr bool DnnIsValid(const DnnGraphConvolution& c) {
  if (!DnnWindowIsValid(c.rank) || DnnTypeBytes(c.compute_type) == 0) return false;
  for (std::size_t i = 0; i < DnnDimensions(c.rank); ++i) {
    if (c.before[i] < 0 || c.after[i] < 0 || c.strides[i] < 1 || c.dilation[i] < 1) return false;
  }
  return c.mode == CUDNN_CONVOLUTION || c.mode == CUDNN_CROSS_CORRELATION;
}

constexpr bool DnnIsValid(const DnnPointwise& p) {
  return DnnOperands(p.mode) > 0 && DnnTypeBytes(p.compute_type) > 0 && p.nan >= 0 && p.nan <= 1;
}

inline bool DnnIsValid(const DnnEngineConfig& config) {
  return config.engine >= 0 && config.knobs.size() <= kMaxDnnKnobs;
}

// Whether y has the shape of a convolution of x by w.
constexpr bool DnnShapesAgree(const DnnGraphConvolution& c, const DnnTensor& x, const DnnTensor& w,
                              const DnnTensor& y) {
  if (x.rank != c.rank + 2 || w.rank != x.rank || y.rank != x.rank) return false;
  if (x.dims[1] % w.dims[1] != 0 || w.dims[0] % (x.dims[1] / w.dims[1]) != 0) return false;
  if (y.dims[0] != x.dims[0] || y.dims[1] != w.dims[0]) return false;
  for (std::size_t i = 0; i < DnnDimensions(c.rank); ++i) {
    const std::int64_t window = (std::int64_t{w.dims[i + 2]} - 1) * c.dilation[i] + 1;
    const std::int64_t room = std::int64_t{x.dims[i + 2]} + c.before[i] + c.after[i] - window;
    if (room < 0 || room / c.strides[i] + 1 != y.dims[i + 2]) return false;
  }
  return true;
}

// Whether `operand` can be broadcast to y's shape.
constexpr bool DnnSpreadsOver(const DnnTensor& operand, const DnnTensor& y) {
  if (operand.rank != y.rank) return false;
  for (std::size_t i = 0; i < DnnDimensions(y.rank); ++i) {
    if (operand.dims[i] != y.dims[i] && operand.dims[i] != 1) return false;
  }
  return true;
}

// The index of the tensor that an operation computes.
constexpr std::uint32_t DnnMadeBy(const DnnGraphOperation& o) {
  switch (o.kind) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return o.x;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return o.w;
    default:
      return o.y;
  }
}

// Returns the fault of an operation, apart from the order of operations, or null.
inline const char* DnnFault(const DnnGraph& graph, const DnnGraphOperation& o) {
  const std::size_t count = graph.tensors.size();
  const bool is_convolution = DnnIsConvolution(o.kind);
  if (!is_convolution && o.kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
    return "an operation is neither a convolution nor pointwise";
  if (o.scalar_type != CUDNN_TYPE_FLOAT && o.scalar_type != CUDNN_TYPE_DOUBLE)
    return "alpha and beta are neither float nor double";
  const bool binary = is_convolution || DnnOperands(o.pointwise.mode) == 2;
  if (o.x >= count || o.y >= count || (binary ? o.w >= count : o.w != kDnnNoTensor))
    return "an operation lacks a tensor, or has one too many";
  const DnnTensor& x = graph.tensors[o.x].shape;
  const DnnTensor& y = graph.tensors[o.y].shape;
  if (is_convolution) {
    if (!DnnIsValid(o.convolution)) return "a convolution's window is not valid";
    return DnnShapesAgree(o.convolution, x, graph.tensors[o.w].shape, y)
               ? nullptr
               : "the shapes of a convolution's tensors do not go together";
  }
  if (!DnnIsValid(o.pointwise)) return "a pointwise function is not known";
  const bool spread =
      DnnSpreadsOver(x, y) && (!binary || DnnSpreadsOver(graph.tensors[o.w].shape, y));
  return spread ? nullptr : "the operands of a pointwise function do not have its result's shape";
}

// Returns the fault of a graph, or null. In a faultless graph every virtual tensor is computed
// before it is read, and no tensor is computed twice.
inline const char* DnnFault(const DnnGraph& graph) {
  if (graph.operations.empty() || graph.operations.size() > kMaxDnnGraphOperations ||
      graph.tensors.size() > kMaxDnnGraphTensors) {
    return "a graph has no operation, or too many";
  }
  for (const DnnGraphTensor& tensor : graph.tensors) {
    if (!DnnIsValid(tensor)) return "a tensor is not valid";
    const auto has_its_id = [&](const DnnGraphTensor& other) { return other.id == tensor.id; };
    if (std::count_if(graph.tensors.begin(), graph.tensors.end(), has_its_id) != 1)
      return "two tensors have one id";
  }
  std::uint64_t made = 0;  // a bit a tensor
  for (const DnnGraphOperation& o : graph.operations) {
    if (const char* const fault = DnnFault(graph, o)) return fault;
    const std::uint32_t result = DnnMadeBy(o);
    for (const std::uint32_t place : {o.x, o.w, o.y}) {
      if (place == result || place == kDnnNoTensor) continue;
      if (graph.tensors[place].is_virtual != 0 && (made >> place & 1) == 0)
        return "a virtual tensor is read before an operation makes it";
    }
    if ((made >> result & 1) != 0) return "two operations make one tensor";
    made |= std::uint64_t{1} << result;
  }
  return nullptr;
}

// Which accesses to a tensor's memory an execution makes.
struct DnnTensorUse {
  bool is_read = false;
  bool is_written = false;
};

// Returns how a valid graph uses the tensor at index `place`.
inline DnnTensorUse DnnUseOf(const DnnGraph& graph, std::uint32_t place) {
  DnnTensorUse use;
  for (const DnnGraphOperation& o : graph.operations) {
    const std::uint32_t result = DnnMadeBy(o);
    const bool keeps = DnnIsConvolution(o.kind) && o.beta != 0;
    use.is_written = use.is_written || place == result;
    for (const std::uint32_t operand : {o.x, o.w, o.y})
      use.is_read = use.is_read || (operand == place && (place != result || keeps));
  }
  return use;
}

}  // namespace torpor
