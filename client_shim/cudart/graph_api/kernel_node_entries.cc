// The entries about kernel nodes.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph_api/make_work.h"
#include "client_shim/cudart/graph_api/node_access.h"
#include "client_shim/cudart/launch/launch.h"
#include "proto/cuda_api/launch_cluster.h"

namespace torpor::shim {
namespace {

// The program's name of a kernel: the host function, or the cudaKernel_t of a loaded library.
void* FunctionOf(ClientKernel& kernel) {
  return kernel.host_function ? const_cast<void*>(kernel.host_function) : &kernel;
}

// Returns a kernel node's parameters. The node owns the array of pointers: valid until the next
// query, change or destruction.
cudaError_t Tell(cudaGraphNode_t handle, cudaKernelNodeParams* parameters) {
  const GraphLock lock;
  KernelWork* kernel = nullptr;
  TORPOR_TRY(FindWork(handle, kernel));
  if (!parameters) return cudaErrorInvalidValue;
  std::vector<void*>& pointers = Graph::FindNode(handle)->parameter_pointers;
  pointers.clear();
  for (const wire::KernelParameter& parameter : kernel->kernel->entry.parameters)
    pointers.push_back(kernel->parameters.data() + parameter.offset);
  *parameters = {FunctionOf(*kernel->kernel), kernel->grid,    kernel->block,
                 kernel->shared_bytes,        pointers.data(), nullptr};
  return cudaSuccess;
}

// Whether CUDA keeps the attribute for kernel nodes.
bool IsKnown(cudaLaunchAttributeID attribute) {
  switch (attribute) {
    case cudaKernelNodeAttributeAccessPolicyWindow:
    case cudaKernelNodeAttributeCooperative:
    case cudaKernelNodeAttributePriority:
    case cudaKernelNodeAttributeClusterDimension:
    case cudaKernelNodeAttributeClusterSchedulingPolicyPreference:
    case cudaKernelNodeAttributeMemSyncDomainMap:
    case cudaKernelNodeAttributeMemSyncDomain:
    case cudaKernelNodeAttributePreferredSharedMemoryCarveout:
      return true;
    default:
      return false;
  }
}

// Stores an attribute. Cooperation and clusters change launches; unsupported attributes are
// refused.
cudaError_t SetAttribute(cudaGraphNode_t handle, cudaLaunchAttributeID attribute,
                         const cudaLaunchAttributeValue* value) {
  const GraphLock lock;
  KernelWork* kernel = nullptr;
  TORPOR_TRY(FindWork(handle, kernel));
  if (!value || !IsKnown(attribute)) return cudaErrorInvalidValue;
  cudaLaunchAttribute given{};
  given.id = attribute;
  given.val = *value;
  Launch launch;
  launch.flags = kernel->flags;
  if (attribute == cudaKernelNodeAttributeCooperative) launch.flags &= ~wire::kLaunchCooperative;
  TORPOR_TRY(ApplyAttribute(given, launch));
  kernel->flags = launch.flags;
  kernel->attributes[attribute] = *value;
  return cudaSuccess;
}

// Returns a stored attribute, zero by default.
cudaError_t TellAttribute(cudaGraphNode_t handle, cudaLaunchAttributeID attribute,
                          cudaLaunchAttributeValue* value) {
  const GraphLock lock;
  KernelWork* kernel = nullptr;
  TORPOR_TRY(FindWork(handle, kernel));
  if (!value || !IsKnown(attribute)) return cudaErrorInvalidValue;
  const auto found = kernel->attributes.find(attribute);
  *value = found == kernel->attributes.end() ? cudaLaunchAttributeValue{} : found->second;
  if (attribute == cudaKernelNodeAttributeCooperative)
    value->cooperative = (kernel->flags & wire::kLaunchCooperative) != 0 ? 1 : 0;
  // A captured launch brings its clusters as flags.
  const wire::LaunchCluster cluster = wire::ClusterOf(kernel->flags);
  if (attribute == cudaKernelNodeAttributeClusterDimension)
    value->clusterDim = {cluster.x, cluster.y, cluster.z};
  return cudaSuccess;
}

// Copies all attributes, and the launch flags that follow from them.
cudaError_t CopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  const GraphLock lock;
  KernelWork* target = nullptr;
  KernelWork* source = nullptr;
  TORPOR_TRY(FindWork(to, target));
  TORPOR_TRY(FindWork(from, source));
  target->attributes = source->attributes;
  target->flags = source->flags;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

// Loads the kernel and copies the arguments now.
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const struct cudaKernelNodeParams* parameters) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count},
                   MakeFrom(parameters, MakeKernelWork));
  });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                         struct cudaKernelNodeParams* parameters) {
  return Entry([&] { return Tell(node, parameters); });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams* parameters) {
  return Entry([&] { return SetMade(node, MakeFrom(parameters, MakeKernelWork)); });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams* parameters) {
  return Entry([&] { return SetExecMade(exec, node, MakeFrom(parameters, MakeKernelWork)); });
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue* value) {
  return Entry([&] { return SetAttribute(node, attribute, value); });
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue* value) {
  return Entry([&] { return TellAttribute(node, attribute, value); });
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return Entry([&] { return CopyAttributes(to, from); });
}
