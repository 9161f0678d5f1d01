#include "nvidia/cudnn/backend_descriptor.h"

#include <algorithm>
#include <iterator>

// The attributes of each descriptor, from cuDNN's documentation, and their setters.
namespace torpor {
namespace {

// Whether a descriptor needs the attribute, may have it, or gets it from the library.
enum class Use { kRequired, kOptional, kAnswer };

// One attribute of one kind of descriptor, with its legal type and number of elements.
struct Rule {
  cudnnBackendDescriptorType_t kind;
  cudnnBackendAttributeName_t name;
  const char* text;
  Use use;
  cudnnBackendAttributeType_t type;
  std::int64_t min;  // elements
  std::int64_t max;
  // For elements that are descriptors: the range of legal kinds.
  cudnnBackendDescriptorType_t first = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  cudnnBackendDescriptorType_t last = first;
  // Programs may choose between float and double.
  bool is_scalar = false;
};

constexpr std::int64_t kMany = 1024;

constexpr Rule Plain(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name,
                     const char* text, Use use, cudnnBackendAttributeType_t type,
                     std::int64_t min = 1, std::int64_t max = 1) {
  return {kind, name, text, use, type, min, max};
}
constexpr Rule Scalar(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name,
                      const char* text) {
  Rule rule = Plain(kind, name, text, Use::kOptional, CUDNN_TYPE_FLOAT);
  rule.is_scalar = true;
  return rule;
}
constexpr Rule Descriptors(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name,
                           const char* text, Use use, cudnnBackendDescriptorType_t first,
                           std::int64_t min = 1, std::int64_t max = 1) {
  return {kind, name, text, use, CUDNN_TYPE_BACKEND_DESCRIPTOR, min, max, first, first};
}
constexpr Rule Operations(cudnnBackendAttributeName_t name, const char* text) {
  Rule rule = Descriptors(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, name, text, Use::kRequired,
                          CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 1, kMany);
  rule.last = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  return rule;
}

// A descriptor's kind, and an attribute with its name.
#define KIND(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define ATTRIBUTE(name) CUDNN_ATTR_##name, "CUDNN_ATTR_" #name

constexpr Use kRequired = Use::kRequired;
constexpr Use kOptional = Use::kOptional;
constexpr Use kAnswer = Use::kAnswer;

constexpr Rule kRules[] = {
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_DATA_TYPE), kRequired, CUDNN_TYPE_DATA_TYPE),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_DIMENSIONS), kRequired, CUDNN_TYPE_INT64, 1, kDnnMaxDims),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_STRIDES), kRequired, CUDNN_TYPE_INT64, 1, kDnnMaxDims),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_UNIQUE_ID), kRequired, CUDNN_TYPE_INT64),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_BYTE_ALIGNMENT), kRequired, CUDNN_TYPE_INT64),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_IS_VIRTUAL), kOptional, CUDNN_TYPE_BOOLEAN),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_IS_BY_VALUE), kOptional, CUDNN_TYPE_BOOLEAN),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_VECTOR_COUNT), kOptional, CUDNN_TYPE_INT64),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_VECTORIZED_DIMENSION), kOptional, CUDNN_TYPE_INT64),
    Plain(KIND(TENSOR), ATTRIBUTE(TENSOR_REORDERING_MODE), kOptional,
          CUDNN_TYPE_TENSOR_REORDERING_MODE),

    Plain(KIND(CONVOLUTION), ATTRIBUTE(CONVOLUTION_COMP_TYPE), kRequired, CUDNN_TYPE_DATA_TYPE),
    Plain(KIND(CONVOLUTION), ATTRIBUTE(CONVOLUTION_CONV_MODE), kRequired,
          CUDNN_TYPE_CONVOLUTION_MODE),
    Plain(KIND(CONVOLUTION), ATTRIBUTE(CONVOLUTION_SPATIAL_DIMS), kRequired, CUDNN_TYPE_INT64),
    Plain(KIND(CONVOLUTION), ATTRIBUTE(CONVOLUTION_PRE_PADDINGS), kRequired, CUDNN_TYPE_INT64, 1,
          kDnnMaxDims),
    Plain(KIND(CONVOLUTION), ATTRIBUTE(CONVOLUTION_POST_PADDINGS), kRequired, CUDNN_TYPE_INT64, 1,
          kDnnMaxDims),
    Plain(KIND(CONVOLUTION), ATTRIBUTE(CONVOLUTION_DILATIONS), kRequired, CUDNN_TYPE_INT64, 1,
          kDnnMaxDims),
    Plain(KIND(CONVOLUTION), ATTRIBUTE(CONVOLUTION_FILTER_STRIDES), kRequired, CUDNN_TYPE_INT64, 1,
          kDnnMaxDims),

    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_MODE), kRequired, CUDNN_TYPE_POINTWISE_MODE),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_MATH_PREC), kRequired, CUDNN_TYPE_DATA_TYPE),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_NAN_PROPAGATION), kOptional,
          CUDNN_TYPE_NAN_PROPOGATION),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_RELU_LOWER_CLIP), kOptional, CUDNN_TYPE_DOUBLE),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_RELU_UPPER_CLIP), kOptional, CUDNN_TYPE_DOUBLE),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_RELU_LOWER_CLIP_SLOPE), kOptional,
          CUDNN_TYPE_DOUBLE),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_ELU_ALPHA), kOptional, CUDNN_TYPE_DOUBLE),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_SOFTPLUS_BETA), kOptional, CUDNN_TYPE_DOUBLE),
    Plain(KIND(POINTWISE), ATTRIBUTE(POINTWISE_SWISH_BETA), kOptional, CUDNN_TYPE_DOUBLE),

#define CONVOLUTION_RULES(kind, name, x, w, y)                                            \
  Descriptors(KIND(kind), ATTRIBUTE(name##_##x), kRequired, KIND(TENSOR)),                \
      Descriptors(KIND(kind), ATTRIBUTE(name##_##w), kRequired, KIND(TENSOR)),            \
      Descriptors(KIND(kind), ATTRIBUTE(name##_##y), kRequired, KIND(TENSOR)),            \
      Descriptors(KIND(kind), ATTRIBUTE(name##_CONV_DESC), kRequired, KIND(CONVOLUTION)), \
      Scalar(KIND(kind), ATTRIBUTE(name##_ALPHA)), Scalar(KIND(kind), ATTRIBUTE(name##_BETA))
    CONVOLUTION_RULES(OPERATION_CONVOLUTION_FORWARD, OPERATION_CONVOLUTION_FORWARD, X, W, Y),
    CONVOLUTION_RULES(OPERATION_CONVOLUTION_BACKWARD_DATA, OPERATION_CONVOLUTION_BWD_DATA, DX, W,
                      DY),
    CONVOLUTION_RULES(OPERATION_CONVOLUTION_BACKWARD_FILTER, OPERATION_CONVOLUTION_BWD_FILTER, X,
                      DW, DY),
#undef CONVOLUTION_RULES

    Descriptors(KIND(OPERATION_POINTWISE), ATTRIBUTE(OPERATION_POINTWISE_PW_DESCRIPTOR), kRequired,
                KIND(POINTWISE)),
    Descriptors(KIND(OPERATION_POINTWISE), ATTRIBUTE(OPERATION_POINTWISE_XDESC), kRequired,
                KIND(TENSOR)),
    Descriptors(KIND(OPERATION_POINTWISE), ATTRIBUTE(OPERATION_POINTWISE_BDESC), kOptional,
                KIND(TENSOR)),
    Descriptors(KIND(OPERATION_POINTWISE), ATTRIBUTE(OPERATION_POINTWISE_YDESC), kRequired,
                KIND(TENSOR)),
    Scalar(KIND(OPERATION_POINTWISE), ATTRIBUTE(OPERATION_POINTWISE_ALPHA1)),
    Scalar(KIND(OPERATION_POINTWISE), ATTRIBUTE(OPERATION_POINTWISE_ALPHA2)),

    Plain(KIND(OPERATIONGRAPH), ATTRIBUTE(OPERATIONGRAPH_HANDLE), kOptional, CUDNN_TYPE_HANDLE),
    Operations(ATTRIBUTE(OPERATIONGRAPH_OPS)),

    Descriptors(KIND(ENGINEHEUR), ATTRIBUTE(ENGINEHEUR_OPERATION_GRAPH), kRequired,
                KIND(OPERATIONGRAPH)),
    Plain(KIND(ENGINEHEUR), ATTRIBUTE(ENGINEHEUR_MODE), kRequired, CUDNN_TYPE_HEUR_MODE),
    Descriptors(KIND(ENGINEHEUR), ATTRIBUTE(ENGINEHEUR_RESULTS), kAnswer, KIND(ENGINECFG)),

    Descriptors(KIND(ENGINE), ATTRIBUTE(ENGINE_OPERATION_GRAPH), kRequired, KIND(OPERATIONGRAPH)),
    Plain(KIND(ENGINE), ATTRIBUTE(ENGINE_GLOBAL_INDEX), kRequired, CUDNN_TYPE_INT64),
    Plain(KIND(ENGINE), ATTRIBUTE(ENGINE_NUMERICAL_NOTE), kAnswer, CUDNN_TYPE_NUMERICAL_NOTE),
    Plain(KIND(ENGINE), ATTRIBUTE(ENGINE_BEHAVIOR_NOTE), kAnswer, CUDNN_TYPE_BEHAVIOR_NOTE),
    Descriptors(KIND(ENGINE), ATTRIBUTE(ENGINE_KNOB_INFO), kAnswer, KIND(KNOB_INFO)),

    Plain(KIND(KNOB_INFO), ATTRIBUTE(KNOB_INFO_TYPE), kAnswer, CUDNN_TYPE_KNOB_TYPE),
    Plain(KIND(KNOB_INFO), ATTRIBUTE(KNOB_INFO_MINIMUM_VALUE), kAnswer, CUDNN_TYPE_INT64),
    Plain(KIND(KNOB_INFO), ATTRIBUTE(KNOB_INFO_MAXIMUM_VALUE), kAnswer, CUDNN_TYPE_INT64),
    Plain(KIND(KNOB_INFO), ATTRIBUTE(KNOB_INFO_STRIDE), kAnswer, CUDNN_TYPE_INT64),

    Plain(KIND(KNOB_CHOICE), ATTRIBUTE(KNOB_CHOICE_KNOB_TYPE), kRequired, CUDNN_TYPE_KNOB_TYPE),
    Plain(KIND(KNOB_CHOICE), ATTRIBUTE(KNOB_CHOICE_KNOB_VALUE), kRequired, CUDNN_TYPE_INT64),

    Descriptors(KIND(ENGINECFG), ATTRIBUTE(ENGINECFG_ENGINE), kRequired, KIND(ENGINE)),
    Descriptors(KIND(ENGINECFG), ATTRIBUTE(ENGINECFG_KNOB_CHOICES), kOptional, KIND(KNOB_CHOICE), 0,
                kMany),

    Plain(KIND(EXECUTION_PLAN), ATTRIBUTE(EXECUTION_PLAN_HANDLE), kOptional, CUDNN_TYPE_HANDLE),
    Descriptors(KIND(EXECUTION_PLAN), ATTRIBUTE(EXECUTION_PLAN_ENGINE_CONFIG), kRequired,
                KIND(ENGINECFG)),
    Plain(KIND(EXECUTION_PLAN), ATTRIBUTE(EXECUTION_PLAN_WORKSPACE_SIZE), kAnswer,
          CUDNN_TYPE_INT64),

    Plain(KIND(VARIANT_PACK), ATTRIBUTE(VARIANT_PACK_UNIQUE_IDS), kRequired, CUDNN_TYPE_INT64, 0,
          kMany),
    Plain(KIND(VARIANT_PACK), ATTRIBUTE(VARIANT_PACK_DATA_POINTERS), kRequired, CUDNN_TYPE_VOID_PTR,
          0, kMany),
    Plain(KIND(VARIANT_PACK), ATTRIBUTE(VARIANT_PACK_WORKSPACE), kOptional, CUDNN_TYPE_VOID_PTR),
};
#undef KIND
#undef ATTRIBUTE

const Rule* FindRule(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name) {
  const auto* const found =
      std::find_if(std::begin(kRules), std::end(kRules),
                   [&](const Rule& rule) { return rule.kind == kind && rule.name == name; });
  return found == std::end(kRules) ? nullptr : found;
}

// Bytes of an element that is not a descriptor.
std::size_t ElementBytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
      return 8;
    default:  // float and enumerations
      return 4;
  }
}

// Whether a program may pass the attribute with this type.
bool TypeFits(const Rule& rule, cudnnBackendAttributeType_t type) {
  return type == rule.type || (rule.is_scalar && type == CUDNN_TYPE_DOUBLE);
}

// Reads descriptors, which must be finalised and of the rule's kinds.
DnnVerdict ReadDescriptors(const Rule& rule, std::int64_t count, const void* elements,
                           std::vector<DnnBackendReference>& read) {
  const auto* const given = static_cast<const cudnnBackendDescriptor_t*>(elements);
  read.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto* const descriptor = static_cast<const DnnBackendDescriptor*>(given[i]);
    if (descriptor == nullptr)
      return {CUDNN_STATUS_BAD_PARAM_NULL_POINTER, std::string(rule.text) + ": a null descriptor"};
    const DnnBackendState& state = *descriptor->state;
    if (state.kind() < rule.first || state.kind() > rule.last) {
      return {CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
              std::string(rule.text) + ": a descriptor of another kind"};
    }
    if (!state.is_final()) {
      return {CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
              std::string(rule.text) + ": the descriptor is not finalized"};
    }
    read.push_back(descriptor->state);
  }
  return {};
}

}  // namespace

const DnnAttribute* DnnBackendState::Find(cudnnBackendAttributeName_t name) const {
  const auto found =
      std::find_if(attributes_.begin(), attributes_.end(),
                   [&](const DnnAttribute& attribute) { return attribute.name == name; });
  return found == attributes_.end() ? nullptr : &*found;
}

void DnnBackendState::Put(DnnAttribute attribute) {
  for (DnnAttribute& known : attributes_) {
    if (known.name != attribute.name) continue;
    known = std::move(attribute);
    return;
  }
  attributes_.push_back(std::move(attribute));
}

void DnnBackendState::Put(cudnnBackendAttributeName_t name,
                          std::vector<DnnBackendReference> descriptors) {
  const auto count = static_cast<std::int64_t>(descriptors.size());
  Put({name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, {}, std::move(descriptors)});
}

double DnnBackendState::Number(cudnnBackendAttributeName_t name, double otherwise) const {
  const DnnAttribute* const attribute = Find(name);
  if (attribute == nullptr) return otherwise;
  if (attribute->type == CUDNN_TYPE_FLOAT) return double{Get<float>(name, 0)};
  return Get<double>(name, otherwise);
}

bool DnnHasBackendKind(cudnnBackendDescriptorType_t kind) {
  return std::any_of(std::begin(kRules), std::end(kRules),
                     [&](const Rule& rule) { return rule.kind == kind; });
}

DnnVerdict DnnCheckAttribute(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type) {
  const Rule* const rule = FindRule(kind, name);
  if (rule == nullptr) {
    const bool is_known = std::any_of(std::begin(kRules), std::end(kRules),
                                      [&](const Rule& other) { return other.name == name; });
    const std::string which = "attribute " + std::to_string(int{name}) +
                              " of a descriptor of kind " + std::to_string(int{kind});
    if (is_known) return {CUDNN_STATUS_BAD_PARAM, "there is no " + which};
    return {CUDNN_STATUS_NOT_SUPPORTED, which + " is not supported (docs/shim.md)"};
  }
  if (!TypeFits(*rule, type)) {
    return {CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, std::string(rule->text) + ": its type is " +
                                                       std::to_string(int{rule->type}) + ", not " +
                                                       std::to_string(int{type})};
  }
  return {};
}

DnnVerdict DnnSetAttribute(DnnBackendState& state, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t count,
                           const void* elements) {
  // As cuDNN documents.
  if (state.is_final())
    return {CUDNN_STATUS_NOT_INITIALIZED, "an attribute is set after cudnnBackendFinalize"};
  DnnVerdict verdict = DnnCheckAttribute(state.kind(), name, type);
  if (!verdict.ok()) return verdict;
  const Rule& rule = *FindRule(state.kind(), name);
  if (rule.use == Use::kAnswer)
    return {CUDNN_STATUS_BAD_PARAM, std::string(rule.text) + " can only be read"};
  if (count < rule.min || count > rule.max) {
    return {CUDNN_STATUS_BAD_PARAM, std::string(rule.text) + ": " + std::to_string(count) +
                                        " elements, where there must be " +
                                        std::to_string(rule.min) + " to " +
                                        std::to_string(rule.max)};
  }
  if (elements == nullptr && count > 0)
    return {CUDNN_STATUS_BAD_PARAM_NULL_POINTER, std::string(rule.text) + ": no elements"};
  DnnAttribute attribute{name, type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    verdict = ReadDescriptors(rule, count, elements, attribute.descriptors);
    if (!verdict.ok()) return verdict;
  } else if (count > 0) {
    const auto* const bytes = static_cast<const std::uint8_t*>(elements);
    attribute.bytes.assign(bytes, bytes + static_cast<std::size_t>(count) * ElementBytes(type));
  }
  state.Put(std::move(attribute));
  return {};
}

DnnVerdict DnnCheckComplete(const DnnBackendState& state) {
  for (const Rule& rule : kRules) {
    if (rule.kind != state.kind() || rule.use != Use::kRequired) continue;
    if (state.Find(rule.name) == nullptr)
      return {CUDNN_STATUS_BAD_PARAM, std::string(rule.text) + " is not set"};
  }
  return {};
}

}  // namespace torpor
