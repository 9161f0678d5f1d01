#include "emulator/dnn/onednn_convolution.h"

#include <omp.h>

#include <dnnl.hpp>

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

// A dense operand of a primitive, and the order that the primitive wants.
struct Operand {
  int argument;
  const Dims& dims;
  const std::vector<float>& values;
  memory::desc wanted;
};

// The result of a primitive: dense dimensions, and the order that the primitive makes.
struct Result {
  int argument;
  const Dims& dims;
  memory::desc made;
};

// Returns the operand in the order that the primitive wants, without a copy if that is dense.
memory Ordered(const Operand& operand, dnnl::stream& stream) {
  memory dense(Dense(operand.dims), Engine(), const_cast<float*>(operand.values.data()));
  if (operand.wanted == dense.get_desc()) return dense;
  memory reordered(operand.wanted, Engine());
  dnnl::reorder(dense, reordered).execute(stream, dense, reordered);
  return reordered;
}

// Executes a primitive, waits, and returns the dense result.
std::vector<float> Execute(const dnnl::primitive& primitive, const Operand& first,
                           const Operand& second, const Result& result) {
  dnnl::stream stream(Engine());
  omp_set_num_threads(LibraryThreads());
  memory made(result.made, Engine());
  primitive.execute(stream, {{first.argument, Ordered(first, stream)},
                             {second.argument, Ordered(second, stream)},
                             {result.argument, made}});
  const memory::desc wanted = Dense(result.dims);
  std::vector<float> values(wanted.get_size() / sizeof(float));
  memory dense(wanted, Engine(), values.data());
  dnnl::reorder(made, dense).execute(stream, made, dense);
  stream.wait();
  return values;
}

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
  return Execute(dnnl::convolution_forward(descriptor),
                 {DNNL_ARG_SRC, s.x, x, descriptor.src_desc()},
                 {DNNL_ARG_WEIGHTS, s.w, w, descriptor.weights_desc()},
                 {DNNL_ARG_DST, s.y, descriptor.dst_desc()});
}

std::vector<float> OneDnnBackwardData(const ConvolutionShape& shape, const std::vector<float>& w,
                                      const std::vector<float>& dy) {
  const Shapes s(shape);
  const auto descriptor = BackwardDescriptor<dnnl::convolution_backward_data>(s);
  return Execute(dnnl::convolution_backward_data(descriptor),
                 {DNNL_ARG_WEIGHTS, s.w, w, descriptor.weights_desc()},
                 {DNNL_ARG_DIFF_DST, s.y, dy, descriptor.diff_dst_desc()},
                 {DNNL_ARG_DIFF_SRC, s.x, descriptor.diff_src_desc()});
}

std::vector<float> OneDnnBackwardFilter(const ConvolutionShape& shape, const std::vector<float>& x,
                                        const std::vector<float>& dy) {
  const Shapes s(shape);
  const auto descriptor = BackwardDescriptor<dnnl::convolution_backward_weights>(s);
  return Execute(dnnl::convolution_backward_weights(descriptor),
                 {DNNL_ARG_SRC, s.x, x, descriptor.src_desc()},
                 {DNNL_ARG_DIFF_DST, s.y, dy, descriptor.diff_dst_desc()},
                 {DNNL_ARG_DIFF_WEIGHTS, s.w, descriptor.diff_weights_desc()});
}

}  // namespace torpor::emulator
