#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "nvidia/cudnn/graph.h"
#include "proto/cuda_api/cudnn_functions.h"

namespace torpor::executor {

// A descriptor of the library's backend API.
class BackendDescriptor {
 public:
  // `functions` must outlive this and have the backend API.
  BackendDescriptor(const cuda_api::CudnnFunctions& functions, cudnnBackendDescriptorType_t kind);
  ~BackendDescriptor();
  BackendDescriptor(BackendDescriptor&& other) noexcept
      : functions_(other.functions_),
        status_(other.status_),
        real_(std::exchange(other.real_, nullptr)) {}
  BackendDescriptor& operator=(BackendDescriptor&&) = delete;

  cudnnBackendDescriptor_t real() const { return real_; }
  // Returns the first failure of all operations on the descriptor.
  cudnnStatus_t status() const { return status_; }

  template <typename T>
  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& element) {
    Set(name, type, std::span<const T>(&element, 1));
  }
  template <typename T>
  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           std::span<const T> elements) {
    SetElements(name, type, static_cast<std::int64_t>(elements.size()), elements.data());
  }
  void Set(cudnnBackendAttributeName_t name, const BackendDescriptor& other) {
    Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.real());
  }
  void Finalize();

  // The elements of an attribute that are numbers, `most` at the most; none if it has none.
  template <typename T>
  std::vector<T> Numbers(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::size_t most) const {
    std::vector<T> elements(most);
    elements.resize(GetElements(name, type, most, elements.data()));
    return elements;
  }
  // Returns the elements that are descriptors of a kind.
  std::vector<BackendDescriptor> Descriptors(cudnnBackendAttributeName_t name,
                                             cudnnBackendDescriptorType_t kind,
                                             std::size_t most) const;

 private:
  void SetElements(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t count, const void* elements);
  std::size_t GetElements(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::size_t most, void* elements) const;
  void Note(cudnnStatus_t status) {
    if (status_ == CUDNN_STATUS_SUCCESS) status_ = status;
  }

  const cuda_api::CudnnFunctions* functions_;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  cudnnBackendDescriptor_t real_ = nullptr;
};

// A real operation graph, or why the library refuses it.
class RealGraph {
 public:
  // `graph` is valid (nvidia/cudnn/graph_checks.h).
  RealGraph(const cuda_api::CudnnFunctions& functions, cudnnHandle_t handle, const DnnGraph& graph);

  cudnnStatus_t status() const;
  const BackendDescriptor& descriptor() const { return graph_; }

 private:
  BackendDescriptor& Add(std::int32_t kind);
  const BackendDescriptor& AddTensor(const DnnGraphTensor& tensor);
  const BackendDescriptor& AddConvolution(const DnnGraphConvolution& convolution);
  const BackendDescriptor& AddPointwise(const DnnPointwise& pointwise);
  const BackendDescriptor& AddOperation(const DnnGraphOperation& operation,
                                        std::span<const BackendDescriptor* const> tensors);

  const cuda_api::CudnnFunctions& functions_;
  std::deque<BackendDescriptor> parts_;  // addresses stay valid
  BackendDescriptor graph_;
};

// A real plan that executes a graph by an engine, or why the library refuses it.
class RealPlan {
 public:
  // `graph` must outlive this and be accepted by the library.
  RealPlan(const cuda_api::CudnnFunctions& functions, const RealGraph& graph,
           const DnnEngineConfig& config);

  cudnnStatus_t status() const;
  std::uint64_t workspace_bytes() const { return workspace_bytes_; }
  const BackendDescriptor& descriptor() const { return plan_; }

 private:
  BackendDescriptor engine_;
  std::vector<BackendDescriptor> knobs_;
  BackendDescriptor config_;
  BackendDescriptor plan_;
  std::uint64_t workspace_bytes_ = 0;
};

// Returns the library's description of a finalised engine.
DnnEngine DescriptionOf(const BackendDescriptor& engine);

// Reads the library's engine configuration; false if the library does not tell.
bool ReadChoice(const BackendDescriptor& config, DnnEngineChoice& choice);

}  // namespace torpor::executor
