#include "server/executor/library/cudnn_descriptors.h"

#include <utility>
#include <vector>

#include "proto/wire/codec.h"

namespace torpor::executor {
namespace {

// Of each kind; a model has hundreds of shapes.
constexpr std::size_t kMaxDescriptors = 4096;

// Calls `function`, or returns an error if the library lacks the function.
template <typename... Parameters, typename... Arguments>
cudnnStatus_t Do(cudnnStatus_t (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? CUDNN_STATUS_NOT_SUPPORTED : function(arguments...);
}

bool AllDone(std::initializer_list<cudnnStatus_t> statuses) {
  for (const cudnnStatus_t status : statuses) {
    if (status != CUDNN_STATUS_SUCCESS) return false;
  }
  return true;
}

cudnnDataType_t Type(std::int32_t type) { return static_cast<cudnnDataType_t>(type); }
cudnnNanPropagation_t Nan(std::int32_t nan) { return static_cast<cudnnNanPropagation_t>(nan); }

}  // namespace

template <typename Real, typename Value, typename Set>
Real CudnnDescriptors::Find(ByValue<Real>& known, cudnnStatus_t (*create)(Real*),
                            cudnnStatus_t (*destroy)(Real), const Value& value, Set set) {
  const std::vector<std::uint8_t> encoded = wire::Encoded(value);
  std::string key(encoded.begin(), encoded.end());
  if (const auto found = known.find(key); found != known.end()) return found->second;
  Real real = nullptr;
  if (create == nullptr || destroy == nullptr || create(&real) != CUDNN_STATUS_SUCCESS) {
    return nullptr;
  }
  if (!set(real)) {
    destroy(real);
    return nullptr;
  }
  known.emplace(std::move(key), real);
  return real;
}

cudnnTensorDescriptor_t CudnnDescriptors::Get(const DnnTensor& value) {
  return Find(tensors_, functions_.cudnnCreateTensorDescriptor,
              functions_.cudnnDestroyTensorDescriptor, value, [&](cudnnTensorDescriptor_t real) {
                return AllDone({Do(functions_.cudnnSetTensorNdDescriptor, real, Type(value.type),
                                   value.rank, value.dims.data(), value.strides.data())});
              });
}

cudnnFilterDescriptor_t CudnnDescriptors::Get(const DnnFilter& value) {
  return Find(filters_, functions_.cudnnCreateFilterDescriptor,
              functions_.cudnnDestroyFilterDescriptor, value, [&](cudnnFilterDescriptor_t real) {
                return AllDone({Do(functions_.cudnnSetFilterNdDescriptor, real, Type(value.type),
                                   static_cast<cudnnTensorFormat_t>(value.format), value.rank,
                                   value.dims.data())});
              });
}

cudnnConvolutionDescriptor_t CudnnDescriptors::Get(const DnnConvolution& value) {
  return Find(convolutions_, functions_.cudnnCreateConvolutionDescriptor,
              functions_.cudnnDestroyConvolutionDescriptor, value,
              [&](cudnnConvolutionDescriptor_t real) {
                return AllDone(
                    {Do(functions_.cudnnSetConvolutionNdDescriptor, real, value.rank,
                        value.padding.data(), value.strides.data(), value.dilation.data(),
                        static_cast<cudnnConvolutionMode_t>(value.mode), Type(value.compute_type)),
                     Do(functions_.cudnnSetConvolutionMathType, real,
                        static_cast<cudnnMathType_t>(value.math_type)),
                     Do(functions_.cudnnSetConvolutionGroupCount, real, value.groups),
                     Do(functions_.cudnnSetConvolutionReorderType, real,
                        static_cast<cudnnReorderType_t>(value.reorder))});
              });
}

cudnnPoolingDescriptor_t CudnnDescriptors::Get(const DnnPooling& value) {
  return Find(
      poolings_, functions_.cudnnCreatePoolingDescriptor, functions_.cudnnDestroyPoolingDescriptor,
      value, [&](cudnnPoolingDescriptor_t real) {
        return AllDone({Do(functions_.cudnnSetPoolingNdDescriptor, real,
                           static_cast<cudnnPoolingMode_t>(value.mode), Nan(value.nan), value.rank,
                           value.window.data(), value.padding.data(), value.strides.data())});
      });
}

cudnnSpatialTransformerDescriptor_t CudnnDescriptors::Get(const DnnSpatialTransformer& value) {
  return Find(transformers_, functions_.cudnnCreateSpatialTransformerDescriptor,
              functions_.cudnnDestroySpatialTransformerDescriptor, value,
              [&](cudnnSpatialTransformerDescriptor_t real) {
                return AllDone({Do(functions_.cudnnSetSpatialTransformerNdDescriptor, real,
                                   static_cast<cudnnSamplerType_t>(value.sampler), Type(value.type),
                                   kDnnTransformedRank, value.dims.data())});
              });
}

cudnnActivationDescriptor_t CudnnDescriptors::Get(const DnnActivation& value) {
  return Find(
      activations_, functions_.cudnnCreateActivationDescriptor,
      functions_.cudnnDestroyActivationDescriptor, value, [&](cudnnActivationDescriptor_t real) {
        const bool is_swish = value.mode == CUDNN_ACTIVATION_SWISH;
        return AllDone(
            {Do(functions_.cudnnSetActivationDescriptor, real,
                static_cast<cudnnActivationMode_t>(value.mode), Nan(value.nan), value.coefficient),
             is_swish ? Do(functions_.cudnnSetActivationDescriptorSwishBeta, real, value.swish_beta)
                      : CUDNN_STATUS_SUCCESS});
      });
}

cudnnOpTensorDescriptor_t CudnnDescriptors::Get(const DnnOpTensor& value) {
  return Find(operations_, functions_.cudnnCreateOpTensorDescriptor,
              functions_.cudnnDestroyOpTensorDescriptor, value,
              [&](cudnnOpTensorDescriptor_t real) {
                return AllDone({Do(functions_.cudnnSetOpTensorDescriptor, real,
                                   static_cast<cudnnOpTensorOp_t>(value.operation),
                                   Type(value.compute_type), Nan(value.nan))});
              });
}

cudnnReduceTensorDescriptor_t CudnnDescriptors::Get(const DnnReduceTensor& value) {
  return Find(reductions_, functions_.cudnnCreateReduceTensorDescriptor,
              functions_.cudnnDestroyReduceTensorDescriptor, value,
              [&](cudnnReduceTensorDescriptor_t real) {
                return AllDone({Do(functions_.cudnnSetReduceTensorDescriptor, real,
                                   static_cast<cudnnReduceTensorOp_t>(value.operation),
                                   Type(value.compute_type), Nan(value.nan),
                                   static_cast<cudnnReduceTensorIndices_t>(value.indices),
                                   static_cast<cudnnIndicesType_t>(value.indices_type))});
              });
}

cudnnLRNDescriptor_t CudnnDescriptors::Get(const DnnLrn& value) {
  return Find(lrns_, functions_.cudnnCreateLRNDescriptor, functions_.cudnnDestroyLRNDescriptor,
              value, [&](cudnnLRNDescriptor_t real) {
                return AllDone({Do(functions_.cudnnSetLRNDescriptor, real, value.size, value.alpha,
                                   value.beta, value.k)});
              });
}

cudnnRNNDataDescriptor_t CudnnDescriptors::Get(const DnnRnnData& value) {
  return Find(sequences_, functions_.cudnnCreateRNNDataDescriptor,
              functions_.cudnnDestroyRNNDataDescriptor, value, [&](cudnnRNNDataDescriptor_t real) {
                auto filling = value.filling;
                return AllDone({Do(functions_.cudnnSetRNNDataDescriptor, real, Type(value.type),
                                   static_cast<cudnnRNNDataLayout_t>(value.layout), value.max_steps,
                                   value.batch, value.vector_size, value.lengths.data(),
                                   value.is_filled != 0 ? filling.data() : nullptr)});
              });
}

cudnnDropoutDescriptor_t CudnnDescriptors::Get(const DnnDropout& value, cudnnHandle_t handle) {
  return Find(dropouts_, functions_.cudnnCreateDropoutDescriptor,
              functions_.cudnnDestroyDropoutDescriptor, value, [&](cudnnDropoutDescriptor_t real) {
                // Setting a descriptor with states would restart the random numbers.
                const auto set = value.states == 0 ? functions_.cudnnSetDropoutDescriptor
                                                   : functions_.cudnnRestoreDropoutDescriptor;
                return AllDone(
                    {Do(set, real, handle, value.probability, reinterpret_cast<void*>(value.states),
                        std::size_t{value.states_bytes}, value.seed)});
              });
}

cudnnRNNDescriptor_t CudnnDescriptors::Get(const DnnRnn& value, cudnnHandle_t handle) {
  const cudnnDropoutDescriptor_t dropout = Get(value.dropout, handle);
  if (dropout == nullptr) return nullptr;
  return Find(
      rnns_, functions_.cudnnCreateRNNDescriptor, functions_.cudnnDestroyRNNDescriptor, value,
      [&](cudnnRNNDescriptor_t real) {
        return AllDone({Do(
            functions_.cudnnSetRNNDescriptor_v8, real, static_cast<cudnnRNNAlgo_t>(value.algorithm),
            static_cast<cudnnRNNMode_t>(value.cell), static_cast<cudnnRNNBiasMode_t>(value.bias),
            static_cast<cudnnDirectionMode_t>(value.direction),
            static_cast<cudnnRNNInputMode_t>(value.input_mode), Type(value.type),
            Type(value.math_precision), static_cast<cudnnMathType_t>(value.math_type),
            value.input_size, value.hidden_size, value.projection_size, value.layers, dropout,
            value.flags)});
      });
}

void CudnnDescriptors::Trim() {
  for (const std::size_t count :
       {tensors_.size(), filters_.size(), convolutions_.size(), poolings_.size(),
        transformers_.size(), activations_.size(), operations_.size(), reductions_.size(),
        lrns_.size(), sequences_.size(), rnns_.size(), dropouts_.size()}) {
    if (count >= kMaxDescriptors) return Clear();
  }
}

void CudnnDescriptors::Clear() {
  const auto clear = [](auto& known, auto destroy) {
    for (const auto& [value, real] : known) destroy(real);
    known.clear();
  };
  clear(tensors_, functions_.cudnnDestroyTensorDescriptor);
  clear(filters_, functions_.cudnnDestroyFilterDescriptor);
  clear(convolutions_, functions_.cudnnDestroyConvolutionDescriptor);
  clear(poolings_, functions_.cudnnDestroyPoolingDescriptor);
  clear(transformers_, functions_.cudnnDestroySpatialTransformerDescriptor);
  clear(activations_, functions_.cudnnDestroyActivationDescriptor);
  clear(operations_, functions_.cudnnDestroyOpTensorDescriptor);
  clear(reductions_, functions_.cudnnDestroyReduceTensorDescriptor);
  clear(lrns_, functions_.cudnnDestroyLRNDescriptor);
  clear(sequences_, functions_.cudnnDestroyRNNDataDescriptor);
  clear(rnns_, functions_.cudnnDestroyRNNDescriptor);
  clear(dropouts_, functions_.cudnnDestroyDropoutDescriptor);
}

}  // namespace torpor::executor
