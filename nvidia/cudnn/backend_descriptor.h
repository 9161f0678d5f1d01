#pragma once

#include <cudnn.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "nvidia/cudnn/graph.h"

// The descriptors of cuDNN's backend API. A descriptor holds attributes by name and, once
// finalised, also the value made from them. A finalised descriptor never changes and is shared by
// all descriptors that refer to it, so programs may destroy descriptors in any order.
namespace torpor {

class DnnBackendState;
using DnnBackendReference = std::shared_ptr<const DnnBackendState>;

// One attribute: a name, and an array of elements.
struct DnnAttribute {
  cudnnBackendAttributeName_t name{};
  cudnnBackendAttributeType_t type{};
  std::int64_t count = 0;
  std::vector<std::uint8_t> bytes;               // of elements that are numbers or pointers
  std::vector<DnnBackendReference> descriptors;  // of those that are descriptors
};

// Values of finalised descriptors, by kind. Tensors, convolutions, pointwise functions and knobs
// use the values that travel inside calls (graph.h).
struct DnnBackendOperation {
  DnnGraphOperation operation;  // its tensors are not in their places yet
  DnnGraphTensor x;
  DnnGraphTensor w;
  DnnGraphTensor y;
  bool has_w = true;
};
// A graph, with the handle for which the program made it.
struct DnnBackendGraph {
  DnnGraph graph;
  cudnnHandle_t handle = nullptr;
};
// An engine of the library, applied to a graph.
struct DnnBackendEngine {
  std::shared_ptr<const DnnBackendGraph> graph;
  std::int64_t engine = 0;
};
// An engine with values for its knobs.
struct DnnBackendConfig {
  std::shared_ptr<const DnnBackendGraph> graph;
  DnnEngineConfig config;
};
// A configuration that the library accepted, with the workspace it needs.
struct DnnBackendPlan {
  std::shared_ptr<const DnnBackendGraph> graph;
  DnnEngineConfig config;
  std::uint64_t workspace_bytes = 0;
};
// The addresses for one execution: `addresses[i]` belongs to the tensor with id `ids[i]`.
struct DnnVariantPack {
  std::vector<std::int64_t> ids;
  std::vector<std::uint64_t> addresses;  // of the same tensors
  std::uint64_t workspace = 0;
};

using DnnBackendValue =
    std::variant<std::monostate, DnnGraphTensor, DnnGraphConvolution, DnnPointwise,
                 DnnBackendOperation, std::shared_ptr<const DnnBackendGraph>, DnnBackendEngine,
                 DnnKnob, DnnBackendConfig, DnnBackendPlan, DnnVariantPack>;

// The state behind a backend descriptor. Not thread-safe until finalised.
class DnnBackendState {
 public:
  explicit DnnBackendState(cudnnBackendDescriptorType_t kind) : kind_(kind) {}

  cudnnBackendDescriptorType_t kind() const { return kind_; }
  bool is_final() const { return is_final_; }
  void Finish() { is_final_ = true; }

  // Returns null if the attribute is not set. Valid until the next Put.
  const DnnAttribute* Find(cudnnBackendAttributeName_t name) const;
  // Set an attribute, replacing any attribute of the same name.
  void Put(DnnAttribute attribute);
  template <typename T>
  void Put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           const std::vector<T>& elements);
  void Put(cudnnBackendAttributeName_t name, std::vector<DnnBackendReference> descriptors);

  // Returns the elements, or an empty vector if the attribute is not set. T must have the size of
  // the attribute's elements.
  template <typename T>
  std::vector<T> List(cudnnBackendAttributeName_t name) const;
  // Returns the first element, or `otherwise` if the attribute is not set.
  template <typename T>
  T Get(cudnnBackendAttributeName_t name, T otherwise) const;
  // As Get, for an attribute of type float or double.
  double Number(cudnnBackendAttributeName_t name, double otherwise) const;
  // Returns the value of the attribute's first descriptor; null if the attribute is not set or the
  // value is not a T.
  template <typename T>
  const T* Made(cudnnBackendAttributeName_t name) const;

  DnnBackendValue value;  // once it is final

 private:
  cudnnBackendDescriptorType_t kind_;
  bool is_final_ = false;
  std::vector<DnnAttribute> attributes_;
};

// The result of setting an attribute or finalising a descriptor; `what` explains a refusal.
struct [[nodiscard]] DnnVerdict {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::string what;

  bool ok() const { return status == CUDNN_STATUS_SUCCESS; }
};

// Whether descriptors of `kind` are supported.
bool DnnHasBackendKind(cudnnBackendDescriptorType_t kind);

// Sets an attribute by the rules of cuDNN's documentation. Descriptors among the elements must be
// finalised.
DnnVerdict DnnSetAttribute(DnnBackendState& state, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t count,
                           const void* elements);

// Check that descriptors of `kind` have the attribute, and that all required attributes are set.
DnnVerdict DnnCheckAttribute(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type);
DnnVerdict DnnCheckComplete(const DnnBackendState& state);

// Makes `state.value`, and the attributes that follow from others. Asks the library for facts that
// only it knows (backend_library.h). The attributes must be complete.
DnnVerdict DnnMakeValue(DnnBackendState& state);

// The object behind a cudnnBackendDescriptor_t.
struct DnnBackendDescriptor {
  std::shared_ptr<DnnBackendState> state;
};

// The inputs of an execution: a plan, and the addresses of its tensors.
struct DnnExecution {
  const DnnBackendPlan* plan = nullptr;
  std::vector<std::uint64_t> addresses;  // of the graph's tensors in their order; 0: virtual
  std::uint64_t workspace = 0;           // 0: none is needed
};

// Fills in `execution` from two descriptors, which must outlive it.
DnnVerdict DnnReadExecution(cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack,
                            DnnExecution& execution);

template <typename T>
void DnnBackendState::Put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          const std::vector<T>& elements) {
  DnnAttribute attribute{name, type, static_cast<std::int64_t>(elements.size()), {}, {}};
  attribute.bytes.resize(elements.size() * sizeof(T));
  if (!elements.empty())
    std::memcpy(attribute.bytes.data(), elements.data(), attribute.bytes.size());
  Put(std::move(attribute));
}

template <typename T>
std::vector<T> DnnBackendState::List(cudnnBackendAttributeName_t name) const {
  const DnnAttribute* const attribute = Find(name);
  if (attribute == nullptr || attribute->bytes.empty()) return {};
  std::vector<T> elements(attribute->bytes.size() / sizeof(T));
  std::memcpy(elements.data(), attribute->bytes.data(), elements.size() * sizeof(T));
  return elements;
}

template <typename T>
T DnnBackendState::Get(cudnnBackendAttributeName_t name, T otherwise) const {
  const DnnAttribute* const attribute = Find(name);
  if (attribute == nullptr || attribute->bytes.size() < sizeof(T)) return otherwise;
  T element{};
  std::memcpy(&element, attribute->bytes.data(), sizeof(T));
  return element;
}

template <typename T>
const T* DnnBackendState::Made(cudnnBackendAttributeName_t name) const {
  const DnnAttribute* const attribute = Find(name);
  if (attribute == nullptr || attribute->descriptors.empty()) return nullptr;
  return std::get_if<T>(&attribute->descriptors.front()->value);
}

}  // namespace torpor
