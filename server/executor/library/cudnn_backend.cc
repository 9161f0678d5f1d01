#include "server/executor/library/cudnn_backend.h"

#include <algorithm>

#include "nvidia/cudnn/graph_checks.h"
#include "nvidia/cudnn/operation_names.h"

namespace torpor::executor {
namespace {

// More than the kinds of notes and knobs.
constexpr std::size_t kMaxNotes = 64;
constexpr std::size_t kMaxKnobs = 128;

// Converts the first `rank` numbers to the type of the backend API.
std::vector<std::int64_t> Wide(const DnnDims& dims, std::int32_t rank) {
  return {dims.begin(), dims.begin() + rank};
}

}  // namespace

BackendDescriptor::BackendDescriptor(const cuda_api::CudnnFunctions& functions,
                                     cudnnBackendDescriptorType_t kind)
    : functions_(&functions) {
  Note(functions.cudnnBackendCreateDescriptor(kind, &real_));
}

BackendDescriptor::~BackendDescriptor() {
  if (real_ != nullptr) functions_->cudnnBackendDestroyDescriptor(real_);
}

void BackendDescriptor::SetElements(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, std::int64_t count,
                                    const void* elements) {
  if (status_ == CUDNN_STATUS_SUCCESS)
    Note(functions_->cudnnBackendSetAttribute(real_, name, type, count, elements));
}

void BackendDescriptor::Finalize() {
  if (status_ == CUDNN_STATUS_SUCCESS) Note(functions_->cudnnBackendFinalize(real_));
}

std::size_t BackendDescriptor::GetElements(cudnnBackendAttributeName_t name,
                                           cudnnBackendAttributeType_t type, std::size_t max_count,
                                           void* elements) const {
  std::int64_t count = 0;
  const cudnnStatus_t status = functions_->cudnnBackendGetAttribute(
      real_, name, type, static_cast<std::int64_t>(max_count), &count, elements);
  if (status != CUDNN_STATUS_SUCCESS || count < 0) return 0;
  return std::min(static_cast<std::size_t>(count), max_count);
}

std::vector<BackendDescriptor> BackendDescriptor::Descriptors(cudnnBackendAttributeName_t name,
                                                              cudnnBackendDescriptorType_t kind,
                                                              std::size_t max_count) const {
  std::int64_t there = 0;
  const cudnnStatus_t status = functions_->cudnnBackendGetAttribute(
      real_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &there, nullptr);
  // If the library does not report the number, make room for the maximum.
  const std::size_t count =
      status == CUDNN_STATUS_SUCCESS
          ? std::min(static_cast<std::size_t>(std::max<std::int64_t>(there, 0)), max_count)
          : max_count;
  if (count == 0) return {};
  std::vector<BackendDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> real;
  found.reserve(count);
  real.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    real.push_back(found.emplace_back(*functions_, kind).real());
  const std::size_t got = GetElements(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, real.data());
  while (found.size() > got) found.pop_back();
  return found;
}

RealGraph::RealGraph(const cuda_api::CudnnFunctions& functions, cudnnHandle_t handle,
                     const DnnGraph& graph)
    : functions_(functions), graph_(functions, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  std::vector<const BackendDescriptor*> tensors;
  tensors.reserve(graph.tensors.size());
  for (const DnnGraphTensor& tensor : graph.tensors) tensors.push_back(&AddTensor(tensor));
  std::vector<cudnnBackendDescriptor_t> operations;
  operations.reserve(graph.operations.size());
  for (const DnnGraphOperation& operation : graph.operations)
    operations.push_back(AddOperation(operation, tensors).real());
  if (status() != CUDNN_STATUS_SUCCESS) return;
  // Older libraries need the handle; newer ones do not.
  graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             std::span<const cudnnBackendDescriptor_t>(operations));
  graph_.Finalize();
}

cudnnStatus_t RealGraph::status() const {
  const auto refused = std::find_if(
      parts_.begin(), parts_.end(),
      [](const BackendDescriptor& part) { return part.status() != CUDNN_STATUS_SUCCESS; });
  return refused == parts_.end() ? graph_.status() : refused->status();
}

BackendDescriptor& RealGraph::Add(std::int32_t kind) {
  return parts_.emplace_back(functions_, static_cast<cudnnBackendDescriptorType_t>(kind));
}

const BackendDescriptor& RealGraph::AddTensor(const DnnGraphTensor& tensor) {
  BackendDescriptor& real = Add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const auto dims = Wide(tensor.shape.dims, tensor.shape.rank);
  const auto strides = Wide(tensor.shape.strides, tensor.shape.rank);
  real.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.shape.type);
  real.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(dims));
  real.Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const std::int64_t>(strides));
  real.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, tensor.id);
  real.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, tensor.alignment);
  if (tensor.is_virtual != 0) real.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  real.Finalize();
  return real;
}

const BackendDescriptor& RealGraph::AddConvolution(const DnnGraphConvolution& convolution) {
  BackendDescriptor& real = Add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::int64_t rank = convolution.rank;
  real.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, rank);
  real.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, convolution.compute_type);
  real.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, convolution.mode);
  const auto set = [&](cudnnBackendAttributeName_t name, const DnnDims& dims) {
    const auto wide = Wide(dims, convolution.rank);
    real.Set(name, CUDNN_TYPE_INT64, std::span<const std::int64_t>(wide));
  };
  set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.before);
  set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.after);
  set(CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.dilation);
  set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.strides);
  real.Finalize();
  return real;
}

const BackendDescriptor& RealGraph::AddPointwise(const DnnPointwise& pointwise) {
  BackendDescriptor& real = Add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const DnnPointwise untouched;
  real.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, pointwise.mode);
  real.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, pointwise.compute_type);
  // Attributes with default values stay unset: each pointwise function accepts only its own
  // parameters.
  const auto set = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       auto member) {
    if (pointwise.*member != untouched.*member) real.Set(name, type, pointwise.*member);
  };
  set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, &DnnPointwise::nan);
  set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, &DnnPointwise::lower_clip);
  set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, &DnnPointwise::upper_clip);
  set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE,
      &DnnPointwise::lower_clip_slope);
  set(CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, &DnnPointwise::elu_alpha);
  set(CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, CUDNN_TYPE_DOUBLE, &DnnPointwise::softplus_beta);
  set(CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_TYPE_DOUBLE, &DnnPointwise::swish_beta);
  real.Finalize();
  return real;
}

const BackendDescriptor& RealGraph::AddOperation(
    const DnnGraphOperation& operation, std::span<const BackendDescriptor* const> tensors) {
  const DnnOperationNames names = DnnNamesOf(operation.kind);
  const BackendDescriptor& function = DnnIsConvolution(operation.kind)
                                          ? AddConvolution(operation.convolution)
                                          : AddPointwise(operation.pointwise);
  BackendDescriptor& real = Add(operation.kind);
  real.Set(names.function, function);
  real.Set(names.x, *tensors[operation.x]);
  if (operation.w != kDnnNoTensor) real.Set(names.w, *tensors[operation.w]);
  real.Set(names.y, *tensors[operation.y]);
  const auto set = [&](cudnnBackendAttributeName_t name, double scalar) {
    if (operation.scalar_type == CUDNN_TYPE_DOUBLE)
      real.Set(name, CUDNN_TYPE_DOUBLE, scalar);
    else
      real.Set(name, CUDNN_TYPE_FLOAT, static_cast<float>(scalar));
  };
  set(names.alpha, operation.alpha);
  set(names.beta, operation.beta);
  real.Finalize();
  return real;
}

RealPlan::RealPlan(const cuda_api::CudnnFunctions& functions, const RealGraph& graph,
                   const DnnEngineConfig& config)
    : engine_(functions, CUDNN_BACKEND_ENGINE_DESCRIPTOR),
      config_(functions, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
      plan_(functions, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  engine_.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.descriptor());
  engine_.Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, config.engine);
  engine_.Finalize();
  std::vector<cudnnBackendDescriptor_t> knobs;
  knobs_.reserve(config.knobs.size());
  knobs.reserve(config.knobs.size());
  for (const DnnKnob& knob : config.knobs) {
    BackendDescriptor& real = knobs_.emplace_back(functions, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    real.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, knob.type);
    real.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, knob.value);
    real.Finalize();
    knobs.push_back(real.real());
  }
  if (status() != CUDNN_STATUS_SUCCESS) return;
  config_.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine_);
  if (!knobs.empty())
    config_.Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                std::span<const cudnnBackendDescriptor_t>(knobs));
  config_.Finalize();
  if (status() != CUDNN_STATUS_SUCCESS) return;
  plan_.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config_);
  plan_.Finalize();
  if (status() != CUDNN_STATUS_SUCCESS) return;
  const auto bytes =
      plan_.Numbers<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1);
  workspace_bytes_ =
      bytes.empty() || bytes.front() < 0 ? 0 : static_cast<std::uint64_t>(bytes.front());
}

cudnnStatus_t RealPlan::status() const {
  for (const BackendDescriptor* const part : {&engine_, &config_, &plan_}) {
    if (part->status() != CUDNN_STATUS_SUCCESS) return part->status();
  }
  const auto refused = std::find_if(
      knobs_.begin(), knobs_.end(),
      [](const BackendDescriptor& knob) { return knob.status() != CUDNN_STATUS_SUCCESS; });
  return refused == knobs_.end() ? CUDNN_STATUS_SUCCESS : refused->status();
}

DnnEngine DescriptionOf(const BackendDescriptor& engine) {
  DnnEngine description;
  const auto index =
      engine.Numbers<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1);
  if (!index.empty()) description.engine = index.front();
  description.numerical_notes = engine.Numbers<std::int32_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                             CUDNN_TYPE_NUMERICAL_NOTE, kMaxNotes);
  description.behavior_notes = engine.Numbers<std::int32_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                            CUDNN_TYPE_BEHAVIOR_NOTE, kMaxNotes);
  for (const BackendDescriptor& knob : engine.Descriptors(
           CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, kMaxKnobs)) {
    const auto type =
        knob.Numbers<std::int32_t>(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1);
    const auto number = [&](cudnnBackendAttributeName_t name) {
      const auto numbers = knob.Numbers<std::int64_t>(name, CUDNN_TYPE_INT64, 1);
      return numbers.empty() ? 0 : numbers.front();
    };
    if (type.empty()) continue;
    description.knobs.push_back({type.front(), number(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE),
                                 number(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE),
                                 number(CUDNN_ATTR_KNOB_INFO_STRIDE)});
  }
  return description;
}

bool ReadChoice(const BackendDescriptor& config, DnnEngineChoice& choice) {
  const auto engines =
      config.Descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty()) return false;
  choice.engine = DescriptionOf(engines.front());
  for (const BackendDescriptor& knob : config.Descriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMaxKnobs)) {
    const auto type =
        knob.Numbers<std::int32_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1);
    const auto value =
        knob.Numbers<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1);
    if (type.empty() || value.empty()) return false;
    choice.knobs.push_back({type.front(), value.front()});
  }
  return true;
}

}  // namespace torpor::executor
