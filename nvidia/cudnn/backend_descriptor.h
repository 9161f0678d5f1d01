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

// The descriptors of cuDNN's backend API: attributes by name until they are finalised, then also
// what those come to. A finalised one never changes; whatever refers to it shares it, so programs
// may destroy theirs in any order.
namespace torpor {

class DnnBackendState;
using DnnBackendReference = std::shared_ptr<const DnnBackendState>;

// The elements of one attribute.
struct DnnAttribute {
  cudnnBackendAttributeName_t name{};
  cudnnBackendAttributeType_t type{};
  std::int64_t count = 0;
  std::vector<std::uint8_t> bytes;               // of elements that are numbers or pointers
  std::vector<DnnBackendReference> descriptors;  // of those that are descriptors
};

// What finalised descriptors come to, by their kinds. Tensors, convolutions, pointwise functions
// and knobs are the values that travel.
struct DnnBackendOperation {
  DnnGraphOperation operation;  // its tensors are not in their places yet
  DnnGraphTensor x;
  DnnGraphTensor w;
  DnnGraphTensor y;
  bool has_w = true;
};
struct DnnBackendGraph {
  DnnGraph graph;
  cudnnHandle_t handle = nullptr;
};
struct DnnBackendEngine {
  std::shared_ptr<const DnnBackendGraph> graph;
  std::int64_t engine = 0;
};
struct DnnBackendConfig {
  std::shared_ptr<const DnnBackendGraph> graph;
  DnnEngineConfig config;
};
struct DnnBackendPlan {
  std::shared_ptr<const DnnBackendGraph> graph;
  DnnEngineConfig config;
  std::uint64_t workspace_bytes = 0;
};
struct DnnVariantPack {
  std::vector<std::int64_t> ids;
  std::vector<std::uint64_t> addresses;  // of the same tensors
  std::uint64_t workspace = 0;
};

using DnnBackendValue =
    std::variant<std::monostate, DnnGraphTensor, DnnGraphConvolution, DnnPointwise,
                 DnnBackendOperation, std::shared_ptr<const DnnBackendGraph>, DnnBackendEngine,
                 DnnKnob, DnnBackendConfig, DnnBackendPlan, DnnVariantPack>;

class DnnBackendState {
 public:
  explicit DnnBackendState(cudnnBackendDescriptorType_t kind) : kind_(kind) {}

  cudnnBackendDescriptorType_t kind() const { return kind_; }
  bool is_final() const { return is_final_; }
  void Finish() { is_final_ = true; }

  // Null if it is not set.
  const DnnAttribute* Find(cudnnBackendAttributeName_t name) const;
  // In place of one of the same name.
  void Put(DnnAttribute attribute);
  template <typename T>
  void Put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           const std::vector<T>& elements);
  void Put(cudnnBackendAttributeName_t name, std::vector<DnnBackendReference> descriptors);

  // The elements, none if it is not set; T is of the size of the attribute's elements.
  template <typename T>
  std::vector<T> List(cudnnBackendAttributeName_t name) const;
  template <typename T>
  T Get(cudnnBackendAttributeName_t name, T otherwise) const;
  // Of an attribute of float or double.
  double Number(cudnnBackendAttributeName_t name, double otherwise) const;
  // What the attribute's first descriptor came to; null if it is not set or came to something else.
  template <typename T>
  const T* Made(cudnnBackendAttributeName_t name) const;

  DnnBackendValue value;  // once it is final

 private:
  cudnnBackendDescriptorType_t kind_;
  bool is_final_ = false;
  std::vector<DnnAttribute> attributes_;
};

// Why a descriptor cannot be finalised, or an attribute not be set.
struct [[nodiscard]] DnnVerdict {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::string what;

  bool ok() const { return status == CUDNN_STATUS_SUCCESS; }
};

// Whether there are such descriptors here at all.
bool DnnHasBackendKind(cudnnBackendDescriptorType_t kind);

// Sets an attribute by the documented rules. Descriptors among the elements must be finalised.
DnnVerdict DnnSetAttribute(DnnBackendState& state, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, std::int64_t count,
                           const void* elements);

// Whether a descriptor of that kind has such an attribute; and whether all that it needs are set.
DnnVerdict DnnCheckAttribute(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type);
DnnVerdict DnnCheckComplete(const DnnBackendState& state);

// Makes `state.value`, and the attributes that follow from the others, asking the library where
// only it knows (backend_library.h). The attributes are complete.
DnnVerdict DnnMakeValue(DnnBackendState& state);

// What a cudnnBackendDescriptor_t points to.
struct DnnBackendDescriptor {
  std::shared_ptr<DnnBackendState> state;
};

// A plan and where its tensors lie: what an execution needs.
struct DnnExecution {
  const DnnBackendPlan* plan = nullptr;
  std::vector<std::uint64_t> addresses;  // of the graph's tensors in their order; 0: virtual
  std::uint64_t workspace = 0;           // 0: none is needed
};

// Reads the two descriptors of an execution, which must outlive it.
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
