// The entries about user objects: objects of the program kept alive by graphs.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/graph_lock.h"

namespace torpor::shim {
namespace {

// CUDA demands the flag cudaUserObjectNoDestructorSync: no call waits for the destructor.
cudaError_t Create(cudaUserObject_t* out, void* object, cudaHostFn_t destroy, unsigned references,
                   unsigned flags) {
  if (!out || !destroy || references == 0 || flags != cudaUserObjectNoDestructorSync)
    return cudaErrorInvalidValue;
  *out = (new UserObject(object, destroy, references))->handle();
  return cudaSuccess;
}

// With cudaGraphUserObjectMove the caller's references become the graph's.
cudaError_t RetainForGraph(cudaGraph_t graph_handle, cudaUserObject_t handle, unsigned count,
                           unsigned flags) {
  const GraphLock lock;
  Graph* const graph = Graph::Find(graph_handle);
  UserObject* const object = UserObject::Find(handle);
  const unsigned known = cudaGraphUserObjectMove;
  if (!graph || !object || count == 0 || (flags & ~known) != 0) return cudaErrorInvalidValue;
  if ((flags & cudaGraphUserObjectMove) == 0) object->Retain(count);
  graph->user_references().Take(*object, count);
  return cudaSuccess;
}

// cudaErrorInvalidValue if the graph holds fewer references.
cudaError_t ReleaseFromGraph(cudaGraph_t graph_handle, cudaUserObject_t handle, unsigned count) {
  const GraphLock lock;
  Graph* const graph = Graph::Find(graph_handle);
  UserObject* const object = UserObject::Find(handle);
  const bool released = graph && object && graph->user_references().Release(*object, count);
  return released ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaUserObjectCreate(cudaUserObject_t* out, void* object, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags) {
  return Entry([&] { return Create(out, object, destroy, references, flags); });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t handle, unsigned int count) {
  return Entry([&] {
    UserObject* const object = UserObject::Find(handle);
    if (!object || count == 0) return cudaErrorInvalidValue;
    object->Retain(count);
    return cudaSuccess;
  });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned int count) {
  return Entry([&] {
    UserObject* const object = UserObject::Find(handle);
    return object && object->Release(count) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags) {
  return Entry([&] { return RetainForGraph(graph, object, count, flags); });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count) {
  return Entry([&] { return ReleaseFromGraph(graph, object, count); });
}
