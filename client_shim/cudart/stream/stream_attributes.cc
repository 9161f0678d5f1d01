#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// Attributes of streams. All attributes only tune, so the client keeps them for queries and sends
// nothing.
bool IsKnown(cudaStreamAttrID attribute) {
  switch (attribute) {
    case cudaStreamAttributeAccessPolicyWindow:
    case cudaStreamAttributeSynchronizationPolicy:
    case cudaStreamAttributeMemSyncDomainMap:
    case cudaStreamAttributeMemSyncDomain:
    case cudaStreamAttributePriority:
      return true;
    default:
      return false;
  }
}

cudaError_t Set(cudaStream_t handle, cudaStreamAttrID attribute, const cudaStreamAttrValue* value) {
  if (!value || !IsKnown(attribute)) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  std::lock_guard lock(stream->mutex);
  stream->attributes[attribute] = *value;
  return cudaSuccess;
}

// Attributes never set are zero, except the priority, which is the stream's.
cudaError_t Get(cudaStream_t handle, cudaStreamAttrID attribute, cudaStreamAttrValue* value) {
  if (!value || !IsKnown(attribute)) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  std::lock_guard lock(stream->mutex);
  const auto found = stream->attributes.find(attribute);
  *value = found == stream->attributes.end() ? cudaStreamAttrValue{} : found->second;
  const bool is_own_priority =
      attribute == cudaStreamAttributePriority && found == stream->attributes.end();
  if (is_own_priority) value->priority = stream->priority;
  return cudaSuccess;
}

cudaError_t Copy(cudaStream_t to, cudaStream_t from) {
  ClientStreamPtr target;
  ClientStreamPtr source;
  TORPOR_TRY(FindStream(to, target));
  TORPOR_TRY(FindStream(from, source));
  if (target == source) return cudaSuccess;
  std::scoped_lock lock(target->mutex, source->mutex);
  target->attributes = source->attributes;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue* value) {
  return Entry([&] { return Set(stream, attribute, value); });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue* value) {
  return Entry([&] { return Get(stream, attribute, value); });
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return Entry([&] { return Copy(to, from); });
}
