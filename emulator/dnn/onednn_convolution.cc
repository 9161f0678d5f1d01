#include "emulator/dnn/onednn_convolution.h"

#include <omp.h>

#include <dnnl.hpp>
#include <unordered_map>

#include "emulator/dnn/tensor_values.h"
#include "emulator/library/thread_count.h"

namespace torpor::emulator {
namespace {

using dnnl::memory;
using Dims = memory::dims;
constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

const dnnl::engine& Engine() {
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// Dense, in the order of the dimensions.
memory::desc Dense(const Dims& dims) {
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return {dims, memory::data_type::f32, strides};
}

// Leaves the order to oneDNN.
memory::desc Any(const Dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::any};
}

// The shapes of a convolution as oneDNN describes them; groups are a dimension of the filter.
struct Shapes {
  explicit Shapes(const ConvolutionShape& s) {
    const int rank = s.convolution.rank;
    const int groups = s.convolution.groups;
    x.assign(s.x.dims.begin(), s.x.dims.begin() + rank + 2);
    y.assign(s.y.dims.begin(), s.y.dims.begin() + rank + 2);
    if (groups > 1) w = {groups};
    w.insert(w.end(), {s.w.dims[0] / groups, s.w.dims[1]});
    w.insert(w.end(), s.w.dims.begin() + 2, s.w.dims.begin() + rank + 2);
    for (int i = 0; i < rank; ++i) {
      const std::int64_t step = s.convolution.strides[i];
      const std::int64_t apart = s.convolution.dilation[i];
      strides.push_back(step);
      dilates.push_back(apart - 1);
      left.push_back(s.convolution.padding[i]);
      // The right padding that gives the output's length; the last elements of the input may be
      // unused, and the padding negative.
      const std::int64_t reach = (s.y.dims[i + 2] - 1) * step + (s.w.dims[i + 2] - 1) * apart + 1;
      right.push_back(reach - s.x.dims[i + 2] - s.convolution.padding[i]);
    }
  }

  Dims x;
  Dims w;
  Dims y;
  Dims strides;
  Dims dilates;
  Dims left;
  Dims right;
};

// One execution of a primitive, with dense operands and a dense result.
class Execution {
 public:
  Execution() : stream_(Engine()) { omp_set_num_threads(LibraryThreads()); }

  // Passes an operand to the primitive, reordered if the primitive wants another order.
  void Give(int argument, const Dims& dims, const std::vector<float>& values,
            const memory::desc& wanted) {
    memory dense(Dense(dims), Engine(), const_cast<float*>(values.data()));
    if (wanted == dense.get_desc()) {
      arguments_.insert_or_assign(argument, dense);
      return;
    }
    memory reordered(wanted, Engine());
    dnnl::reorder(dense, reordered).execute(stream_, dense, reordered);
    arguments_.insert_or_assign(argument, reordered);
  }

  // Executes the primitive, waits, and returns the dense result.
  std::vector<float> Run(const dnnl::primitive& primitive, int argument, const Dims& dims,
                         const memory::desc& made) {
    memory result(made, Engine());
    arguments_.insert_or_assign(argument, result);
    primitive.execute(stream_, arguments_);
    const memory::desc wanted = Dense(dims);
    std::vector<float> values(wanted.get_size() / sizeof(float));
    memory dense(wanted, Engine(), values.data());
    dnnl::reorder(result, dense).execute(stream_, result, dense);
    stream_.wait();
    return values;
  }

 private:
  dnnl::stream stream_;
  std::unordered_map<int, memory> arguments_;
};

// The backward primitives need the forward descriptor as a hint.
dnnl::convolution_forward::primitive_desc ForwardDescriptor(const Shapes& s) {
  return {{dnnl::prop_kind::forward_training, kAlgorithm, Any(s.x), Any(s.w), Any(s.y), s.strides,
           s.dilates, s.left, s.right},
          Engine()};
}

// Describes the gradient of the data or of the weights.
template <typename Gradient>
typename Gradient::primitive_desc BackwardDescriptor(const Shapes& s) {
  return {{kAlgorithm, Any(s.x), Any(s.w), Any(s.y), s.strides, s.dilates, s.left, s.right},
          Engine(),
          ForwardDescriptor(s)};
}

}  // namespace

std::vector<float> OneDnnForward(const ConvolutionShape& shape, const std::vector<float>& x,
                                 const std::vector<float>& w) {
  const Shapes s(shape);
  const auto descriptor = ForwardDescriptor(s);
  Execution execution;
  execution.Give(DNNL_ARG_SRC, s.x, x, descriptor.src_desc());
  execution.Give(DNNL_ARG_WEIGHTS, s.w, w, descriptor.weights_desc());
  return execution.Run(dnnl::convolution_forward(descriptor), DNNL_ARG_DST, s.y,
                       descriptor.dst_desc());
}

std::vector<float> OneDnnBackwardData(const ConvolutionShape& shape, const std::vector<float>& w,
                                      const std::vector<float>& dy) {
  const Shapes s(shape);
  const auto descriptor = BackwardDescriptor<dnnl::convolution_backward_data>(s);
  Execution execution;
  execution.Give(DNNL_ARG_WEIGHTS, s.w, w, descriptor.weights_desc());
  execution.Give(DNNL_ARG_DIFF_DST, s.y, dy, descriptor.diff_dst_desc());
  return execution.Run(dnnl::convolution_backward_data(descriptor), DNNL_ARG_DIFF_SRC, s.x,
                       descriptor.diff_src_desc());
}

std::vector<float> OneDnnBackwardFilter(const ConvolutionShape& shape, const std::vector<float>& x,
                                        const std::vector<float>& dy) {
  const Shapes s(shape);
  const auto descriptor = BackwardDescriptor<dnnl::convolution_backward_weights>(s);
  Execution execution;
  execution.Give(DNNL_ARG_SRC, s.x, x, descriptor.src_desc());
  execution.Give(DNNL_ARG_DIFF_DST, s.y, dy, descriptor.diff_dst_desc());
  return execution.Run(dnnl::convolution_backward_weights(descriptor), DNNL_ARG_DIFF_WEIGHTS, s.w,
                       descriptor.diff_weights_desc());
}

}  // namespace torpor::emulator
