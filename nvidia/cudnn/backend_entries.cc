// The C entries that create, change, finalise and read the descriptors of the backend API. Both the
// replacement library and the emulated library compile this file.
#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "nvidia/cudnn/backend_descriptor.h"
#include "nvidia/cudnn/backend_library.h"

namespace torpor {
namespace {

// Returns the verdict of `body`, and prints the reason of a refusal for the user of the program.
template <typename Body>
cudnnStatus_t Answer(const char* entry, Body&& body) noexcept {
  try {
    const DnnVerdict verdict = body();
    if (!verdict.ok() && !verdict.what.empty()) DnnSay(std::string(entry) + ": " + verdict.what);
    return verdict.status;
  } catch (const std::bad_alloc&) {
    return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  } catch (...) {
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
}

DnnBackendDescriptor* AsDescriptor(cudnnBackendDescriptor_t descriptor) {
  return static_cast<DnnBackendDescriptor*>(descriptor);
}

// Completes a descriptor: checks the attributes, makes the value, and freezes both.
DnnVerdict Finalize(DnnBackendDescriptor& descriptor) {
  DnnBackendState& state = *descriptor.state;
  if (state.is_final()) return {CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized already"};
  DnnVerdict verdict = DnnCheckComplete(state);
  if (verdict.ok()) verdict = DnnMakeValue(state);
  if (verdict.ok()) state.Finish();
  return verdict;
}

// Makes the program's descriptors refer to the descriptors of an attribute.
DnnVerdict GiveDescriptors(const std::vector<DnnBackendReference>& from, std::int64_t requested,
                           void* elements) {
  const auto count = std::min(from.size(), static_cast<std::size_t>(requested));
  auto* const descriptors = static_cast<cudnnBackendDescriptor_t*>(elements);
  for (std::size_t i = 0; i < count; ++i) {
    DnnBackendDescriptor* const target = AsDescriptor(descriptors[i]);
    if (target == nullptr)
      return {CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a descriptor to be filled in is null"};
    if (target->state->kind() != from[i]->kind())
      return {CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
              "a descriptor to be filled in is of another kind"};
    // A final state never changes.
    target->state = std::const_pointer_cast<DnnBackendState>(from[i]);
  }
  return {};
}

// Copies an attribute to the program; `requested` bounds the elements.
DnnVerdict GetAttribute(const DnnBackendState& state, cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type, std::int64_t requested,
                        std::int64_t* count, void* elements) {
  // As cuDNN documents.
  if (!state.is_final())
    return {CUDNN_STATUS_NOT_INITIALIZED, "an attribute is read before cudnnBackendFinalize"};
  DnnVerdict verdict = DnnCheckAttribute(state.kind(), name, type);
  if (!verdict.ok()) return verdict;
  if (requested < 0) return {CUDNN_STATUS_BAD_PARAM, "fewer than no elements are asked for"};
  const DnnAttribute* const attribute = state.Find(name);
  const std::int64_t available = attribute == nullptr ? 0 : attribute->count;
  if (attribute != nullptr && attribute->type != type)
    return {CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "an attribute was set with another type"};
  if (count != nullptr) *count = available;
  if (elements == nullptr || available == 0) return {};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return GiveDescriptors(attribute->descriptors, requested, elements);
  const std::size_t element_bytes = attribute->bytes.size() / static_cast<std::size_t>(available);
  std::memcpy(elements, attribute->bytes.data(),
              element_bytes * static_cast<std::size_t>(std::min(requested, available)));
  return {};
}

}  // namespace
}  // namespace torpor

using namespace torpor;  // NOLINT: the rest only defines the C interface

#pragma GCC visibility push(default)

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  return Answer("cudnnBackendCreateDescriptor", [&]() -> DnnVerdict {
    if (!DnnHasBackendKind(descriptorType)) {
      return {CUDNN_STATUS_NOT_SUPPORTED, "descriptors of kind " +
                                              std::to_string(int{descriptorType}) +
                                              " are not supported (docs/shim.md)"};
    }
    *descriptor = new DnnBackendDescriptor{std::make_shared<DnnBackendState>(descriptorType)};
    return {};
  });
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete AsDescriptor(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t elementCount, const void* arrayOfElements) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  return Answer("cudnnBackendSetAttribute", [&] {
    return DnnSetAttribute(*AsDescriptor(descriptor)->state, attributeName, attributeType,
                           elementCount, arrayOfElements);
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  return Answer("cudnnBackendFinalize", [&] { return Finalize(*AsDescriptor(descriptor)); });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType,
                                       int64_t requestedElementCount, int64_t* elementCount,
                                       void* arrayOfElements) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  return Answer("cudnnBackendGetAttribute", [&] {
    return GetAttribute(*AsDescriptor(descriptor)->state, attributeName, attributeType,
                        requestedElementCount, elementCount, arrayOfElements);
  });
}

#pragma GCC visibility pop
