#include "emulator/dnn/graph_execution.h"

#include <algorithm>
#include <utility>

#include "emulator/dnn/convolution.h"
#include "emulator/dnn/pointwise.h"
#include "emulator/dnn/tensor_values.h"
#include "nvidia/cudnn/graph_checks.h"

namespace torpor::emulator {
namespace {

// Types in which graphs are computed.
bool IsFloating(std::int32_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
         type == CUDNN_DATA_BFLOAT16;
}

// The padding after the input follows from y's shape.
ConvolutionShape ShapeOf(const DnnGraph& graph, const DnnGraphOperation& o) {
  const DnnTensor& x = graph.tensors[o.x].shape;
  const DnnTensor& w = graph.tensors[o.w].shape;
  ConvolutionShape shape;
  shape.x = x;
  shape.y = graph.tensors[o.y].shape;
  shape.w = {.type = w.type, .format = CUDNN_TENSOR_NCHW, .rank = w.rank, .dims = w.dims};
  shape.convolution = {.rank = o.convolution.rank,
                       .padding = o.convolution.before,
                       .strides = o.convolution.strides,
                       .dilation = o.convolution.dilation,
                       .mode = o.convolution.mode,
                       .compute_type = o.convolution.compute_type,
                       .groups = x.dims[1] / w.dims[1]};
  return shape;
}

// The values of a graph's tensors during execution in type T.
template <typename T>
class Execution {
 public:
  Execution(const DnnGraph& graph, const std::vector<void*>& addresses)
      : graph_(graph), addresses_(addresses), values_(graph.tensors.size()) {}

  // Executes the operations in order and stores the results that are not virtual.
  void Run() {
    for (const DnnGraphOperation& o : graph_.operations) {
      std::vector<T> made = DnnIsConvolution(o.kind) ? Convolve(o) : Apply(o);
      const std::uint32_t place = DnnMadeBy(o);
      if (graph_.tensors[place].is_virtual == 0)
        StoreTensor(graph_.tensors[place].shape, addresses_[place], made);
      values_[place] = std::move(made);
    }
  }

 private:
  // Loads the tensor at first use, unless an operation has computed the values.
  const std::vector<T>& ValuesOf(std::uint32_t place) {
    if (values_[place].empty())
      values_[place] = LoadTensor<T>(graph_.tensors[place].shape, addresses_[place]);
    return values_[place];
  }

  // Scales the product by alpha and adds beta times the old values.
  std::vector<T> Convolve(const DnnGraphOperation& o) {
    std::vector<T> made = Product(o);
    const std::vector<T>* const kept = o.beta == 0 ? nullptr : &ValuesOf(DnnMadeBy(o));
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] *= static_cast<T>(o.alpha);
      if (kept != nullptr) made[i] += static_cast<T>(o.beta) * (*kept)[i];
    }
    return made;
  }

  // A convolution or one of its gradients, unscaled.
  std::vector<T> Product(const DnnGraphOperation& o) {
    const ConvolutionShape shape = ShapeOf(graph_, o);
    switch (o.kind) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return ConvolveForward(shape, ValuesOf(o.x), ValuesOf(o.w));
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return ConvolveBackwardData(shape, ValuesOf(o.w), ValuesOf(o.y));
      default:
        return ConvolveBackwardFilter(shape, ValuesOf(o.x), ValuesOf(o.y));
    }
  }

  // An operand scaled by 0 is not read: PyTorch passes uninitialised memory.
  std::vector<T> Apply(const DnnGraphOperation& o) {
    const DnnTensor& y = graph_.tensors[o.y].shape;
    std::vector<T> made = o.alpha == 0 ? std::vector<T>(CountOf(y)) : Spread(o.x, y);
    const bool is_alone = o.w == kDnnNoTensor || o.beta == 0;
    const std::vector<T> others = is_alone ? std::vector<T>() : Spread(o.w, y);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const T other = is_alone ? T(0) : static_cast<T>(o.beta) * others[i];
      made[i] = Pointwise(o.pointwise, static_cast<T>(o.alpha) * made[i], other);
    }
    return made;
  }

  // An operand's values, repeated where y is longer.
  std::vector<T> Spread(std::uint32_t operand, const DnnTensor& to) {
    const DnnTensor& from = graph_.tensors[operand].shape;
    const std::vector<T>& values = ValuesOf(operand);
    if (from.dims == to.dims) return values;
    std::vector<T> spread;
    spread.reserve(CountOf(to));
    IndexWalk walk(to.dims.data(), to.rank);
    do {
      std::size_t place = 0;
      for (std::size_t i = 0; i < DnnDimensions(to.rank); ++i) {
        const std::int32_t index = from.dims[i] == 1 ? 0 : walk.index()[i];
        place = place * static_cast<std::size_t>(from.dims[i]) + static_cast<std::size_t>(index);
      }
      spread.push_back(values[place]);
    } while (walk.Next());
    return spread;
  }

  const DnnGraph& graph_;
  const std::vector<void*>& addresses_;
  std::vector<std::vector<T>> values_;  // empty: not known yet
};

}  // namespace

const char* DnnGraphObstacle(const DnnGraph& graph) {
  for (const DnnGraphTensor& tensor : graph.tensors) {
    if (!IsFloating(tensor.shape.type)) return "tensors of integers";
  }
  for (const DnnGraphOperation& o : graph.operations) {
    if (!DnnIsConvolution(o.kind)) {
      if (!HasPointwise(o.pointwise.mode)) return "this pointwise function";
      continue;
    }
    if (o.convolution.rank > 3) return "convolutions of more than three dimensions";
    if (graph.tensors[o.x].shape.type != graph.tensors[o.w].shape.type &&
        o.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
      return "a filter of another type than what it is applied to";
    }
  }
  return nullptr;
}

// Computes in double if any tensor is double, else in float.
void ExecuteGraph(const DnnGraph& graph, const std::vector<void*>& addresses) {
  const bool in_double = std::any_of(
      graph.tensors.begin(), graph.tensors.end(),
      [](const DnnGraphTensor& tensor) { return tensor.shape.type == CUDNN_DATA_DOUBLE; });
  if (in_double)
    Execution<double>(graph, addresses).Run();
  else
    Execution<float>(graph, addresses).Run();
}

}  // namespace torpor::emulator
