#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "nvidia/cudnn/graph.h"
#include "proto/cuda_api/cudnn_functions.h"

namespace torpor::executor {

// Owns a descriptor of the library's backend API. Errors are sticky: see status(). Not thread-safe.
class BackendDescriptor {
 public:
  // `functions` must have the backend API and outlive the descriptor.
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

  // Set an attribute to one element, several elements, or another descriptor.
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
  // Ends the setting of attributes; required before other descriptors use the descriptor.
  void Finalize();

  // Returns the numbers of an attribute, at most `max_count`; empty if the attribute is not
  // set.
  template <typename T>
  std::vector<T> Numbers(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::size_t max_count) const {
    std::vector<T> elements(max_count);
    elements.resize(GetElements(name, type, max_count, elements.data()));
    return elements;
  }
  // Returns the descriptors of an attribute, at most `max_count`, each of the given kind.
  std::vector<BackendDescriptor> Descriptors(cudnnBackendAttributeName_t name,
                                             cudnnBackendDescriptorType_t kind,
                                             std::size_t max_count) const;

 private:
  void SetElements(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t count, const void* elements);
  std::size_t GetElements(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::size_t max_count, void* elements) const;
  void Note(cudnnStatus_t status) {
    if (status_ == CUDNN_STATUS_SUCCESS) status_ = status;
  }

  const cuda_api::CudnnFunctions* functions_;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  cudnnBackendDescriptor_t real_ = nullptr;
};

// Builds the library's operation graph for a DnnGraph. Not thread-safe.
class RealGraph {
 public:
  // `graph` must be valid (nvidia/cudnn/graph_checks.h).
  RealGraph(const cuda_api::CudnnFunctions& functions, cudnnHandle_t handle, const DnnGraph& graph);

  // CUDNN_STATUS_SUCCESS, or the library's reason for refusing the graph.
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

// Builds the library's plan for executing a graph with a given engine. Not thread-safe.
class RealPlan {
 public:
  // `graph` must have the status CUDNN_STATUS_SUCCESS and outlive the plan.
  RealPlan(const cuda_api::CudnnFunctions& functions, const RealGraph& graph,
           const DnnEngineConfig& config);

  // CUDNN_STATUS_SUCCESS, or the library's reason for refusing the configuration.
  cudnnStatus_t status() const;
  // Bytes of device memory needed as workspace by an execution.
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

// Reads the library's engine configuration into `choice`; returns false if the library does not
// report the configuration.
bool ReadChoice(const BackendDescriptor& config, DnnEngineChoice& choice);

}  // namespace torpor::executor
